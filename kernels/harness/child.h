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
    size_t most_pages, pages_placed; /* anonymous pages at the moment it had most, and those of them on `nodes` */
};

/* Run it to its end. What preloads a library or tells likwid where to pin is taken out of its environment. */
void child_run(struct child *child);

#endif
