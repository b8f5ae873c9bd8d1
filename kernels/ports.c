/* ports: what the cores of a CCX or CCD draw from memory together, through its port to the I/O die. */
#define _GNU_SOURCE
#include <math.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness/cache.h"
#include "harness/clock.h"
#include "harness/die.h"
#include "harness/fail.h"
#include "harness/gate.h"
#include "harness/headroom.h"
#include "harness/run.h"
#include "harness/stats.h"

static const char help[] =
    "USAGE\n"
    "  ports --op bandwidth --cpus cores --out FILE [options]\n"
    "  example: kernels/build/ports --op bandwidth --cpus cores --passes 1 --out here.jsonl\n"
    "\n"
    "REQUIREMENTS\n"
    "  Linux on x86-64 or aarch64; free memory on each NUMA node as --plan says. No root.\n"
    "\n"
    "OVERHEAD\n"
    "  The cores of one CCX or CCD at a time are busy, 70 ms for each stream and memory; others sleep.\n"
    "\n"
    "WARNING\n"
    "  It shows the port only where its cores can draw more than the port carries: give it all cores.\n";

/* A thread's bytes count in the window in which a chunk of them ended; the first windows are for clocks and prefetchers
 * to settle. */
enum {
    WINDOWS = 9,
    SETTLING = 2,
    LEAST_CHUNKS = 8,
    CHUNK_BYTES = 256 << 10,
    LEAST_SLICE_BYTES = 4 << 20,
    NO_L3_SLICE_BYTES = 64 << 20, /* where no L3 is reported there may still be one (virtual machines, aarch64) */
    MOST_SLICE_BYTES = 256 << 20
};
static const double WINDOW_NS = 7e6;

enum scope { CCX, CCD };
enum target { OWN, OTHER, ALL };
enum stream { LOAD, STORE };
static const char *const scope_words[] = {"ccx", "ccd", NULL};
static const char *const target_words[] = {"own", "other_socket", "all", NULL};
static const char *const stream_words[] = {"load", "store_mem", NULL};

static int *die;              /* of each CPU of the selection, -1 where its CCX is all of it */
static struct buffer *buffer; /* of each NUMA node of the machine; none where it has no memory */
static size_t slice_bytes;

/* ---- streams ---- */

typedef long long lane __attribute__((vector_size(16)));

/* A line a turn, into registers and nothing else: of sums of what is read, which compilers may keep on the stack, a core
 * waits for its own stores. */
__attribute__((noinline)) static void load_chunk(const unsigned char *chunk) {
    const lane *at = (const lane *)(const void *)chunk;
    for (size_t i = 0; i < CHUNK_BYTES / sizeof(lane); i += 4) {
#if defined(__x86_64__)
        lane a, b, c, d;
        __asm__ volatile("movdqa %4, %0\n\tmovdqa %5, %1\n\tmovdqa %6, %2\n\tmovdqa %7, %3"
                         : "=x"(a), "=x"(b), "=x"(c), "=x"(d)
                         : "m"(at[i]), "m"(at[i + 1]), "m"(at[i + 2]), "m"(at[i + 3]));
#elif defined(__aarch64__)
        lane a, b, c, d;
        __asm__ volatile("ldp %q0, %q1, [%4]\n\tldp %q2, %q3, [%4, #32]"
                         : "=&w"(a), "=&w"(b), "=&w"(c), "=&w"(d)
                         : "r"(&at[i]), "m"(at[i]), "m"(at[i + 1]), "m"(at[i + 2]), "m"(at[i + 3]));
#else
        for (size_t k = 0; k < 4; k++) (void)*(const volatile lane *)&at[i + k];
#endif
    }
}

/* Past the caches: nothing is read before it is overwritten. */
__attribute__((noinline)) static void store_chunk(unsigned char *chunk) {
    lane ones = {-1, -1}, *at = (lane *)(void *)chunk;
    for (size_t i = 0; i < CHUNK_BYTES / sizeof(lane); i += 2) {
#if defined(__x86_64__)
        __asm__ volatile("movntdq %2, %0\n\tmovntdq %2, %1" : "=m"(at[i]), "=m"(at[i + 1]) : "x"(ones));
#elif defined(__aarch64__)
        __asm__ volatile("stnp %q2, %q2, [%3]" : "=m"(at[i]), "=m"(at[i + 1]) : "w"(ones), "r"(&at[i]));
#else
        at[i] = at[i + 1] = ones;
#endif
    }
}

