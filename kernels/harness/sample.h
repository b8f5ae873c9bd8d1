/* Which pairs of NUMA nodes are measured, where there are too many for all of them. */
#ifndef NODEPRINT_SAMPLE_H
#define NODEPRINT_SAMPLE_H

#include "run.h"

struct node_pair {
    int a, b;
};

/* --cells, a row in the settings of kernels that measure pairs of nodes, by these operations of theirs alone. */
extern const char *sample_word;
#define SAMPLE_SETTING(operations)                                                                                     \
    {                                                                                                                  \
        .name = "cells", .value = "WHICH", .word = &sample_word, .shapes = true, .only = (operations),                 \
        .help =                                                                                                        \
            "above eight NUMA nodes: sample (eight pairs of each distance; default), all, or those of one distance"    \
    }

/* Ends the process with 2 where nothing is `measured`, as --cells names a distance that no two nodes have. */
void sample_check(size_t measured);

/* Keep of `pairs` (in the order given) those that are measured, and return their number. Up to eight memory nodes, and
 * with --cells all, all of them; with --cells DISTANCE those of that distance (sysfs). Else every node with itself, and of
 * each distance eight pairs, which together have as many different nodes as there can be; the header's not_measured says
 * how many there are. The choice follows from the layout alone: equal machines measure equal pairs. */
size_t sample_pairs(struct run *run, struct node_pair *pairs, size_t count);

/* The same for CPU number `turn`, on node `from`, and the memory of `nodes`: its own node, and one of each distance in
 * turn. */
size_t sample_memory(struct run *run, int from, size_t turn, int *nodes, size_t count);

/* The same for `pairs` of CPUs, by indices into those of the selection: up to 64 CPUs, and with --cells all, all of them. Else
 * each CPU with one other of each class that it has any of: what the two share, down to the die, and the distance of their
 * nodes. The header's not_measured says how many of each class there are. */
size_t sample_cpu_pairs(struct run *run, struct pair *pairs, size_t count);

#endif
