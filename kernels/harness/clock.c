#include "clock.h"

#include <math.h>
#include <sched.h>
#include <string.h>

#include "proc.h"

struct clock_facts clock_facts;
bool clock_is_counter;

double clock_monotonic_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

double clock_thread_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* x86: the counter must run at one rate and through sleep. aarch64: the generic timer does by its architecture. */
static bool counter_is_invariant(void) {
#if defined(__x86_64__)
    char flags[8192];
    cpuinfo_first("flags", flags, sizeof flags);
    return strstr(flags, " constant_tsc") != NULL && strstr(flags, " nonstop_tsc") != NULL;
#elif defined(__aarch64__)
    return true;
#else
    return false;
#endif
}

/* A moment on both clocks; the tightest of some tries, as a timer interrupt may fall between the two reads. */
static void moment(uint64_t *ns, uint64_t *ticks) {
    uint64_t tightest = UINT64_MAX;
    for (int i = 0; i < 50; i++) {
        uint64_t before = clock_raw_ns(), now = clock_ticks(), took = clock_raw_ns() - before;
        if (took >= tightest) continue;
        tightest = took;
        *ns = before + took / 2;
        *ticks = now;
    }
}

static uint64_t common_divisor(uint64_t a, uint64_t b) {
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

void clock_advances(uint64_t (*read)(void), uint64_t *advances, size_t count) {
    enum { LENGTHS = 97 };
    for (size_t i = 0; i < count; i++) {
        uint64_t first = read();
        for (size_t work = i % LENGTHS; work > 0; work--) __asm__ volatile("" : "+r"(work));
        uint64_t second = read();
        advances[i] = second > first ? second - first : 0;
    }
}

/* Whether all advances but a few, which were interrupted, are near multiples of `period`, which is fitted to those that
 * are. The difference of two counts, each cut to whole ticks, is less than 1 off. */
static bool fits(const uint64_t *advances, size_t count, double *period) {
    static const double most_apart = 1, most_apart_share = 0.125, outliers = 0.03;
    enum { FITS = 4 };
    size_t apart = 0;
    for (int turn = 0; turn < FITS; turn++) {
        double products = 0, squares = 0, limit = most_apart_share * *period;
        if (turn > 0) limit = fmin(most_apart, limit); /* the candidate itself is only near */
        apart = 0;
        for (size_t i = 0; i < count; i++) {
            double advance = (double)advances[i], periods = round(advance / *period);
            if (fabs(advance - periods * *period) > limit) {
                apart++;
                continue;
            }
            products += periods * advance;
            squares += periods * periods;
        }
        if (squares == 0 || (double)apart > 2 * outliers * (double)count) return false;
        *period = products / squares;
    }
    return (double)apart <= outliers * (double)count;
}

double clock_step(const uint64_t *advances, size_t count) {
    enum { LONGEST_HALVES = 2048, SHORTEST_HALVES = 3 };
    uint64_t divisor = 0, least = 0;
    bool stood = false;
    for (size_t i = 0; i < count; i++) {
        divisor = common_divisor(divisor, advances[i]);
        if (advances[i] > 0 && (least == 0 || advances[i] < least)) least = advances[i];
        stood = stood || advances[i] == 0;
    }
    if (least == 0) return 1;
    for (int halves = LONGEST_HALVES; halves >= SHORTEST_HALVES; halves -= halves > 128 ? 8 : 1) {
        double period = halves / 2.0;
        if (fits(advances, count, &period)) return period;
    }
    return (double)(stood ? least : divisor);
}

static uint64_t ticks_now(void) {
    return clock_ticks();
}

void clock_start(void) {
    enum { READS = 2000 };
    uint64_t advances[READS];

    clock_is_counter = counter_is_invariant();
    clock_facts = (struct clock_facts){.source = "clock_gettime", .hz = 1e9, .ns_per_tick = 1, .cpu = sched_getcpu()};
    if (clock_is_counter) {
#if defined(__aarch64__)
        clock_facts.source = "cntvct";
#else
        clock_facts.source = "tsc";
#endif
        uint64_t ns0 = 0, ns1 = 0, ticks0 = 0, ticks1 = 0;
        moment(&ns0, &ticks0);
        struct timespec pause = {.tv_nsec = 20000000};
        nanosleep(&pause, NULL);
        moment(&ns1, &ticks1);
        clock_facts.ns_per_tick = (double)(ns1 - ns0) / (double)(ticks1 - ticks0);
        clock_facts.hz = 1e9 / clock_facts.ns_per_tick;
    }
    clock_advances(ticks_now, advances, READS);
    clock_facts.step_ticks = clock_step(advances, READS);
}