/* ---- a measurement ---- */

/* What one thread moved: in each window, and from the common start to the end of its last chunk. */
struct moved {
    double bytes[WINDOWS], all_bytes, elapsed_s;
};

/* Workers that stream from the same memory at once. */
struct flow {
    struct gate gate;
    alignas(256) _Atomic uint64_t start; /* ticks; 0 until role 0 has set it */
    alignas(256) enum stream stream;     /* from here on nothing changes while they stream */
    const size_t *nodes;                 /* whose buffers they take in turns, a chunk each */
    size_t node_count;
    struct moved *moved; /* of each role */
};

static void stream_role(size_t role, void *argument) {
    struct flow *flow = argument;
    struct moved moved = {.bytes = {0}};
    gate_pass(&flow->gate);
    if (role == 0) atomic_store_explicit(&flow->start, clock_ticks() | 1, memory_order_release);
    uint64_t start;
    do start = atomic_load_explicit(&flow->start, memory_order_acquire);
    while (start == 0);
    double window_ticks = WINDOW_NS / clock_facts.ns_per_tick;
    int64_t passed = 0;
    for (size_t chunk = 0; chunk < LEAST_CHUNKS || (double)passed < WINDOWS * window_ticks; chunk++) {
        size_t at = chunk * CHUNK_BYTES % slice_bytes;
        unsigned char *slice = buffer[flow->nodes[chunk % flow->node_count]].bytes + role * slice_bytes;
        if (flow->stream == LOAD)
            load_chunk(slice + at);
        else
            store_chunk(slice + at);
        passed = (int64_t)(clock_ticks() - start);
        size_t window = passed < 0 ? 0 : (size_t)((double)passed / window_ticks);
        if (window < WINDOWS) moved.bytes[window] += CHUNK_BYTES;
        moved.all_bytes += CHUNK_BYTES;
    }
    moved.elapsed_s = (double)passed * clock_facts.ns_per_tick / 1e9;
    flow->moved[role] = moved;
}

/* ---- plan ---- */

static bool in_group(const struct run *run, size_t i, const struct unit *unit) {
    size_t first = workers_on(&run->workers, (int)unit->key[0]);
    const struct cpu_place *place = run->selection.place;
    return unit->key[1] == CCX ? place[i].l3 == place[first].l3 : die[i] >= 0 && die[i] == die[first];
}

/* The NUMA nodes, as indices, that a CPU at `place` streams from. No CPU of theirs need take part. */
static size_t nodes_for(const struct run *run, const struct cpu_place *place, enum target target, size_t *nodes) {
    size_t count = 0;
    for (size_t n = 0; n < run->machine.nodes; n++) {
        const struct numa_node *node = &run->machine.node[n];
        if (!node->has_memory) continue;
        bool other = node->cpus.count > 0 && select_socket_of(node->cpus.cpu[0]) != place->socket;
        bool wanted = target == OWN ? node->number == place->home : target == ALL || other;
        if (wanted) nodes[count++] = n;
    }
    return count;
}

static void add_group(struct run *run, size_t first, enum scope scope) {
    size_t *nodes = grow(NULL, run->machine.nodes, sizeof *nodes);
    for (int64_t target = OWN; target <= ALL; target++) {
        size_t count = nodes_for(run, &run->selection.place[first], (enum target)target, nodes);
        if (count == 0 || (target == ALL && count == 1)) continue;
        for (int64_t stream = LOAD; stream <= STORE; stream++)
            run_add_unit(run, (struct unit){{run->selection.cpus.cpu[first], scope, target, stream}});
    }
    free(nodes);
}

