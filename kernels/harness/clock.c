#define _GNU_SOURCE
#include "clock.h"

#include <stdio.h>
#include <string.h>

struct clock_facts clock_facts;
bool clock_is_counter;

static double raw_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

double clock_monotonic_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* x86: the counter must run at one rate and through sleep. aarch64: the generic timer does by its architecture. */
static bool counter_is_invariant(void) {
#if defined(__x86_64__)
    FILE *file = fopen("/proc/cpuinfo", "re");
    char line[8192];
    bool invariant = false;
    while (file != NULL && !invariant && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "flags", 5) == 0)
            invariant = strstr(line, " constant_tsc") != NULL && strstr(line, " nonstop_tsc") != NULL;
    if (file != NULL) fclose(file);
    return invariant;
#elif defined(__aarch64__)
    return true;
#else
    return false;
#endif
}

/* A moment on both clocks; the tightest of some tries, as a timer interrupt may fall between the two reads. */
static void moment(double *ns, double *ticks) {
    double tightest = 1e18;
    for (int i = 0; i < 50; i++) {
        double before = raw_ns();
        double now = (double)clock_ticks();
        double after = raw_ns();
        if (after - before >= tightest) continue;
        tightest = after - before;
        *ns = (before + after) / 2;
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

double clock_step(const uint64_t *advances, size_t count) {
    uint64_t divisor = 0, least = 0;
    bool stood = false;
    for (size_t i = 0; i < count; i++) {
        divisor = common_divisor(divisor, advances[i]);
        if (advances[i] > 0 && (least == 0 || advances[i] < least)) least = advances[i];
        stood = stood || advances[i] == 0;
    }
    if (least == 0) return 1;
    return (double)(stood ? least : divisor);
}

void clock_start(void) {
    enum { READS = 2000 };
    uint64_t advances[READS];

    clock_is_counter = counter_is_invariant();
    clock_facts = (struct clock_facts){.source = "clock_gettime", .hz = 1e9, .ns_per_tick = 1};
    if (clock_is_counter) {
#if defined(__aarch64__)
        clock_facts.source = "cntvct";
#else
        clock_facts.source = "tsc";
#endif
        double ns0 = 0, ns1 = 0, ticks0 = 0, ticks1 = 0;
        moment(&ns0, &ticks0);
        struct timespec pause = {.tv_nsec = 20000000};
        nanosleep(&pause, NULL);
        moment(&ns1, &ticks1);
        clock_facts.ns_per_tick = (ns1 - ns0) / (ticks1 - ticks0);
        clock_facts.hz = 1e9 / clock_facts.ns_per_tick;
    }
    for (size_t i = 0; i < READS; i++) {
        uint64_t first = clock_ticks(), second = clock_ticks();
        advances[i] = second > first ? second - first : 0;
    }
    clock_facts.step_ticks = clock_step(advances, READS);
}
