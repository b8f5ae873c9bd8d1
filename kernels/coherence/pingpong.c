/* cas, faa, flag1, flag2: a line goes to and fro between two CPUs; a hop is half a round trip. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "coherence/operations.h"
#include "harness/cache.h"
#include "harness/clock.h"
#include "harness/clusters.h"
#include "harness/frequency.h"
#include "harness/options.h"

enum { LINES = 32, BATCHES = DUEL_BATCHES, ROUND_TRIPS = 25, LEAD_IN = 3, RETRIES = 2 };
static const double DISTURBED_SHARE = 0.25;
static const double PROBE_NS = 2e3; /* it also brings the core up to its clock before anything is timed */

/* One side of a play: `count` hand-overs, the first of them number `done`. `there` and `back` are one line, except in
 * flag2. Lines hold 0 when a play begins. */
typedef void player(line_t *there, line_t *back, uint32_t done, uint32_t count);

/* cas: polls with the compare-exchange itself. Each try asks for the line in exclusive state (a read for ownership),
 * also when it fails, so a hop is one transfer of a modified line from the other core's cache, and the two sides steal
 * the line from each other while one waits. No load comes before it and no pause is between: either would change the
 * transactions. On aarch64 the header's `atomics` shows which: with ll-sc a try that fails only loads, so a hop is a
 * transfer of the modified line and an upgrade; lse may be carried out where the line is instead of moving it. */
static inline void cas_until(line_t *line, uint32_t from, uint32_t to) {
    uint32_t expected;
    do expected = from;
    while (!atomic_compare_exchange_weak_explicit(line, &expected, to, memory_order_acq_rel, memory_order_relaxed));
}

static void cas_initiate(line_t *there, line_t *back, uint32_t done, uint32_t count) {
    (void)back, (void)done;
    for (; count > 0; count--) cas_until(there, 0, 1);
}

static void cas_respond(line_t *there, line_t *back, uint32_t done, uint32_t count) {
    (void)back, (void)done;
    for (; count > 0; count--) cas_until(there, 1, 0);
}

/* faa: polls with an addition of nothing, then adds one. Both always succeed and ask for ownership; when the poll has
 * seen its turn the line is already exclusive here, so the second addition costs no transaction unless the other's poll
 * takes the line in between: a hop is one transfer of a modified line, as in cas, without the compare. */
static inline void add_until(line_t *line, uint32_t parity) {
    while ((atomic_fetch_add_explicit(line, unknown_zero(), memory_order_acq_rel) & 1) != parity) continue;
    atomic_fetch_add_explicit(line, 1, memory_order_acq_rel);
}

static void faa_initiate(line_t *there, line_t *back, uint32_t done, uint32_t count) {
    (void)back, (void)done;
    for (; count > 0; count--) add_until(there, 0);
}

static void faa_respond(line_t *there, line_t *back, uint32_t done, uint32_t count) {
    (void)back, (void)done;
    for (; count > 0; count--) add_until(there, 1);
}

/* flag1: polls with loads, answers with a store, on one line. The poll keeps a shared copy; a hop is two transactions:
 * the store takes ownership away from that copy (an upgrade that invalidates), and the other side's next load fetches
 * the modified line. */
static void flag1_initiate(line_t *there, line_t *back, uint32_t done, uint32_t count) {
    (void)back, (void)done;
    for (; count > 0; count--) {
        while (atomic_load_explicit(there, memory_order_acquire) != 0) continue;
        atomic_store_explicit(there, 1, memory_order_release);
    }
}

static void flag1_respond(line_t *there, line_t *back, uint32_t done, uint32_t count) {
    (void)back, (void)done;
    for (; count > 0; count--) {
        while (atomic_load_explicit(there, memory_order_acquire) != 1) continue;
        atomic_store_explicit(there, 0, memory_order_release);
    }
}

/* flag2: a line each way, each written by one side alone, as message queues do. A hop is the same two transactions as in
 * flag1, but the writer's upgrade of one line may overlap its polling of the other. */