/* The cores of the largest CCX or CCD. */
static size_t largest_group(const struct run *run) {
    size_t most = 1;
    for (size_t i = 0; i < run->selection.cpus.count; i++) {
        size_t ccx = 0, ccd = 0;
        for (size_t j = 0; j < run->selection.cpus.count; j++) {
            ccx += run->selection.place[j].l3 == run->selection.place[i].l3;
            ccd += die[i] >= 0 && die[j] == die[i];
        }
        most = ccx > most ? ccx : most;
        most = ccd > most ? ccd : most;
    }
    return most;
}

static size_t memory_nodes(const struct run *run) {
    size_t count = 0;
    for (size_t n = 0; n < run->machine.nodes; n++) count += run->machine.node[n].has_memory;
    return count;
}

/* Bytes of each core: together four times the L3, as far as all nodes have memory for the largest group, and no more than
 * MOST_SLICE_BYTES each. */
static void choose_slices(struct run *run) {
    size_t threads = largest_group(run), buffers = memory_nodes(run), cores = 1, most = MOST_SLICE_BYTES;
    for (size_t i = 1; i < run->selection.cpus.count; i++)
        cores += run->selection.place[i].l3 == run->selection.place[0].l3;
    size_t l3 = cache_largest(&run->chosen, 3);
    slice_bytes = l3 > 0 ? 4 * l3 / cores : NO_L3_SLICE_BYTES;
    for (size_t n = 0; n < run->machine.nodes; n++) {
        if (!run->machine.node[n].has_memory) continue;
        size_t room = buffer_affordable(&run->machine, run->machine.node[n].number, most * threads, buffers) / threads;
        most = room < most ? room : most;
    }
    if (slice_bytes < LEAST_SLICE_BYTES) slice_bytes = LEAST_SLICE_BYTES;
    if (slice_bytes > most) slice_bytes = most;
    slice_bytes = slice_bytes / CHUNK_BYTES * CHUNK_BYTES;
    if (slice_bytes < LEAST_SLICE_BYTES)
        fail(EXIT_NOT_AS_ASKED, "%zu cores need %d MiB each on every NUMA node, and there is no room for it", threads,
             LEAST_SLICE_BYTES >> 20);
}

static void plan(struct run *run) {
    const struct selection *selection = &run->selection;
    die = grow(NULL, selection->cpus.count, sizeof *die);
    die_of_cpus(selection, die);
    for (size_t i = 0; i < selection->cpus.count; i++) {
        bool first_of_l3 = true, first_of_die = die[i] >= 0;
        for (size_t j = 0; j < i; j++) {
            first_of_l3 = first_of_l3 && selection->place[j].l3 != selection->place[i].l3;
            first_of_die = first_of_die && die[j] != die[i];
        }
        if (first_of_l3) add_group(run, i, CCX);
        if (first_of_die) add_group(run, i, CCD);
    }
    choose_slices(run);
}

static uint64_t memory_planned(const struct run *run) {
    return (uint64_t)memory_nodes(run) * largest_group(run) * slice_bytes;
}

/* ---- measuring ---- */

static void prepare(struct run *run) {
    size_t size = largest_group(run) * slice_bytes;
    buffer = grow(NULL, run->machine.nodes, sizeof *buffer);
    for (size_t n = 0; n < run->machine.nodes; n++) {
        if (!run->machine.node[n].has_memory) continue;
        char name[16];
        int number = run->machine.node[n].number;
        buffer[n] = buffer_create(&run->machine, &run->workers, number, size, PAGES_TRANSPARENT);
        snprintf(name, sizeof name, "%d", number);
        run_add_placement(run, name, &buffer[n]);
    }
}

/* Of the threads' mean rates over the whole time, with what was taken from it, the sum and the lowest. */
struct means {
    double sum, lowest;
};

static struct means means_of(const struct moved *moved, size_t count) {
    struct means means = {0, INFINITY};
    for (size_t i = 0; i < count; i++) {
        double mean = moved[i].all_bytes / moved[i].elapsed_s;
        means.sum += mean;
        means.lowest = fmin(means.lowest, mean);
    }
    return means;
}

/* The rate of each window, ascending. Where a thread was kept from running through a whole window (other load), all
 * are the sum of the `means`, and FLAG_DISTURBED is returned. */
