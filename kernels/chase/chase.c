/* chase: how long a load waits for a level of the memory hierarchy. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/cache.h"
#include "harness/clock.h"
#include "harness/cycle.h"
#include "harness/fail.h"
#include "harness/frequency.h"
#include "harness/headroom.h"
#include "harness/options.h"
#include "harness/proc.h"
#include "harness/run.h"
#include "harness/sample.h"

static const char help[] =
    "USAGE\n"
    "  chase --op latency --cpus cores --out FILE [options]\n"
    "  example: kernels/build/chase --op curve --cpus 0 --pages huge --out here.jsonl\n"
    "\n"
    "REQUIREMENTS\n"
    "  Linux on x86-64 or aarch64; free memory on each NUMA node as --plan says. No root.\n"
    "\n"
    "OVERHEAD\n"
    "  One CPU is busy at a time: about 6 ms a cell of latency, 10 ms a cell of levels, seconds a curve.\n"
    "\n"
    "WARNING\n"
    "  Measure on an otherwise idle node: other programs use caches and memory, too.\n";

enum {
    BATCHES = 33,
    MOST_WARM_UP_STEPS = 4 << 20,   /* 256 MiB: more than any cache but the largest */
    L3_LEVEL_MOST_BYTES = 16 << 20, /* enough behind every L2, and quick */
};
static const size_t LEAST_CURVE_BYTES = (size_t)256 << 20;
/* As nothing of it is in a cache it need not be larger than one; it is larger than the TLBs of base pages. */
static const size_t LATENCY_BYTES = COLD_BYTES;
/* By size of page: so many base pages that the tables of their addresses fill an L2. */
static const size_t PAGES_BYTES = (size_t)256 << 20;

static const char *pages_word = "thp", *per_word; /* NULL: not given, until it is used */
static uint64_t size_mib;

static const struct setting settings[] = {
    {.name = "pages",
     .value = "KIND",
     .word = &pages_word,
     .shapes = true,
     .help = "base, thp (transparent huge, a wish; default) or huge (reserved by the administrator); read back and "
             "recorded"},
    {.name = "per",
     .value = "WHAT",
     .word = &per_word,
     .shapes = true,
     .only = "latency",
     .help = "latency: from each cpu (default) or from one CPU of each node"},
    {.name = "size-mib",
     .value = "N",
     .number = &size_mib,
     .highest = 1 << 20,
     .shapes = true,
     .help =
         "the buffer of latency (default 64) and of pages (256), and the end of the curve (default 4 times the L3, at "
         "least 256)"},
    SAMPLE_SETTING("latency"),
    {0},
};

/* A node's memory, and where the chase through it goes on. */
struct area {
    int node;
    struct buffer buffer;
    void *at;
};

static struct area *areas;
static size_t area_count;
static size_t wanted_bytes; /* of each area */

struct trip {
    struct area *area;
    size_t lines;
    struct random random;
    bool cold;    /* nothing of what is timed may be in a cache */
    bool changed; /* what was laid has changed since */
    struct chase chase;
    double hz;
};

static struct area *area_of(int node) {
    for (size_t i = 0; i < area_count; i++)
        if (areas[i].node == node) return &areas[i];
    return NULL;
}

static void want_area(int node) {
    (void)page_kind_of(pages_word); /* what is no kind of page is refused before anything is planned */
    if (area_of(node) != NULL) return;
    areas = grow(areas, area_count + 1, sizeof *areas);
    areas[area_count++] = (struct area){.node = node};
}

static uint64_t memory_planned(const struct run *run) {
    (void)run;
    return (uint64_t)wanted_bytes * area_count;
}

/* ---- plans ---- */

/* The size asked for; else `wanted`, as far as every node has it, but not less than `least`. */
static void choose_size(const struct run *run, size_t wanted, size_t least) {
    size_t tightest = 0;
    wanted_bytes = size_mib > 0 ? (size_t)size_mib << 20 : wanted;
    for (size_t i = 0; size_mib == 0 && i < area_count; i++) {
        size_t affordable = buffer_affordable(&run->machine, areas[i].node, wanted, area_count);
        if (affordable >= wanted_bytes) continue;
        wanted_bytes = affordable;
        tightest = i;
    }
    if (size_mib > 0 || wanted_bytes >= least) return;
    struct limit limit = memory_limit(&run->machine, areas[tightest].node);
    fail(EXIT_NOT_AS_ASKED, "at least %zu MiB are needed on each of %zu NUMA nodes: %llu MiB are %s", least >> 20,
         area_count, (unsigned long long)(limit.bytes >> 20), limit.what);
}