static void flag2_initiate(line_t *there, line_t *back, uint32_t done, uint32_t count) {
    for (uint32_t i = done; i < done + count; i++) {
        while (atomic_load_explicit(back, memory_order_acquire) != i) continue;
        atomic_store_explicit(there, i + 1, memory_order_release);
    }
}

static void flag2_respond(line_t *there, line_t *back, uint32_t done, uint32_t count) {
    for (uint32_t i = done; i < done + count; i++) {
        while (atomic_load_explicit(there, memory_order_acquire) != i + 1) continue;
        atomic_store_explicit(back, i + 1, memory_order_release);
    }
}

static const struct protocol {
    const struct operation *operation;
    player *initiate, *respond;
} protocols[] = {
    {&operation_cas, cas_initiate, cas_respond},
    {&operation_faa, faa_initiate, faa_respond},
    {&operation_flag1, flag1_initiate, flag1_respond},
    {&operation_flag2, flag2_initiate, flag2_respond},
};

/* What makes a line fresh before a pair plays on it: no CPU of a pair before has left a trace in caches and directories. */
enum fresh { FRESH_NOT, FRESH_FLUSH, FRESH_PAGE };
const char *fresh_word = NULL;
static enum fresh fresh;

static void choose_fresh(void) {
    if (fresh_word == NULL) return;
    fresh = strcmp(fresh_word, "flush") == 0 ? FRESH_FLUSH : FRESH_PAGE;
    if (fresh == FRESH_PAGE && strcmp(fresh_word, "page") != 0)
        fail(EXIT_BAD_INPUT, "--fresh takes flush or page, not %s", fresh_word);
    if (fresh == FRESH_PAGE && (options.parallel > 0 || options.huge_pages))
        fail(EXIT_BAD_INPUT, "--fresh page takes pages anew that other pairs of --parallel use, and splits huge ones");
}

/* Called by the initiator while nobody else has the line. A page that is taken anew is zeroed and touched by it. */
static void freshen(line_t *line) {
    if (fresh == FRESH_FLUSH) {
        cache_flush_pair((const void *)line);
        cache_fence();
    } else if (fresh == FRESH_PAGE) {
        size_t page = (size_t)sysconf(_SC_PAGESIZE);
        unsigned char *byte = (unsigned char *)line;
        if (madvise(byte - (uintptr_t)byte % page, page, MADV_DONTNEED) != 0)
            fail(EXIT_NOT_AS_ASKED, "a page cannot be given back: %s", strerror(errno));
    }
}

/* Two workers and the lines they play on. The initiator says which line is next and how often it goes to and fro. */
struct duel {
    alignas(256) atomic_uint turn; /* counts the plays; the rest of this line is written before it */
    line_t *there, *back;          /* NULL: the duel is over */
    uint32_t hand_overs;
    alignas(256) const struct protocol *protocol; /* from here on nothing changes while they play */
    struct workers *workers;
    double ramp_ns; /* see struct run */
    unsigned char *pool;
    const uint32_t *line_set;
    size_t from, to;                      /* lines of the set to play on */
    uint32_t round_trips;                 /* of a batch; grows as long as the pair is measured */
    double *values;                       /* ns a hop, BATCHES a line */
    alignas(256) double clock_ghz[2][32]; /* of each side; far apart, as both write theirs at once */
};

static void hand_over(struct duel *duel, line_t *there, line_t *back, uint32_t hand_overs) {
    duel->there = there;
    duel->back = back;
    duel->hand_overs = hand_overs;
    atomic_fetch_add_explicit(&duel->turn, 1, memory_order_release);
}

static void respond(struct duel *duel) {
    for (unsigned turn = 1;; turn++) {
        while (atomic_load_explicit(&duel->turn, memory_order_acquire) != turn) relax();
        if (duel->there == NULL) return;
        duel->protocol->respond(duel->there, duel->back, 0, duel->hand_overs);
    }
}

/* Play on one line; `ticks` gets the time of each batch. The clock is read after a hand-over, while the other side has
 * the line, so reading it costs nothing. The lead-in lets the responder arrive and warms the line up. */
