#include "cycle.h"

#include "cache.h"
#include "clock.h"

static const double SHORTEST_BATCH_STEPS = 200;
enum { MOST_STEPS = 1 << 20, BASE_PAGE_BYTES = 4096 };

static void **element(unsigned char *bytes, size_t index) {
    return (void **)(void *)(bytes + index * ELEMENT_BYTES);
}

void cycle_lay(unsigned char *bytes, size_t count, struct random *random) {
    for (size_t i = 0; i < count; i++) *element(bytes, i) = element(bytes, i);
    for (size_t i = count - 1; i > 0 && count > 0; i--) { /* never with itself: that keeps it one cycle */
        void **a = element(bytes, i), **b = element(bytes, (size_t)random_below(random, i)), *next = *a;
        *a = *b;
        *b = next;
    }
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

void chase_run(struct chase *chase) {
    for (chase->steps = UNROLLED; chase->steps < MOST_STEPS; chase->steps *= 2) {
        double ticks = timed(chase), again = timed(chase);
        if (again < ticks) ticks = again; /* the first may have been interrupted */
        if (ticks * clock_facts.ns_per_tick >= CHASE_BATCH_NS && ticks >= SHORTEST_BATCH_STEPS * clock_facts.step_ticks)
            break;
    }
    for (size_t i = 0; i < chase->batches; i++)
        chase->values[i] = timed(chase) * clock_facts.ns_per_tick / (double)chase->steps;
}

/* A load in every page, thrown out again: what translates addresses is warm as in a long chase, the data is not. */
static void translate_all(const unsigned char *bytes, size_t size) {
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
    translate_all(bytes, size);
    chase->at = cycle_follow(start, warm_up);
    chase_run(chase);
    cycle_flush(start, warm_up + chase->total);
}
