/* The loops of one width of vectors. flops.c includes this once for each, so that no width calculates anything else, and
 * defines before it:
 *
 *   WIDTH(turns)        the name of a function
 *   TARGET              what tells the compiler that this function may use the width
 *   VECTOR, LANES       the type, and the numbers in it
 *   CHAINS(x)           x of each chain
 *   SIMD(what)          an intrinsic function of this width
 *   STEPPED(a, factor, term)
 */
#define BEGIN(i) VECTOR a##i = SIMD(set1_pd)(start_of(i));
#define STEP(i) a##i = STEPPED(a##i, factor, term);
#define STEP_BACK(i) a##i = STEPPED(a##i, back, back_term);
#define STEP_LOADED(i) a##i = STEPPED(a##i, factor, SIMD(load_pd)(&numbers->terms[(size_t)LANES * ((i) % TERMS)]));
#define STEP_BACK_STORED(i)                                                                                            \
    a##i = STEPPED(a##i, back, SIMD(load_pd)(&numbers->back_terms[(size_t)LANES * ((i) % TERMS)]));                    \
    SIMD(store_pd)(&numbers->results[(size_t)LANES * (i)], a##i);
#define END(i) SIMD(storeu_pd)(&ends[(size_t)LANES * (i)], a##i);

TARGET static void WIDTH(turns)(uint64_t turns, double *ends) {
    const VECTOR factor = SIMD(set1_pd)(FACTOR), term = SIMD(set1_pd)(TERM);
    const VECTOR back = SIMD(set1_pd)(BACK), back_term = SIMD(set1_pd)(BACK_TERM);
    CHAINS(BEGIN)
    for (; turns > 0; turns--) {
        CHAINS(STEP)
        CHAINS(STEP_BACK)
    }
    CHAINS(END)
}

TARGET static void WIDTH(memory_turns)(uint64_t turns, double *ends, struct flops_memory *numbers) {
    const VECTOR factor = SIMD(set1_pd)(FACTOR), back = SIMD(set1_pd)(BACK);
    CHAINS(BEGIN)
    for (; turns > 0; turns--) {
        CHAINS(STEP_LOADED)
        CHAINS(STEP_BACK_STORED)
        __asm__ volatile("" ::: "memory"); /* what is in memory is read and written in each turn */
    }
    CHAINS(END)
}

#undef BEGIN
#undef STEP
#undef STEP_BACK
#undef STEP_LOADED
#undef STEP_BACK_STORED
#undef END
#undef WIDTH
#undef TARGET
#undef VECTOR
#undef LANES
#undef CHAINS
#undef SIMD
#undef STEPPED