static bool first_of_its_node(const struct run *run, size_t i) {
    for (size_t j = 0; j < i; j++)
        if (machine_node_of(&run->machine, run->chosen.cpu[j]) == machine_node_of(&run->machine, run->chosen.cpu[i]))
            return false;
    return true;
}

static bool per_node(void) {
    if (per_word == NULL) per_word = "cpu";
    if (strcmp(per_word, "node") == 0) return true;
    if (strcmp(per_word, "cpu") != 0) fail(EXIT_BAD_INPUT, "--per takes cpu or node, not %s", per_word);
    return false;
}

static void plan_latency(struct run *run) {
    bool nodes_only = per_node();
    for (size_t n = 0; n < run->machine.nodes; n++)
        if (run->machine.node[n].has_memory) want_area(run->machine.node[n].number);
    int *nodes = grow(NULL, area_count + 1, sizeof *nodes);
    bool sampled = false;
    for (size_t i = 0; i < run->chosen.count; i++) {
        if (nodes_only && !first_of_its_node(run, i)) continue;
        int cpu = run->chosen.cpu[i];
        for (size_t a = 0; a < area_count; a++) nodes[a] = areas[a].node;
        size_t count = sample_memory(run, machine_home_of(&run->machine, cpu), i, nodes, area_count);
        for (size_t a = 0; a < count; a++) run_add_unit(run, (struct unit){{cpu, nodes[a]}});
        sampled = sampled || count < area_count;
    }
    free(nodes);
    sample_check(run->unit_count);
    if (sampled)
        run_not_measured(run, "memory of all NUMA nodes from every CPU",
                         "each CPU has its own node and one of each distance in turn; --cells all measures all, "
                         "--cells DISTANCE those of one distance");
    choose_size(run, LATENCY_BYTES, LATENCY_BYTES);
}

/* Inside the L2 page colors count: a half of it is already slower than a quarter. */
static size_t level_bytes(int cpu, int64_t level) {
    size_t l1 = cache_bytes(cpu, 1), l2 = cache_bytes(cpu, 2), l3 = cache_bytes(cpu, 3);
    if (level == 0) return (l1 > 0 ? l1 : 32 << 10) / 2;
    if (level == 1) return l2 / 4;
    size_t bytes = l3 / 4 > L3_LEVEL_MOST_BYTES ? L3_LEVEL_MOST_BYTES : l3 / 4;
    return bytes >= 2 * l2 ? bytes : l3 >= 4 * l2 ? 2 * l2 : 0;
}

static void plan_levels(struct run *run) {
    for (size_t i = 0; i < run->chosen.count; i++) {
        int cpu = run->chosen.cpu[i];
        want_area(machine_home_of(&run->machine, cpu));
        for (int64_t level = 0; level < CACHE_LEVELS; level++) {
            size_t bytes = level_bytes(cpu, level);
            if (bytes == 0) continue;
            run_add_unit(run, (struct unit){{cpu, level}});
            if (bytes > wanted_bytes) wanted_bytes = bytes;
        }
    }
}

/* Whether a chosen CPU stands for others: the first of each node, above eight nodes of each socket. */
static bool stands_in_curve(const struct run *run, size_t i) {
    enum { MOST_NODES = 8 };
    const struct cpu_place *place = run->selection.place; /* the chosen CPUs are the first of the selection's */
    for (size_t j = 0; run->machine.nodes > MOST_NODES && j < i; j++)
        if (place[j].socket == place[i].socket) return false;
    return first_of_its_node(run, i);
}

/* Of the nodes whose memory the curve goes through, those without room for `least` are left out where another has it. */
static void want_areas_of_curve(struct run *run, size_t least) {
    for (int roomy = 1; roomy >= 0 && area_count == 0; roomy--)
        for (size_t i = 0; i < run->chosen.count; i++) {
            int node = machine_home_of(&run->machine, run->chosen.cpu[i]);
            bool fits = buffer_affordable(&run->machine, node, least, 1) >= least;
            if (stands_in_curve(run, i) && (fits || roomy == 0)) want_area(node);
        }
    for (size_t i = 0; i < run->chosen.count; i++) {
        char what[64], why[128];
        int node = machine_home_of(&run->machine, run->chosen.cpu[i]);
        if (!stands_in_curve(run, i) || area_of(node) != NULL) continue;
        snprintf(what, sizeof what, "the curve in memory of NUMA node %d", node);
        snprintf(why, sizeof why, "%llu MiB are free, and a third more than %zu MiB is needed",
                 (unsigned long long)(machine_free_bytes(&run->machine, node) >> 20), least >> 20);
        run_not_measured(run, what, why);
    }
}

