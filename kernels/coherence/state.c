/* state: what a load or a store of one CPU (a) costs when the line is in a known state at another (b, the owner). The
 * lines lie one a page, at random places in their pages, and are chased once in random order, as prefetchers would
 * otherwise guess them; they are prepared anew for each chase, and each round has lines of its own. The states are in
 * scene.h. Where the sharer is decides what the home's directory must know and ask: in the owner's L3, in another L3 of its die,
 * on another die, in another socket; except in the first case not in the L3 of the CPU that loads.
 * In ns a load, never halved. A store's latency is that of an addition of nothing: it needs ownership and waits for the
 * line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coherence/scene.h"
#include "harness/cache.h"
#include "harness/clock.h"
#include "harness/frequency.h"
#include "harness/sample.h"
#include "harness/schedule.h"

enum { LINES = 64, ROUNDS = 9, ALL_LINES = LINES * ROUNDS, DRAW_CHASE = 200 };
enum method { LOAD_CHASE, STORE_CHASE, SINGLE_LOADS, OWNER_STORES };

static const char *const sharer_words[] = {"none", "l3", "die", "socket", "other_socket", NULL};

const struct setting coherence_settings[] = {
    {.name = "fresh",
     .value = "HOW",
     .word = &fresh_word,
     .shapes = true,
     .only = "cas,faa,flag1,flag2",
     .help =
         "flush: before a pair plays on a line it is in no cache; page: on a page that was given back and taken anew"},
    {.name = "cells",
     .value = "WHICH",
     .word = &sample_word,
     .shapes = true,
     .only = "contend-pairs",
     .help = "above 64 CPUs: sample (of each CPU a pair of each class; default), all, or the pairs of nodes of one "
             "distance"},
    {0},
};

struct trial {
    struct scene scene;
    enum method method;
    double ns; /* of this round: a line */
};

/* Lines that are timed one by one: loads, or stores with a fence by the owner. */
static double one_by_one(const struct scene *scene, bool store) {
    double cost = clock_cost();
    uint64_t sum = 0;
    for (size_t i = 0; i < LINES; i++) {
        link_t *line = link_at(scene, i);
        uintptr_t next = (uintptr_t)link_at(scene, (i + 1) % LINES);
        uint64_t start = clock_ticks();
        if (store) {
            atomic_store_explicit(line, next, memory_order_relaxed);
            cache_fence();
        } else {
            (void)atomic_load_explicit(line, memory_order_acquire);
        }
        sum += clock_ticks() - start;
    }
    return (double)sum / LINES - cost;
}

static void act(size_t role, void *argument) {
    (void)role;
    struct trial *trial = argument;
    double ticks = 0;
    core_hz(1, 8e3);
    if (trial->method != OWNER_STORES) scene_translate(&trial->scene);
    if (trial->method == LOAD_CHASE || trial->method == STORE_CHASE)
        ticks = scene_chase(&trial->scene, LINES, trial->method == STORE_CHASE);
    else
        ticks = one_by_one(&trial->scene, trial->method == OWNER_STORES);
    trial->ns = ticks * clock_facts.ns_per_tick;
}

/* Each method meets the lines of a round in an order of its own. */
static void order_lines(const struct run *run, struct scene *scene, const uint32_t *lines, uint32_t pass,
                        size_t number) {
    uint32_t order[LINES];
    struct random random = random_stream(run->seed + run->segment, DRAW_CHASE + number, pass);
    shuffled(&random, order, LINES);
    for (size_t i = 0; i < LINES; i++) scene->line[i] = lines[order[i]];
}

/* Returns whether the one who is timed lost a good part of that time. */
static bool play_round(struct run *run, struct trial *trial, size_t requester, size_t owner, size_t sharer) {
    static const double most_lost_share = 0.25; /* of 20 us and more, most of which is the clock's warm-up */
    size_t timed = trial->method == OWNER_STORES ? owner : requester;
    workers_run(&run->workers, &owner, 1, scene_owner_begins, &trial->scene);
    if (state_is_shared(trial->scene.state)) workers_run(&run->workers, &sharer, 1, scene_sharer_loads, &trial->scene);
    workers_run(&run->workers, &owner, 1, scene_owner_ends, &trial->scene);
    workers_run(&run->workers, &timed, 1, act, trial);
    return workers_lost_share(&run->workers, &timed, 1) > most_lost_share;
}

enum { STORE_NS = LATENCY_FIELDS, SINGLE_NS, OWNER_STORE_NS, SHARER_CPU };

static const struct field fields[] = {FIELDS_OF_LATENCY, [STORE_NS] = {"store_ns", NANOSECONDS, DECIMALS, 3},
                                      [SINGLE_NS] = {"single_ns", NANOSECONDS, DECIMALS, 3},
                                      [OWNER_STORE_NS] = {"owner_store_ns", NANOSECONDS, DECIMALS, 3},
                                      [SHARER_CPU] = {"sharer_cpu", CPU_NUMBER, DECIMALS, 0}};

