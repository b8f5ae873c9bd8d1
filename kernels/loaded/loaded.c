/* loaded: how long a load waits for memory while other CPUs draw on it. */
#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness/clock.h"
#include "harness/cycle.h"
#include "harness/die.h"
#include "harness/fail.h"
#include "harness/footprint.h"
#include "harness/frequency.h"
#include "harness/gate.h"
#include "harness/headroom.h"
#include "harness/run.h"

static const char help[] =
    "USAGE\n"
    "  loaded --op latency --cpus cores --out FILE [options]\n"
    "  example: kernels/build/loaded --op latency --cpus 0-7 --out here.jsonl\n"
    "\n"
    "REQUIREMENTS\n"
    "  Linux on x86-64 or aarch64, two CPUs; free memory as --plan says. No root.\n"
    "\n"
    "OVERHEAD\n"
    "  Up to all CPUs of a NUMA node are busy, about 25 ms a point; the memory of one node is loaded to its limit.\n"
    "\n"
    "WARNING\n"
    "  The first CPU of --cpus measures (of cores and all: of the L3 group with the fewest interrupts), in places "
    "that\n"
    "  say so another one; the others inject, always the same ones in a place. The header names them.\n";

enum {
    BATCHES = 65,
    IDLE = -1,
    CHUNK_LINES = 16,
    RAMP_TURNS = 100000, /* additions before the chase begins: a few ms with all injectors at work */
};
/* Turns of additions between two chunks of an injector; a turn is 64 cycles. */
static const int64_t delays[] = {IDLE, 512, 256, 128, 96, 64, 48, 32, 24, 16, 12, 8, 6, 4, 3, 2, 1, 0};

/* Who measures, in whose memory, and who else draws on which memory. */
enum place {
    OWN_L3,            /* the first CPU in its own memory; injectors share its L3 */
    OWN_NODE,          /* the rest of its NUMA node */
    OWN_NODE_WRITES,   /* half of their traffic are stores */
    OTHER_CCD,         /* as own_node, by a CPU on another CCD: a check */
    OTHER_NODE,        /* injectors in another NUMA node of the socket */
    FAR_SOCKET,        /* injectors in the other socket */
    FAR_SOCKET_WRITES, /* half of their traffic are stores */
    ACROSS,            /* the first CPU and the rest of its socket in the memory of the other socket */
    BOTH_WAYS,         /* while that socket reads here: the link in both directions */
    BOTH_WAYS_BACK,    /* the same, measured by the first CPU of the other socket */
    PLACES
};
static const char *const place_words[] = {
    "own_l3", "own_node",  "own_node_writes", "other_ccd", "other_node", "other_socket", "other_socket_writes",
    "across", "both_ways", "both_ways_back",  NULL,
};

struct injector {
    int cpu;
    struct area *area;
    size_t slice; /* its number in the area */
    size_t at; /* where in its slice it goes on: from the beginning each time it would find what is still in a cache */
};

static struct scene {
    int measurer;
    struct area *area; /* of the chase */
    struct injector *injectors;
    size_t count, slice_bytes; /* of each injector */
    bool writes, fits;         /* whether there is memory for its slices */
} scenes[PLACES];

/* Memory of a NUMA node: for the chase, and for the slices of those that inject there. */
static struct area {
    int node;
    bool chased_in;
    struct buffer chased, injected;
    void *chased_at;
    size_t injected_bytes; /* of the scene with the most there */
} * areas[2];
static size_t area_count;

static const size_t CHUNK_BYTES = (size_t)CHUNK_LINES * ELEMENT_BYTES;

/* All injectors poll `over`, and the chase counts in its own fields while it is timed: no line of the one may be a line of
 * the other, nor its neighbor, which a prefetcher fetches with it. */
struct storm {
    struct gate gate, at_work;
    alignas(256) atomic_bool over;
    alignas(256) int64_t delay;
    const struct scene *scene;
    double *bytes_per_s; /* by role */
    alignas(256) struct chase chase;
};
_Static_assert(offsetof(struct storm, delay) - offsetof(struct storm, over) >= 256, "`over` has lines of its own");
_Static_assert(offsetof(struct storm, chase) - offsetof(struct storm, delay) >= 256, "so has the chase");

