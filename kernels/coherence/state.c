/* state: what a load or a store of one CPU (a) costs when the line is in a known state at another (b, the owner). The
 * lines lie one a page, at random places in their pages, and are chased once in random order, as prefetchers would
 * otherwise guess them; they are prepared anew for each chase, and each round has lines of its own.
 *   M  the owner stored                          a load is a transfer of the modified line, which is shared or written back
 *   E  the owner flushed and loaded              a clean line: from the owner's cache or from memory
 *   S  then a sharer loaded                      (with MESIF the sharer, as the last reader, has it in F)
 *   F  the sharer loaded before the owner        the owner answers as forwarder
 *   O  the owner stored, the sharer loaded       the owner keeps the modified line and answers (MOESI)
 *   memory  flushed                              from memory of the home node, whose directory knows no holder
 * Where the sharer is decides what the home's directory must know and ask: in the owner's L3, in another L3 of its die,
 * on another die, in another socket; except in the first case not in the L3 of the CPU that loads.
 * In ns a load, never halved. A store's latency is that of an addition of nothing: it needs ownership and waits for the
 * line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coherence/operations.h"
#include "harness/cache.h"
#include "harness/clock.h"
#include "harness/die.h"
#include "harness/fail.h"
#include "harness/frequency.h"
#include "harness/proc.h"
#include "harness/sample.h"
#include "harness/schedule.h"

enum { LINES = 64, ROUNDS = 9, ALL_LINES = LINES * ROUNDS, PAGE_LINES = 64, DRAW_CHASE = 200, CLOCK_READS = 100 };
enum state { STATE_M, STATE_E, STATE_S, STATE_F, STATE_O, STATE_MEMORY, STATE_COUNT };
enum method { LOAD_CHASE, STORE_CHASE, SINGLE_LOADS, OWNER_STORES };

static const char *const state_words[] = {"M", "E", "S", "F", "O", "memory", NULL};

/* Where the sharer is, seen from the owner. */
enum sharer { NO_SHARER, IN_L3, ON_DIE, IN_SOCKET, IN_OTHER_SOCKET, SHARER_COUNT };
static const char *const sharer_words[] = {"none", "l3", "die", "socket", "other_socket", NULL};
static int *die; /* of each CPU of the selection */

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

typedef _Atomic uintptr_t link_t;

struct scene {
    unsigned char *pool;
    uint32_t line[LINES]; /* in the order of the chase */
    enum state state;
    enum method method;
    double ns; /* of this round: a line */
};

static link_t *link_at(const struct scene *scene, size_t i) {
    return (link_t *)(void *)(scene->pool + (size_t)scene->line[i] * LINE_BYTES);
}

static void store_all(const struct scene *scene) {
    for (size_t i = 0; i < LINES; i++)
        atomic_store_explicit(link_at(scene, i), (uintptr_t)link_at(scene, (i + 1) % LINES), memory_order_release);
}

static void flush_lines(const struct scene *scene) {
    for (size_t i = 0; i < LINES; i++) cache_flush((const void *)link_at(scene, i));
    cache_fence();
}

static void load_all(const struct scene *scene) {
    for (size_t i = 0; i < LINES; i++) (void)atomic_load_explicit(link_at(scene, i), memory_order_acquire);
    cache_fence();
}

static void owner_begins(size_t role, void *argument) {
    (void)role;
    const struct scene *scene = argument;
    store_all(scene);
    if (scene->state == STATE_M || scene->state == STATE_O) return;
    flush_lines(scene);
    if (scene->state == STATE_E || scene->state == STATE_S) load_all(scene);
}

static void sharer_loads(size_t role, void *argument) {
    (void)role;
    load_all(argument);
}

static void owner_ends(size_t role, void *argument) {
    (void)role;
    const struct scene *scene = argument;
    if (scene->state == STATE_F) load_all(scene);
}

/* Ticks that two reads of the clock with nothing between cost: a mean, as the figures of single lines are, because the
 * counter may advance by more at once than a load takes. */
