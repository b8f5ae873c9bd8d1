/* place and stream: what a load (a) of lines costs that another CPU (b, the owner) holds in a known state in its L1, its
 * L2 or its L3: the latency of lines one a page, and the bandwidth of a block. The places are made as x86-membench makes
 * them: whoever holds lines then reads memory of his own, twice, that takes their place in the caches above; with a
 * victim L3 that is how lines get there. Where a line is shared, so does the sharer, the nearest one.
 *
 * The owner's own loads prove the place: it prepares the lines in the same way and chases 32 of them. They must take about
 * what loads from that cache take, as chased before the first pass in lines that are there without any eviction. Where
 * they do not, as in a cache that keeps other lines or a guest's whose size is fiction, there is no value. */
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coherence/scene.h"
#include "harness/cache.h"
#include "harness/clock.h"
#include "harness/frequency.h"
#include "harness/schedule.h"
#include "harness/stats.h"
#include "harness/streams.h"

enum {
    LINES = 32, /* of a chase: what an L1's translations hold, also where a guest's huge pages are none of the host's */
    ROUNDS = 15,
    PAGES = 1024,       /* that the lines of a pass are drawn from */
    GUARD_BYTES = 4096, /* before the area, for translations */
    REPEATS = 15,
    WARM_NS = 8000, /* of work before a round: its core is at its clock */
    PATIENCE = 1 << 14,
    DRAW_PLACES = 300,
};
enum place { IN_L1, IN_L2, IN_THE_L3, PLACES };
static const char *const place_words[] = {"l1", "l2", "l3", NULL};
static const char *const closeness_words[] = {"same_core", "same_l3", "same_die", "same_socket", "other_socket", NULL};
enum { A, B, CLOSENESS, STATE, PLACE };

/* ---- sizes ---- */

/* What the owner reads to have lines in that cache and none above: twice what an L1 has, whose sets are known, and four
 * times an L2, whose sets pages of base size fill by chance. */
static size_t eviction_bytes(int cpu, enum place place) {
    return place == IN_L1 ? 0 : place == IN_L2 ? 2 * cache_bytes(cpu, 1) : 4 * cache_bytes(cpu, 2);
}

/* A power of two: half of an L1, a quarter of an L2; in an L3 half of an L2, as what takes long to prepare may be gone. */
static size_t block_bytes(int cpu, enum place place) {
    if (place == IN_L1) return power_of_two_within(cache_bytes(cpu, 1) / 2);
    return power_of_two_within(cache_bytes(cpu, 2) / (place == IN_L2 ? 4 : 2));
}

/* Whether half of the cache has room for a block and what it evicts it with. */
static bool has_place(int cpu, enum place place) {
    size_t block = block_bytes(cpu, place);
    return block >= (size_t)LINES * LINE_BYTES &&
           2 * (block + eviction_bytes(cpu, place)) <= cache_bytes(cpu, (int)place + 1);
}

/* ---- what is measured ---- */

/* Of an owner: ns of a load from each of its caches and, last, from memory. */
struct references {
    double ns[PLACES + 1];
};
static struct references *references; /* by CPU of the selection */
static struct buffer *buffers;        /* by NUMA node of the machine */
static bool blocks;                   /* operation stream */
static size_t area_bytes;             /* of each buffer, for lines and blocks */
static size_t most_evicted;           /* behind it */
static double reading_ticks;          /* of the clock */

enum role { REQUESTER, OWNER, SHARER, ROLES };
enum turn { TO_TRANSLATE, TO_BEGIN, TO_SHARE, TO_END, TO_LOAD, OVER };

struct trial {
    alignas(256) atomic_size_t turn; /* of all rounds */
    alignas(256) struct scene scene;
    const unsigned char *evicting;
    size_t evicting_bytes;
    size_t block_bytes; /* 0: its lines are chased */
    struct random random;
    double rounds[ROUNDS], proofs[ROUNDS]; /* ns of a load, or of all of the block */
};

/* ns of a load, without the clock's cost. First a line that leads to itself: the code is in the caches then. */
static double chase_ns(const struct scene *scene, size_t lines) {
    alignas(LINE_BYTES) link_t self;
    uint32_t here = 0;
    struct scene hot = {.pool = (unsigned char *)&self, .line = &here, .lines = 1, .step = 1};
    atomic_init(&self, (uintptr_t)&self);
    scene_chase(&hot, LINES, false);
    return (scene_chase(scene, lines, false) - reading_ticks / (double)lines) * clock_facts.ns_per_tick;
}

