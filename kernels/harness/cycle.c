#include "cycle.h"

#include <math.h>

#include "cache.h"
#include "clock.h"

static const double SHORTEST_BATCH_STEPS = 200;
enum { MOST_STEPS = 1 << 20, BASE_PAGE_BYTES = 4096 };

static void **element(unsigned char *bytes, size_t index) {
    return (void **)(void *)(bytes + index * ELEMENT_BYTES);
}

void cycle_begin(unsigned char *bytes, size_t count) {
    for (size_t i = 0; i < count; i++) *element(bytes, i) = element(bytes, i);
}

void cycle_join(unsigned char *bytes, size_t from, size_t to, struct random *random) {
    for (size_t i = to - 1; i > 0 && i >= from; i--) { /* never with itself: that keeps it one cycle */
        void **a = element(bytes, i), **b = element(bytes, (size_t)random_below(random, i)), *next = *a;
        *a = *b;
        *b = next;
    }
}

void cycle_lay(unsigned char *bytes, size_t count, struct random *random) {
    cycle_begin(bytes, count);
    if (count > 0) cycle_join(bytes, 0, count, random);
}

void cycle_link(unsigned char *bytes, const uint32_t *order, size_t count) {
    for (size_t i = 0; i < count; i++) *element(bytes, order[i]) = element(bytes, order[(i + 1) % count]);
}

size_t cycle_length(const unsigned char *bytes, size_t count) {
    const unsigned char *at = bytes;
    for (size_t steps = 1; steps <= count; steps++) {
        at = *(void *const *)(const void *)at;
        if (at < bytes || at >= bytes + count * ELEMENT_BYTES || (size_t)(at - bytes) % ELEMENT_BYTES != 0) return 0;
        if (at == bytes) return steps;
    }
    return 0;
}

bool cycle_holds(const unsigned char *bytes, size_t count) {
    uintptr_t excess = 0; /* of the addresses that are held over those of the elements, modulo its range */
    for (const unsigned char *at = bytes; at < bytes + count * ELEMENT_BYTES; at += ELEMENT_BYTES)
        excess += (uintptr_t) * (void *const *)(const void *)at - (uintptr_t)at;
    return excess == 0;
}

#define STEP at = *(void **)at;
#define STEPS_8 STEP STEP STEP STEP STEP STEP STEP STEP
#define STEPS_64 STEPS_8 STEPS_8 STEPS_8 STEPS_8 STEPS_8 STEPS_8 STEPS_8 STEPS_8

void *cycle_follow(void *at, size_t steps) {
    for (size_t turns = steps / UNROLLED; turns > 0; turns--) {
        STEPS_64
        __asm__ volatile("" : "+r"(at)); /* each turn's end is needed: none can be left out */
    }
    return at;
}

void *cycle_flush(void *at, size_t steps) {
    for (size_t i = 0; i < steps; i++) {
        void *next = *(void **)at;
        cache_flush_pair(at);
        at = next;
    }
    cache_fence();
    return at;
}

void flush_all(const unsigned char *bytes, size_t size) {
    for (size_t i = 0; i < size; i += ELEMENT_BYTES) cache_flush(bytes + i);
    cache_fence();
}

static double timed(struct chase *chase) {
    uint64_t start = clock_ticks();
    chase->at = cycle_follow(chase->at, chase->steps);
    chase->total += chase->steps;
    return (double)(clock_ticks() - start);
}

/* From a part of a batch, found by doubling, in proportion: so all batches last as long, and a plan can count on it. */
void chase_run(struct chase *chase) {
    double wanted = fmax(CHASE_BATCH_NS / clock_facts.ns_per_tick, SHORTEST_BATCH_STEPS * clock_facts.step_ticks);
    double ticks = 0;
    for (chase->steps = UNROLLED; 4 * ticks < wanted && chase->steps < MOST_STEPS; chase->steps *= 2)
        ticks = fmin(timed(chase), timed(chase)); /* one may have been interrupted */
    double turns = (double)chase->steps / 2 * wanted / fmax(ticks, 1) / UNROLLED;
    chase->steps = (size_t)fmin(ceil(turns), (double)MOST_STEPS / UNROLLED) * UNROLLED;
    for (size_t i = 0; i < chase->batches; i++)
        chase->values[i] = timed(chase) * clock_facts.ns_per_tick / (double)chase->steps;
}

void cycle_translate(const unsigned char *bytes, size_t size) {
    for (size_t at = 0; at < size; at += BASE_PAGE_BYTES) {
        (void)*(const volatile unsigned char *)(bytes + at);
        cache_flush_pair(bytes + at);
    }
    cache_fence();
}

void chase_run_cold(struct chase *chase, const unsigned char *bytes, size_t size) {
    void *start = chase->at;
    size_t warm_up = WARM_UP_STEPS; /* longer where a page a load is not enough: page tables larger than the L2 */
    if (size > COLD_BYTES) warm_up += (size - COLD_BYTES) / ELEMENT_BYTES / 16 / UNROLLED * UNROLLED;
    cycle_translate(bytes, size);
    chase->at = cycle_follow(start, warm_up);
    chase_run(chase);
    cycle_flush(start, warm_up + chase->total);
}