static double clock_cost(void) {
    uint64_t sum = 0;
    for (int i = 0; i < CLOCK_READS; i++) {
        uint64_t start = clock_ticks();
        sum += clock_ticks() - start;
    }
    return (double)sum / CLOCK_READS;
}

/* A load in each page, far from the line: what is timed is the line and not the translation of its address. */
static void translate(const struct scene *scene) {
    for (size_t i = 0; i < LINES; i++)
        (void)*(volatile unsigned char *)(scene->pool + (size_t)(scene->line[i] ^ (PAGE_LINES / 2)) * LINE_BYTES);
}

static double chase(const struct scene *scene, bool store) {
    link_t *at = link_at(scene, 0);
    uint64_t start = clock_ticks();
    for (size_t i = 0; i < LINES; i++) {
        uintptr_t next = store ? atomic_fetch_add_explicit(at, unknown_zero(), memory_order_acq_rel)
                               : atomic_load_explicit(at, memory_order_relaxed);
        at = (link_t *)next; /* NOLINT(performance-no-int-to-ptr): a link is an address */
    }
    uint64_t end = clock_ticks();
    if (at != link_at(scene, 0))
        fail(EXIT_NOT_AS_ASKED, "the chase did not come back to its start: the lines were changed");
    return (double)(end - start) / LINES;
}

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
    struct scene *scene = argument;
    double ticks = 0;
    core_hz(1, 8e3);
    if (scene->method != OWNER_STORES) translate(scene);
    if (scene->method == LOAD_CHASE || scene->method == STORE_CHASE)
        ticks = chase(scene, scene->method == STORE_CHASE);
    else
        ticks = one_by_one(scene, scene->method == OWNER_STORES);
    scene->ns = ticks * clock_facts.ns_per_tick;
}

/* Where CPU `i` would be as a sharer of the owner's lines; NO_SHARER where it is on its core. */
static enum sharer sharer_at(const struct run *run, size_t i, size_t owner) {
    enum closeness closeness = select_closeness(&run->selection, i, owner);
    if (closeness == SAME_CORE) return NO_SHARER;
    if (closeness == SAME_L3) return IN_L3;
    if (die[i] >= 0 && die[i] == die[owner]) return ON_DIE;
    return closeness == OTHER_SOCKET ? IN_OTHER_SOCKET : IN_SOCKET;
}

/* A CPU at that place, off the requester's core, and but for the owner's L3 off the requester's; the count of CPUs when
 * there is none. */
static size_t sharer_of(const struct run *run, size_t requester, size_t owner, enum sharer where) {
    for (size_t i = 0; i < run->cpus.count; i++) {
        enum closeness near = select_closeness(&run->selection, i, requester);
        if (sharer_at(run, i, owner) == where && near != SAME_CORE && (where == IN_L3 || near != SAME_L3)) return i;
    }
    return run->cpus.count;
}

static bool is_shared(enum state state) {
    return state == STATE_S || state == STATE_F || state == STATE_O;
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
static bool play_round(struct run *run, struct scene *scene, size_t requester, size_t owner, size_t sharer) {
    static const double most_lost_share = 0.25; /* of 20 us and more, most of which is the clock's warm-up */
    size_t timed = scene->method == OWNER_STORES ? owner : requester;
    workers_run(&run->workers, &owner, 1, owner_begins, scene);
    if (is_shared(scene->state)) workers_run(&run->workers, &sharer, 1, sharer_loads, scene);
    workers_run(&run->workers, &owner, 1, owner_ends, scene);
    workers_run(&run->workers, &timed, 1, act, scene);
    return workers_lost_share(&run->workers, &timed, 1) > most_lost_share;
}

static struct scene scene;

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
    const struct home *home = run_home(run, (int)unit->key[2]);
    scene.pool = home->pool.bytes;
    scene.state = (enum state)unit->key[3];
    for (int method = LOAD_CHASE; method <= OWNER_STORES; method++) {
        scene.method = (enum method)method;
        size_t lossy = 0;
        for (size_t round = 0; round < ROUNDS; round++) {
            order_lines(run, &scene, home->line_set + round * LINES, pass, (size_t)method * ROUNDS + round);
            lossy += play_round(run, &scene, requester, owner, sharer);
            rounds[round] = scene.ns;
        }
        struct summary summary = summarize(rounds, ROUNDS, 1, NULL);
        result->values[field_of[method]] = summary.latency;
        if (method == LOAD_CHASE) summary_set_values(&summary, result->values);
        if (4 * lossy > ROUNDS || summary.slow_share > 0.25) flags |= FLAG_DISTURBED;
    }
    if (is_shared(scene.state)) result->values[SHARER_CPU] = run->cpus.cpu[sharer];
    return flags;
}

