/* loaded: how long a load waits for memory while other CPUs draw on it. */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdlib.h>

#include "harness/cache.h"
#include "harness/clock.h"
#include "harness/cycle.h"
#include "harness/fail.h"
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
    "  Linux on x86-64 or aarch64, two CPUs; free memory on the first CPU's NUMA node as --plan says. No root.\n"
    "\n"
    "OVERHEAD\n"
    "  Up to all CPUs of a NUMA node are busy, about 25 ms a point; the memory of one node is loaded to its limit.\n"
    "\n"
    "WARNING\n"
    "  The first CPU of --cpus measures; the others inject, always the same ones in a place, all into its memory.\n";

enum {
    BATCHES = 65,
    IDLE = -1,
    CHUNK_LINES = 16,
    RAMP_TURNS = 100000, /* additions before the chase begins: a few ms with all injectors at work */
    MOST_SLICE_BYTES = 256 << 20,
    LEAST_SLICE_BYTES = 8 << 20,
};
/* Turns of additions between two chunks of an injector; a turn is 64 cycles. */
static const int64_t delays[] = {IDLE, 512, 256, 128, 96, 64, 48, 32, 24, 16, 12, 8, 6, 4, 3, 2, 1, 0};

enum place { OWN_L3, OWN_NODE, OTHER_NODE, PLACES };
static const char *const place_words[] = {"own_l3", "own_node", "other_node", NULL};

static struct cpulist injectors[PLACES]; /* CPUs */
static int measurer_home;
static struct buffer chased, injected;
static size_t slice_bytes;
static const size_t CHUNK_BYTES = (size_t)CHUNK_LINES * ELEMENT_BYTES;
static void *chased_at;

struct storm {
    struct gate gate, at_work;
    atomic_bool over;
    int64_t delay;
    struct chase chase;
    double *bytes_per_s; /* by role */
};

static void measure_role(struct storm *storm) {
    gate_pass(&storm->gate);
    gate_pass(&storm->at_work);
    additions(RAMP_TURNS);
    storm->chase.at = chased_at;
    chase_run_cold(&storm->chase, chased.bytes, chased.size);
    chased_at = storm->chase.at;
    atomic_store_explicit(&storm->over, true, memory_order_relaxed);
}

static void read_chunk(const unsigned char *chunk) {
    for (size_t line = 0; line < CHUNK_LINES; line++)
        (void)*(const volatile uint64_t *)(const void *)(chunk + line * ELEMENT_BYTES);
}

/* Read one's own slice from end to end again and again, a word of each line, with a pause after each chunk.
 *
 * The chase begins when all have read a chunk: with an injector that still waits for its CPU it would measure less load
 * than the record says. */
static void inject_role(size_t role, struct storm *storm) {
    const unsigned char *slice = injected.bytes + (role - 1) * slice_bytes;
    uint64_t chunks = 1;
    gate_pass(&storm->gate);
    uint64_t start = clock_ticks();
    read_chunk(slice);
    gate_pass(&storm->at_work);
    for (size_t at = CHUNK_BYTES; !atomic_load_explicit(&storm->over, memory_order_relaxed); chunks++) {
        read_chunk(slice + at);
        at += CHUNK_BYTES;
        if (at + CHUNK_BYTES > slice_bytes) at = 0;
        if (storm->delay > 0) additions((uint64_t)storm->delay);
    }
    double elapsed_s = (double)(clock_ticks() - start) * clock_facts.ns_per_tick / 1e9;
    storm->bytes_per_s[role] = (double)(chunks * CHUNK_BYTES) / elapsed_s;
}

static void take_role(size_t role, void *argument) {
    if (role == 0)
        measure_role(argument);
    else
        inject_role(role, argument);
}

/* ---- plan ---- */

static void place_injectors(struct run *run) {
    int measurer = run->chosen.cpu[0], own = machine_node_of(&run->machine, measurer), other = -1;
    struct cpulist sharers = {0};
    cache_sharers(measurer, &sharers);
    for (size_t i = 1; i < run->chosen.count; i++) {
        int cpu = run->chosen.cpu[i], node = machine_node_of(&run->machine, cpu);
        if (node != own && other < 0) other = node;
        if (cpulist_has(&sharers, cpu))
            cpulist_add(&injectors[OWN_L3], cpu);
        else if (node == own)
            cpulist_add(&injectors[OWN_NODE], cpu);
        else if (node == other)
            cpulist_add(&injectors[OTHER_NODE], cpu);
    }
    cpulist_free(&sharers);
}

static size_t most_injectors(void) {
    size_t most = 0;
    for (size_t p = 0; p < PLACES; p++)
        if (injectors[p].count > most) most = injectors[p].count;
    return most;
}

/* Slices that together are four times the L3 of those who read them, as far as there is memory. */
static void choose_slices(const struct run *run, size_t most) {
    size_t l3 = cache_largest(&run->chosen, 3);
    struct cpulist sharers = {0};
    cache_sharers(run->chosen.cpu[0], &sharers);
    slice_bytes = 4 * l3 / sharers.count;
    cpulist_free(&sharers);
    if (slice_bytes < 16 << 20) slice_bytes = 16 << 20;
    if (slice_bytes > MOST_SLICE_BYTES) slice_bytes = MOST_SLICE_BYTES;
    size_t affordable = buffer_affordable(&run->machine, measurer_home, slice_bytes * most + COLD_BYTES, 1);
    if (affordable < slice_bytes * most + COLD_BYTES)
        slice_bytes = (affordable > COLD_BYTES ? affordable - COLD_BYTES : 0) / most / 4096 * 4096;
    if (slice_bytes >= LEAST_SLICE_BYTES) return;
    struct limit limit = memory_limit(&run->machine, measurer_home);
    fail(EXIT_NOT_AS_ASKED, "%zu injectors need %d MiB each and the chase %d MiB: %llu MiB are %s", most,
         LEAST_SLICE_BYTES >> 20, COLD_BYTES >> 20, (unsigned long long)(limit.bytes >> 20), limit.what);
}