static void measure_role(struct storm *storm) {
    struct area *area = storm->scene->area;
    gate_pass(&storm->gate);
    gate_pass(&storm->at_work);
    additions(RAMP_TURNS);
    storm->chase.at = area->chased_at;
    chase_run_cold(&storm->chase, area->chased.bytes, area->chased.size);
    area->chased_at = storm->chase.at;
    atomic_store_explicit(&storm->over, true, memory_order_relaxed);
}

static void draw_chunk(unsigned char *chunk, bool writes) {
    for (size_t line = 0; line < CHUNK_LINES; line++) {
        volatile uint64_t *word = (volatile uint64_t *)(void *)(chunk + line * ELEMENT_BYTES);
        uint64_t seen = *word;
        if (writes) *word = seen + 1;
    }
}

/* Read one's own slice from end to end again and again, a word of each line, with a pause after each chunk; with `writes`
 * also store it, so that each line comes and goes.
 *
 * The chase begins when all have drawn a chunk: with an injector that still waits for its CPU it would measure less load
 * than the record says. */
static void inject_role(size_t role, struct storm *storm) {
    struct injector *own = &storm->scene->injectors[role - 1];
    size_t slice_bytes = storm->scene->slice_bytes;
    unsigned char *slice = own->area->injected.bytes + own->slice * slice_bytes;
    bool writes = storm->scene->writes;
    int64_t delay = storm->delay;
    uint64_t chunks = 1;
    gate_pass(&storm->gate);
    uint64_t start = clock_ticks();
    draw_chunk(slice + own->at, writes);
    gate_pass(&storm->at_work);
    for (; !atomic_load_explicit(&storm->over, memory_order_relaxed); chunks++) {
        own->at = (own->at + CHUNK_BYTES) % slice_bytes;
        draw_chunk(slice + own->at, writes);
        if (delay > 0) additions((uint64_t)delay);
    }
    double elapsed_s = (double)(clock_ticks() - start) * clock_facts.ns_per_tick / 1e9;
    storm->bytes_per_s[role] = (double)(chunks * CHUNK_BYTES) * (writes ? 2 : 1) / elapsed_s;
}

static void take_role(size_t role, void *argument) {
    if (role == 0)
        measure_role(argument);
    else
        inject_role(role, argument);
}

/* ---- plan ---- */

static const struct cpu_place *place_of(const struct run *run, int cpu) {
    size_t i = 0;
    while (run->selection.cpus.cpu[i] != cpu) i++;
    return &run->selection.place[i];
}

static struct area *area_on(int node) {
    for (size_t i = 0; i < area_count; i++)
        if (areas[i]->node == node) return areas[i];
    struct area *area = grow(NULL, 1, sizeof *area);
    *area = (struct area){.node = node};
    return areas[area_count++] = area;
}

static void add_injector(enum place place, int cpu, struct area *area) {
    struct scene *scene = &scenes[place];
    size_t slice = 0;
    for (size_t i = 0; i < scene->count; i++) slice += scene->injectors[i].area == area;
    scene->injectors = grow(scene->injectors, scene->count + 1, sizeof *scene->injectors);
    scene->injectors[scene->count++] = (struct injector){cpu, area, slice, 0};
}

/* The first of the chosen CPUs for which `holds`; -1 where there is none. */
typedef bool cpu_test(const struct cpu_place *its, const struct cpu_place *own);

static bool on_another_socket(const struct cpu_place *its, const struct cpu_place *own) {
    return its->socket != own->socket;
}

static bool on_another_node_of_the_socket(const struct cpu_place *its, const struct cpu_place *own) {
    return its->node != own->node && its->socket == own->socket;
}

static int first_where(const struct run *run, cpu_test *holds) {
    const struct cpu_place *own = place_of(run, run->chosen.cpu[0]);
    for (size_t i = 1; i < run->chosen.count; i++)
        if (holds(place_of(run, run->chosen.cpu[i]), own)) return run->chosen.cpu[i];
    return -1;
}

