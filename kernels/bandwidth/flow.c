#include "bandwidth/flow.h"

#include <math.h>
#include <stdalign.h>
#include <stdlib.h>

#include "harness/clock.h"
#include "harness/fail.h"
#include "harness/frequency.h"
#include "harness/gate.h"
#include "harness/offset.h"
#include "harness/stats.h"

enum { MOST_SETTLING = 64 };
static const double LEAST_SETTLING_S = 14e-3;

enum turn { SETTLE, COUNT, STOP };

struct flow {
    struct gate gate;
    alignas(256) enum stream stream; /* from here on nothing changes while they stream, but each turn once before it */
    size_t slice_bytes, rounds;
    const struct share *shares; /* of each role, as those of `sweeps` */
    struct sweeps *sweeps;
    enum turn turns[MOST_SETTLING + MOST_SWEEPS + 1]; /* by the first role, before it arrives at the gate */
};

/* Once through all of a share: by turns a chunk of each of its buffers. */
static void sweep_once(enum stream stream, const struct share *share, size_t slice_bytes) {
    for (size_t at = 0; at < slice_bytes / stream_arrays(stream); at += STREAM_CHUNK_BYTES)
        for (size_t b = 0; b < share->buffer_count; b++)
            stream_chunk(stream, share->buffers[b]->bytes + share->slice * slice_bytes, slice_bytes, at);
}

/* Round and round in one loop, as the end of each would cost a mispredicted branch. */
static void sweep_rounds(enum stream stream, const struct share *share, size_t slice_bytes, size_t rounds) {
    size_t arrays = stream_arrays(stream), array_bytes = slice_bytes / arrays;
    unsigned char *array[MOST_ARRAYS], *slice = share->buffers[0]->bytes + share->slice * slice_bytes;
    for (size_t i = 0; i < arrays; i++) array[i] = slice + i * array_bytes;
    stream_loop_of(stream)(array, rounds * array_bytes, array_bytes - 1);
}

static uint64_t ticks_now(void) {
    return clock_ticks();
}

void flow_check_clocks(struct run *run) {
    static const double most_ns = 10e3; /* a sweep takes a millisecond and more */
    offset_check(run, ticks_now, clock_facts.ns_per_tick, most_ns);
}

static double seconds_between(uint64_t begin, uint64_t end) {
    return (double)(int64_t)(end - begin) * clock_facts.ns_per_tick / 1e9;
}

/* What comes next, after `settling` sweeps since `begin` and those that are counted. */
static enum turn next_turn(uint64_t begin, size_t settling, const struct sweeps *sweeps) {
    if (run_stopping()) return STOP;
    if (sweeps->count == 0)
        return settling < MOST_SETTLING && (settling == 0 || seconds_between(begin, clock_ticks()) < LEAST_SETTLING_S)
                   ? SETTLE
                   : COUNT;
    bool enough = sweeps->count >= BEST_OF && seconds_between(sweeps->begin[0], clock_ticks()) >= LEAST_SWEEPING_S;
    return enough || sweeps->count == MOST_SWEEPS ? STOP : COUNT;
}

static void stream_role(size_t role, void *argument) {
    struct flow *flow = argument;
    struct sweeps *sweeps = &flow->sweeps[role];
    size_t turn = 0, settling = 0;
    sweeps->count = 0;
    sweeps->core_hz = core_hz(3, 50e3);
    uint64_t start = clock_ticks();
    for (;; turn++) {
        if (role == 0) flow->turns[turn] = next_turn(start, settling, sweeps);
        gate_pass_again(&flow->gate, turn + 1);
        sweeps->all = turn;
        if (flow->turns[turn] == STOP) return;
        worker_look();
        uint64_t begin = clock_ticks();
        if (flow->rounds > 0)
            sweep_rounds(flow->stream, &flow->shares[role], flow->slice_bytes, flow->rounds);
        else
            sweep_once(flow->stream, &flow->shares[role], flow->slice_bytes);
        if (flow->turns[turn] == SETTLE) {
            settling++;
            continue;
        }
        sweeps->begin[sweeps->count] = begin;
        sweeps->end[sweeps->count++] = clock_ticks();
    }
}

void flow_run(struct run *run, const size_t *roles, size_t count, enum stream stream, size_t slice_bytes, size_t rounds,
              const struct share *shares, struct sweeps *sweeps) {
    struct flow *flow = aligned_alloc(alignof(struct flow), sizeof *flow);
    if (flow == NULL) fail(EXIT_NOT_AS_ASKED, "out of memory");
    gate_set(&flow->gate, count);
    flow->stream = stream;
    flow->slice_bytes = slice_bytes;
    flow->rounds = rounds;
    flow->shares = shares;
    flow->sweeps = sweeps;
    workers_run(&run->workers, roles, count, stream_role, flow);
    free(flow);
}

