/* oneway: stamps of the sender's counter, subtracted from the receiver's. Each direction holds the latency and the offset
 * between the two counters; their sum is free of the offset, their difference is twice the offset if the way is as long
 * there as back. What does not close over three CPUs is asymmetry; between two it is undecidable. A hop costs the
 * transactions of flag2: a line each way, written by one side alone. Without an invariant counter the stamps are the
 * system's clock, which the kernel keeps alike on all CPUs; the header's clock says which it was. */
#include <math.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "coherence/operations.h"
#include "harness/clock.h"
#include "harness/frequency.h"
#include "harness/stats.h"

enum { LINES = 32, STAMPS = 25, LEAD_IN = 2, MOST_SWEEPS = 10000 };

typedef _Atomic uint64_t stamp_t;

struct post {
    unsigned char *pool;
    const uint32_t *line_set;
    alignas(256) double took[2][LINES]; /* ticks, by receiver */
};

static stamp_t *stamp_at(const struct post *post, size_t line, size_t side) {
    size_t index = post->line_set[line] + side * (POOL_LINES / 2);
    return (stamp_t *)(void *)(post->pool + index * LINE_BYTES);
}

/* The counter, and a bit that changes from stamp to stamp: a coarse counter may read the same twice. */
static uint64_t stamp_now(size_t number) {
    return clock_ticks() << 1 | (number % 2 == 0);
}

double oneway_time(double *ticks, size_t count, double step) {
    static const double longest_share = 0.5, longest_steps = 2;
    sort_ascending(ticks, count);
    double quarter = quantile_sorted(ticks, count, 0.25), sum = 0;
    double limit = quarter + fmax(longest_share * fabs(quarter), longest_steps * step);
    size_t kept = 0;
    while (kept < count && ticks[kept] <= limit) sum += ticks[kept++];
    return sum / (double)kept;
}

/* Sides send in turn: the first on its own line, the second when the first's stamp has come. */
static void exchange(size_t role, void *argument) {
    struct post *post = argument;
    core_hz(1, 8e3); /* out of idle states before anything is timed */
    for (size_t line = 0; line < LINES; line++) {
        stamp_t *out = stamp_at(post, line, role), *in = stamp_at(post, line, 1 - role);
        uint64_t last = 0;
        double took[STAMPS];
        for (size_t i = 0; i < LEAD_IN + STAMPS; i++) {
            if (role == 0) atomic_store_explicit(out, stamp_now(i), memory_order_release);
            uint64_t stamp;
            while ((stamp = atomic_load_explicit(in, memory_order_acquire)) == last) continue;
            double ticks = (double)(int64_t)(clock_ticks() - (stamp >> 1));
            last = stamp;
            if (i >= LEAD_IN) took[i - LEAD_IN] = ticks;
            if (role == 1) atomic_store_explicit(out, stamp_now(i), memory_order_release);
        }
        post->took[role][line] = oneway_time(took, STAMPS, clock_facts.step_ticks);
    }
}

enum { AB_NS, BA_NS, ROUND_TRIP_NS, OFFSET_NS, OFFSET_LOW_NS, OFFSET_HIGH_NS };

static const struct field fields[] = {
    [AB_NS] = {"ab_ns", NANOSECONDS, DECIMALS, 3},
    [BA_NS] = {"ba_ns", NANOSECONDS, DECIMALS, 3},
    [ROUND_TRIP_NS] = {"round_trip_ns", NANOSECONDS, DECIMALS, 3},
    [OFFSET_NS] = {"offset_ns", NANOSECONDS, DECIMALS, 3},
    [OFFSET_LOW_NS] = {"offset_low_ns", NANOSECONDS, DECIMALS, 3},
    [OFFSET_HIGH_NS] = {"offset_high_ns", NANOSECONDS, DECIMALS, 3},
};

static unsigned measure(struct run *run, uint32_t pass, const struct unit *unit, struct result *result) {
    (void)pass;
    static struct post post;
    const struct home *home = run_home(run, (int)unit->key[2]);
    const size_t pair[2] = {run_worker(run, unit->key[0]), run_worker(run, unit->key[1])};
    double values[2][LINES], offsets[LINES];
    post.pool = home->pool.bytes;
    post.line_set = home->line_set;
    for (size_t line = 0; line < LINES; line++)
        for (size_t side = 0; side < 2; side++)
            atomic_store_explicit(stamp_at(&post, line, side), 0, memory_order_relaxed);
    workers_run(&run->workers, pair, 2, exchange, &post);
    for (size_t line = 0; line < LINES; line++) {
        values[0][line] = post.took[1][line] * clock_facts.ns_per_tick; /* a to b: b received */
        values[1][line] = post.took[0][line] * clock_facts.ns_per_tick;
        offsets[line] = (values[0][line] - values[1][line]) / 2;
    }
    struct summary there = summarize(values[0], LINES, 1, NULL), back = summarize(values[1], LINES, 1, NULL);
    struct summary offset = summarize(offsets, LINES, 1, NULL);
    result->values[AB_NS] = there.latency;
    result->values[BA_NS] = back.latency;
    result->values[ROUND_TRIP_NS] = there.latency + back.latency;
    result->values[OFFSET_NS] = offset.latency;
    result->values[OFFSET_LOW_NS] = offset.ci_low;
    result->values[OFFSET_HIGH_NS] = offset.ci_high;
    return 0;
}

static size_t *tied_to; /* by plan(), of each CPU */
static bool closes;