/* The first of the chosen CPUs that is in the first one's NUMA node and on another CCD; -1 where there is none. */
static int first_on_another_ccd(const struct run *run) {
    const struct selection *selection = &run->selection;
    int *die = grow(NULL, selection->cpus.count, sizeof *die), found = -1;
    die_of_cpus(selection, die);
    size_t own = 0;
    while (selection->cpus.cpu[own] != run->chosen.cpu[0]) own++;
    for (size_t i = 0; i < selection->cpus.count && found < 0; i++) {
        const struct cpu_place *its = &selection->place[i];
        bool other_die = its->l3 != selection->place[own].l3 && (die[i] < 0 || die[i] != die[own]);
        if (its->node == selection->place[own].node && other_die) found = selection->cpus.cpu[i];
    }
    free(die);
    return found;
}

/* Where each of the other CPUs injects. */
static void place_injectors(const struct run *run) {
    int first = run->chosen.cpu[0], other_ccd = first_on_another_ccd(run);
    int other_node = first_where(run, on_another_node_of_the_socket), far = first_where(run, on_another_socket);
    const struct cpu_place *own = place_of(run, first);
    struct area *here = area_on(own->home), *there = far < 0 ? NULL : area_on(place_of(run, far)->home);
    if (there == here) there = NULL; /* the other socket has no memory of its own */
    for (enum place p = 0; p < PLACES; p++) scenes[p] = (struct scene){.measurer = first, .area = here};
    scenes[OTHER_CCD].measurer = other_ccd;
    scenes[ACROSS].area = scenes[BOTH_WAYS].area = there;
    scenes[BOTH_WAYS_BACK].measurer = far;
    scenes[OWN_NODE_WRITES].writes = scenes[FAR_SOCKET_WRITES].writes = true;
    for (size_t i = 0; i < run->chosen.count; i++) {
        int cpu = run->chosen.cpu[i];
        const struct cpu_place *its = place_of(run, cpu);
        bool is_far = its->socket != own->socket && its->socket == (far < 0 ? -2 : place_of(run, far)->socket);
        if (other_ccd >= 0 && its->node == own->node && its->l3 != place_of(run, other_ccd)->l3)
            add_injector(OTHER_CCD, cpu, here);
        if (cpu != first && its->l3 == own->l3) add_injector(OWN_L3, cpu, here);
        if (its->l3 != own->l3 && its->node == own->node) {
            add_injector(OWN_NODE, cpu, here);
            add_injector(OWN_NODE_WRITES, cpu, here);
        }
        if (other_node >= 0 && its->node == place_of(run, other_node)->node) add_injector(OTHER_NODE, cpu, here);
        if (is_far) {
            add_injector(FAR_SOCKET, cpu, here);
            add_injector(FAR_SOCKET_WRITES, cpu, here);
        }
        if (there == NULL) continue;
        if (its->socket == own->socket && cpu != first) {
            add_injector(ACROSS, cpu, there);
            add_injector(BOTH_WAYS, cpu, there);
        }
        if (is_far) add_injector(BOTH_WAYS, cpu, here);
        if (its->socket == own->socket) add_injector(BOTH_WAYS_BACK, cpu, there);
        if (is_far && cpu != far) add_injector(BOTH_WAYS_BACK, cpu, here);
    }
    for (enum place p = 0; p < PLACES; p++)
        if (scenes[p].count > 0) scenes[p].area->chased_in = true;
}

static size_t fixed_bytes(const struct area *area) {
    return area->chased_in ? (size_t)COLD_BYTES : 0;
}

/* Bytes of a scene's slices in an area. */
static size_t bytes_in(const struct scene *scene, const struct area *area) {
    size_t slices = 0;
    for (size_t i = 0; i < scene->count; i++) slices += scene->injectors[i].area == area;
    return slices * scene->slice_bytes;
}

