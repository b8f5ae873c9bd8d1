/* Workers that stream at once, sweep by sweep as STREAM does, and how fast each sweep was. */
#ifndef NODEPRINT_FLOW_H
#define NODEPRINT_FLOW_H

#include <stddef.h>
#include <stdint.h>

#include "harness/run.h"
#include "harness/streams.h"

/* What one thread streams through: in turns a chunk of each of these buffers, from its slice of each. */
struct share {
    const struct buffer *const *buffers;
    size_t buffer_count;
    size_t slice; /* its number in each buffer */
};

/* STREAM makes ten sweeps (NTIMES) and prints the best; where ten are shorter than this, there are more for the median. */
enum { BEST_OF = 10, MOST_SWEEPS = 64 };
static const double LEAST_SWEEPING_S = 49e-3;

/* When one thread began and ended each sweep, in ticks. */
struct sweeps {
    size_t count, all; /* those that are counted, and the settling ones too */
    uint64_t begin[MOST_SWEEPS], end[MOST_SWEEPS];
    double core_hz;
};

/* Let the workers with these indices sweep, each through its share in slices of `slice_bytes`, all beginning each sweep
 * together: for at least 14 ms and once through all of it uncounted, so that nothing that the caches had of it is left and
 * clocks and prefetchers have settled, and then BEST_OF sweeps or more. After a signal there may be fewer, or none. With `rounds`
 * a sweep goes so often through a slice of the first buffer, whose arrays have a power of two of bytes. */
void flow_run(struct run *run, const size_t *roles, size_t count, enum stream stream, size_t slice_bytes, size_t rounds,
              const struct share *shares, struct sweeps *sweeps);

enum {
    RATE_BYTES_PER_S, /* the median over sweeps */
    CI_LOW_BYTES_PER_S,
    CI_HIGH_BYTES_PER_S,
    BEST_BYTES_PER_S, /* of the first BEST_OF sweeps */
    SWEEPS,
    MEAN_BYTES_PER_S,
    SLOWEST_THREAD_BYTES_PER_S, /* its mean rate while it swept */
    THREADS,
    CORE_HZ,
    FLOW_FIELDS
};

/* Ends the process with 3 where the clocks of the workers' CPUs are too far apart for the sweeps of several of them. */
void flow_check_clocks(struct run *run);

/* Set the values of these fields, of threads that move `thread_bytes` each in a sweep. A sweep lasts from the first begin
 * to the last end. Returns FLAG_DISTURBED where more than a quarter of them took twice as long as the low quarter, or half
 * as long again as the slowest of their threads. */
unsigned flow_set_rates(const struct sweeps *sweeps, size_t count, double thread_bytes, double *values);

/* How long flow_run takes where a sweep takes so long. */
double flow_seconds_of(double sweep_s);

/* How long it takes these workers to move `thread_bytes` each: by the rates of one CPU and of all of a socket. */
double flow_sweep_seconds(const struct run *run, const size_t *roles, size_t count, size_t thread_bytes,
                          enum stream stream);

/* How long flow_run takes where the slices of each thread have `thread_bytes` together: estimated. */
double flow_seconds(const struct run *run, const size_t *roles, size_t count, enum stream stream, size_t thread_bytes);

#endif