/* Two sizes an octave, from half the L1 on, by one CPU of each node in its own memory. Where memory is short the
 * curve ends early, but not before the L3 is left behind. */
static void plan_curve(struct run *run) {
    size_t l3 = cache_largest(&run->chosen, 3);
    size_t shortest = 2 * l3 > LEAST_CURVE_BYTES / 4 ? 2 * l3 : LEAST_CURVE_BYTES / 4;
    want_areas_of_curve(run, size_mib > 0 ? 0 : shortest);
    choose_size(run, 4 * l3 > LEAST_CURVE_BYTES ? 4 * l3 : LEAST_CURVE_BYTES, shortest);
    for (size_t i = 0; i < run->chosen.count; i++) {
        if (!stands_in_curve(run, i) || area_of(machine_home_of(&run->machine, run->chosen.cpu[i])) == NULL) continue;
        size_t least = level_bytes(run->chosen.cpu[i], 0), octave = 1;
        while (octave * 2 <= least) octave *= 2;
        for (; octave <= wanted_bytes; octave *= 2) {
            run_add_unit(run, (struct unit){{run->chosen.cpu[i], (int64_t)octave}});
            if (octave / 2 * 3 <= wanted_bytes)
                run_add_unit(run, (struct unit){{run->chosen.cpu[i], (int64_t)(octave / 2 * 3)}});
        }
    }
}

/* Sizes of pages, from the smallest: base pages; huge ones, transparent where the system gives them and reserved where
 * not; those of 1 GiB, of which one is enough. */
enum page_size { PAGE_BASE, PAGE_HUGE, PAGE_GIGANTIC, PAGE_SIZES };
static const char *const page_words[] = {"base", "huge", "1gib", NULL};

static enum page_kind kind_of_page(const struct run *run, int node, enum page_size size) {
    if (size == PAGE_BASE) return PAGES_BASE;
    if (size == PAGE_GIGANTIC) return PAGES_GIGANTIC;
    size_t page = buffer_reserved_page();
    return page < GIGANTIC_BYTES && buffer_reserved_free(&run->machine, node, page) >= (wanted_bytes + page - 1) / page
               ? PAGES_HUGE
               : PAGES_TRANSPARENT;
}

static uint64_t memory_of_pages(const struct run *run) { /* one buffer at a time */
    for (size_t i = 0; i < run->unit_count; i++)
        if (run->units[i].key[1] == PAGE_GIGANTIC) return GIGANTIC_BYTES;
    return wanted_bytes;
}

/* One CPU of each node in its own memory: walks through page tables are the core's and the system's. */
static void plan_pages(struct run *run) {
    bool transparent = buffer_huge_pages_work(), without[PAGE_SIZES] = {false};
    for (size_t i = 0; i < run->chosen.count; i++) want_area(machine_home_of(&run->machine, run->chosen.cpu[i]));
    choose_size(run, PAGES_BYTES, LATENCY_BYTES);
    for (size_t i = 0; i < run->chosen.count; i++) {
        if (!first_of_its_node(run, i)) continue;
        int node = machine_home_of(&run->machine, run->chosen.cpu[i]);
        bool huge = transparent || kind_of_page(run, node, PAGE_HUGE) == PAGES_HUGE;
        bool gigantic = wanted_bytes <= GIGANTIC_BYTES && buffer_reserved_free(&run->machine, node, GIGANTIC_BYTES) > 0;
        const bool there[PAGE_SIZES] = {true, huge, gigantic};
        for (int64_t size = 0; size < PAGE_SIZES; size++)
            if (there[size])
                run_add_unit(run, (struct unit){{run->chosen.cpu[i], size}});
            else
                without[size] = true;
    }
    if (without[PAGE_HUGE])
        run_not_measured(run, "huge pages", "the system gives no transparent ones and has too few reserved ones free");
    if (without[PAGE_GIGANTIC])
        run_not_measured(run, "pages of 1 GiB", "none is free on a NUMA node (hugepagesz=1G hugepages=N)");
}

/* ---- measuring ---- */

