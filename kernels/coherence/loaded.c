/* loaded: hops while another CCX draws on memory. With one active pair the fabric is idle and may lower its clock or
 * power; what that costs shows in the same hops beside little and beside much traffic of others. */
#include <stdlib.h>
#include <string.h>

#include "coherence/operations.h"
#include "harness/clock.h"
#include "harness/die.h"
#include "harness/fail.h"
#include "harness/footprint.h"
#include "harness/frequency.h"
#include "harness/gate.h"

enum {
    LINES = 32,
    CHUNK_BYTES = 64 << 10,
};
static const double LIGHT_BYTES_PER_S = 5e9, RAMP_S = 0.1;

enum load { IDLE, LIGHT, FULL };
static const char *const load_words[] = {"idle", "light", "full", NULL};

static struct cpulist injectors; /* the CPUs of one L3, on a die that neither side of a pair is on */
static int injectors_home;
static size_t slice_bytes;
static size_t *injected_chunks; /* of each injector so far: it goes on where it stopped, beyond what a cache holds */
static bool fits;               /* whether there is memory for the slices */
static struct buffer injected;

/* A pair at roles 0 and 1, injectors behind them. */
struct storm {
    struct gate gate;
    alignas(256) atomic_bool over;
    alignas(256) enum load load;
    double *bytes_per_s; /* by role */
    struct duel *duel;
};

static void inject(size_t role, struct storm *storm) {
    const unsigned char *slice = injected.bytes + (role - 2) * slice_bytes;
    double ticks_a_chunk = CHUNK_BYTES / LIGHT_BYTES_PER_S * 1e9 / clock_facts.ns_per_tick;
    uint64_t start = clock_ticks(), chunks = 0, former = injected_chunks[role - 2];
    while (!atomic_load_explicit(&storm->over, memory_order_relaxed)) {
        if (storm->load == LIGHT && (double)(clock_ticks() - start) < (double)chunks * ticks_a_chunk) {
            relax();
            continue;
        }
        const unsigned char *chunk = slice + (former + chunks++) * CHUNK_BYTES % slice_bytes;
        for (size_t at = 0; at < CHUNK_BYTES; at += LINE_BYTES)
            (void)*(const volatile uint64_t *)(const void *)(chunk + at);
    }
    double elapsed_s = (double)(clock_ticks() - start) * clock_facts.ns_per_tick / 1e9;
    storm->bytes_per_s[role] = (double)(chunks * CHUNK_BYTES) / elapsed_s;
    injected_chunks[role - 2] += chunks;
}

/* The pair waits until the fabric has become used to the load, also where there is none. */
static void take_role(size_t role, void *argument) {
    struct storm *storm = argument;
    gate_pass(&storm->gate);
    if (role >= 2) {
        inject(role, storm);
        return;
    }
    double end = clock_monotonic_s() + RAMP_S;
    while (clock_monotonic_s() < end) additions(1000);
    duel_play(storm->duel, role);
    if (role == 0) atomic_store_explicit(&storm->over, true, memory_order_relaxed);
}

/* ---- plan ---- */

/* Whether a CPU is an injector, or on a die with them: then it shares their port to the fabric. */
static bool beside_injectors(const struct run *run, const int *die, int index) {
    for (size_t i = 0; die[index] >= 0 && i < run->chosen.count; i++)
        if (die[i] == die[index] && cpulist_has(&injectors, run->chosen.cpu[i])) return true;
    return cpulist_has(&injectors, run->selection.cpus.cpu[index]);
}

/* The last L3 of the first CPU's socket that is on another die than the first CPU, else that of any socket, else any
 * other L3. */
static void choose_injectors(const struct run *run, const int *die) {
    const struct cpu_place *place = run->selection.place;
    int l3 = -1;
    for (int attempt = 0; attempt < 3 && l3 < 0; attempt++)
        for (size_t i = 1; i < run->chosen.count; i++) {
            bool off_die = die[i] < 0 || die[i] != die[0], same_socket = place[i].socket == place[0].socket;
            if (place[i].l3 == place[0].l3 || (attempt < 2 && !off_die) || (attempt == 0 && !same_socket)) continue;
            l3 = place[i].l3;
            injectors_home = place[i].home;
        }
    for (size_t i = 0; i < run->chosen.count && l3 >= 0; i++)
        if (place[i].l3 == l3) cpulist_add(&injectors, run->selection.cpus.cpu[i]);
}

/* Where there is too little memory, what injectors read there would come out of caches: hops beside them are left out. */
static void choose_memory(struct run *run) {
    slice_bytes = (footprint_of_each(&injectors) + CHUNK_BYTES - 1) / CHUNK_BYTES * CHUNK_BYTES;
    size_t wanted = slice_bytes * injectors.count;
    size_t affordable = buffer_affordable(&run->machine, injectors_home, wanted, 1);
    fits = affordable >= wanted;
    if (fits) return;
    struct text why = {0};
    text_add(&why, "slices of four times the L3 take %zu MiB on NUMA node %d, where %zu MiB may be taken", wanted >> 20,
             injectors_home, affordable >> 20);
    run_not_measured(run, "hops beside traffic", why.data);
    text_free(&why);
}

/* One pair for each closeness, unless they were named, off the injectors' die; where the pairs have no other, off their
 * L3. */
