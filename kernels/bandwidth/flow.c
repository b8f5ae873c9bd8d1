#define _GNU_SOURCE
#include "bandwidth/flow.h"

#include <math.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "harness/clock.h"
#include "harness/fail.h"
#include "harness/frequency.h"
#include "harness/gate.h"
#include "harness/stats.h"

enum { LEAST_CHUNKS = 8 };

struct flow {
    struct gate gate;
    alignas(256) _Atomic uint64_t start; /* ticks; 0 until role 0 has set it */
    alignas(256) enum stream stream;     /* from here on nothing changes while they stream */
    size_t slice_bytes;
    const struct share *shares; /* of each role, as those of `moved` */
    struct moved *moved;
};

static void stream_role(size_t role, void *argument) {
    struct flow *flow = argument;
    const struct share *share = &flow->shares[role];
    size_t arrays = stream_arrays(flow->stream), array_bytes = flow->slice_bytes / arrays / CHUNK_BYTES * CHUNK_BYTES;
    struct moved moved = {.core_hz = core_hz(3, 50e3)};
    gate_pass(&flow->gate);
    if (role == 0) atomic_store_explicit(&flow->start, clock_ticks() | 1, memory_order_release);
    uint64_t start;
    do start = atomic_load_explicit(&flow->start, memory_order_acquire);
    while (start == 0);
    double window_ticks = WINDOW_NS / clock_facts.ns_per_tick;
    int64_t passed = 0;
    for (size_t chunk = 0; chunk < LEAST_CHUNKS || (double)passed < WINDOWS * window_ticks; chunk++) {
        unsigned char *array[MOST_ARRAYS];
        unsigned char *slice = share->buffers[chunk % share->buffer_count]->bytes + share->slice * flow->slice_bytes;
        for (size_t i = 0; i < arrays; i++) array[i] = slice + i * array_bytes + chunk * CHUNK_BYTES % array_bytes;
        stream_chunk(flow->stream, array);
        passed = (int64_t)(clock_ticks() - start);
        size_t window = passed < 0 ? 0 : (size_t)((double)passed / window_ticks);
        double bytes = (double)(arrays * CHUNK_BYTES);
        if (window < WINDOWS) moved.bytes[window] += bytes;
        moved.all_bytes += bytes;
    }
    moved.elapsed_s = (double)passed * clock_facts.ns_per_tick / 1e9;
    flow->moved[role] = moved;
}

void flow_run(struct run *run, const size_t *roles, size_t count, enum stream stream, size_t slice_bytes,
              const struct share *shares, struct moved *moved) {
    struct flow *flow = aligned_alloc(alignof(struct flow), sizeof *flow);
    if (flow == NULL) fail(EXIT_NOT_AS_ASKED, "out of memory");
    gate_set(&flow->gate, count);
    atomic_store_explicit(&flow->start, 0, memory_order_relaxed);
    flow->stream = stream;
    flow->slice_bytes = slice_bytes;
    flow->shares = shares;
    flow->moved = moved;
    workers_run(&run->workers, roles, count, stream_role, flow);
    free(flow);
}

/* Of the threads' mean rates over the whole time, with what was taken from it, the sum and the lowest. */
struct means {
    double sum, lowest;
};

static struct means means_of(const struct moved *moved, size_t count) {
    struct means means = {0, INFINITY};
    for (size_t i = 0; i < count; i++) {
        double mean = moved[i].all_bytes / moved[i].elapsed_s;
        means.sum += mean;
        means.lowest = fmin(means.lowest, mean);
    }
    return means;
}

/* The rate of each window, ascending. */
static unsigned rates_of(const struct moved *moved, size_t count, struct means means,
                         double rates[WINDOWS - SETTLING]) {
    bool whole = true;
    for (size_t w = SETTLING; w < WINDOWS; w++) {
        rates[w - SETTLING] = 0;
        for (size_t i = 0; i < count; i++) {
            rates[w - SETTLING] += moved[i].bytes[w] / (WINDOW_NS / 1e9);
            whole = whole && moved[i].bytes[w] > 0;
        }
    }
    for (size_t w = 0; w < WINDOWS - SETTLING && !whole; w++) rates[w] = means.sum;
    sort_ascending(rates, WINDOWS - SETTLING);
    return whole ? 0 : FLAG_DISTURBED;
}

static double median_hz(const struct moved *moved, size_t count) {
    double *hz = grow(NULL, count, sizeof *hz);
    for (size_t i = 0; i < count; i++) hz[i] = moved[i].core_hz;
    sort_ascending(hz, count);
    double median = median_sorted(hz, count);
    free(hz);
    return median;
}

unsigned flow_set_rates(const struct moved *moved, size_t count, double *values) {
    double rates[WINDOWS - SETTLING];
    struct means means = means_of(moved, count);
    unsigned flags = rates_of(moved, count, means, rates);
    size_t low, high;
    median_interval(WINDOWS - SETTLING, 0.95, &low, &high);
    values[RATE_BYTES_PER_S] = median_sorted(rates, WINDOWS - SETTLING);
    values[CI_LOW_BYTES_PER_S] = rates[low];
    values[CI_HIGH_BYTES_PER_S] = rates[high];
    values[MEAN_BYTES_PER_S] = means.sum;
    values[SLOWEST_THREAD_BYTES_PER_S] = means.lowest;
    values[THREADS] = (double)count;
    values[CORE_HZ] = median_hz(moved, count);
    return flags;
}