static size_t slice_of(const struct scene *scene) {
    struct cpulist cpus = {0};
    for (size_t i = 0; i < scene->count; i++) cpulist_add(&cpus, scene->injectors[i].cpu);
    size_t bytes = footprint_of_each(&cpus);
    cpulist_free(&cpus);
    return (bytes + CHUNK_BYTES - 1) / CHUNK_BYTES * CHUNK_BYTES;
}

/* Memory for the slices of each place; where there is too little of it, what injectors read there would come out of
 * caches, and the place is measured without them alone. */
static void choose_memory(struct run *run) {
    struct text too_large = {0};
    for (enum place p = 0; p < PLACES; p++) {
        struct scene *scene = &scenes[p];
        scene->slice_bytes = scene->count > 0 ? slice_of(scene) : 0;
        scene->fits = scene->count > 0;
        for (size_t i = 0; i < area_count && scene->fits; i++) {
            size_t wanted = fixed_bytes(areas[i]) + bytes_in(scene, areas[i]);
            size_t affordable = buffer_affordable(&run->machine, areas[i]->node, wanted, area_count);
            scene->fits = affordable >= wanted;
            if (scene->fits) continue;
            text_clear(&too_large);
            text_add(&too_large,
                     "slices of four times the L3s take %zu MiB on NUMA node %d, where %zu MiB may be taken",
                     wanted >> 20, areas[i]->node, affordable >> 20);
            run_not_measured(run, place_words[p], too_large.data);
        }
        for (size_t i = 0; i < area_count && scene->fits; i++)
            if (bytes_in(scene, areas[i]) > areas[i]->injected_bytes)
                areas[i]->injected_bytes = bytes_in(scene, areas[i]);
    }
    text_free(&too_large);
}

static uint64_t memory_planned(const struct run *run) {
    (void)run;
    uint64_t bytes = 0;
    for (size_t i = 0; i < area_count; i++) bytes += fixed_bytes(areas[i]) + areas[i]->injected_bytes;
    return bytes;
}

static void plan(struct run *run) {
    run_begin_quietly(run);
    place_injectors(run);
    for (int64_t p = 0; p < PLACES; p++)
        for (size_t d = 0; scenes[p].count > 0 && d < sizeof delays / sizeof *delays; d++)
            run_add_unit(run, (struct unit){{p, delays[d]}});
    if (run->unit_count == 0)
        run->not_applicable = "only one CPU takes part: nothing can load the memory";
    else
        choose_memory(run);
}

/* ---- measuring ---- */

struct laying {
    struct area *area;
    struct random random;
};

static void lay(size_t role, void *argument) {
    (void)role;
    struct laying *laying = argument;
    struct area *area = laying->area;
    cycle_lay(area->chased.bytes, area->chased.size / ELEMENT_BYTES, &laying->random);
    flush_all(area->chased.bytes, area->chased.size);
    area->chased_at = area->chased.bytes;
}

static void prepare(struct run *run) {
    char name[32];
    for (size_t i = 0; i < area_count; i++) {
        struct area *area = areas[i];
        struct laying laying = {area, random_stream(run->seed + run->segment, 110, i)};
        size_t member = memory_toucher(&run->machine, &run->workers, area->node);
        if (area->injected_bytes > 0) {
            area->injected =
                buffer_create(&run->machine, &run->workers, area->node, area->injected_bytes, PAGES_TRANSPARENT);
            snprintf(name, sizeof name, "injectors%d", area->node);
            run_add_placement(run, name, &area->injected);
        }
        if (!area->chased_in) continue;
        area->chased = buffer_create(&run->machine, &run->workers, area->node, COLD_BYTES, PAGES_TRANSPARENT);
        snprintf(name, sizeof name, "chase%d", area->node);
        run_add_placement(run, name, &area->chased);
        workers_run(&run->workers, &member, 1, lay, &laying);
    }
}

