/* touch: what it costs to read an array that another core touched first. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/clock.h"
#include "harness/cycle.h"
#include "harness/fail.h"
#include "harness/gate.h"
#include "harness/run.h"
#include "harness/sample.h"
#include "harness/stats.h"

static const char help[] =
    "USAGE\n"
    "  touch --op ratio --cpus cores --out FILE [options]\n"
    "  example: kernels/build/touch --op ratio --cpus 0,64 --out here.jsonl\n"
    "\n"
    "REQUIREMENTS\n"
    "  Linux on x86-64 or aarch64, two CPUs; 64 MiB of free memory for each. No root; memory is not bound.\n"
    "\n"
    "OVERHEAD\n"
    "  One or two CPUs are busy, about 0.5 s a cell.\n"
    "\n"
    "WARNING\n"
    "  On one NUMA node both arrays are equal, and the ratio shows the accuracy of the measurement.\n";

enum { BATCHES = 9, ROUNDS = 31 };
static const double LOW_SHARE = 0.25; /* of the batches of a visit: what interrupts one makes it longer */

static const struct setting settings[] = {SAMPLE_SETTING("ratio"), {0}};

/* A core and the array that it touched first. */
struct party {
    int cpu;
    size_t worker;
    struct buffer array;
    void *
        at[2]; /* where each of two cores is on its way; half the array apart, so that neither warms it for the other */
    struct random random;
};

static struct party *parties;
static size_t party_count;

static struct party *party_of(int cpu) {
    for (size_t i = 0; i < party_count; i++)
        if (parties[i].cpu == cpu) return &parties[i];
    return NULL;
}

/* One or two cores at once, each in an array. */
struct visit {
    struct gate gate;
    struct party *array[2]; /* by role */
    double latency_ns[2];
};

static void travel(size_t role, void *argument) {
    struct visit *visit = argument;
    struct party *array = visit->array[role];
    double values[BATCHES];
    struct chase chase = {.at = array->at[role], .batches = BATCHES, .values = values};
    gate_pass(&visit->gate);
    chase_run_cold(&chase, array->array.bytes, array->array.size);
    array->at[role] = chase.at;
    sort_ascending(values, BATCHES);
    visit->latency_ns[role] = quantile_sorted(values, BATCHES, LOW_SHARE);
}

static void visit_at_once(struct run *run, struct visit *visit, struct party *const cores[],
                          struct party *const arrays[], size_t count, double *latency_ns) {
    size_t members[2];
    gate_set(&visit->gate, count);
    for (size_t i = 0; i < count; i++) {
        /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): the caller found both */
        members[i] = cores[i]->worker;
        visit->array[i] = arrays[i];
    }
    workers_run(&run->workers, members, count, travel, visit);
    for (size_t i = 0; i < count; i++) latency_ns[i] = visit->latency_ns[i];
}

/* Who visits which array: each core alone, both at once each in its own or in the other's, or both in one. */
enum together { ALONE, BOTH, IN_FIRST, IN_SECOND, TOGETHER_COUNT };

/* The latencies of a round, [core][0 own, 1 other], in random order; those of no visit stay. */
static void play_round(struct run *run, struct visit *visit, struct party *const pair[2], enum together together,
                       struct random *random, double latency_ns[2][2]) {
    uint32_t order[4];
    size_t turns = together == ALONE ? 4 : together == BOTH ? 2 : 1;
    shuffled(random, order, turns);
    for (size_t i = 0; i < turns; i++) {
        size_t other = order[i] % 2, core = order[i] / 2;
        double found[2];
        if (together == ALONE) {
            struct party *const array = pair[other == 0 ? core : 1 - core];
            visit_at_once(run, visit, &pair[core], &array, 1, found);
            latency_ns[core][other] = found[0];
            continue;
        }
        size_t first = together == BOTH ? other : together == IN_SECOND, second = together == BOTH ? 1 - other : first;
        struct party *const arrays[2] = {pair[first], pair[second]};
        visit_at_once(run, visit, pair, arrays, 2, found);
        latency_ns[0][first != 0] = found[0];
        latency_ns[1][second != 1] = found[1];
    }
}

/* ---- plan ---- */

static int first_on(const struct run *run, int node) {
    for (size_t i = 0; i < run->chosen.count; i++)
        if (machine_node_of(&run->machine, run->chosen.cpu[i]) == node) return run->chosen.cpu[i];
    return -1;
}

static void add_party(int cpu) {
    if (party_of(cpu) != NULL) return;
    parties = grow(parties, party_count + 1, sizeof *parties);
    parties[party_count++] = (struct party){.cpu = cpu};
}

