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
static const double LEAST_SETTLING_NS = 14e6;

struct flow {
    struct gate gate;
    alignas(256) atomic_size_t unsettled; /* workers that are not once through their slices */
    alignas(256) _Atomic uint64_t start;  /* ticks, of the first window; 0 until all have settled */
    alignas(256) enum stream stream;      /* from here on nothing changes while they stream */
    size_t slice_bytes;
    const struct share *shares; /* of each role, as those of `moved` */
    struct moved *moved;
};

/* One worker's way through its slices: by turns a chunk of each of its buffers. */
struct way {
    enum stream stream;
    const struct share *share;
    size_t slice_bytes, arrays, array_bytes, chunk;
};

static double next_chunk(struct way *way) {
    unsigned char *array[MOST_ARRAYS];
    size_t at = way->chunk / way->share->buffer_count * CHUNK_BYTES % way->array_bytes;
    unsigned char *slice =
        way->share->buffers[way->chunk % way->share->buffer_count]->bytes + way->share->slice * way->slice_bytes;
    for (size_t i = 0; i < way->arrays; i++) array[i] = slice + i * way->array_bytes + at;
    stream_chunk(way->stream, array);
    way->chunk++;
    return (double)(way->arrays * CHUNK_BYTES);
}

/* Stream until all workers have settled; returns when the windows begin. */
static uint64_t settle(struct flow *flow, struct way *way) {
    size_t whole = way->array_bytes / CHUNK_BYTES * way->share->buffer_count;
    double least_ticks = LEAST_SETTLING_NS / clock_facts.ns_per_tick;
    uint64_t begin = clock_ticks(), start;
    bool settled = false;
    while ((start = atomic_load_explicit(&flow->start, memory_order_acquire)) == 0) {
        next_chunk(way);
        if (settled || way->chunk < whole || (double)(clock_ticks() - begin) < least_ticks) continue;
        settled = true;
        if (atomic_fetch_sub_explicit(&flow->unsettled, 1, memory_order_relaxed) == 1)
            atomic_store_explicit(&flow->start, clock_ticks() | 1, memory_order_release);
    }
    return start;
}

static void stream_role(size_t role, void *argument) {
    struct flow *flow = argument;
    size_t arrays = stream_arrays(flow->stream);
    struct way way = {flow->stream, &flow->shares[role], flow->slice_bytes, arrays, flow->slice_bytes / arrays, 0};
    struct moved moved = {.core_hz = core_hz(3, 50e3)};
    gate_pass(&flow->gate);
    uint64_t start = settle(flow, &way);
    double window_ticks = WINDOW_NS / clock_facts.ns_per_tick;
    int64_t late = (int64_t)(clock_ticks() - start), passed = 0; /* it was in the middle of a chunk */
    for (size_t chunks = 0; chunks < LEAST_CHUNKS || (double)passed < WINDOWS * window_ticks; chunks++) {
        double bytes = next_chunk(&way);
        passed = (int64_t)(clock_ticks() - start);
        size_t window = passed < 0 ? 0 : (size_t)((double)passed / window_ticks);
        if (window < WINDOWS) moved.bytes[window] += bytes;
        moved.all_bytes += bytes;
    }
    moved.elapsed_s = (double)(passed - late) * clock_facts.ns_per_tick / 1e9;
    flow->moved[role] = moved;
}

void flow_run(struct run *run, const size_t *roles, size_t count, enum stream stream, size_t slice_bytes,
              const struct share *shares, struct moved *moved) {
    struct flow *flow = aligned_alloc(alignof(struct flow), sizeof *flow);
    if (flow == NULL) fail(EXIT_NOT_AS_ASKED, "out of memory");
    gate_set(&flow->gate, count);
    atomic_store_explicit(&flow->unsettled, count, memory_order_relaxed);
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
static unsigned rates_of(const struct moved *moved, size_t count, struct means means, double rates[WINDOWS]) {
    bool whole = true;
    for (size_t w = 0; w < WINDOWS; w++) {
        rates[w] = 0;
        for (size_t i = 0; i < count; i++) {
            rates[w] += moved[i].bytes[w] / (WINDOW_NS / 1e9);
            whole = whole && moved[i].bytes[w] > 0;
        }
    }
    for (size_t w = 0; w < WINDOWS && !whole; w++) rates[w] = means.sum;
    sort_ascending(rates, WINDOWS);
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
    double rates[WINDOWS];
    struct means means = means_of(moved, count);
    unsigned flags = rates_of(moved, count, means, rates);
    size_t low, high;
    median_interval(WINDOWS, 0.95, &low, &high);
    values[RATE_BYTES_PER_S] = median_sorted(rates, WINDOWS);
    values[CI_LOW_BYTES_PER_S] = rates[low];
    values[CI_HIGH_BYTES_PER_S] = rates[high];
    values[MEAN_BYTES_PER_S] = means.sum;
    values[SLOWEST_THREAD_BYTES_PER_S] = means.lowest;
    values[THREADS] = (double)count;
    values[CORE_HZ] = median_hz(moved, count);
    return flags;
}

double flow_settling_s(const struct run *run, const size_t *roles, size_t count, size_t bytes) {
    static const double core_bytes_per_s = 20e9, socket_bytes_per_s = 150e9; /* a slow server's */
    const struct cpu_place *place = run->selection.place;
    double rate = 0;
    for (size_t i = 0; i < count; i++) {
        size_t beside = 0;
        for (size_t j = 0; j < count; j++) beside += place[roles[j]].socket == place[roles[i]].socket;
        rate += fmin(core_bytes_per_s, socket_bytes_per_s / (double)beside);
    }
    return fmax(LEAST_SETTLING_NS / 1e9, (double)(bytes * count) / rate);
}