static void lay_area(size_t role, void *argument) {
    (void)role;
    struct trip *trip = argument;
    cycle_lay(trip->area->buffer.bytes, trip->lines, &trip->random);
    flush_all(trip->area->buffer.bytes, trip->area->buffer.size);
    trip->area->at = trip->area->buffer.bytes;
}

static void prepare_areas(struct run *run) {
    enum page_kind pages = page_kind_of(pages_word);
    char name[16];
    for (size_t i = 0; i < area_count; i++) {
        struct area *area = &areas[i];
        area->buffer = buffer_create(&run->machine, &run->workers, area->node, wanted_bytes, pages);
        snprintf(name, sizeof name, "%d", area->node);
        run_add_placement(run, name, &area->buffer);
    }
}

static void prepare_latency(struct run *run) {
    prepare_areas(run);
    for (size_t i = 0; i < area_count; i++) {
        struct trip trip = {.area = &areas[i], .lines = areas[i].buffer.size / ELEMENT_BYTES};
        trip.random = random_stream(run->seed + run->segment, 100, (uint64_t)areas[i].node);
        size_t member = memory_toucher(&run->machine, &run->workers, areas[i].node);
        workers_run(&run->workers, &member, 1, lay_area, &trip);
    }
}

static void facts(struct run *run, bool end, struct text *members) {
    if (end) return;
    text_add(members, ",\"pages_asked\":\"%s\",\"cache_bytes\":{", pages_word);
    for (int level = 1; level <= CACHE_LEVELS; level++)
        text_add(members, "%s\"l%d\":%zu", level == 1 ? "" : ",", level, cache_largest(&run->chosen, level));
    text_add(members, "}");
}

/* Memory: go on where the cycle was left. */
static void travel_cold(struct trip *trip) {
    trip->hz = core_hz(3, 20e3);
    trip->chase.at = trip->area->at;
    chase_run_cold(&trip->chase, trip->area->buffer.bytes, trip->area->buffer.size);
    trip->area->at = trip->chase.at;
}

/* A working set: round once, so that what can be in a cache is there. */
static void travel_warm(struct trip *trip) {
    cycle_lay(trip->area->buffer.bytes, trip->lines, &trip->random);
    size_t steps = trip->lines < MOST_WARM_UP_STEPS ? trip->lines : MOST_WARM_UP_STEPS;
    if (steps < WARM_UP_STEPS) steps = WARM_UP_STEPS;
    trip->chase.at = cycle_follow(trip->area->buffer.bytes, (steps + UNROLLED - 1) / UNROLLED * UNROLLED);
    trip->hz = core_hz(3, 20e3);
    chase_run(&trip->chase);
    trip->changed = !cycle_holds(trip->area->buffer.bytes, trip->lines);
}

/* Beyond an address that changed, lines are left out: what was timed is another working set. */
static void require_unchanged(bool changed, int node, const char *consequence) {
    if (changed)
        fail(EXIT_NOT_AS_ASKED, "addresses in the memory of NUMA node %d changed while they were followed; %s", node,
             consequence);
}

static bool area_changed(const struct area *area) {
    return !cycle_holds(area->buffer.bytes, area->buffer.size / ELEMENT_BYTES);
}

/* Memory that is read here is in caches: when nothing is timed any more. Which cells are wrong is not known then. */
static void finish_latency(struct run *run, struct text *records) {
    (void)run, (void)records;
    for (size_t i = 0; i < area_count; i++) {
        bool changed = area_changed(&areas[i]);
        if (changed) remove(options.out);
        require_unchanged(changed, areas[i].node, "the record was removed; test the memory");
    }
}

static void travel(size_t role, void *argument) {
    (void)role;
    struct trip *trip = argument;
    if (trip->cold)
        travel_cold(trip);
    else
        travel_warm(trip);
}

enum { CORE_HZ = LATENCY_FIELDS, LOADS, SIZE_BYTES, PAGE_BYTES, HUGE_SHARE };

#define FIELDS_OF_A_CHASE                                                                                              \
    FIELDS_OF_LATENCY, [CORE_HZ] = {"core_hz", HERTZ, SIGNIFICANT, 4}, [LOADS] = {"loads", NUMBER, DECIMALS, 0}
#define FIELD_OF_THE_SIZE [SIZE_BYTES] = {"size_bytes", BYTES, DECIMALS, 0}

