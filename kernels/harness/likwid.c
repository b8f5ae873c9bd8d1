#define _GNU_SOURCE
#include "likwid.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The beginning of the line behind `line`, NULL at the end. */
static const char *next_line(const char *line) {
    const char *end = strchr(line, '\n');
    return end == NULL ? NULL : end + 1;
}

static bool begins_with(const char *line, const char *beginning) {
    return strncmp(line, beginning, strlen(beginning)) == 0;
}

bool likwid_rate(const char *output, double *bytes_per_s) {
    for (const char *line = output; line != NULL; line = next_line(line)) {
        char *end;
        if (!begins_with(line, "MByte/s:")) continue;
        const char *number = line + strlen("MByte/s:");
        double rate = strtod(number, &end);
        *bytes_per_s = rate * 1e6;
        return end != number && (*end == '\n' || *end == '\0') && isfinite(rate) && rate > 0;
    }
    return false;
}

void likwid_cpus(const char *output, struct cpulist *cpus) {
    static const char words[] = "running on hwthread ";
    *cpus = (struct cpulist){0};
    for (const char *line = output; line != NULL; line = next_line(line)) {
        int cpu;
        if (!begins_with(line, "Group:")) continue;
        const char *end = strchr(line, '\n'), *found = strstr(line, words);
        if (found == NULL || (end != NULL && found > end) || sscanf(found + strlen(words), "%d", &cpu) != 1) continue;
        cpulist_add(cpus, cpu);
    }
    cpulist_sort(cpus);
}

size_t likwid_streams(const char *output) {
    for (const char *line = output; line != NULL; line = next_line(line)) {
        size_t streams;
        if (sscanf(line, "Number of streams: %zu", &streams) == 1) return streams;
    }
    return 0;
}

bool likwid_has(const char *output, const char *kernel) {
    size_t length = strlen(kernel);
    for (const char *line = output; line != NULL; line = next_line(line))
        if (begins_with(line, kernel) && begins_with(line + length, " - ")) return true;
    return false;
}