/* The least of some means: one of them may have an interrupt in it. */
static void read_clock(size_t role, void *argument) {
    (void)role, (void)argument;
    reading_ticks = clock_cost();
    for (int i = 1; i < REPEATS; i++) reading_ticks = fmin(reading_ticks, clock_cost());
}

static unsigned char *area_of(const struct buffer *buffer) {
    return buffer->bytes + GUARD_BYTES;
}

static void read_lines(const unsigned char *bytes, size_t size) {
    for (size_t at = 0; at < size; at += LINE_BYTES) (void)*(const volatile uint64_t *)(const void *)(bytes + at);
}

static void evict(const struct trial *trial) {
    for (int i = 0; i < 2; i++) read_lines(trial->evicting, trial->evicting_bytes);
    cache_fence();
}

/* Translations of the addresses; what is loaded of the lines goes away again. */
static void translate(const struct trial *trial) {
    if (trial->block_bytes == 0) scene_translate(&trial->scene);
    for (size_t at = 0; at < trial->block_bytes; at += GUARD_BYTES)
        (void)*(const volatile unsigned char *)(trial->scene.pool + at);
}

/* A load, or the whole block. */
static double load_ns(const struct trial *trial, bool prove) {
    if (trial->block_bytes == 0 || prove) return chase_ns(&trial->scene, LINES);
    unsigned char *array[MOST_ARRAYS] = {trial->scene.pool}, *guard[MOST_ARRAYS] = {trial->scene.pool - TURN_BYTES};
    stream_loop *loop = stream_loop_of(LOAD);
    loop(guard, TURN_BYTES, TURN_BYTES - 1);
    cache_fence();
    uint64_t start = clock_ticks();
    loop(array, trial->block_bytes, trial->block_bytes - 1);
    cache_fence();
    return ((double)(clock_ticks() - start) - reading_ticks) * clock_facts.ns_per_tick;
}

/* The lines of a round: one in each of 32 pages, others in each round of a pass. Those of a block come in their order, as
 * stores of any other are slow; what its proof chases is far apart, and in no order that is prefetched. */
static void draw_lines(struct trial *trial, size_t round) {
    struct scene *scene = &trial->scene;
    struct random random = trial->random; /* the same in each round of a pass */
    if (trial->block_bytes > 0) {
        for (size_t i = 0; i < scene->lines; i++) scene->line[i] = (uint32_t)i;
        scene->step = scene->lines / 8 * 5 + 1 + 2 * (size_t)random_below(&random, scene->lines / 32);
        return;
    }
    uint32_t page[PAGES];
    shuffled(&random, page, PAGES);
    for (size_t i = 0; i < LINES; i++)
        scene->line[i] = page[round * LINES + i] * PAGE_LINES + (uint32_t)random_below(&random, PAGE_LINES);
}

/* All stay awake until all rounds are over, so that nothing else runs on the owner's core and has its caches. */
static void wait_for(const struct trial *trial, size_t turn) {
    for (size_t spins = 0; atomic_load_explicit(&trial->turn, memory_order_acquire) < turn; spins++) {
        if (spins % PATIENCE == PATIENCE - 1) sched_yield(); /* something else has a CPU that is waited for */
        relax();
    }
}

static void pass_on(struct trial *trial, size_t turn) {
    atomic_store_explicit(&trial->turn, turn, memory_order_release);
}

static void begin_round(struct trial *trial, size_t round) {
    draw_lines(trial, round);
    translate(trial);
}

static void hold(struct trial *trial, size_t turn) {
    wait_for(trial, turn + TO_BEGIN);
    scene_owner_begins(OWNER, &trial->scene);
    if (state_is_shared(trial->scene.state)) {
        pass_on(trial, turn + TO_SHARE);
        wait_for(trial, turn + TO_END);
        scene_owner_ends(OWNER, &trial->scene);
    }
    evict(trial);
    pass_on(trial, turn + TO_LOAD);
}

static void share(struct trial *trial, size_t turn) {
    wait_for(trial, turn + TO_SHARE);
    scene_sharer_loads(SHARER, &trial->scene);
    evict(trial);
    pass_on(trial, turn + TO_END);
}

static void act(struct trial *trial, size_t turn, bool prove) {
    wait_for(trial, turn + TO_LOAD);
    (prove ? trial->proofs : trial->rounds)[turn / OVER / 2] = load_ns(trial, prove);
    pass_on(trial, turn + OVER);
}