static void facts(struct run *run, bool end, struct text *members) {
    (void)run;
    if (end) return;
    text_add(members, ",\"slice_bytes\":{");
    for (size_t p = 0, said = 0; p < PLACES; p++)
        if (scenes[p].count > 0)
            text_add(members, "%s\"%s\":%zu", said++ == 0 ? "" : ",", place_words[p], scenes[p].slice_bytes);
    text_add(members, "},\"measurers\":{");
    for (size_t p = 0, said = 0; p < PLACES; p++)
        if (scenes[p].count > 0)
            text_add(members, "%s\"%s\":%d", said++ == 0 ? "" : ",", place_words[p], scenes[p].measurer);
    text_add(members, "},\"injectors\":{");
    for (size_t p = 0, said = 0; p < PLACES; p++) {
        if (scenes[p].count == 0) continue;
        text_add(members, "%s\"%s\":[", said++ == 0 ? "" : ",", place_words[p]);
        for (size_t i = 0; i < scenes[p].count; i++)
            text_add(members, "%s%d", i == 0 ? "" : ",", scenes[p].injectors[i].cpu);
        text_add(members, "]");
    }
    text_add(members, "}");
}

static const struct field fields[] = {FIELDS_OF_LATENCY_BESIDE_TRAFFIC};

static unsigned measure(struct run *run, uint32_t pass, const struct unit *unit, struct result *result) {
    (void)pass;
    const struct scene *scene = &scenes[unit->key[0]];
    if (unit->key[1] != IDLE && !scene->fits) return 0; /* no figure; the header says why */
    size_t count = 1 + (unit->key[1] == IDLE ? 0 : scene->count);
    size_t *roles = grow(NULL, count, sizeof *roles);
    double values[BATCHES], rate = 0;
    struct storm *storm = aligned_alloc(alignof(struct storm), sizeof *storm);
    if (storm == NULL) fail(EXIT_NOT_AS_ASKED, "out of memory");
    roles[0] = run_worker(run, scene->measurer);
    for (size_t i = 1; i < count; i++) roles[i] = run_worker(run, scene->injectors[i - 1].cpu);
    gate_set(&storm->gate, count);
    gate_set(&storm->at_work, count);
    atomic_store_explicit(&storm->over, false, memory_order_relaxed);
    storm->delay = unit->key[1];
    storm->scene = scene;
    storm->chase = (struct chase){.batches = BATCHES, .values = values};
    storm->bytes_per_s = grow(NULL, count, sizeof *storm->bytes_per_s);
    workers_run(&run->workers, roles, count, take_role, storm);
    for (size_t i = 1; i < count; i++) rate += storm->bytes_per_s[i];
    unsigned flags = run_set_latency(result, values, BATCHES, 1);
    result->values[TRAFFIC_BYTES_PER_S] = rate;
    result->values[TRAFFIC_CPUS] = (double)(count - 1);
    free(storm->bytes_per_s);
    free(storm);
    free(roles);
    return flags;
}

static double plan_seconds(const struct run *run, const struct unit *unit, double hop_ns) {
    (void)unit, (void)hop_ns;
    double ramp_s = (double)RAMP_TURNS * ADDITIONS_A_TURN / run->costs.core_hz;
    return ramp_s + costs_chase_cold_s(&run->costs, COLD_BYTES, true, BATCHES);
}

static double prepare_seconds(const struct run *run) {
    double seconds = 0;
    for (size_t i = 0; i < area_count; i++) {
        double chased = (double)fixed_bytes(areas[i]), bytes = chased + (double)areas[i]->injected_bytes;
        seconds += run_pages_seconds(run, areas[i]->node, bytes, true);
        seconds += chased / ELEMENT_BYTES * costs_line(&run->costs, chased, true).lay_ns / 1e9;
    }
    return seconds;
}

static const struct operation operations[] = {
    {.name = "latency",
     .summary = "a chase in memory while others read: by where they are and how long they pause",
     .quantity = "load",
     .unit = "ns",
     .record = "cell",
     FIELDS(fields),
     .keys = {"place", "delay"},
     .words = {place_words},
     .plan = plan,
     .memory = memory_planned,
     .prepare = prepare,
     .facts = facts,
     .measure = measure,
     .probes = PROBE_COLD,
     .seconds = plan_seconds,
     .prepare_seconds = prepare_seconds},
};

KERNEL_MAIN("loaded", NULL, .workers_wait = true)
