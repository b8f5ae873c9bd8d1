/* Another program, run where and with the memory that is asked, and what it says. */
#ifndef NODEPRINT_CHILD_H
#define NODEPRINT_CHILD_H

#include <stdbool.h>
#include <stddef.h>

#include "cpulist.h"
#include "text.h"

struct child {
    const char *const *arguments; /* NULL-terminated; the first is looked for on the PATH */
    const struct cpulist *cpus;   /* its affinity; NULL: as ours */
    const int *nodes;             /* where its memory comes from: bound to one, interleaved over several */
    size_t node_count;            /* 0: as ours */
    double seconds;               /* after which it is ended */
    /* what came of it */
    struct text said; /* standard output and error together */
    int exit_code;    /* 127: not found; 128 + signal; -1: stopped by a signal to us, -2: it took too long */
    size_t most_bytes, placed_bytes; /* of anonymous memory at the moment it had most, and of it on `nodes` */
};

/* Add the anonymous memory of a line of numa_maps: in all, and on `nodes`. */
void child_count_line(char *line, const int *nodes, size_t node_count, size_t *bytes, size_t *placed);

/* Whether a child's memory can be bound to nodes: not in containers without CAP_SYS_NICE. */
bool child_may_bind(void);

/* Run it to its end. What preloads a library or tells likwid where to pin is taken out of its environment. */
void child_run(struct child *child);

#endif
