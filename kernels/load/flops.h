/* Multiplications and additions that wait for nothing but each other: as many a second as a core can do. */
#ifndef NODEPRINT_FLOPS_H
#define NODEPRINT_FLOPS_H

#include <stdint.h>

/* A loop by one kind of vectors, of double precision. */
struct flops_kind {
    const char *name; /* "avx512", "avx2", "sse2", "neon", "sve" or "scalar" */
    double a_turn;    /* operations in a turn: two for each fused multiplication and addition of each number */
    double (*turns)(uint64_t turns); /* the sum of all chains, which is finite */
};

/* That with the widest vectors which this CPU and its system have. */
struct flops_kind flops_widest(void);

#endif
