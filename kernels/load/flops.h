/* Multiplications and additions that wait for nothing but each other: as many a second as a core can do. */
#ifndef NODEPRINT_FLOPS_H
#define NODEPRINT_FLOPS_H

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MOST_CHAINS = 24, MOST_LANES = 32, MOST_NUMBERS = MOST_CHAINS * MOST_LANES, SUMS = 2 };

enum { MEMORY_LANES = 8, TERMS = 12 };

/* What a loop of x86-64 reads and writes beside its chains, a vector of each chain, where two chains share a term. It stays
 * in the L1, and is less than 4 KiB: a load waits for a store 4 KiB before it as for one to the same address. */
struct flops_memory {
    alignas(64) double terms[TERMS * MEMORY_LANES];
    double results[MOST_CHAINS * MEMORY_LANES];
};
_Static_assert(sizeof(struct flops_memory) < 4096, "no two of its lines are 4 KiB apart");

/* A loop by one kind of vectors, of double precision. A step replaces each number x by x * x + TERM, and a turn takes two
 * steps. Each lane of each chain has its own start. */
struct flops_kind {
    const char *name; /* "avx512", "avx2", "sse2", "neon", "sve" or "scalar" */
    size_t chains, lanes;
    bool fused;    /* a step is one operation that rounds once; else a multiplication and an addition */
    double a_turn; /* operations in a turn: two for each step of each number */
    void (*turns)(uint64_t turns, double *numbers); /* [chain][lane], which it replaces */
    /* The same, with a load for each step and a store for each second one; NULL: not written for this machine. */
    void (*memory_turns)(uint64_t turns, double *numbers, struct flops_memory *memory);
    /* The same, where each number is also added without carry, before a step takes it, to a vector behind the chains: that
     * of even ones, or that of odd ones. No error is rounded away there. [chain or sum][lane] */
    void (*summed_turns)(uint64_t turns, uint64_t *state);
};

void flops_memory_set(struct flops_memory *memory);

/* That with the widest vectors which this CPU and its system have. */
struct flops_kind flops_widest(void);

/* What a burst begins with: [chain][lane]. */
void flops_start(const struct flops_kind *kind, double *numbers);

/* The same by scalar operations, two steps for each turn: what every CPU must end with, bit for bit. */
void flops_reference(const struct flops_kind *kind, uint64_t steps, double *numbers);

/* Of the widest vectors: what a burst with sums begins with, and what it must end with. */
void flops_start_summed(uint64_t *state);
void flops_summed_reference(uint64_t turns, uint64_t *state);

#endif
