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
    CHASE_BATCH_NS = 40000, /* how long a batch lasts */
    UNROLLED = 64,          /* loads in a turn of the loop, whose own two instructions are 3 % then */
};

/* Lay a random cycle through all `count` elements: each holds the address of the next (Sattolo 1986, in place). */
void cycle_lay(unsigned char *bytes, size_t count, struct random *random);

/* Its two parts: all elements lead to themselves, then each of `from` to `to`, from the last, is joined to an earlier one. */
void cycle_begin(unsigned char *bytes, size_t count);
void cycle_join(unsigned char *bytes, size_t from, size_t to, struct random *random);

/* A cycle through these elements alone, in their order. */
void cycle_link(unsigned char *bytes, const uint32_t *order, size_t count);

/* How many steps lead from the first element back to it; 0 if not within `count` or out of the memory. */
size_t cycle_length(const unsigned char *bytes, size_t count);

/* Whether the elements hold each address once, as they were laid; one that changed is always seen. In their order in
 * memory, which takes a fraction of the time of a chase. */
bool cycle_holds(const unsigned char *bytes, size_t count);

/* Follow `steps` addresses, a multiple of UNROLLED, from `at`; returns where that leads. */
void *cycle_follow(void *at, size_t steps);

/* The same, each line thrown out of all caches behind the step. */
void *cycle_flush(void *at, size_t steps);

/* A load in every page, thrown out again: what translates addresses is warm as in a long chase, the data is not. */
void cycle_translate(const unsigned char *bytes, size_t size);

/* Throw `size` bytes out of all caches. */
void flush_all(const unsigned char *bytes, size_t size);

struct chase {
    void *at; /* where it goes on */
    size_t batches;
    double *values; /* ns a load, one a batch */
    size_t steps;   /* loads in a batch: chosen so that it is long enough for the clock */
    size_t total;   /* loads in all */
};

/* Choose `steps` for batches of CHASE_BATCH_NS, longer where the clock is coarse, then time `batches` batches one after another. */
void chase_run(struct chase *chase);

/* The same through memory of `size` bytes of which nothing is in a cache, neither before nor afterwards, so that the next
 * CPU finds none of it in a cache that it shares with this one. Addresses are translated beforehand. */
void chase_run_cold(struct chase *chase, const unsigned char *bytes, size_t size);

#endif