/* Each round first with its proof, then what is measured. */
static void take_role(size_t role, void *argument) {
    struct trial *trial = argument;
    work_for(WARM_NS);
    for (size_t game = 0; game < (size_t)2 * ROUNDS; game++) {
        size_t turn = game * OVER;
        bool prove = game % 2 == 0;
        wait_for(trial, turn);
        if (role == REQUESTER) {
            begin_round(trial, game / 2);
            pass_on(trial, turn + TO_BEGIN);
        } else if (role == OWNER) {
            hold(trial, turn);
        } else {
            share(trial, turn);
        }
        if (role == (prove ? OWNER : REQUESTER)) act(trial, turn, prove);
    }
    wait_for(trial, (size_t)2 * ROUNDS * OVER);
}

static struct trial trial_of(const struct run *run, size_t owner, enum state state, enum place place) {
    int cpu = run->cpus.cpu[owner];
    size_t n = 0, block = blocks ? block_bytes(cpu, place) : 0;
    while (run->machine.node[n].number != run->selection.place[owner].home) n++;
    size_t lines = blocks ? block / LINE_BYTES : LINES;
    unsigned char *area = area_of(&buffers[n]);
    return (struct trial){.scene = {area, grow(NULL, lines, sizeof(uint32_t)), lines, 1, state},
                          .evicting = area + area_bytes,
                          .evicting_bytes = eviction_bytes(cpu, place),
                          .block_bytes = block};
}

/* ---- the proof ---- */

struct ladder {
    struct trial trial; /* its lines are a ring that is chased again and again */
    enum place place;   /* PLACES: memory */
    double ns;
};

static void climb(size_t role, void *argument) {
    struct ladder *ladder = argument;
    struct scene *scene = &ladder->trial.scene;
    double ns[REPEATS];
    scene_owner_begins(role, scene);
    for (size_t i = 0; i < REPEATS; i++) {
        if (ladder->place == PLACES)
            scene_owner_begins(role, scene); /* flushes them */
        else
            scene_chase(scene, scene->lines, false);
        ns[i] = chase_ns(scene, LINES); /* as many as of a proof: what the clock adds is the same */
    }
    sort_ascending(ns, REPEATS);
    ladder->ns = quantile_sorted(ns, REPEATS, 0.1);
}

/* How many bytes a ring has that only this cache holds; of the L1 and of memory lines one a page. */
static size_t ring_bytes(int cpu, enum place place) {
    if (place == IN_THE_L3) return 4 * power_of_two_within(cache_bytes(cpu, 2));
    return place == IN_L2 ? block_bytes(cpu, IN_L2) : (size_t)LINES * LINE_BYTES;
}

static void measure_references(struct run *run, size_t owner) {
    for (int place = IN_L1; place <= PLACES; place++) {
        struct ladder ladder = {.trial = trial_of(run, owner, place == PLACES ? STATE_MEMORY : STATE_M, IN_L1),
                                .place = (enum place)place};
        struct scene *scene = &ladder.trial.scene;
        struct random random = random_stream(run->seed + run->segment, DRAW_PLACES, (uint64_t)place << 32);
        references[owner].ns[place] = NAN;
        if (place < PLACES && !has_place(run->cpus.cpu[owner], (enum place)place)) continue;
        scene->lines = ring_bytes(run->cpus.cpu[owner], (enum place)place) / LINE_BYTES;
        scene->line = grow(scene->line, scene->lines, sizeof *scene->line);
        shuffled(&random, scene->line, scene->lines);
        if (scene->lines == LINES)
            for (size_t i = 0; i < LINES; i++) scene->line[i] = scene->line[i] * PAGE_LINES + scene->line[i];
        workers_run(&run->workers, &owner, 1, climb, &ladder);
        references[owner].ns[place] = ladder.ns;
        free(scene->line);
    }
}

/* Whether `ns` is within three times what that cache takes, and nearer to it than to what the next ones take. Nothing is where two
 * of them take about the same. */
static bool is_proved(const struct references *of, enum place place, double ns) {
    static const double least_apart = 1.5, most = 3;
    double own = of->ns[place], former = place == IN_L1 ? NAN : of->ns[place - 1], next = of->ns[place + 1];
    if (isnan(next)) next = of->ns[PLACES];
    if (!isnan(former) && (own < least_apart * former || ns * ns < own * former)) return false;
    return next > least_apart * own && ns * ns < own * next && ns < most * own;
}

/* ---- operations ---- */