static unsigned rates_of(const struct moved *moved, size_t count, struct means means,
                         double rates[WINDOWS - SETTLING]) {
    bool whole = true;
    for (size_t w = SETTLING; w < WINDOWS; w++) {
        rates[w - SETTLING] = 0;
        for (size_t i = 0; i < count; i++) {
            rates[w - SETTLING] += moved[i].bytes[w] / (WINDOW_NS / 1e9);
            whole = whole && moved[i].bytes[w] > 0;
        }
    }
    for (size_t w = 0; w < WINDOWS - SETTLING && !whole; w++) rates[w] = means.sum;
    sort_ascending(rates, WINDOWS - SETTLING);
    return whole ? 0 : FLAG_DISTURBED;
}

static unsigned measure(struct run *run, uint32_t pass, const struct unit *unit, struct text *members) {
    (void)pass;
    size_t *roles = grow(NULL, run->selection.cpus.count, sizeof *roles), count = 0;
    size_t *nodes = grow(NULL, run->machine.nodes, sizeof *nodes);
    double rates[WINDOWS - SETTLING];
    struct flow *flow = aligned_alloc(alignof(struct flow), sizeof *flow);
    if (flow == NULL) fail(EXIT_NOT_AS_ASKED, "out of memory");
    for (size_t i = 0; i < run->selection.cpus.count; i++)
        if (in_group(run, i, unit)) roles[count++] = i;
    gate_set(&flow->gate, count);
    atomic_store_explicit(&flow->start, 0, memory_order_relaxed);
    flow->stream = (enum stream)unit->key[3];
    flow->nodes = nodes;
    flow->node_count = nodes_for(run, &run->selection.place[roles[0]], (enum target)unit->key[2], nodes);
    flow->moved = grow(NULL, count, sizeof *flow->moved);
    workers_run(&run->workers, roles, count, stream_role, flow);
    struct means means = means_of(flow->moved, count);
    unsigned flags = rates_of(flow->moved, count, means, rates);
    size_t low, high;
    median_interval(WINDOWS - SETTLING, 0.95, &low, &high);
    text_add(members,
             ",\"rate_bytes_per_s\":%.6g,\"ci_low_bytes_per_s\":%.6g,\"ci_high_bytes_per_s\":%.6g,"
             "\"mean_bytes_per_s\":%.6g,\"slowest_thread_bytes_per_s\":%.6g,\"threads\":%zu",
             median_sorted(rates, WINDOWS - SETTLING), rates[low], rates[high], means.sum, means.lowest, count);
    free(flow->moved);
    free(flow);
    free(roles);
    free(nodes);
    return flags;
}

static void facts(struct run *run, bool end, struct text *members) {
    (void)run;
    if (!end) text_add(members, ",\"slice_bytes\":%zu", slice_bytes);
}

static double plan_seconds(const struct run *run, const struct unit *unit, double hop_ns) {
    (void)hop_ns;
    double touch_s = unit == run->units ? (double)memory_planned(run) / 2e9 : 0;
    return touch_s + WINDOWS * WINDOW_NS / 1e9 + 2e-3;
}

static const struct operation operations[] = {
    {.name = "bandwidth",
     .summary = "the cores of each CCX and CCD together: loads and non-temporal stores, by where the memory is",
     .quantity = "rate",
     .unit = "B/s",
     .record = "cell",
     .values = "\"rate_bytes_per_s\":\"B/s\",\"ci_low_bytes_per_s\":\"B/s\",\"ci_high_bytes_per_s\":\"B/s\","
               "\"mean_bytes_per_s\":\"B/s\",\"slowest_thread_bytes_per_s\":\"B/s\",\"threads\":\"1\"",
     .keys = {"cpu", "scope", "memory", "stream"},
     .words = {NULL, scope_words, target_words, stream_words},
     .plan = plan,
     .memory = memory_planned,
     .prepare = prepare,
     .facts = facts,
     .measure = measure,
     .seconds = plan_seconds},
};

KERNEL_MAIN("ports", NULL)
