/* How far the clocks of two CPUs are apart, for kernels that subtract a time of one from a time of the other. */
#ifndef NODEPRINT_OFFSET_H
#define NODEPRINT_OFFSET_H

#include <stdint.h>

#include "run.h"

/* By how much a clock is ahead, and by how much that may be wrong: half of the round trip that it was read in. */
struct offset {
    double ns, error_ns;
};

/* What three readings say: of one clock, then of the other, then of the first again. */
struct offset offset_of(uint64_t sent, uint64_t there, uint64_t back, double ns_per_tick);

/* Ends the process with 3, naming both CPUs, where the clock that `read` reads is certainly more than `most_ns` ahead or
 * behind on a worker's CPU, compared with the first worker's. */
void offset_check(struct run *run, uint64_t (*read)(void), double ns_per_tick, double most_ns);

#endif