enum { OWNER_NS = LATENCY_FIELDS, PAGE_BYTES, SHARER_CPU };
static const struct field place_fields[] = {
    FIELDS_OF_LATENCY, [OWNER_NS] = {"owner_ns", NANOSECONDS, DECIMALS, 3},
    [PAGE_BYTES] = {"page_bytes", BYTES, DECIMALS, 0}, [SHARER_CPU] = {"sharer_cpu", CPU_NUMBER, DECIMALS, 0}};

enum { RATE, CI_LOW, CI_HIGH, BLOCK_OWNER_NS, BLOCK_BYTES, BLOCK_PAGE_BYTES, BLOCK_SHARER_CPU };
static const struct field stream_fields[] = {
    [RATE] = {"rate_bytes_per_s", BYTES_PER_S, SIGNIFICANT, 6},
    [CI_LOW] = {"ci_low_bytes_per_s", BYTES_PER_S, SIGNIFICANT, 6},
    [CI_HIGH] = {"ci_high_bytes_per_s", BYTES_PER_S, SIGNIFICANT, 6},
    [BLOCK_OWNER_NS] = {"owner_ns", NANOSECONDS, DECIMALS, 3},
    [BLOCK_BYTES] = {"block_bytes", BYTES, DECIMALS, 0},
    [BLOCK_PAGE_BYTES] = {"page_bytes", BYTES, DECIMALS, 0},
    [BLOCK_SHARER_CPU] = {"sharer_cpu", CPU_NUMBER, DECIMALS, 0},
};

static void set_values(const struct trial *trial, const struct summary *summary, double owner_ns, bool proved,
                       double *values) {
    size_t n = 0;
    while (area_of(&buffers[n]) != trial->scene.pool) n++;
    if (trial->block_bytes == 0) {
        if (proved) summary_set_values(summary, values);
        values[OWNER_NS] = owner_ns;
        values[PAGE_BYTES] = (double)buffers[n].page_bytes;
        return;
    }
    double bytes = (double)trial->block_bytes;
    if (proved) {
        values[RATE] = bytes / summary->latency * 1e9;
        values[CI_LOW] = bytes / summary->ci_high * 1e9;
        values[CI_HIGH] = bytes / summary->ci_low * 1e9;
    }
    values[BLOCK_OWNER_NS] = owner_ns;
    values[BLOCK_BYTES] = bytes;
    values[BLOCK_PAGE_BYTES] = (double)buffers[n].page_bytes;
}

static unsigned measure(struct run *run, uint32_t pass, const struct unit *unit, struct result *result) {
    size_t requester = run_worker(run, unit->key[A]), owner = run_worker(run, unit->key[B]);
    enum sharer where = nearest_sharer(run, requester, owner);
    size_t sharer = where < SHARER_COUNT ? sharer_of(run, requester, owner, where) : run->cpus.count;
    const size_t members[ROLES] = {requester, owner, sharer};
    struct trial trial = trial_of(run, owner, (enum state)unit->key[STATE], (enum place)unit->key[PLACE]);
    size_t count = state_is_shared(trial.scene.state) ? ROLES : SHARER;
    trial.random = random_stream(run->seed + run->segment, DRAW_PLACES, pass);
    workers_run(&run->workers, members, count, take_role, &trial);
    struct summary summary = summarize(trial.rounds, ROUNDS, 1, NULL);
    sort_ascending(trial.proofs, ROUNDS);
    double owner_ns = median_sorted(trial.proofs, ROUNDS);
    set_values(&trial, &summary, owner_ns, is_proved(&references[owner], (enum place)unit->key[PLACE], owner_ns),
               result->values);
    if (state_is_shared(trial.scene.state))
        result->values[blocks ? (size_t)BLOCK_SHARER_CPU : SHARER_CPU] = run->cpus.cpu[sharer];
    free(trial.scene.line);
    return summary.slow_share > 0.25 ? FLAG_DISTURBED : 0;
}

/* ---- plan ---- */

/* The first pair of each closeness, and those that the caller named. */
static bool pair_stands(const struct run *run, size_t i) {
    const struct pair *pairs = run->selection.pairs;
    enum sharer closeness = sharer_at(run, (size_t)pairs[i].a, (size_t)pairs[i].b);
    for (size_t j = 0; !select_pairs_named() && j < i; j++)
        if (sharer_at(run, (size_t)pairs[j].a, (size_t)pairs[j].b) == closeness) return false;
    return true;
}

static void add_unique(struct cpulist *list, int cpu) {
    if (!cpulist_has(list, cpu)) cpulist_add(list, cpu);
}

