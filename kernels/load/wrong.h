/* Results that are not what they must be, bit for bit. */
#ifndef NODEPRINT_WRONG_H
#define NODEPRINT_WRONG_H

#include <stddef.h>
#include <stdint.h>

#include "harness/run.h"

/* Bursts with a wrong word; of the first one its place in vectors, and the bits. */
struct wrong {
    uint64_t bursts;
    size_t vector, lane;
    uint64_t expected, found;
};

/* Counts a burst whose words `found`, in vectors of `lanes`, are not all `expected`. */
void wrong_compare(struct wrong *wrong, const void *found, const void *expected, size_t words, size_t lanes);

/* Adds to a record the wrong bursts of a CPU, beside `before` of others; a member has the first difference. Returns the sum. */
uint64_t wrong_add(struct result *result, uint64_t before, int cpu, const struct wrong *wrong);

enum { MOST_REFERENCE_BYTES = 8192 };

/* What `calculate` makes of a copy of `start` (its argument), as two of three workers have it: the one that calculates a
 * reference may be the one that is wrong. */
void reference_agreed(struct run *run, void (*calculate)(size_t role, void *copy), const void *start, void *result,
                      size_t bytes);

#endif