static char vendor[64]; /* empty where the system does not report it */

/* Why this processor has no such state; NULL where it may have. */
static const char *no_such_state(enum state state) {
    if (state == STATE_O && strcmp(vendor, "GenuineIntel") == 0) return "not on this CPU: Intel has MESIF";
    if (state == STATE_F && strcmp(vendor, "AuthenticAMD") == 0) return "not on this CPU: AMD has MOESI";
    if ((state == STATE_O || state == STATE_F) && vendor[0] == '\0') return "not known on this CPU";
    return NULL;
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
    bool shared = false;
    for (int where = IN_L3; where < SHARER_COUNT; where++)
        shared |= sharer_of(run, requester, owner, (enum sharer)where) < run->cpus.count;
    if (!shared && !cpulist_has(alone, run->cpus.cpu[owner])) cpulist_add(alone, run->cpus.cpu[owner]);
    for (int state = 0; state < STATE_COUNT; state++) {
        if (no_such_state((enum state)state) != NULL) continue;
        if (!is_shared((enum state)state)) add_state(run, requester, owner, (enum state)state, NO_SHARER);
        for (int where = IN_L3; is_shared((enum state)state) && where < SHARER_COUNT; where++)
            if (sharer_of(run, requester, owner, (enum sharer)where) < run->cpus.count)
                add_state(run, requester, owner, (enum state)state, (enum sharer)where);
    }
}

static void plan(struct run *run) {
    struct cpulist alone = {0};
    struct text lacking = {0};
    run->lines = ALL_LINES;
    run->batches = 1;
    run->round_trips = 1;
    select_require_pairs(&run->selection);
    cpuinfo_first("vendor_id", vendor, sizeof vendor);
    die = grow(NULL, run->cpus.count, sizeof *die);
    die_of_cpus(&run->selection, die);
    for (size_t i = 0; i < run->selection.pair_count; i++) {
        if (!run_pair_stands(run, i)) continue;
        add_states(run, (size_t)run->selection.pairs[i].a, (size_t)run->selection.pairs[i].b, &alone);
        add_states(run, (size_t)run->selection.pairs[i].b, (size_t)run->selection.pairs[i].a, &alone);
    }
    cpulist_sort(&alone);
    text_add(&lacking, "not measurable here: needs a third core among --cpus, in the owner's L3 or off the other "
                       "CPU's; without one: ");
    cpulist_write(&lacking, &alone, true);
    for (int state = 0; state < STATE_COUNT; state++) {
        if (no_such_state((enum state)state) != NULL)
            run_not_measured(run, state_words[state], no_such_state((enum state)state));
        else if (is_shared((enum state)state) && alone.count > 0)
            run_not_measured(run, state_words[state], lacking.data);
    }
    text_free(&lacking);
    cpulist_free(&alone);
}

/* Four methods; in each round three or four tasks are handed out and 64 lines are stored, flushed and chased. */
static double seconds(const struct run *run, const struct unit *unit, double hop_ns) {
    (void)run, (void)unit;
    return 4.0 * ROUNDS * (LINES * (3 * hop_ns + 200) / 1e9 + 4 * 40e-6);
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
    .seconds = seconds,
};