static void play(struct duel *duel, line_t *there, line_t *back, uint32_t round_trips, double ticks[BATCHES]) {
    player *initiate = duel->protocol->initiate;
    uint32_t all = LEAD_IN + BATCHES * round_trips;
    freshen(there);
    if (back != there) freshen(back);
    atomic_store_explicit(there, 0, memory_order_relaxed);
    atomic_store_explicit(back, 0, memory_order_relaxed);
    hand_over(duel, there, back, all);
    initiate(there, back, 0, LEAD_IN);
    uint64_t start = clock_ticks();
    for (uint32_t batch = 0; batch < BATCHES; batch++) {
        initiate(there, back, LEAD_IN + batch * round_trips, round_trips);
        uint64_t end = clock_ticks();
        ticks[batch] = (double)(end - start);
        start = end;
    }
    /* the responder's last answer, so that nobody touches these lines any more; faa counts both hand-overs */
    while (atomic_load_explicit(back, memory_order_acquire) % all != 0) relax();
}

static line_t *line_at(const struct duel *duel, uint32_t line) {
    return (line_t *)(void *)(duel->pool + (size_t)line * LINE_BYTES);
}

static void initiate(struct duel *duel) {
    double ticks[BATCHES];
    for (size_t i = duel->from; i < duel->to;) {
        line_t *there = line_at(duel, duel->line_set[i]);
        line_t *back = duel->protocol->operation->two_lines ? line_at(duel, duel->line_set[i] + POOL_LINES / 2) : there;
        if (i + 4 == duel->to) workers_wake_next(duel->workers);
        play(duel, there, back, duel->round_trips, ticks);
        uint32_t needed = round_trips_needed(duel->round_trips, ticks, BATCHES);
        if (needed > duel->round_trips) {
            duel->round_trips = needed;
            continue;
        }
        for (size_t batch = 0; batch < BATCHES; batch++)
            duel->values[i * BATCHES + batch] = ticks[batch] * clock_facts.ns_per_tick / (2.0 * duel->round_trips);
        i++;
    }
    hand_over(duel, NULL, NULL, 0);
}

/* Roles 2k and 2k+1 are the sides of duel k. */
static void fight(size_t role, void *argument) {
    struct duel *duel = (struct duel *)argument + role / 2;
    work_for(duel->ramp_ns);
    duel->clock_ghz[role % 2][0] = core_hz(1, PROBE_NS) / 1e9;
    if (role % 2 == 0)
        initiate(duel);
    else
        respond(duel);
}

struct duel *duel_of(struct run *run, const struct home *home, size_t lines) {
    struct duel *duel = aligned_alloc(alignof(struct duel), sizeof *duel);
    if (duel == NULL) fail(EXIT_NOT_AS_ASKED, "out of memory");
    *duel = (struct duel){.protocol = &protocols[0],
                          .workers = &run->workers,
                          .ramp_ns = run->ramp_ns,
                          .pool = home->pool.bytes,
                          .line_set = home->line_set,
                          .round_trips = ROUND_TRIPS,
                          .to = lines,
                          .values = grow(NULL, lines * BATCHES, sizeof(double))};
    return duel;
}

void duel_begin(struct duel *duel) {
    atomic_store_explicit(&duel->turn, 0, memory_order_relaxed);
}

void duel_play(struct duel *duel, size_t side) {
    fight(side, duel);
}

const double *duel_values(const struct duel *duel) {
    return duel->values;
}

void duel_free(struct duel *duel) {
    free(duel->values);
    free(duel);
}

static void fight_all(struct run *run, struct duel *duels, const size_t *members, size_t count, size_t from,
                      size_t to) {
    for (size_t i = 0; i < count; i++) {
        duels[i].from = from;
        duels[i].to = to;
        atomic_store_explicit(&duels[i].turn, 0, memory_order_relaxed);
    }
    workers_run(&run->workers, members, 2 * count, fight, duels);
}

/* Where the lines of a duel live, and what was found there. */
struct places {
    size_t clusters;
    unsigned char *cluster; /* of each line; all 0 with one cluster */
    double *lowest;         /* of each line */
    double medians[MOST_CLUSTERS];
};