static const struct field fields[] = {FIELDS_OF_A_CHASE};
static const struct field level_fields[] = {FIELDS_OF_A_CHASE, FIELD_OF_THE_SIZE};
static const struct field page_fields[] = {FIELDS_OF_A_CHASE,
                                           FIELD_OF_THE_SIZE, [PAGE_BYTES] = {"page_bytes", BYTES, DECIMALS, 0},
                                           [HUGE_SHARE] = {"huge_share", NUMBER, DECIMALS, 5}};

static unsigned measure(struct run *run, int cpu, struct trip *trip, struct result *result) {
    double values[BATCHES];
    size_t member = run_worker(run, cpu);
    trip->chase = (struct chase){.batches = BATCHES, .values = values};
    workers_run(&run->workers, &member, 1, travel, trip);
    require_unchanged(trip->changed, trip->area->node, "test the memory");
    result->values[CORE_HZ] = trip->hz;
    result->values[LOADS] = (double)trip->chase.total;
    return run_set_latency(result, values, BATCHES, 1);
}

static unsigned measure_latency(struct run *run, uint32_t pass, const struct unit *unit, struct result *result) {
    (void)pass;
    struct trip trip = {.area = area_of((int)unit->key[1]), .cold = true};
    return measure(run, (int)unit->key[0], &trip, result);
}

/* The same cycle for every CPU in a pass. */
static unsigned measure_warm(struct run *run, uint32_t pass, const struct unit *unit, size_t bytes,
                             struct result *result) {
    int cpu = (int)unit->key[0];
    struct trip trip = {.area = area_of(machine_home_of(&run->machine, cpu)), .lines = bytes / ELEMENT_BYTES};
    trip.random = random_stream(run->seed + run->segment, 101 + bytes, pass);
    return measure(run, cpu, &trip, result);
}

static unsigned measure_level(struct run *run, uint32_t pass, const struct unit *unit, struct result *result) {
    size_t bytes = level_bytes((int)unit->key[0], unit->key[1]);
    result->values[SIZE_BYTES] = (double)bytes;
    return measure_warm(run, pass, unit, bytes, result);
}

static unsigned measure_point(struct run *run, uint32_t pass, const struct unit *unit, struct result *result) {
    return measure_warm(run, pass, unit, (size_t)unit->key[1], result);
}

/* The buffer of one unit lives as long as that: three of them a node would not fit everywhere. Where not all of it came
 * in huge pages there is no latency of theirs: `huge_share` says so. */
static unsigned measure_pages(struct run *run, uint32_t pass, const struct unit *unit, struct result *result) {
    int cpu = (int)unit->key[0], node = machine_home_of(&run->machine, cpu);
    enum page_size size = (enum page_size)unit->key[1];
    struct area area = {.node = node};
    unsigned flags = 0;
    area.buffer = buffer_create(&run->machine, &run->workers, node, wanted_bytes, kind_of_page(run, node, size));
    double huge_share = (double)area.buffer.huge_bytes / (double)area.buffer.size;
    area.buffer.size = size == PAGE_GIGANTIC ? wanted_bytes : area.buffer.size; /* of the page what others have, too */
    struct trip trip = {.area = &area, .lines = area.buffer.size / ELEMENT_BYTES, .cold = true};
    trip.random = random_stream(run->seed + run->segment, 102, pass);
    size_t member = run_worker(run, cpu);
    if (size == PAGE_BASE || huge_share >= 1) {
        workers_run(&run->workers, &member, 1, lay_area, &trip);
        flags = measure(run, cpu, &trip, result);
        const struct buffer *own = &area.buffer; /* gone before pages are looked at between units */
        if (memory_return_moved(own->bytes, own->size, node, own->verified_by, own->bound) > 0)
            flags = measure(run, cpu, &trip, result) | FLAG_MOVED;
        require_unchanged(area_changed(&area), node, "test the memory");
    }
    result->values[SIZE_BYTES] = (double)area.buffer.size;
    result->values[PAGE_BYTES] = (double)area.buffer.page_bytes;
    result->values[HUGE_SHARE] = huge_share;
    if (size == PAGE_GIGANTIC) area.buffer.size = GIGANTIC_BYTES;
    buffer_free(&area.buffer);
    return flags;
}

/* ---- what --plan expects ---- */

static const double PROBE_S = 0.1e-3; /* of the clock */

static bool is_huge(const char *word) {
    return page_kind_of(word) != PAGES_BASE;
}

static double areas_seconds(const struct run *run) {
    double seconds = 0;
    for (size_t i = 0; i < area_count; i++)
        seconds += run_pages_seconds(run, areas[i].node, (double)wanted_bytes, is_huge(pages_word));
    return seconds;
}