static void add_pair(struct run *run, int a, int b) {
    add_party(a);
    add_party(b);
    for (int64_t together = 0; together < TOGETHER_COUNT; together++)
        run_add_unit(run, (struct unit){{a < b ? a : b, a < b ? b : a, together}});
}

/* Of each node with memory of its own the first CPU, with that of each other one; on one node the first and the last. */
static void plan(struct run *run) {
    size_t nodes = run->machine.nodes, count = 0;
    struct node_pair *pairs = grow(NULL, nodes * nodes, sizeof *pairs);
    for (size_t i = 0; i < nodes; i++)
        for (size_t j = i + 1; j < nodes; j++) {
            const struct numa_node *first = &run->machine.node[i], *second = &run->machine.node[j];
            if (first->has_memory && second->has_memory && first_on(run, first->number) >= 0 &&
                first_on(run, second->number) >= 0)
                pairs[count++] = (struct node_pair){first->number, second->number};
        }
    count = sample_pairs(run, pairs, count);
    for (size_t i = 0; i < count; i++) add_pair(run, first_on(run, pairs[i].a), first_on(run, pairs[i].b));
    free(pairs);
    if (run->unit_count == 0 && run->chosen.count > 1)
        add_pair(run, run->chosen.cpu[0], run->chosen.cpu[run->chosen.count - 1]);
    if (run->unit_count == 0) run->not_applicable = "only one CPU takes part: there is no other array";
}

static uint64_t memory_planned(const struct run *run) {
    (void)run;
    return (uint64_t)COLD_BYTES * party_count;
}

/* ---- measuring ---- */

static void lay(size_t role, void *argument) {
    (void)role;
    struct party *party = argument;
    cycle_lay(party->array.bytes, party->array.size / ELEMENT_BYTES, &party->random);
    party->at[0] = party->array.bytes;
    party->at[1] = cycle_follow(party->at[0], party->array.size / ELEMENT_BYTES / 2);
    flush_all(party->array.bytes, party->array.size);
}

static void prepare(struct run *run) {
    char name[16];
    for (size_t i = 0; i < party_count; i++) {
        struct party *party = &parties[i];
        party->worker = run_worker(run, party->cpu);
        party->array = buffer_first_touched(&run->machine, &run->workers, party->worker, COLD_BYTES, PAGES_TRANSPARENT);
        party->random = random_stream(run->seed + run->segment, 120, i);
        workers_run(&run->workers, &party->worker, 1, lay, party);
        snprintf(name, sizeof name, "cpu%d", party->cpu);
        run_add_placement(run, name, &party->array);
    }
}

static void facts(struct run *run, bool end, struct text *members) {
    if (end) return;
    text_add(members, ",\"nodes\":{");
    for (size_t i = 0; i < party_count; i++)
        text_add(members, "%s\"%d\":%d", i == 0 ? "" : ",", parties[i].cpu,
                 machine_node_of(&run->machine, parties[i].cpu));
    text_add(members, "}");
}

enum { A_OWN_NS, A_OTHER_NS, B_OWN_NS, B_OTHER_NS, RATIO, RATIO_LOW, RATIO_HIGH };

static const struct field fields[] = {
    [A_OWN_NS] = {"a_own_ns", NANOSECONDS, DECIMALS, 3},
    [A_OTHER_NS] = {"a_other_ns", NANOSECONDS, DECIMALS, 3},
    [B_OWN_NS] = {"b_own_ns", NANOSECONDS, DECIMALS, 3},
    [B_OTHER_NS] = {"b_other_ns", NANOSECONDS, DECIMALS, 3},
    [RATIO] = {"ratio", NUMBER, DECIMALS, 5},
    [RATIO_LOW] = {"ratio_low", NUMBER, DECIMALS, 5},
    [RATIO_HIGH] = {"ratio_high", NUMBER, DECIMALS, 5},
};

/* A round's ratio takes both cores and both arrays together: what is special to a core or an array cancels. With both in
 * one array it is that of the core from which the array is the other's to the core that touched it. */
static double ratio_of(enum together together, double latency_ns[2][2]) {
    if (together == IN_FIRST) return latency_ns[1][1] / latency_ns[0][0];
    if (together == IN_SECOND) return latency_ns[0][1] / latency_ns[1][0];
    return sqrt(latency_ns[0][1] / latency_ns[0][0] * latency_ns[1][1] / latency_ns[1][0]);
}