static unsigned measure(struct run *run, uint32_t pass, const struct unit *unit, struct result *result) {
    static const size_t field_of[] = {[LOAD_CHASE] = LATENCY_NS,
                                      [STORE_CHASE] = STORE_NS,
                                      [SINGLE_LOADS] = SINGLE_NS,
                                      [OWNER_STORES] = OWNER_STORE_NS};
    size_t requester = run_worker(run, unit->key[0]), owner = run_worker(run, unit->key[1]);
    size_t sharer = sharer_of(run, requester, owner, (enum sharer)unit->key[4]);
    double rounds[ROUNDS];
    unsigned flags = 0;
    uint32_t line[LINES];
    const struct home *home = run_home(run, (int)unit->key[2]);
    struct trial trial = {
        .scene = {
            .pool = home->pool.bytes, .line = line, .lines = LINES, .step = 1, .state = (enum state)unit->key[3]}};
    for (int method = LOAD_CHASE; method <= OWNER_STORES; method++) {
        trial.method = (enum method)method;
        size_t lossy = 0;
        for (size_t round = 0; round < ROUNDS; round++) {
            order_lines(run, &trial.scene, home->line_set + round * LINES, pass, (size_t)method * ROUNDS + round);
            lossy += play_round(run, &trial, requester, owner, sharer);
            rounds[round] = trial.ns;
        }
        struct summary summary = summarize(rounds, ROUNDS, 1, NULL);
        result->values[field_of[method]] = summary.latency;
        if (method == LOAD_CHASE) summary_set_values(&summary, result->values);
        if (4 * lossy > ROUNDS || summary.slow_share > 0.25) flags |= FLAG_DISTURBED;
    }
    if (state_is_shared(trial.scene.state)) result->values[SHARER_CPU] = run->cpus.cpu[sharer];
    return flags;
}

static void add_state(struct run *run, size_t requester, size_t owner, enum state state, enum sharer where) {
    int *homes = grow(NULL, run->machine.nodes, sizeof *homes);
    size_t count = select_homes(&run->selection, &run->machine, owner, requester, homes);
    for (size_t h = 0; h < count; h++)
        run_add_unit(run, (struct unit){{run->cpus.cpu[requester], run->cpus.cpu[owner], homes[h], state, where}});
    free(homes);
}

/* Owners that nobody can share lines with go into `alone`. */
static void add_states(struct run *run, size_t requester, size_t owner, struct cpulist *alone) {
    if (nearest_sharer(run, requester, owner) == SHARER_COUNT && !cpulist_has(alone, run->cpus.cpu[owner]))
        cpulist_add(alone, run->cpus.cpu[owner]);
    for (int state = 0; state < STATE_COUNT; state++) {
        if (no_such_state((enum state)state) != NULL) continue;
        if (!state_is_shared((enum state)state)) add_state(run, requester, owner, (enum state)state, NO_SHARER);
        for (int where = IN_L3; state_is_shared((enum state)state) && where < SHARER_COUNT; where++)
            if (sharer_of(run, requester, owner, (enum sharer)where) < run->cpus.count)
                add_state(run, requester, owner, (enum state)state, (enum sharer)where);
    }
}

static void plan(struct run *run) {
    struct cpulist alone = {0};
    run->lines = ALL_LINES;
    run->batches = 1;
    run->round_trips = 1;
    select_require_pairs(&run->selection);
    scene_begin(run);
    for (size_t i = 0; i < run->selection.pair_count; i++) {
        if (!run_pair_stands(run, i)) continue;
        add_states(run, (size_t)run->selection.pairs[i].a, (size_t)run->selection.pairs[i].b, &alone);
        add_states(run, (size_t)run->selection.pairs[i].b, (size_t)run->selection.pairs[i].a, &alone);
    }
    scene_not_measured(run, &alone);
    cpulist_free(&alone);
}

/* By four methods; the owner twice, then whoever is timed, and a sharer before. */
static double tasks(const struct run *run, const struct unit *unit) {
    (void)run;
    return 4.0 * ROUNDS * (state_is_shared((enum state)unit->key[3]) ? 4 : 3);
}

/* In each round 64 lines are stored, flushed and chased, each in a page of its own, and the clock is probed. Stores
 * overlap. */
static double seconds(const struct run *run, const struct unit *unit, double hop_ns) {
    static const double probe_s = 16e-6;
    (void)unit;
    double line_ns = 1.5 * hop_ns + run->costs.cold[0].load_ns;
    return 4.0 * ROUNDS * (LINES * line_ns / 1e9 + probe_s);
}

const struct operation operation_state = {
    .name = "state",
    .summary = "loads and stores of lines in M, E, S, F, O or memory; a pair for each closeness, or --pairs",
    .quantity = "load",
    .unit = "ns",
    .record = "cell",
    FIELDS(fields),
    .keys = {"a", "b", "home", "state", "sharer"},
    .words = {NULL, NULL, NULL, state_words, sharer_words},
    .line_a_page = true,
    .plan = plan,
    .measure = measure,
    .probes = PROBE_COLD,
    .seconds = seconds,
    .tasks = tasks,
};