static void find_places(const struct home *home, const struct duel *duel, size_t lines, struct places *places) {
    places->clusters = home->clusters;
    for (size_t line = 0; line < lines; line++)
        places->cluster[line] = home->clusters > 1 ? home->cluster[duel->line_set[line]] : 0;
}

static struct summary summary_of(const struct duel *duel, size_t lines, struct places *places) {
    return summarize_clusters(duel->values, lines, BATCHES, places->cluster, places->clusters, places->lowest,
                              places->medians);
}

/* The duel again while more than a quarter of its batches was slow, the calmest try counts. Pairs that were measured at once are taken as they are: what disturbs them is their subject. */
static struct summary settle_pair(struct run *run, struct duel *duel, const size_t *members, struct places *places,
                                  size_t *retries, double *spare) {
    size_t bytes = run->lines * BATCHES * sizeof(double);
    struct summary best = summary_of(duel, run->lines, places);
    for (*retries = 0; *retries < RETRIES && best.slow_share > DISTURBED_SHARE; ++*retries) {
        memcpy(spare, duel->values, bytes);
        fight_all(run, duel, members, 1, 0, run->lines);
        struct summary again = summary_of(duel, run->lines, places);
        if (again.slow_share >= best.slow_share)
            memcpy(duel->values, spare, bytes);
        else
            best = again;
    }
    if (*retries > 0) best = summary_of(duel, run->lines, places);
    return best;
}

/* Beside the latency: how it was measured. Of a pair the header names no values, so that a clock may be in GHz. */
enum {
    USED_LINES = LATENCY_FIELDS,
    USED_ROUND_TRIPS,
    TIMES_AGAIN,
    SLOW_SHARE,
    CLOCK_A_GHZ,
    CLOCK_B_GHZ,
    SWITCHES,
    AT_ONCE,
    SLOT,
};

static const struct field fields[] = {
    FIELDS_OF_LATENCY,
    [USED_LINES] = {"lines", NUMBER, DECIMALS, 0},
    [USED_ROUND_TRIPS] = {"round_trips", NUMBER, DECIMALS, 0},
    [TIMES_AGAIN] = {"retries", NUMBER, DECIMALS, 0},
    [SLOW_SHARE] = {"slow_share", NUMBER, DECIMALS, 3},
    [CLOCK_A_GHZ] = {"clock_a_ghz", NUMBER, DECIMALS, 4},
    [CLOCK_B_GHZ] = {"clock_b_ghz", NUMBER, DECIMALS, 4},
    [SWITCHES] = {"switches", NUMBER, DECIMALS, 0},
    [AT_ONCE] = {"at_once", NUMBER, DECIMALS, 0},
    [SLOT] = {"slot", NUMBER, DECIMALS, 0},
};

/* Each line's lowest batch, and each cluster's median. */
static void add_detail(struct text *members, const struct places *places, size_t lines) {
    for (size_t line = 0; line < lines; line++)
        text_add(members, "%s%.2f%s", line == 0 ? ",\"line_ns\":[" : ",", places->lowest[line],
                 line + 1 == lines ? "]" : "");
    for (size_t c = 0; c < places->clusters; c++) {
        text_add(members, c == 0 ? ",\"cluster_ns\":[" : ",");
        text_add(members, isfinite(places->medians[c]) ? "%.3f" : "null", places->medians[c]);
    }
    text_add(members, "]");
}

