/* The loops of one width of vectors. flops.c includes this once for each, so that no width calculates anything else, and
 * defines before it:
 *
 *   WIDTH(turns)        the name of a function
 *   TARGET              what tells the compiler that this function may use the width
 *   VECTOR, LANES       the type, and the numbers in it
 *   CHAINS(x), COUNT    x of each chain, and their number
 *   SIMD(what)          an intrinsic function of this width
 *   PAIRS(x)            x of each even chain and the odd one behind it
 *   STEPPED(a, factor, term)
 *   ADDED(a, b)         without carry
 */
#define BEGIN(i) VECTOR a##i = SIMD(loadu_pd)(&numbers[(size_t)LANES * (i)]);
#define STEP(i) a##i = STEPPED(a##i, a##i, term);
#define TERM_OF(i) SIMD(load_pd)(&memory->terms[(size_t)LANES * ((i) % TERMS)])
#define STEP_LOADED(i) a##i = STEPPED(a##i, a##i, TERM_OF(i));
#define STEP_STORED(i) STEP_LOADED(i) SIMD(store_pd)(&memory->results[(size_t)LANES * (i)], a##i);
#define END(i) SIMD(storeu_pd)(&numbers[(size_t)LANES * (i)], a##i);

TARGET static void WIDTH(turns)(uint64_t turns, double *numbers) {
    const VECTOR term = SIMD(set1_pd)(TERM);
    CHAINS(BEGIN)
    for (; turns > 0; turns--) {
        CHAINS(STEP)
        CHAINS(STEP)
    }
    CHAINS(END)
}

TARGET static void WIDTH(memory_turns)(uint64_t turns, double *numbers, struct flops_memory *memory) {
    CHAINS(BEGIN)
    for (; turns > 0; turns--) {
        CHAINS(STEP_LOADED)
        CHAINS(STEP_STORED)
        __asm__ volatile("" ::: "memory"); /* what is in memory is read and written in each turn */
    }
    CHAINS(END)
}

#define BEGIN_OF_STATE(i) VECTOR a##i = SIMD(loadu_pd)((const double *)(const void *)&state[(size_t)LANES * (i)]);
#define STEP_SUMMED(i, j)                                                                                              \
    even = ADDED(even, a##i);                                                                                          \
    odd = ADDED(odd, a##j);                                                                                            \
    STEP(i) STEP(j)
#define END_OF_STATE(i) SIMD(storeu_pd)((double *)(void *)&state[(size_t)LANES * (i)], a##i);

TARGET static void WIDTH(summed_turns)(uint64_t turns, uint64_t *state) {
    enum { EVEN = COUNT, ODD };
    const VECTOR term = SIMD(set1_pd)(TERM);
    VECTOR even = SIMD(loadu_pd)((const double *)(const void *)&state[(size_t)LANES * EVEN]);
    VECTOR odd = SIMD(loadu_pd)((const double *)(const void *)&state[(size_t)LANES * ODD]);
    CHAINS(BEGIN_OF_STATE)
    for (turns *= 2; turns > 0; turns--) {
        PAIRS(STEP_SUMMED)
    }
    CHAINS(END_OF_STATE)
    SIMD(storeu_pd)((double *)(void *)&state[(size_t)LANES * EVEN], even);
    SIMD(storeu_pd)((double *)(void *)&state[(size_t)LANES * ODD], odd);
}

#undef BEGIN_OF_STATE
#undef STEP_SUMMED
#undef END_OF_STATE
#undef COUNT
#undef PAIRS
#undef ADDED
#undef BEGIN
#undef STEP
#undef TERM_OF
#undef STEP_LOADED
#undef STEP_STORED
#undef END
#undef WIDTH
#undef TARGET
#undef VECTOR
#undef LANES
#undef CHAINS
#undef SIMD
#undef STEPPED