static unsigned measure(struct run *run, uint32_t pass, const struct unit *unit, struct result *result) {
    struct party *const pair[2] = {party_of((int)unit->key[0]), party_of((int)unit->key[1])};
    if (pair[0] == NULL || pair[1] == NULL) fail(EXIT_NOT_AS_ASKED, "a core without an array"); /* plan() made both */
    double ratio[ROUNDS], latency_ns[2][2] = {{NAN, NAN}, {NAN, NAN}}, sample[2][2][ROUNDS];
    enum together together = (enum together)unit->key[2];
    size_t low, high;
    struct visit *visit = aligned_alloc(alignof(struct visit), sizeof *visit);
    if (visit == NULL) fail(EXIT_NOT_AS_ASKED, "out of memory");
    struct random random =
        random_stream(run->seed, 121, (uint64_t)pass << 40 | (uint64_t)unit->key[0] << 20 | (uint64_t)unit->key[1]);
    for (size_t round = 0; round < ROUNDS; round++) {
        if (run_stopping()) {
            free(visit);
            return UNIT_STOPPED;
        }
        play_round(run, visit, pair, together, &random, latency_ns);
        ratio[round] = ratio_of(together, latency_ns);
        for (size_t i = 0; i < 4; i++) sample[i / 2][i % 2][round] = latency_ns[i / 2][i % 2];
    }
    free(visit);
    for (size_t i = 0; i < 4; i++) {
        if (isnan(latency_ns[i / 2][i % 2])) continue; /* no core was there */
        sort_ascending(sample[i / 2][i % 2], ROUNDS);
        result->values[A_OWN_NS + i] = median_sorted(sample[i / 2][i % 2], ROUNDS);
    }
    sort_ascending(ratio, ROUNDS);
    median_interval(ROUNDS, 0.95, &low, &high);
    result->values[RATIO] = median_sorted(ratio, ROUNDS);
    result->values[RATIO_LOW] = ratio[low];
    result->values[RATIO_HIGH] = ratio[high];
    return 0;
}

/* The CPUs and memory of each node; on one node what the ratio must be. */
static void print_nodes(const struct run *run, const double *medians) {
    (void)medians;
    char meminfo[4096];
    struct text cpus = {0};
    for (size_t i = 0; i < run->machine.nodes; i++) {
        const struct numa_node *node = &run->machine.node[i];
        unsigned long kib = 0;
        text_clear(&cpus);
        cpulist_write(&cpus, &node->cpus, true);
        printf("NUMA node %d: CPUs %s", node->number, cpus.length > 0 ? cpus.data : "none");
        const char *total = read_sysfs(meminfo, sizeof meminfo, "devices/system/node/node%d/meminfo", node->number)
                                ? strstr(meminfo, "MemTotal:")
                                : NULL;
        if (total != NULL) kib = strtoul(total + strlen("MemTotal:"), NULL, 10);
        if (kib > 0) printf(", %lu MB", kib >> 10);
        printf("\n");
    }
    if (run->machine.nodes == 1) printf("A machine with one NUMA node shows 1.00, as every array is local.\n");
    text_free(&cpus);
}

static double visits(const struct run *run, const struct unit *unit) {
    (void)run;
    return ROUNDS * (unit->key[2] == ALONE ? 4 : unit->key[2] == BOTH ? 2 : 1);
}

static double plan_seconds(const struct run *run, const struct unit *unit, double hop_ns) {
    (void)hop_ns;
    double pages = (double)memory_planned(run) / 4096; /* not bound: all are looked at behind a pass */
    double checked_s = run_once_a_pass(run, unit, pages * run->costs.checked_page_s);
    return checked_s + visits(run, unit) * costs_chase_cold_s(&run->costs, COLD_BYTES, true, BATCHES);
}

/* One after the other: each core touches its own. */
static double prepare_seconds(const struct run *run) {
    const struct costs *costs = &run->costs;
    double line_s = costs_line(costs, COLD_BYTES, true).lay_ns / 1e9, bytes = (double)memory_planned(run);
    return bytes * (costs->huge_byte_s + costs->set_byte_s) + bytes / 4096 * costs->checked_page_s +
           bytes / ELEMENT_BYTES * line_s;
}

static const char *const together_words[] = {"alone", "both", "first", "second", NULL};

static const struct operation operations[] = {
    {.name = "ratio",
     .summary = "two cores, two arrays: own against the other's, each core alone, both at once, both in one array",
     .quantity = "ratio",
     .unit = "1",
     .record = "cell",
     FIELDS(fields),
     .figure = &fields[RATIO],
     .table = true,
     .conclude = print_nodes,
     .keys = {"a", "b", "together"},
     .words = {NULL, NULL, together_words},
     .plan = plan,
     .memory = memory_planned,
     .prepare = prepare,
     .facts = facts,
     .measure = measure,
     .probes = PROBE_COLD,
     .seconds = plan_seconds,
     .tasks = visits,
     .prepare_seconds = prepare_seconds},
};

KERNEL_MAIN("touch", settings)