static void measure_pairs(struct run *run, const struct unit *const *units, size_t count, struct result *results) {
    static struct duel duels[MAX_PARALLEL];
    static double *values, *spare, *center;
    static struct places places;
    size_t members[2 * MAX_PARALLEL], each = run->lines * BATCHES;
    if (values == NULL) {
        values = grow(NULL, each * MAX_PARALLEL, sizeof *values);
        spare = grow(NULL, each, sizeof *spare);
        center = grow(NULL, run->lines, sizeof *center);
        places.lowest = grow(NULL, run->lines, sizeof *places.lowest);
        places.cluster = grow(NULL, run->lines, 1);
    }
    const struct protocol *protocol = protocols;
    while (strcmp(protocol->operation->name, run->operation->name) != 0) protocol++;
    for (size_t i = 0; i < count; i++) {
        const struct home *home = run_home(run, (int)units[i]->key[2]);
        members[2 * i] = run_worker(run, units[i]->key[0]);
        members[2 * i + 1] = run_worker(run, units[i]->key[1]);
        duels[i].protocol = protocol;
        duels[i].workers = &run->workers;
        duels[i].ramp_ns = run->ramp_ns;
        duels[i].pool = home->pool.bytes;
        duels[i].line_set = home->line_set + i * run->lines;
        duels[i].round_trips = ROUND_TRIPS;
        duels[i].values = values + i * each;
    }
    long switches = workers_switches(&run->workers, members, 2 * count);
    fight_all(run, duels, members, count, 0, run->lines);
    for (size_t i = 0; i < count; i++) {
        struct result *result = &results[i];
        struct home *home = run_home(run, (int)units[i]->key[2]);
        size_t retries = 0;
        find_places(home, &duels[i], run->lines, &places);
        struct summary summary = count == 1 ? settle_pair(run, &duels[i], &members[2 * i], &places, &retries, spare)
                                            : summary_of(&duels[i], run->lines, &places);
        double *measured = result->values;
        summary_set_values(&summary, measured);
        measured[USED_LINES] = (double)run->lines;
        measured[USED_ROUND_TRIPS] = duels[i].round_trips;
        measured[TIMES_AGAIN] = (double)retries;
        measured[SLOW_SHARE] = summary.slow_share;
        measured[CLOCK_A_GHZ] = duels[i].clock_ghz[0][0];
        measured[CLOCK_B_GHZ] = duels[i].clock_ghz[1][0];
        if (count == 1) {
            measured[SWITCHES] = (double)(workers_switches(&run->workers, members, 2) - switches);
        } else {
            measured[AT_ONCE] = (double)count;
            measured[SLOT] = (double)i;
        }
        if (run->detail) add_detail(&result->more, &places, run->lines);
        result->flags = summary.slow_share > DISTURBED_SHARE ? FLAG_DISTURBED : 0;
        if (!run->account) continue;
        for (size_t line = 0; line < run->lines; line++) center[line] = places.medians[places.cluster[line]];
        spread_add(&run->spread, &home->sums[i], duels[i].values, run->lines, BATCHES, center);
    }
}

static void plan_pairs(struct run *run) {
    choose_fresh();
    run->lines = LINES;
    run->batches = BATCHES;
    run->round_trips = ROUND_TRIPS;
    run_add_pairs(run);
}

/* Round trips, three hops a line to hand it over, the ramp of both clocks, a probe of them, and the record. */
static double pair_seconds(const struct run *run, const struct unit *unit, double hop_ns) {
    (void)unit;
    static const double probe_and_record_s = 20e-6;
    double hops = (double)run->lines * (2.0 * (double)(LEAD_IN + run->batches * run->round_trips) + 3);
    return (hops * hop_ns + run->ramp_ns) / 1e9 + probe_and_record_s;
}

#define PINGPONG(NAME, SUMMARY, TWO_LINES)                                                                             \
    const struct operation operation_##NAME = {                                                                        \
        .name = #NAME,                                                                                                 \
        .summary = (SUMMARY),                                                                                          \
        .quantity = "hop",                                                                                             \
        .unit = "ns",                                                                                                  \
        .record = "pair",                                                                                              \
        FIELDS(fields),                                                                                                \
        .keys = {"a", "b", "home"},                                                                                    \
        .two_lines = (TWO_LINES),                                                                                      \
        .plan = plan_pairs,                                                                                            \
        .measure_pairs = measure_pairs,                                                                                \
        .seconds = pair_seconds,                                                                                       \
    }

PINGPONG(cas, "compare-exchange on one line, polled with itself", false);
PINGPONG(faa, "fetch-add on one line, polled with itself", false);
PINGPONG(flag1, "loads and stores on one line", false);
PINGPONG(flag2, "loads and stores, a line each way", true);
