#include "frequency.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "clock.h"
#include "stats.h"

#if defined(__x86_64__)
/* The operand is a register: Intel's cores since 2021 do additions of a constant while renaming, in no time. */
#define ADD "add %1, %0\n\t"
#elif defined(__aarch64__)
#define ADD "add %0, %0, %1\n\t"
#endif

void additions(uint64_t turns) {
    uint64_t sum = 0, one = 1;
    for (; turns > 0; turns--) {
#ifdef ADD
#define ADD_8 ADD ADD ADD ADD ADD ADD ADD ADD
        __asm__ volatile(ADD_8 ADD_8 ADD_8 ADD_8 ADD_8 ADD_8 ADD_8 ADD_8 : "+r"(sum) : "r"(one) : "cc");
#else
        for (int i = 0; i < ADDITIONS_A_TURN; i++) __asm__ volatile("" : "+r"(sum) : "r"(one += sum));
#endif
    }
}

static double ns_since(uint64_t start) {
    return (double)(clock_raw_ns() - start);
}

/* What a probe of nothing takes, the least of some: of a probe of 2 us the reading of the clock is 1 %. */
static double reading_ns(void) {
    double least = INFINITY;
    for (int i = 0; i < 4; i++) {
        uint64_t start = clock_raw_ns();
        least = fmin(least, ns_since(start));
    }
    return least;
}

double core_hz(unsigned probes, double probe_ns) {
    uint64_t turns = 16;
    double fastest = 0, took = 0, reading = reading_ns();
    for (; took < probe_ns / 4; turns *= 2) {
        uint64_t start = clock_raw_ns();
        additions(turns);
        took = ns_since(start);
    }
    turns *= 2;
    for (unsigned i = 0; i < probes;) {
        uint64_t start = clock_raw_ns();
        additions(turns);
        took = ns_since(start) - reading;
        if (took < probe_ns / 4) { /* an interrupt had made fewer turns last that long */
            turns *= 2;
            continue;
        }
        fastest = fmax(fastest, (double)turns * ADDITIONS_A_TURN * 1e9 / took);
        i++;
    }
    return fastest;
}

void work_for(double ns) {
    enum { TURNS = 64 };
    for (uint64_t start = clock_raw_ns(); ns_since(start) < ns;) additions(TURNS);
}

struct ramp ramp_of(const double *hz, const double *end_ns, size_t windows) {
    static const double settled_share = 0.97;
    size_t last = windows / 4 > 0 ? windows / 4 : 1, slow = 0;
    double *settled = malloc(last * sizeof *settled);
    if (settled == NULL) return (struct ramp){0};
    for (size_t i = 0; i < last; i++) settled[i] = hz[windows - last + i];
    sort_ascending(settled, last);
    struct ramp ramp = {.first_hz = hz[0], .settled_hz = median_sorted(settled, last)};
    free(settled);
    while (slow < windows && hz[slow] < settled_share * ramp.settled_hz) slow++;
    ramp.after_ns = slow > 0 ? end_ns[slow - 1] : 0;
    return ramp;
}

double ramp_wait_ns(const struct ramp *ramp) {
    static const double worth_waiting_ns = 100e3;
    return ramp->after_ns >= worth_waiting_ns ? fmin(ramp->after_ns, RAMP_LONGEST_NS) : 0;
}

static int by_time(const void *a, const void *b) {
    double x = ((const struct ramp *)a)->after_ns, y = ((const struct ramp *)b)->after_ns;
    return (x > y) - (x < y);
}

struct ramp core_ramp(void) {
    enum { TRIES = 3, WINDOWS = 120 };
    static const double probe_ns = 12e3; /* finding out how many additions that takes doubles it */
    struct ramp found[TRIES];
    double hz[WINDOWS], end_ns[WINDOWS];
    for (int i = 0; i < TRIES; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
        uint64_t start = clock_raw_ns();
        for (size_t window = 0; window < WINDOWS; window++) {
            hz[window] = core_hz(1, probe_ns);
            end_ns[window] = ns_since(start);
        }
        found[i] = ramp_of(hz, end_ns, WINDOWS);
    }
    qsort(found, TRIES, sizeof *found, by_time);
    return found[TRIES / 2];
}