static void plan(struct run *run) {
    run->lines = LINES;
    run->batches = 1;
    run->round_trips = STAMPS;
    run_add_pairs(run);
    tied_to = grow(NULL, run->cpus.count, sizeof *tied_to);
    closes = oneway_tie(run->selection.pairs, run->selection.pair_count, tied_to, run->cpus.count);
    if (!closes)
        run_not_measured(run, "asymmetry",
                         "undecidable within half a round trip: needs a third CPU, paired with both of a pair");
}

bool oneway_tie(const struct pair *pairs, size_t count, size_t *tied, size_t cpus) {
    unsigned char *met = grow(NULL, cpus * cpus, 1);
    bool found = false;
    memset(met, 0, cpus * cpus);
    for (size_t cpu = 0; cpu < cpus; cpu++) tied[cpu] = cpu;
    for (const struct pair *pair = pairs; pair < pairs + count; pair++) {
        size_t a = tied[pair->a], b = tied[pair->b], known = (size_t)pair->a * cpus + (size_t)pair->b;
        found = found || (a == b && met[known] == 0); /* a pair may be named repeatedly */
        met[known] = 1;
        for (size_t cpu = 0; a != b && cpu < cpus; cpu++)
            if (tied[cpu] == a || tied[cpu] == b) tied[cpu] = a < b ? a : b;
    }
    free(met);
    return found;
}

void oneway_solve(const struct pair_offset *pairs, size_t count, double *offset, size_t cpus) {
    double *sum = grow(NULL, cpus, sizeof *sum), *met = grow(NULL, cpus, sizeof *met);
    for (size_t cpu = 0; cpu < cpus; cpu++) offset[cpu] = 0;
    for (int sweep = 0; sweep < MOST_SWEEPS; sweep++) { /* Jacobi's iteration */
        double change = 0;
        for (size_t cpu = 0; cpu < cpus; cpu++) sum[cpu] = met[cpu] = 0;
        for (const struct pair_offset *pair = pairs; pair < pairs + count; pair++) {
            sum[pair->a] += offset[pair->b] - pair->ns;
            sum[pair->b] += offset[pair->a] + pair->ns;
            met[pair->a]++;
            met[pair->b]++;
        }
        for (size_t cpu = 0; cpu < cpus; cpu++) {
            if (met[cpu] == 0) continue;
            double better = (sum[cpu] / met[cpu] + offset[cpu]) / 2; /* damped: all are moved at once */
            change = fmax(change, fabs(better - offset[cpu]));
            offset[cpu] = better;
        }
        if (change < 1e-6) break;
    }
    for (size_t cpu = cpus; cpu-- > 0;) offset[cpu] -= offset[0];
    free(sum);
    free(met);
}

struct closure oneway_closure(const struct pair_offset *pairs, size_t count, const double *offset) {
    struct closure closure = {0};
    for (size_t i = 0; i < count; i++) {
        double rest = pairs[i].ns - (offset[pairs[i].b] - offset[pairs[i].a]);
        closure.rms_ns += rest * rest / (double)count;
        closure.worst_ns = fmax(closure.worst_ns, fabs(rest));
    }
    closure.rms_ns = sqrt(closure.rms_ns);
    return closure;
}

static struct closure closure;

static void finish(struct run *run, struct text *records) {
    struct pair_offset *pairs = grow(NULL, run->unit_count, sizeof *pairs);
    double *offset = grow(NULL, run->cpus.count, sizeof *offset);
    for (size_t i = 0; i < run->unit_count; i++) {
        const struct unit *unit = &run->units[i];
        pairs[i] = (struct pair_offset){run_worker(run, unit->key[0]), run_worker(run, unit->key[1]), 0};
        for (size_t pass = 0; pass < run->passes; pass++)
            pairs[i].ns += run->kept[pass * run->unit_count + i] / (double)run->passes;
    }
    oneway_solve(pairs, run->unit_count, offset, run->cpus.count);
    closure = oneway_closure(pairs, run->unit_count, offset);
    for (size_t cpu = 0; cpu < run->cpus.count; cpu++)
        if (tied_to[cpu] == tied_to[0])
            text_add(records, "{\"record\":\"offset\",\"cpu\":%d,\"offset_ns\":%.3f}\n", run->cpus.cpu[cpu],
                     offset[cpu]);
    free(pairs);
    free(offset);
}

static void facts(struct run *run, bool end, struct text *members) {
    (void)run;
    if (end && closes)
        text_add(members, ",\"closure_rms_ns\":%.3f,\"closure_worst_ns\":%.3f,\"resolution_ns\":%.3f", closure.rms_ns,
                 closure.worst_ns, clock_facts.step_ticks * clock_facts.ns_per_tick);
}

/* A stamp takes the line away from whoever looks at it, and is fetched: two hops, as with a flag. Each side reads the
 * counter for what it sends and what it receives, and sorts what a line took. */
static double seconds(const struct run *run, const struct unit *unit, double hop_ns) {
    static const double read_ns = 30, sort_ns = 2000, probe_and_record_s = 40e-6;
    (void)run, (void)unit;
    double line_ns = (STAMPS + LEAD_IN) * 2.0 * 2 * (hop_ns + read_ns) + sort_ns;
    return LINES * line_ns / 1e9 + probe_and_record_s;
}

const struct operation operation_oneway = {
    .name = "oneway",
    .summary = "stamps of the counter, both directions, and an offset for each CPU",
    .quantity = "one-way",
    .unit = "ns",
    .record = "cell",
    FIELDS(fields),
    .figure = &fields[ROUND_TRIP_NS],
    .kept = &fields[OFFSET_NS],
    .keys = {"a", "b", "home"},
    .two_lines = true,
    .plan = plan,
    .measure = measure,
    .finish = finish,
    .facts = facts,
    .seconds = seconds,
};