static double lay_seconds(const struct run *run, bool huge) {
    return (double)wanted_bytes / ELEMENT_BYTES * costs_line(&run->costs, (double)wanted_bytes, huge).lay_ns / 1e9;
}

/* Each area is laid once, before the first pass. */
static double latency_prepare_seconds(const struct run *run) {
    return areas_seconds(run) + (double)area_count * lay_seconds(run, is_huge(pages_word));
}

static double latency_seconds(const struct run *run, const struct unit *unit, double hop_ns) {
    (void)unit, (void)hop_ns;
    return costs_chase_cold_s(&run->costs, (double)wanted_bytes, is_huge(pages_word), BATCHES) + PROBE_S;
}

static double pages_seconds(const struct run *run, const struct unit *unit, double hop_ns) {
    (void)hop_ns;
    bool huge = unit->key[1] != PAGE_BASE;
    int node = machine_home_of(&run->machine, (int)unit->key[0]);
    double touched = unit->key[1] == PAGE_GIGANTIC ? (double)GIGANTIC_BYTES : (double)wanted_bytes;
    return run_pages_seconds(run, node, touched, huge) + lay_seconds(run, huge) +
           costs_chase_cold_s(&run->costs, (double)wanted_bytes, huge, BATCHES) + PROBE_S;
}

static double warm_seconds(const struct run *run, double bytes) {
    double lines = bytes / ELEMENT_BYTES, warm = lines < MOST_WARM_UP_STEPS ? lines : (double)MOST_WARM_UP_STEPS;
    struct line_cost cost = costs_line(&run->costs, bytes, is_huge(pages_word));
    return (lines * cost.lay_ns + warm * cost.load_ns) / 1e9 + costs_chase_s(cost.load_ns, BATCHES) + PROBE_S;
}

static double level_seconds(const struct run *run, const struct unit *unit, double hop_ns) {
    (void)hop_ns;
    return warm_seconds(run, (double)level_bytes((int)unit->key[0], unit->key[1]));
}

static double point_seconds(const struct run *run, const struct unit *unit, double hop_ns) {
    (void)hop_ns;
    return warm_seconds(run, (double)unit->key[1]);
}

static const char *const levels[] = {"l1", "l2", "l3", NULL};

static const struct operation operations[] = {
    {.name = "latency",
     .summary = "memory of every NUMA node from every CPU, or --per node; nothing in a cache",
     .quantity = "load",
     .unit = "ns",
     .record = "cell",
     FIELDS(fields),
     .keys = {"cpu", "memory_node"},
     .plan = plan_latency,
     .memory = memory_planned,
     .prepare = prepare_latency,
     .facts = facts,
     .finish = finish_latency,
     .measure = measure_latency,
     .probes = PROBE_LINES | PROBE_COLD,
     .seconds = latency_seconds,
     .prepare_seconds = latency_prepare_seconds},
    {.name = "levels",
     .summary = "each CPU at the size of its L1, L2 and L3",
     .quantity = "load",
     .unit = "ns",
     .record = "cell",
     FIELDS(level_fields),
     .keys = {"cpu", "level"},
     .words = {NULL, levels},
     .plan = plan_levels,
     .memory = memory_planned,
     .prepare = prepare_areas,
     .facts = facts,
     .measure = measure_level,
     .probes = PROBE_LINES | PROBE_COLD,
     .seconds = level_seconds,
     .prepare_seconds = areas_seconds},
    {.name = "pages",
     .summary = "memory by size of page, one CPU of each node: what walks through page tables cost",
     .quantity = "load",
     .unit = "ns",
     .record = "cell",
     FIELDS(page_fields),
     .keys = {"cpu", "pages"},
     .words = {NULL, page_words},
     .plan = plan_pages,
     .memory = memory_of_pages,
     .measure = measure_pages,
     .probes = PROBE_LINES | PROBE_COLD,
     .seconds = pages_seconds},
    {.name = "curve",
     .summary = "one CPU of each node over working sets from half its L1 to beyond its L3",
     .quantity = "load",
     .unit = "ns",
     .record = "cell",
     FIELDS(fields),
     .keys = {"cpu", "size_bytes"},
     .plan = plan_curve,
     .memory = memory_planned,
     .prepare = prepare_areas,
     .facts = facts,
     .measure = measure_point,
     .probes = PROBE_LINES | PROBE_COLD,
     .seconds = point_seconds,
     .prepare_seconds = areas_seconds},
};

KERNEL_MAIN("chase", settings)