static void plan(struct run *run) {
    const struct selection *selection = &run->selection;
    bool known[CLOSENESS_COUNT] = {false};
    run->lines = LINES;
    run->batches = DUEL_BATCHES;
    run->round_trips = 25;
    select_require_pairs(selection);
    int *die = grow(NULL, selection->cpus.count, sizeof *die);
    die_of_cpus(selection, die);
    choose_injectors(run, die);
    if (injectors.count > 0 && beside_injectors(run, die, 0)) /* a machine of one die */
        for (size_t i = 0; i < selection->cpus.count; i++) die[i] = -1;
    if (injectors.count == 0) {
        free(die);
        run->not_applicable = "all CPUs that take part share one L3: there is no other to draw on memory";
        return;
    }
    int *homes = grow(NULL, run->machine.nodes, sizeof *homes);
    for (size_t i = 0; i < selection->pair_count; i++) {
        struct pair pair = selection->pairs[i];
        enum closeness closeness = select_closeness(selection, (size_t)pair.a, (size_t)pair.b);
        if (beside_injectors(run, die, pair.a) || beside_injectors(run, die, pair.b)) continue;
        if (known[closeness] && !select_pairs_named()) continue;
        known[closeness] = true;
        size_t count = select_homes(selection, &run->machine, (size_t)pair.a, (size_t)pair.b, homes);
        for (size_t h = 0; h < count; h++)
            for (int64_t load = IDLE; load <= FULL; load++)
                run_add_unit(run,
                             (struct unit){{selection->cpus.cpu[pair.a], selection->cpus.cpu[pair.b], homes[h], load}});
    }
    free(homes);
    free(die);
    choose_memory(run);
    if (run->unit_count == 0) run->not_applicable = "no pair is left beside the CPUs of another L3 that draw on memory";
}

static uint64_t memory_planned(const struct run *run) {
    return run->home_count * POOL_BYTES + (fits ? (uint64_t)slice_bytes * injectors.count : 0);
}

/* ---- measuring ---- */

static void prepare(struct run *run) {
    injected_chunks = grow(NULL, injectors.count, sizeof *injected_chunks);
    memset(injected_chunks, 0, injectors.count * sizeof *injected_chunks);
    if (!fits) return;
    injected =
        buffer_create(&run->machine, &run->workers, injectors_home, slice_bytes * injectors.count, PAGES_TRANSPARENT);
    run_add_placement(run, "injectors", &injected);
}

static void facts(struct run *run, bool end, struct text *members) {
    (void)run;
    if (end) return;
    text_add(members, ",\"slice_bytes\":%zu,\"injectors\":[", slice_bytes);
    cpulist_write(members, &injectors, false);
    text_add(members, "]");
}

static const struct field fields[] = {FIELDS_OF_LATENCY_BESIDE_TRAFFIC};

static unsigned measure(struct run *run, uint32_t pass, const struct unit *unit, struct result *result) {
    (void)pass;
    enum load load = (enum load)unit->key[3];
    if (load != IDLE && !fits) return 0; /* no figure; the header says why */
    size_t count = 2 + (load == IDLE ? 0 : load == LIGHT ? 1 : injectors.count);
    size_t *roles = grow(NULL, count, sizeof *roles);
    struct storm *storm = aligned_alloc(alignof(struct storm), sizeof *storm);
    double rate = 0;
    if (storm == NULL) fail(EXIT_NOT_AS_ASKED, "out of memory");
    roles[0] = run_worker(run, unit->key[0]);
    roles[1] = run_worker(run, unit->key[1]);
    for (size_t i = 2; i < count; i++) roles[i] = run_worker(run, injectors.cpu[i - 2]);
    struct duel *duel = duel_of(run, run_home(run, (int)unit->key[2]), LINES);
    duel_begin(duel);
    gate_set(&storm->gate, count);
    atomic_store_explicit(&storm->over, false, memory_order_relaxed);
    storm->load = load;
    storm->duel = duel;
    storm->bytes_per_s = grow(NULL, count, sizeof *storm->bytes_per_s);
    workers_run(&run->workers, roles, count, take_role, storm);
    for (size_t i = 2; i < count; i++) rate += storm->bytes_per_s[i];
    unsigned flags = run_set_latency(result, duel_values(duel), LINES, DUEL_BATCHES);
    result->values[TRAFFIC_BYTES_PER_S] = rate;
    result->values[TRAFFIC_CPUS] = (double)(count - 2);
    free(storm->bytes_per_s);
    free(storm);
    free(roles);
    duel_free(duel);
    return flags;
}

static double plan_seconds(const struct run *run, const struct unit *unit, double hop_ns) {
    (void)run, (void)unit;
    return RAMP_S + LINES * 60 * 2 * hop_ns / 1e9 + 1e-3;
}

static double prepare_seconds(const struct run *run) {
    return run_pages_seconds(run, run->selection.place[0].home, (double)memory_planned(run), true);
}

const struct operation operation_loaded = {
    .name = "loaded",
    .summary = "a hop of cas, idle and beside 5 GB/s and all that another L3 draws from memory",
    .quantity = "hop",
    .unit = "ns",
    .record = "cell",
    FIELDS(fields),
    .keys = {"a", "b", "home", "load"},
    .words = {NULL, NULL, NULL, load_words},
    .plan = plan,
    .memory = memory_planned,
    .prepare = prepare,
    .facts = facts,
    .measure = measure,
    .seconds = plan_seconds,
    .prepare_seconds = prepare_seconds,
};
