/* The clock of timed sections: the CPU's own counter where it is invariant, clock_gettime otherwise. */
#ifndef NODEPRINT_CLOCK_H
#define NODEPRINT_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

struct clock_facts {
    const char *source; /* "tsc", "cntvct" or "clock_gettime" */
    double hz;          /* ticks a second, calibrated against CLOCK_MONOTONIC_RAW */
    double ns_per_tick;
    double step_ticks; /* by how many ticks the counter advances at once (20 to 35 on Zen) */
};

extern struct clock_facts clock_facts;
extern bool clock_is_counter;

/* Choose and calibrate; takes about 20 ms. */
void clock_start(void);

/* The step from what the counter advanced between two reads, again and again. Where it stood still a step is longer than
 * a read takes, and the least advance is one; it need not be a whole number of ticks, so that 62 and 63 may come in turn.
 * Where it never did, all that is known is what divides all advances. */
double clock_step(const uint64_t *advances, size_t count);

double clock_monotonic_s(void); /* CLOCK_MONOTONIC: for progress and elapsed time */

/* Ticks now. Nothing that stands before it in the program is later, nothing after it earlier. */
static inline uint64_t clock_ticks(void) {
#if defined(__x86_64__)
    if (clock_is_counter) {
        uint32_t low, high;
        __asm__ volatile("lfence\n\trdtsc\n\tlfence" : "=a"(low), "=d"(high) : : "memory");
        return (uint64_t)high << 32 | low;
    }
#elif defined(__aarch64__)
    if (clock_is_counter) {
        uint64_t ticks;
        __asm__ volatile("isb\n\tmrs %0, cntvct_el0\n\tisb" : "=r"(ticks) : : "memory");
        return ticks;
    }
#endif
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#endif
