/* Multiplications and additions that wait for nothing but each other: as many a second as a core can do. */
#ifndef NODEPRINT_FLOPS_H
#define NODEPRINT_FLOPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MOST_CHAINS = 24, MOST_LANES = 32 };

/* A loop by one kind of vectors, of double precision. A turn takes each chain two steps further, and all lanes of a chain
 * calculate the same. */
struct flops_kind {
    const char *name; /* "avx512", "avx2", "sse2", "neon", "sve" or "scalar" */
    size_t chains, lanes;
    bool fused;    /* a step is one operation that rounds once; else a multiplication and an addition */
    double a_turn; /* operations in a turn: two for each step of each number */
    void (*turns)(uint64_t turns, double *ends); /* `ends` gets the end of each chain, [chain][lane] */
};

/* That with the widest vectors which this CPU and its system have. */
struct flops_kind flops_widest(void);

/* The same ends by scalar operations, one of each chain: what the lanes of every CPU must have, bit for bit. */
void flops_reference(const struct flops_kind *kind, uint64_t turns, double ends[MOST_CHAINS]);

#endif
