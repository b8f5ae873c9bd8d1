/* The core clock without any counter of the CPU's: additions that wait for each other take a cycle each. */
#ifndef NODEPRINT_FREQUENCY_H
#define NODEPRINT_FREQUENCY_H

#include <stddef.h>
#include <stdint.h>

enum { ADDITIONS_A_TURN = 64 };

/* Do `turns` turns of dependent additions. */
void additions(uint64_t turns);

/* Hz of the calling core now, by CLOCK_MONOTONIC_RAW: the fastest of `probes` probes of about `probe_ns`, as whatever
 * interrupts a probe can only make it longer. */
double core_hz(unsigned probes, double probe_ns);

/* How an idle core comes to its clock: at first, when it has settled, and after what time it is within 3 % of that. */
struct ramp {
    double first_hz, settled_hz, after_ns;
};

/* From the clock in windows after idling that end at `end_ns`; how long a window is depends on the clock. The last
 * quarter is settled. Only windows at the beginning count: a low one later was interrupted. */
struct ramp ramp_of(const double *hz, const double *end_ns, size_t windows);

#define RAMP_LONGEST_NS 2e6

/* How long a core works before anything is timed: for its ramp, RAMP_LONGEST_NS at most; nothing where that takes less than 0.1 ms,
 * which a probe of the clock takes anyway. */
double ramp_wait_ns(const struct ramp *ramp);

/* That of the calling core, which idles for 20 ms and works for 3 ms, three times: the middle one by its time. With a
 * fixed clock it takes nothing. A governor that acts later than after 3 ms is not seen. */
struct ramp core_ramp(void);

/* Work for so long, whatever the clock. */
void work_for(double ns);

#endif