static double sweep_s(const struct sweeps *sweeps, size_t count, size_t number) {
    uint64_t begin = sweeps[0].begin[number], end = sweeps[0].end[number];
    for (size_t i = 1; i < count; i++) {
        if ((int64_t)(sweeps[i].begin[number] - begin) < 0) begin = sweeps[i].begin[number];
        if ((int64_t)(sweeps[i].end[number] - end) > 0) end = sweeps[i].end[number];
    }
    return seconds_between(begin, end);
}

/* Whether a sweep took far longer than any of its threads: these began apart, or their clocks are. */
static bool contradicts(const struct sweeps *sweeps, size_t count, size_t number) {
    static const double most_times = 1.5;
    double longest_s = 0;
    for (size_t i = 0; i < count; i++)
        longest_s = fmax(longest_s, seconds_between(sweeps[i].begin[number], sweeps[i].end[number]));
    return sweep_s(sweeps, count, number) > most_times * longest_s;
}

static double lowest_mean(const struct sweeps *sweeps, size_t count, double thread_bytes) {
    double lowest = INFINITY;
    for (size_t i = 0; i < count; i++) {
        double busy_s = 0;
        for (size_t s = 0; s < sweeps[i].count; s++) busy_s += seconds_between(sweeps[i].begin[s], sweeps[i].end[s]);
        lowest = fmin(lowest, (double)sweeps[i].count * thread_bytes / busy_s);
    }
    return lowest;
}

static double median_hz(const struct sweeps *sweeps, size_t count) {
    double *hz = grow(NULL, count, sizeof *hz);
    for (size_t i = 0; i < count; i++) hz[i] = sweeps[i].core_hz;
    sort_ascending(hz, count);
    double median = median_sorted(hz, count);
    free(hz);
    return median;
}

unsigned flow_set_rates(const struct sweeps *sweeps, size_t count, double thread_bytes, double *values) {
    double rates[MOST_SWEEPS], best = 0, elapsed_s = 0, bytes = (double)count * thread_bytes;
    size_t number = sweeps[0].count, low, high, slow = 0, apart = 0;
    for (size_t s = 0; s < number; s++) {
        double seconds = sweep_s(sweeps, count, s);
        rates[s] = bytes / seconds;
        apart += contradicts(sweeps, count, s);
        elapsed_s += seconds;
        if (s < BEST_OF) best = fmax(best, rates[s]);
    }
    sort_ascending(rates, number);
    median_interval(number, 0.95, &low, &high);
    values[RATE_BYTES_PER_S] = median_sorted(rates, number);
    values[CI_LOW_BYTES_PER_S] = rates[low];
    values[CI_HIGH_BYTES_PER_S] = rates[high];
    values[BEST_BYTES_PER_S] = best;
    values[SWEEPS] = (double)number;
    values[MEAN_BYTES_PER_S] = (double)number * bytes / elapsed_s;
    values[SLOWEST_THREAD_BYTES_PER_S] = lowest_mean(sweeps, count, thread_bytes);
    values[THREADS] = (double)count;
    values[CORE_HZ] = median_hz(sweeps, count);
    while (slow < number && rates[slow] < quantile_sorted(rates, number, 0.75) / 2) slow++;
    return 4 * slow > number || 4 * apart > number ? FLAG_DISTURBED : 0;
}

/* The last sweep begins before the time is up, and ends half a sweep behind it; fast ones end by their number. */
double flow_seconds_of(double sweep_s) {
    double half_s = sweep_s / 2;
    return fmin(fmax(LEAST_SETTLING_S + half_s, sweep_s), MOST_SETTLING * sweep_s) +
           fmin(fmax(LEAST_SWEEPING_S + half_s, BEST_OF * sweep_s), MOST_SWEEPS * sweep_s);
}

double flow_sweep_seconds(const struct run *run, const size_t *roles, size_t count, size_t thread_bytes,
                          enum stream stream) {
    const struct costs *costs = &run->costs;
    const struct cpu_place *place = run->selection.place;
    double rate = 0;
    for (size_t i = 0; i < count; i++) {
        size_t beside = 0;
        for (size_t j = 0; j < count; j++) beside += place[roles[j]].socket == place[roles[i]].socket;
        rate += fmin(costs->core_bytes_per_s[stream], costs->socket_bytes_per_s[stream] / (double)beside);
    }
    return (double)thread_bytes * (double)count / rate;
}

double flow_seconds(const struct run *run, const size_t *roles, size_t count, enum stream stream, size_t thread_bytes) {
    return flow_seconds_of(flow_sweep_seconds(run, roles, count, stream_counted(stream, thread_bytes), stream));
}
