#include "proc.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

FILE *proc_open(const char *path) {
    const char *root = getenv("NODEPRINT_PROCFS");
    char whole[PATH_MAX];
    int length = snprintf(whole, sizeof whole, "%s/%s", root != NULL ? root : "/proc", path);
    return length < (int)sizeof whole ? fopen(whole, "re") : NULL;
}

/* "cpu family\t: 25\n": cut at the colon, without the blanks around it. */
static char *split(char *line) {
    char *colon = strchr(line, ':');
    if (colon == NULL) return NULL;
    char *value = colon + 1 + strspn(colon + 1, " \t");
    value[strcspn(value, "\n")] = '\0';
    while (colon > line && (colon[-1] == ' ' || colon[-1] == '\t')) colon--;
    *colon = '\0';
    return value;
}

void cpuinfo_read(cpuinfo_line *see, void *argument) {
    FILE *file = proc_open("cpuinfo");
    char line[8192];
    bool more = true;
    while (file != NULL && more && fgets(line, sizeof line, file) != NULL) {
        const char *value = split(line);
        if (value != NULL) more = see(line, value, argument);
    }
    if (file != NULL) fclose(file);
}

struct wanted {
    const char *field;
    char *value;
    size_t size;
};

static bool keep_first(const char *field, const char *value, void *argument) {
    const struct wanted *wanted = argument;
    if (strcmp(field, wanted->field) != 0) return true;
    snprintf(wanted->value, wanted->size, "%s", value);
    return false;
}

void cpuinfo_first(const char *field, char *value, size_t size) {
    struct wanted wanted = {field, value, size};
    value[0] = '\0';
    cpuinfo_read(keep_first, &wanted);
}

size_t smaps_huge_bytes(const unsigned char *bytes) {
    FILE *smaps = proc_open("self/smaps");
    char line[4096];
    bool inside = false;
    unsigned long kib = 0, found = 0;
    while (smaps != NULL && fgets(line, sizeof line, smaps) != NULL) {
        unsigned long start, end;
        if (sscanf(line, "%lx-%lx ", &start, &end) == 2) {
            if (inside) break;
            inside = start <= (uintptr_t)bytes && (uintptr_t)bytes < end;
        }
        if (inside &&
            (sscanf(line, "AnonHugePages: %lu kB", &kib) == 1 || sscanf(line, "Private_Hugetlb: %lu kB", &kib) == 1))
            found += kib;
    }
    if (smaps != NULL) fclose(smaps);
    return found << 10;
}