static void plan(struct run *run) {
    measurer_home = machine_home_of(&run->machine, run->chosen.cpu[0]);
    place_injectors(run);
    size_t most = most_injectors();
    if (most == 0) {
        run->not_applicable = "only one CPU takes part: there is none to inject";
        return;
    }
    choose_slices(run, most);
    for (int64_t place = 0; place < PLACES; place++)
        for (size_t d = 0; d < sizeof delays / sizeof *delays && injectors[place].count > 0; d++)
            run_add_unit(run, (struct unit){{place, delays[d]}});
}

static uint64_t memory_planned(const struct run *run) {
    (void)run;
    return COLD_BYTES + (uint64_t)slice_bytes * most_injectors();
}

/* ---- measuring ---- */

static void lay(size_t role, void *argument) {
    (void)role;
    struct random *random = argument;
    cycle_lay(chased.bytes, chased.size / ELEMENT_BYTES, random);
    flush_all(chased.bytes, chased.size);
    chased_at = chased.bytes;
}

static void prepare(struct run *run) {
    struct random random = random_stream(run->seed + run->segment, 110, 0);
    chased = buffer_create(&run->machine, &run->workers, measurer_home, COLD_BYTES, PAGES_TRANSPARENT);
    injected =
        buffer_create(&run->machine, &run->workers, measurer_home, slice_bytes * most_injectors(), PAGES_TRANSPARENT);
    run_add_placement(run, "chase", &chased);
    run_add_placement(run, "injectors", &injected);
    size_t member = workers_on(&run->workers, run->chosen.cpu[0]);
    workers_run(&run->workers, &member, 1, lay, &random);
}

static void facts(struct run *run, bool end, struct text *members) {
    if (end) return;
    text_add(members, ",\"measurer\":%d,\"slice_bytes\":%zu,\"injectors\":{", run->chosen.cpu[0], slice_bytes);
    for (size_t p = 0; p < PLACES; p++) {
        text_add(members, "%s\"%s\":[", p == 0 ? "" : ",", place_words[p]);
        cpulist_write(members, &injectors[p], false);
        text_add(members, "]");
    }
    text_add(members, "}");
}

static unsigned measure(struct run *run, uint32_t pass, const struct unit *unit, struct text *members) {
    (void)pass;
    const struct cpulist *set = &injectors[unit->key[0]];
    size_t count = 1 + (unit->key[1] == IDLE ? 0 : set->count);
    size_t *roles = grow(NULL, count, sizeof *roles);
    double values[BATCHES], rate = 0;
    struct storm *storm = aligned_alloc(alignof(struct storm), sizeof *storm);
    if (storm == NULL) fail(EXIT_NOT_AS_ASKED, "out of memory");
    roles[0] = workers_on(&run->workers, run->chosen.cpu[0]);
    for (size_t i = 1; i < count; i++) roles[i] = workers_on(&run->workers, set->cpu[i - 1]);
    gate_set(&storm->gate, count);
    gate_set(&storm->at_work, count);
    atomic_store_explicit(&storm->over, false, memory_order_relaxed);
    storm->delay = unit->key[1];
    storm->chase = (struct chase){.batches = BATCHES, .values = values};
    storm->bytes_per_s = grow(NULL, count, sizeof *storm->bytes_per_s);
    workers_run(&run->workers, roles, count, take_role, storm);
    for (size_t i = 1; i < count; i++) rate += storm->bytes_per_s[i];
    unsigned flags = run_add_latency(members, values, BATCHES, 1);
    text_add(members, ",\"rate_bytes_per_s\":%.6g,\"injectors\":%zu", rate, count - 1);
    free(storm->bytes_per_s);
    free(storm);
    free(roles);
    return flags;
}

static double plan_seconds(const struct run *run, const struct unit *unit, double hop_ns) {
    (void)hop_ns;
    double lay_s = unit == run->units ? (double)memory_planned(run) / 2e9 : 0;
    return lay_s + 25e-3;
}

static const struct operation operations[] = {
    {.name = "latency",
     .summary = "a chase in memory while others read: by where they are and how long they pause",
     .quantity = "load",
     .unit = "ns",
     .record = "cell",
     .values = LATENCY_VALUES ",\"rate_bytes_per_s\":\"B/s\",\"injectors\":\"1\"",
     .keys = {"place", "delay"},
     .words = {place_words},
     .plan = plan,
     .memory = memory_planned,
     .prepare = prepare,
     .facts = facts,
     .measure = measure,
     .seconds = plan_seconds},
};

static const struct kernel kernel = {
    .name = "loaded",
    .hash = KERNEL_HASH,
    .help = help,
    .operations = operations,
    .operation_count = sizeof operations / sizeof *operations,
};

int main(int argc, char **argv) {
    return kernel_main(&kernel, argc, argv);
}
