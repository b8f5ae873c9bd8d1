/* The core clock without any counter of the CPU's: additions that wait for each other take a cycle each. */
#ifndef NODEPRINT_FREQUENCY_H
#define NODEPRINT_FREQUENCY_H

#include <stdint.h>

enum { ADDITIONS_A_TURN = 64 };

/* Do `turns` turns of dependent additions. */
void additions(uint64_t turns);

/* Hz of the calling core now, by CLOCK_MONOTONIC_RAW: the fastest of `probes` probes of about `probe_ns`, as whatever
 * interrupts a probe can only make it longer. */
double core_hz(unsigned probes, double probe_ns);

#endif
