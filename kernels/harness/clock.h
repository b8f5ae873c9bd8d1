/* The clock of timed sections: the CPU's own counter where it is invariant, clock_gettime otherwise. */
#ifndef NODEPRINT_CLOCK_H
#define NODEPRINT_CLOCK_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

struct clock_facts {
    const char *source; /* "tsc", "cntvct" or "clock_gettime" */
    double hz;          /* ticks a second, calibrated against CLOCK_MONOTONIC_RAW */
    double ns_per_tick;
    double step_ticks; /* by how many ticks the counter advances at once (20 to 35 on Zen) */
    int cpu;           /* where it was calibrated */
};

extern struct clock_facts clock_facts;
extern bool clock_is_counter;

/* Choose and calibrate; takes about 20 ms. To be called by a thread that is pinned. */
void clock_start(void);

/* What `read` advanced between two reads, again and again, with work of varied length between them: so a counter that
 * advances by one tick shows every length, and one that advances in steps shows their multiples alone. */
void clock_advances(uint64_t (*read)(void), uint64_t *advances, size_t count);

/* The step: the longest period of which nearly all advances are multiples, but for the whole ticks that they come in. It
 * need not be a whole number of ticks (22.5 where the counter has 2.25 GHz and advances every 10 ns). Where there is
 * none, the least advance if the counter stood still between reads, else what divides all advances. */
double clock_step(const uint64_t *advances, size_t count);

double clock_monotonic_s(void); /* CLOCK_MONOTONIC: for progress and elapsed time */
double clock_thread_s(void);    /* CLOCK_THREAD_CPUTIME_ID: the time that the calling thread ran */

/* What the clocks of a CPU are ahead of the others': nothing, but in a build that tests what comes of it. */
static inline uint64_t clock_skew(void) {
#if defined(SKEWED_CPU)
    return sched_getcpu() == SKEWED_CPU ? SKEW_TICKS : 0;
#else
    return 0;
#endif
}

/* CLOCK_MONOTONIC_RAW in whole ns: after 104 days of uptime a double has steps of 2 ns, 0.1 % of a
 * probe of 2 us. */
static inline uint64_t clock_raw_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec + clock_skew();
}

/* Ticks now. Nothing that stands before it in the program is later, nothing after it earlier. */
static inline uint64_t clock_ticks(void) {
#if defined(__x86_64__)
    if (clock_is_counter) {
        uint32_t low, high;
        __asm__ volatile("lfence\n\trdtsc\n\tlfence" : "=a"(low), "=d"(high) : : "memory");
        return ((uint64_t)high << 32 | low) + clock_skew();
    }
#elif defined(__aarch64__)
    if (clock_is_counter) {
        uint64_t ticks;
        __asm__ volatile("isb\n\tmrs %0, cntvct_el0\n\tisb" : "=r"(ticks) : : "memory");
        return ticks + clock_skew();
    }
#endif
    return clock_raw_ns();
}

#endif
