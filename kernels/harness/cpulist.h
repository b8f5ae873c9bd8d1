/* Lists of CPUs as Linux writes them: 0-3,8,10-14:2 (a stride counts from the start of its range). */
#ifndef NODEPRINT_CPULIST_H
#define NODEPRINT_CPULIST_H

#include <stdbool.h>
#include <stddef.h>

struct text;

enum { CPU_LIMIT = 1 << 20 }; /* above any CPU number; catches nonsense before it becomes memory */

struct cpulist {
    int *cpu; /* in the order given, no number twice */
    size_t count;
};

/* Parse `text` into `list`. False, with a static reason in `why`, when it is no such list or names a CPU twice. */
bool cpulist_parse(const char *text, struct cpulist *list, const char **why);
void cpulist_add(struct cpulist *list, int cpu);
/* Where a CPU is in the list; `count` where it is not there. */
size_t cpulist_index(const struct cpulist *list, int cpu);
bool cpulist_has(const struct cpulist *list, int cpu);
void cpulist_sort(struct cpulist *list);
void cpulist_free(struct cpulist *list);

/* Append the list in its order, ranges collapsed ("0-3,8"), or one number at a time. */
void cpulist_write(struct text *out, const struct cpulist *list, bool ranges);

#endif
