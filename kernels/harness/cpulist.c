#include "cpulist.h"

#include <stdlib.h>
#include <string.h>

#include "fail.h"
#include "text.h"

void cpulist_add(struct cpulist *list, int cpu) {
    if ((list->count & (list->count - 1)) == 0) /* grows at each power of two */
        list->cpu = grow(list->cpu, list->count == 0 ? 1 : list->count * 2, sizeof *list->cpu);
    list->cpu[list->count++] = cpu;
}

size_t cpulist_index(const struct cpulist *list, int cpu) {
    size_t i = 0;
    while (i < list->count && list->cpu[i] != cpu) i++;
    return i;
}

bool cpulist_has(const struct cpulist *list, int cpu) {
    return cpulist_index(list, cpu) < list->count;
}

static int ascending(const void *a, const void *b) {
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

void cpulist_sort(struct cpulist *list) {
    if (list->count > 1) qsort(list->cpu, list->count, sizeof *list->cpu, ascending);
}

void cpulist_free(struct cpulist *list) {
    free(list->cpu);
    *list = (struct cpulist){0};
}

static bool number(const char **text, int *value) {
    const char *c = *text;
    if (*c < '0' || *c > '9') return false;
    long sum = 0;
    for (; *c >= '0' && *c <= '9'; c++) {
        sum = sum * 10 + (*c - '0');
        if (sum >= CPU_LIMIT) return false;
    }
    *text = c;
    *value = (int)sum;
    return true;
}

bool cpulist_parse(const char *text, struct cpulist *list, const char **why) {
    unsigned char *seen = grow(NULL, CPU_LIMIT / 8, 1);
    memset(seen, 0, CPU_LIMIT / 8);
    *list = (struct cpulist){0};
    *why = NULL;
    if (*text == '\0') *why = "it is empty";
    while (*why == NULL) {
        int first, last, stride = 1;
        if (!number(&text, &first)) {
            *why = "a CPU number is expected";
            break;
        }
        last = first;
        if (*text == '-') {
            text++;
            if (!number(&text, &last) || last < first) {
                *why = "a range must end with a number not below its start";
                break;
            }
            if (*text == ':') {
                text++;
                if (!number(&text, &stride) || stride == 0) {
                    *why = "a stride must be a number above 0";
                    break;
                }
            }
        }
        for (int cpu = first; cpu <= last; cpu += stride) {
            if ((seen[cpu / 8] & (1u << (cpu % 8))) != 0) {
                *why = "a CPU is named twice";
                break;
            }
            seen[cpu / 8] = (unsigned char)(seen[cpu / 8] | (1u << (cpu % 8)));
            cpulist_add(list, cpu);
        }
        if (*why != NULL || *text == '\0') break;
        if (*text != ',') *why = "CPUs are separated by commas";
        text++;
    }
    free(seen);
    if (*why == NULL) return true;
    cpulist_free(list);
    return false;
}

void cpulist_write(struct text *out, const struct cpulist *list, bool ranges) {
    for (size_t i = 0; i < list->count;) {
        size_t end = i + 1;
        while (ranges && end < list->count && list->cpu[end] == list->cpu[end - 1] + 1) end++;
        text_add(out, i == 0 ? "%d" : ",%d", list->cpu[i]);
        if (end - i > 1) text_add(out, "-%d", list->cpu[end - 1]);
        i = end;
    }
}