static void add_places(struct run *run, size_t requester, size_t owner, struct cpulist *alone,
                       struct cpulist without[PLACES]) {
    int a = run->cpus.cpu[requester], b = run->cpus.cpu[owner];
    bool shared = nearest_sharer(run, requester, owner) < SHARER_COUNT;
    if (!shared) add_unique(alone, b);
    for (int64_t place = 0; place < PLACES; place++) {
        if (!has_place(b, (enum place)place)) add_unique(&without[place], b);
        for (int64_t state = 0; state < STATE_MEMORY && has_place(b, (enum place)place); state++)
            if (no_such_state((enum state)state) == NULL && (shared || !state_is_shared((enum state)state)))
                run_add_unit(run, (struct unit){{a, b, sharer_at(run, requester, owner), state, place}});
    }
}

static void plan(struct run *run) {
    struct cpulist alone = {0}, without[PLACES] = {{0}};
    select_require_pairs(&run->selection);
    scene_begin(run);
    for (size_t i = 0; i < run->selection.pair_count; i++) {
        struct pair pair = run->selection.pairs[i];
        if (!pair_stands(run, i)) continue;
        add_places(run, (size_t)pair.a, (size_t)pair.b, &alone, without);
        add_places(run, (size_t)pair.b, (size_t)pair.a, &alone, without);
    }
    scene_not_measured(run, &alone);
    for (size_t place = 0; place < PLACES; place++) {
        struct text why = {0};
        if (without[place].count == 0) continue;
        cpulist_sort(&without[place]);
        text_add(&why, "sysfs reports no such cache with room for lines and what evicts them from the caches above: ");
        cpulist_write(&why, &without[place], true);
        run_not_measured(run, place_words[place], why.data);
        text_free(&why);
        cpulist_free(&without[place]);
    }
    cpulist_free(&alone);
    if (run->unit_count == 0) run->not_applicable = "sysfs reports no cache that is large enough";
    area_bytes = (size_t)PAGES * PAGE_LINES * LINE_BYTES;
    for (size_t i = 0; i < run->unit_count; i++) {
        int owner = (int)run->units[i].key[B];
        if (ring_bytes(owner, IN_THE_L3) > area_bytes) area_bytes = ring_bytes(owner, IN_THE_L3);
        if (eviction_bytes(owner, IN_THE_L3) > most_evicted) most_evicted = eviction_bytes(owner, IN_THE_L3);
    }
}

static void plan_lines(struct run *run) {
    blocks = false;
    plan(run);
}

static void plan_blocks(struct run *run) {
    blocks = true;
    plan(run);
}

static bool is_owner(const struct run *run, int cpu) {
    for (size_t i = 0; i < run->unit_count; i++)
        if (run->units[i].key[B] == cpu) return true;
    return false;
}

/* Whether an owner has its memory on this node. */
static bool is_used(const struct run *run, int node) {
    for (size_t i = 0; i < run->unit_count; i++)
        if (run->selection.place[cpulist_index(&run->cpus, (int)run->units[i].key[B])].home == node) return true;
    return false;
}

static uint64_t memory(const struct run *run) {
    uint64_t bytes = 0;
    for (size_t n = 0; n < run->machine.nodes; n++)
        if (is_used(run, run->machine.node[n].number)) bytes += GUARD_BYTES + area_bytes + most_evicted;
    return bytes;
}

static void prepare(struct run *run) {
    buffers = grow(NULL, run->machine.nodes, sizeof *buffers);
    memset(buffers, 0, run->machine.nodes * sizeof *buffers);
    for (size_t n = 0; n < run->machine.nodes; n++) {
        int number = run->machine.node[n].number;
        char name[32];
        if (!is_used(run, number)) continue;
        buffers[n] = buffer_create(&run->machine, &run->workers, number, GUARD_BYTES + area_bytes + most_evicted,
                                   PAGES_TRANSPARENT);
        snprintf(name, sizeof name, "%d", number);
        run_add_placement(run, name, &buffers[n]);
    }
    references = grow(NULL, run->cpus.count, sizeof *references);
    memset(references, 0, run->cpus.count * sizeof *references);
    workers_run(&run->workers, &(size_t){0}, 1, read_clock, NULL);
    for (size_t i = 0; i < run->unit_count; i++) {
        size_t owner = run_worker(run, run->units[i].key[B]);
        if (references[owner].ns[PLACES] == 0) measure_references(run, owner);
    }
}

