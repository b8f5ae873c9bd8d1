/* Which lines of a pool live together: groups by their distances from the CPUs, found in a census. */
#ifndef NODEPRINT_CLUSTERS_H
#define NODEPRINT_CLUSTERS_H

#include <stddef.h>

enum { MOST_CLUSTERS = 12 };

struct clustering {
    size_t count;      /* 1 where nothing separates */
    double agreement;  /* share of the lines that each half of the census alone puts into the same cluster */
    double separation; /* of the two clusters nearest to each other, in standard deviations; 0 with one cluster */
};

/* Group lines. `first` and `second` are the two halves of a census, `cpus` x `lines` distances in ns each; `cluster` gets
 * the number of each line's cluster, the largest cluster being 0.
 *
 * What distinguishes lines is which CPUs they are near to: each CPU's mean and each line's mean are taken off, so that a
 * line which is further from all CPUs alike makes no cluster. Clusters are found in the first half (Ward 1963, then
 * Lloyd's algorithm) and tested in the second, whose noise is another: along the line between the centers of two
 * clusters their means must be SEPARATION standard deviations apart. An even spread cut in the middle reaches 3.46 and a
 * normal one 2.65, however small the noise, so that only a gap makes two clusters of one. The largest number of clusters
 * that all separate is taken. */
struct clustering cluster_lines(const double *first, const double *second, size_t cpus, size_t lines,
                                unsigned char *cluster);

#endif
