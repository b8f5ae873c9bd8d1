/* The operations of the coherence kernel, and what they share. */
#ifndef NODEPRINT_OPERATIONS_H
#define NODEPRINT_OPERATIONS_H

#include <stdatomic.h>

#include "harness/fail.h"
#include "harness/run.h"

typedef _Atomic uint32_t line_t;

extern const struct operation operation_cas, operation_faa, operation_flag1, operation_flag2; /* pingpong.c */
extern const struct setting coherence_settings[];                                             /* state.c */
extern const struct operation operation_oneway, operation_payload, operation_contend, operation_contend_pairs,
    operation_state, operation_place, operation_stream, operation_loaded;

enum { MOST_ROUND_TRIPS = 1 << 20 };

extern const char *fresh_word; /* --fresh; NULL where it was not given */

/* How many round trips a batch needs, after some of `round_trips` each took `ticks`: as many where all were long enough.
 * In shorter batches the clock's grain and the reading of it show. */
uint32_t round_trips_needed(uint32_t round_trips, const double *ticks, size_t batches);

/* A line to and fro by compare-exchange, over the first `lines` lines of a home's pass, as a part of the caller's task:
 * side 0 initiates and side 1 responds. Begin it before the task; `values` then holds ns a hop, DUEL_BATCHES a line. */
enum { DUEL_BATCHES = 2 };
struct duel;
struct duel *duel_of(struct run *run, const struct home *home, size_t lines);
void duel_begin(struct duel *duel);
void duel_play(struct duel *duel, size_t side);
const double *duel_values(const struct duel *duel);
void duel_free(struct duel *duel);

/* What the stamps of a pair say: b's counter is `ns` ahead of a's, were the way as long there as back. */
struct pair_offset {
    size_t a, b; /* indices of CPUs */
    double ns;
};

/* What no offsets explain. */
struct closure {
    double rms_ns, worst_ns;
};

/* The mean of the stamps of a line (ticks, sorted here) without those that were interrupted: beyond the lower quartile by
 * half of it and by two steps of the counter. A mean, as both counters advance by `step` ticks at once: any lower quantile
 * of the differences is a multiple of the step, and too low by half a step on average. */
double oneway_time(double *ticks, size_t count, double step);

/* Which of `cpus` CPUs the pairs tie together: `tied` gets for each the lowest index of those it is tied to. True when
 * some way round closes over three CPUs or more; without one, offsets explain all that is measured. */
bool oneway_tie(const struct pair *pairs, size_t count, size_t *tied, size_t cpus);

/* The counter's offset of each of `cpus` CPUs by least squares, the first one's being 0; that of a CPU which is not tied
 * to the first is nothing to go by. */
void oneway_solve(const struct pair_offset *pairs, size_t count, double *offset, size_t cpus);
struct closure oneway_closure(const struct pair_offset *pairs, size_t count, const double *offset);

/* The 0 of an addition of nothing. A compiler that knew it could make a load of the addition (clang does on x86), which
 * asks for no ownership. */
static inline uint32_t unknown_zero(void) {
    uint32_t zero = 0;
    __asm__ volatile("" : "+r"(zero));
    return zero;
}

static inline void relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif
