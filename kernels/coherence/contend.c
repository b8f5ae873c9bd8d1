/* contend: 2, 4, 8 ... CPUs on one line, and `contend-pairs`: every pair of CPUs, above 64 CPUs some of each class. `faa`
 * adds and always succeeds: an operation is a transfer of the modified line in exclusive state, but for those that a CPU
 * does before the next one gets the line. `cas` loads and then exchanges if nobody was faster: a load that shares the line,
 * then an upgrade, in vain when another came between: many transfers carry nothing. */
#include <math.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "coherence/operations.h"
#include "harness/clock.h"
#include "harness/frequency.h"
#include "harness/sample.h"

/* Of a span of 2 ms, beyond which the rate of a CPU is no longer its own. */
static const double MOST_LOST_SHARE = 0.1;
enum { LINES = 3, SPAN_US = 2000, LOOK_EVERY = 32, WARM_UP_SHARE = 8 };
enum among { AMONG_L3, AMONG_SOCKET, AMONG_MACHINE, AMONG_COUNT };
enum kind { KIND_FAA, KIND_CAS };

static const char *const among_words[] = {"l3", "socket", "machine", NULL};
static const char *const kind_words[] = {"faa", "cas", NULL};

struct tally {
    alignas(256) uint64_t tries, successes;
    double took_ns;
};

struct crowd {
    line_t *line;
    enum kind kind;
    struct tally *tally;
    size_t count;
    alignas(256) atomic_size_t arrived;
};

static uint64_t add_some(line_t *line) {
    for (int i = 0; i < LOOK_EVERY; i++) atomic_fetch_add_explicit(line, 1, memory_order_acq_rel);
    return LOOK_EVERY;
}

static uint64_t exchange_some(line_t *line) {
    uint64_t successes = 0;
    for (int i = 0; i < LOOK_EVERY; i++) {
        uint32_t seen = atomic_load_explicit(line, memory_order_relaxed);
        successes +=
            atomic_compare_exchange_strong_explicit(line, &seen, seen + 1, memory_order_acq_rel, memory_order_relaxed);
    }
    return successes;
}

/* All start together; what is done in the first part of the span warms up. */
static void push(size_t role, void *argument) {
    struct crowd *crowd = argument;
    struct tally own = {0};
    double span_ticks = SPAN_US * 1e3 / clock_facts.ns_per_tick;
    core_hz(1, 8e3);
    atomic_fetch_add_explicit(&crowd->arrived, 1, memory_order_acq_rel);
    while (atomic_load_explicit(&crowd->arrived, memory_order_acquire) < crowd->count) relax();
    uint64_t start = clock_ticks(), now = start, counted_from = start;
    bool counting = false;
    while ((double)(now - start) < span_ticks) {
        uint64_t successes = crowd->kind == KIND_FAA ? add_some(crowd->line) : exchange_some(crowd->line);
        now = clock_ticks();
        if (!counting && (double)(now - start) * WARM_UP_SHARE > span_ticks) {
            counting = true;
            counted_from = now;
            continue;
        }
        own.tries += counting ? LOOK_EVERY : 0;
        own.successes += counting ? successes : 0;
    }
    own.took_ns = (double)(now - counted_from) * clock_facts.ns_per_tick;
    crowd->tally[role] = own;
}

/* The group's CPUs, those of different parts in turn, so that any first few of them are spread over it. */
static size_t group(const struct run *run, enum among among, size_t *members) {
    const struct cpu_place *place = run->selection.place;
    size_t count = 0, total = run->chosen.count, *in_part = grow(NULL, total, sizeof *in_part);
    for (size_t i = 0; i < total; i++) { /* how many of its part come before it */
        in_part[i] = 0;
        for (size_t j = 0; j < i; j++)
            in_part[i] += among == AMONG_MACHINE ? place[j].socket == place[i].socket : place[j].l3 == place[i].l3;
    }
    for (size_t turn = 0; turn < total; turn++)
        for (size_t i = 0; i < total; i++) {
            bool belongs = among == AMONG_MACHINE || (among == AMONG_SOCKET && place[i].socket == place[0].socket) ||
                           (among == AMONG_L3 && place[i].l3 == place[0].l3);
            if (belongs && in_part[i] == turn) members[count++] = i;
        }
    free(in_part);
    return count;
}

enum { RATE_PER_S, LOWEST_RATE_PER_S, SUCCESS_SHARE, FAIRNESS };

static const struct field fields[] = {
    [RATE_PER_S] = {"rate_per_s", PER_S, DECIMALS, 0},
    [LOWEST_RATE_PER_S] = {"lowest_rate_per_s", PER_S, DECIMALS, 0},
    [SUCCESS_SHARE] = {"success_share", NUMBER, DECIMALS, 5},
    [FAIRNESS] = {"fairness", NUMBER, DECIMALS, 5},
};

static unsigned measure_crowd(struct run *run, enum kind kind, const size_t *crowd_members, size_t count,
                              const struct home *home, struct result *result) {
    struct tally *tally = aligned_alloc(alignof(struct tally), count * sizeof *tally);
    double rate[LINES], share[LINES], fairness[LINES];
    static struct crowd crowd;
    struct text each = {0};
    size_t lossy = 0;
    if (tally == NULL) fail(EXIT_NOT_AS_ASKED, "out of memory");
    for (size_t line = 0; line < LINES; line++) {
        crowd.line = (line_t *)(void *)(home->pool.bytes + (size_t)home->line_set[line] * LINE_BYTES);
        crowd.kind = kind;
        crowd.tally = tally;
        crowd.count = count;
        atomic_store_explicit(&crowd.arrived, 0, memory_order_relaxed);
        workers_run(&run->workers, crowd_members, count, push, &crowd);
        lossy += workers_lost_share(&run->workers, crowd_members, count) > MOST_LOST_SHARE;
        double tries = 0, successes = 0, sum = 0, squares = 0;
        rate[line] = 0;
        for (size_t i = 0; i < count; i++) {
            double own = (double)tally[i].successes / fmax(tally[i].took_ns, 1) * 1e9;
            tries += (double)tally[i].tries;
            successes += (double)tally[i].successes;
            rate[line] += own;
            sum += own;
            squares += own * own;
            if (line == LINES - 1) text_add(&each, "%s%.0f", i == 0 ? "" : ",", own);
        }
        share[line] = tries > 0 ? successes / tries : 0;
        fairness[line] = squares > 0 ? sum * sum / ((double)count * squares) : 0;
    }
    struct summary rates = summarize(rate, LINES, 1, NULL), shares = summarize(share, LINES, 1, NULL),
                   fair = summarize(fairness, LINES, 1, NULL);
    result->values[RATE_PER_S] = rates.latency;
    result->values[LOWEST_RATE_PER_S] = rates.min;
    result->values[SUCCESS_SHARE] = shares.latency;
    result->values[FAIRNESS] = fair.latency;
    text_add(&result->more, ",\"cpus\":[");
    for (size_t i = 0; i < count; i++)
        text_add(&result->more, "%s%d", i == 0 ? "" : ",", run->cpus.cpu[crowd_members[i]]);
    text_add(&result->more, "],\"each_per_s\":[%s]", each.data);
    text_free(&each);
    free(tally);
    return 2 * lossy > LINES ? FLAG_DISTURBED : 0; /* a median over lines leaves one of them out */
}

static unsigned measure(struct run *run, uint32_t pass, const struct unit *unit, struct result *result) {
    (void)pass;
    size_t *members = grow(NULL, run->chosen.count, sizeof *members);
    group(run, (enum among)unit->key[1], members);
    unsigned flags = measure_crowd(run, (enum kind)unit->key[0], members, (size_t)unit->key[2],
                                   run_home(run, (int)unit->key[3]), result);
    free(members);
    return flags;
}

static unsigned measure_pair(struct run *run, uint32_t pass, const struct unit *unit, struct result *result) {
    (void)pass;
    const size_t members[] = {run_worker(run, unit->key[1]), run_worker(run, unit->key[2])};
    return measure_crowd(run, (enum kind)unit->key[0], members, 2, run_home(run, (int)unit->key[3]), result);
}

static void plan(struct run *run) {
    size_t *members = grow(NULL, run->chosen.count, sizeof *members), former = 0;
    int *homes = grow(NULL, run->machine.nodes, sizeof *homes);
    run->lines = LINES;
    run->batches = 1;
    run->round_trips = 1;
    select_require_pairs(&run->selection);
    for (int64_t among = 0; among < AMONG_COUNT; among++) {
        size_t all = group(run, (enum among)among, members);
        if (all < 2 || all == former) continue; /* the same CPUs as in the smaller group */
        former = all;
        size_t home_count = select_homes(&run->selection, &run->machine, members[0], members[1], homes);
        for (size_t count = 2;; count = count * 2 > all ? all : count * 2) {
            for (size_t h = 0; h < home_count; h++)
                for (int64_t kind = 0; kind_words[kind] != NULL; kind++)
                    run_add_unit(run, (struct unit){{kind, among, (int64_t)count, homes[h]}});
            if (count == all) break;
        }
    }
    free(members);
    free(homes);
}

/* Every pair of CPUs, or a sample of them, its lines at its first home. */
static void plan_pairs(struct run *run) {
    size_t cpus = run->chosen.count, count = 0;
    struct pair *pairs = grow(NULL, cpus * (cpus + 1) / 2, sizeof *pairs);
    int *homes = grow(NULL, run->machine.nodes, sizeof *homes);
    run->lines = LINES;
    run->batches = 1;
    run->round_trips = 1;
    select_require_pairs(&run->selection);
    for (size_t i = 0; i < cpus; i++)
        for (size_t j = i + 1; j < cpus; j++) pairs[count++] = (struct pair){(int)i, (int)j};
    count = sample_cpu_pairs(run, pairs, count);
    for (size_t i = 0; i < count; i++) {
        int a = run->chosen.cpu[pairs[i].a], b = run->chosen.cpu[pairs[i].b];
        select_homes(&run->selection, &run->machine, (size_t)pairs[i].a, (size_t)pairs[i].b, homes);
        for (int64_t kind = 0; kind_words[kind] != NULL; kind++)
            run_add_unit(run, (struct unit){{kind, a < b ? a : b, a < b ? b : a, homes[0]}});
    }
    free(homes);
    free(pairs);
}

static double seconds_of(size_t count) {
    return LINES * (SPAN_US / 1e6 + 50e-6 + (double)count * 10e-6);
}

static double seconds(const struct run *run, const struct unit *unit, double hop_ns) {
    (void)run, (void)hop_ns;
    return seconds_of((size_t)unit->key[2]);
}

static double pair_seconds(const struct run *run, const struct unit *unit, double hop_ns) {
    (void)run, (void)unit, (void)hop_ns;
    return seconds_of(2);
}

const struct operation operation_contend = {
    .name = "contend",
    .summary = "2, 4, 8 ... CPUs on one line: throughput, successes, fairness (Jain's index)",
    .quantity = "rate",
    .unit = "1/s",
    .record = "cell",
    FIELDS(fields),
    .table = true,
    .keys = {"kind", "among", "threads", "home"},
    .words = {kind_words, among_words, NULL, NULL},
    .plan = plan,
    .measure = measure,
    .seconds = seconds,
};

const struct operation operation_contend_pairs = {
    .name = "contend-pairs",
    .summary = "every pair of CPUs (above 64 a sample) on one line: throughput, successes, fairness",
    .quantity = "rate",
    .unit = "1/s",
    .record = "cell",
    FIELDS(fields),
    .table = true,
    .keys = {"kind", "a", "b", "home"},
    .words = {kind_words, NULL, NULL, NULL},
    .plan = plan_pairs,
    .measure = measure_pair,
    .seconds = pair_seconds,
};