/* Of each owner: ns of a load from its caches and from memory, which its proofs are compared with. */
static void facts(struct run *run, bool end, struct text *members) {
    bool first = true;
    if (end || references == NULL) return;
    if (blocks) text_add(members, ",\"vector_bytes\":%zu", streams_vector_bytes());
    text_add(members, ",\"references_ns\":{");
    for (size_t i = 0; i < run->cpus.count; i++) {
        const double *ns = references[i].ns;
        if (ns[PLACES] == 0) continue;
        text_add(members, "%s\"%d\":{", first ? "" : ",", run->cpus.cpu[i]);
        for (size_t place = 0; place < PLACES; place++)
            if (!isnan(ns[place])) text_add(members, "\"%s\":%.2f,", place_words[place], ns[place]);
        text_add(members, "\"memory\":%.2f}", ns[PLACES]);
        first = false;
    }
    text_add(members, "}");
}

/* All are awake until all is over, so that what each does adds up. A turn is passed on in two hops, as by a flag. So many
 * loads of a block are under way at once, which takes what one load does (payload.c has less, for any core). */
static double seconds(const struct run *run, const struct unit *unit, double hop_ns) {
    static const double spin_ns = 40, page_drawn_ns = 6, line_drawn_ns = 1.2, at_once = 24;
    const struct costs *costs = &run->costs;
    int cpu = (int)unit->key[B];
    enum state state = (enum state)unit->key[STATE];
    enum place place = (enum place)unit->key[PLACE];
    double lines = blocks ? (double)block_bytes(cpu, place) / LINE_BYTES : LINES;
    double turns = state_is_shared(state) ? 5 : 3, sharers = state_is_shared(state) ? 1 : 0;
    double drawing_ns = blocks ? lines * line_drawn_ns : PAGES * page_drawn_ns;
    double evicting_ns = 2 * (double)eviction_bytes(cpu, place) * costs->read_ns / LINE_BYTES;
    double flushed_ns = state == STATE_M || state == STATE_O ? 0 : costs->flush_ns + costs->store_ns;
    double holding_ns = lines * (costs->store_ns + flushed_ns); /* a load of a line takes what a store takes */
    double sharing_ns = sharers * (lines * hop_ns / at_once + evicting_ns);
    double loading_ns = lines * (blocks ? hop_ns / at_once : hop_ns);
    double round_ns = turns * (2 * hop_ns + spin_ns) + drawing_ns + holding_ns + evicting_ns + sharing_ns;
    return (WARM_NS + ROUNDS * (2 * round_ns + loading_ns)) / 1e9;
}

/* Pages, and of each owner the references, of which chasing its L3 takes nearly all. */
static double prepare_seconds(const struct run *run) {
    double seconds = 0;
    for (size_t n = 0; n < run->machine.nodes; n++)
        if (is_used(run, run->machine.node[n].number))
            seconds += run_pages_seconds(run, run->machine.node[n].number,
                                         (double)(GUARD_BYTES + area_bytes + most_evicted), true);
    for (size_t i = 0; i < run->cpus.count; i++) {
        double ring = (double)ring_bytes(run->cpus.cpu[i], IN_THE_L3);
        if (is_owner(run, run->cpus.cpu[i]))
            seconds += REPEATS * ring / LINE_BYTES * costs_line(&run->costs, COSTS_LEAST_BYTES, true).load_ns / 1e9;
    }
    return seconds;
}

#define HELD(its_name, its_summary, its_quantity, its_unit, its_fields, its_plan)                                      \
    {                                                                                                                  \
        .name = (its_name), .summary = (its_summary), .quantity = (its_quantity), .unit = (its_unit),                  \
        .record = "cell", FIELDS(its_fields), .keys = {"a", "b", "closeness", "state", "place"},                       \
        .words = {NULL, NULL, closeness_words, state_words, place_words}, .plan = (its_plan), .memory = memory,        \
        .prepare = prepare, .facts = facts, .measure = measure, .probes = PROBE_LINES, .seconds = seconds,             \
        .prepare_seconds = prepare_seconds,                                                                            \
    }

const struct operation operation_place =
    HELD("place", "loads of lines held in another CPU's L1, L2 or L3, by state; a pair for each closeness, or --pairs",
         "load", "ns", place_fields, plan_lines);
const struct operation operation_stream =
    HELD("stream", "bandwidth of a block held in another CPU's L1, L2 or L3, by state; pairs as place", "rate", "B/s",
         stream_fields, plan_blocks);
