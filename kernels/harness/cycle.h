/* Chains of dependent loads: a random single cycle through memory, one element a line. */
#ifndef NODEPRINT_CYCLE_H
#define NODEPRINT_CYCLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schedule.h"

enum {
    ELEMENT_BYTES = 64, /* a line */
    WARM_UP_STEPS = 2048,
    /* Enough for a chase of which nothing is in a cache: more than the TLBs of base pages span. */
    COLD_BYTES = 64 << 20,
    CHASE_BATCH_NS = 30000, /* the shortest batch */
    UNROLLED = 64,          /* loads in a turn of the loop, whose own two instructions are 3 % then */
};

/* Lay a random cycle through all `count` elements: each holds the address of the next (Sattolo 1986, in place). */
void cycle_lay(unsigned char *bytes, size_t count, struct random *random);

/* How many steps lead from the first element back to it; 0 if not within `count` or out of the memory. */
size_t cycle_length(const unsigned char *bytes, size_t count);

/* Whether the elements hold each address once, as they were laid; one that changed is always seen. In their order in
 * memory, which takes a fraction of the time of a chase. */
bool cycle_holds(const unsigned char *bytes, size_t count);

/* Follow `steps` addresses, a multiple of UNROLLED, from `at`; returns where that leads. */
void *cycle_follow(void *at, size_t steps);

/* The same, each line thrown out of all caches behind the step. */
void *cycle_flush(void *at, size_t steps);

/* Throw `size` bytes out of all caches. */
void flush_all(const unsigned char *bytes, size_t size);

struct chase {
    void *at; /* where it goes on */
    size_t batches;
    double *values; /* ns a load, one a batch */
    size_t steps;   /* loads in a batch: chosen so that it is long enough for the clock */
    size_t total;   /* loads in all */
};

/* Choose `steps`, then time `batches` batches one after another. */
void chase_run(struct chase *chase);

/* The same through memory of `size` bytes of which nothing is in a cache, neither before nor afterwards, so that the next
 * CPU finds none of it in a cache that it shares with this one. Addresses are translated beforehand. */
void chase_run_cold(struct chase *chase, const unsigned char *bytes, size_t size);

#endif
