/* bandwidth: bytes a second between CPUs and memory, by likwid-bench. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/cache.h"
#include "harness/child.h"
#include "harness/fail.h"
#include "harness/headroom.h"
#include "harness/likwid.h"
#include "harness/run.h"
#include "harness/sample.h"

static const char help[] =
    "USAGE\n"
    "  bandwidth --op nodes --cpus cores --out FILE [options]\n"
    "  example: kernels/build/bandwidth --op scaling --cpus cores --streams load,triad_mem --out here.jsonl\n"
    "\n"
    "REQUIREMENTS\n"
    "  likwid-bench on the PATH; without it the record says so and is complete. No root.\n"
    "\n"
    "OVERHEAD\n"
    "  A process of likwid-bench for each cell, 1.3 s or more, of which likwid takes 1 s to calibrate its clock.\n"
    "\n"
    "WARNING\n"
    "  With ordinary stores the bytes that are read before they are overwritten are not counted: compare the _mem\n"
    "  streams, which store past the caches, with what vendors state.\n";

enum { LONGEST_S = 120, MOST_STREAMS = 8 };
static const double INITIALIZED_A_SECOND = 4e9; /* bytes that one thread touches first */
static const double AIMED_S = 0.2, RATE_A_THREAD = 8e9, HIGHEST_RATE = 150e9;
static const size_t LEAST_BYTES = (size_t)64 << 20;

/* likwid's names. _mem: non-temporal stores; there is no such load from ordinary memory. */
static const char *const stream_words[] = {"load",      "store",    "copy",      "triad",
                                           "store_mem", "copy_mem", "triad_mem", NULL};
enum { STREAMS = 7 };
static const char *const scope_words[] = {"ccx", "node", "socket", NULL};

static const char *streams_word = "default";

static const struct setting settings[] = {
    {.name = "streams",
     .value = "LIST",
     .word = &streams_word,
     .shapes = true,
     .help =
         "of load,store,copy,triad,store_mem,copy_mem,triad_mem; all; or default: nodes all for up to two NUMA nodes, "
         "load and store_mem for up to four, else load; scaling and cpus load"},
    SAMPLE_SETTING,
    {0},
};

static char kernel_of[STREAMS][64]; /* likwid's kernel for a stream, with the widest vectors there are; "" for none */
static size_t streams_of[STREAMS];  /* how many streams it has */
static bool wanted[STREAMS];

/* ---- likwid-bench ---- */

static void ask(struct child *child, const char *option, const char *value) {
    const char *const arguments[] = {"likwid-bench", option, value, NULL};
    *child = (struct child){.arguments = arguments, .seconds = LONGEST_S};
    child_run(child);
    child->arguments = NULL;
}

static bool cpu_has(const char *flag) {
    FILE *file = fopen("/proc/cpuinfo", "re");
    char *line = NULL;
    size_t capacity = 0;
    bool found = false;
    while (file != NULL && getline(&line, &capacity, file) > 0) {
        if (strncmp(line, "flags", 5) != 0) continue;
        for (char *rest = line, *word; !found && (word = strtok_r(rest, " \t\n", &rest)) != NULL;)
            found = strcmp(word, flag) == 0;
        break;
    }
    free(line);
    if (file != NULL) fclose(file);
    return found;
}

static void find_kernels(const char *list) {
    static const char *const vectors[][2] = {{"avx512f", "_avx512"}, {"avx", "_avx"}, {"sse2", "_sse"}, {NULL, ""}};
    for (size_t s = 0; s < STREAMS; s++)
        for (size_t v = 0; v < 4 && kernel_of[s][0] == '\0'; v++) {
            char name[64];
            snprintf(name, sizeof name, "%s%s", stream_words[s], vectors[v][1]);
            if (vectors[v][0] != NULL && !cpu_has(vectors[v][0])) continue;
            if (likwid_has(list, name)) strcpy(kernel_of[s], name);
        }
}

/* False, with the reason, where likwid-bench cannot be used. */
static bool find_likwid(const char **why) {
    static struct text reason;
    struct child child;
    ask(&child, "-a", NULL);
    if (child.exit_code == 127)
        *why = "likwid-bench is not installed: no bandwidth is measured";
    else if (child.exit_code != 0 || !likwid_has(child.said.data, "load")) {
        text_add(&reason, "likwid-bench -a ends with %d and lists no kernel: no bandwidth is measured",
                 child.exit_code);
        *why = reason.data;
    } else {
        find_kernels(child.said.data);
        *why = NULL;
    }
    text_free(&child.said);
    for (size_t s = 0; *why == NULL && s < STREAMS; s++) {
        if (kernel_of[s][0] == '\0') continue;
        ask(&child, "-l", kernel_of[s]);
        streams_of[s] = likwid_streams(child.said.data);
        if (streams_of[s] == 0 || streams_of[s] > MOST_STREAMS) kernel_of[s][0] = '\0';
        text_free(&child.said);
    }
    return *why == NULL;
}

/* ---- plans ---- */

static size_t most_bytes; /* of all cells */

/* Four times the last-level caches of these CPUs. */
static size_t wanted_bytes_of(const struct cpulist *cpus) {
    size_t bytes = 0;
    for (size_t i = 0; i < cpus->count; i++) {
        struct cpulist sharers = {0};
        cache_sharers(cpus->cpu[i], &sharers);
        bool counted = false;
        for (size_t j = 0; j < i; j++) counted = counted || cpulist_has(&sharers, cpus->cpu[j]);
        if (!counted) bytes += 4 * cache_bytes(cpus->cpu[i], 3);
        cpulist_free(&sharers);
    }
    return bytes < LEAST_BYTES ? LEAST_BYTES : bytes;
}

static void add_cell(struct run *run, const struct cpulist *cpus, struct unit unit) {
    size_t bytes = wanted_bytes_of(cpus);
    if (bytes > most_bytes) most_bytes = bytes;
    run_add_unit(run, unit);
}

static void want(const char *names) {
    char *list = strdup(names);
    if (list == NULL) fail(EXIT_NOT_AS_ASKED, "out of memory");
    for (char *rest = list, *name; (name = strtok_r(rest, ",", &rest)) != NULL;) {
        size_t s = 0;
        while (s < STREAMS && strcmp(stream_words[s], name) != 0) s++;
        if (s == STREAMS) fail(EXIT_BAD_INPUT, "--streams has no %s; see --help", name);
        wanted[s] = true;
    }
    free(list);
}

static size_t memory_nodes(const struct run *run) {
    size_t count = 0;
    for (size_t n = 0; n < run->machine.nodes; n++) count += run->machine.node[n].has_memory;
    return count;
}

static bool choose_streams(struct run *run, bool matrix) {
    if (strcmp(streams_word, "all") == 0 || (strcmp(streams_word, "default") == 0 && matrix && memory_nodes(run) <= 2))
        for (size_t s = 0; s < STREAMS; s++) wanted[s] = true;
    else if (strcmp(streams_word, "default") == 0)
        want(matrix && memory_nodes(run) <= 4 ? "load,store_mem" : "load");
    else
        want(streams_word);
    if (!find_likwid(&run->not_applicable)) return false;
    for (size_t s = 0; s < STREAMS; s++) wanted[s] = wanted[s] && kernel_of[s][0] != '\0';
    return true;
}

static void cpus_of_node(const struct run *run, int node, struct cpulist *cpus) {
    *cpus = (struct cpulist){0};
    for (size_t i = 0; i < run->chosen.count; i++)
        if (machine_node_of(&run->machine, run->chosen.cpu[i]) == node) cpulist_add(cpus, run->chosen.cpu[i]);
}

static void plan_nodes(struct run *run) {
    if (!choose_streams(run, true)) return;
    bool bind = child_may_bind();
    if (!bind && memory_nodes(run) > 1)
        run_not_measured(run, "memory of other NUMA nodes", "binding memory is not permitted (set_mempolicy)");
    size_t nodes = run->machine.nodes, count = 0;
    struct node_pair *pairs = grow(NULL, nodes * nodes, sizeof *pairs);
    for (size_t c = 0; c < nodes; c++)
        for (size_t m = 0; m < nodes; m++)
            if (run->machine.node[m].has_memory && (bind || c == m))
                pairs[count++] = (struct node_pair){run->machine.node[c].number, run->machine.node[m].number};
    count = sample_pairs(run, pairs, count);
    for (size_t i = 0; i < count; i++) {
        struct cpulist cpus;
        cpus_of_node(run, pairs[i].a, &cpus);
        for (int64_t s = 0; cpus.count > 0 && s < STREAMS; s++)
            if (wanted[s]) add_cell(run, &cpus, (struct unit){{pairs[i].a, pairs[i].b, s}});
        cpulist_free(&cpus);
    }
    free(pairs);
}

static int package_of(int cpu) {
    char content[32];
    return read_sysfs(content, sizeof content, "devices/system/cpu/cpu%d/topology/physical_package_id", cpu)
               ? atoi(content)
               : 0;
}

/* The chosen CPUs of the first one's CCX (what shares its last-level cache), NUMA node or socket. */
static void scope_cpus(const struct run *run, int64_t scope, struct cpulist *cpus) {
    int first = run->chosen.cpu[0];
    struct cpulist sharers = {0};
    cache_sharers(first, &sharers);
    for (size_t i = 0; i < run->chosen.count; i++) {
        int cpu = run->chosen.cpu[i];
        bool inside = scope == 0   ? cpulist_has(&sharers, cpu)
                      : scope == 1 ? machine_node_of(&run->machine, cpu) == machine_node_of(&run->machine, first)
                                   : package_of(cpu) == package_of(first);
        if (inside) cpulist_add(cpus, cpu);
    }
    cpulist_free(&sharers);
}

/* Every number of cores in a CCX of up to 16; else the powers of two and all. A scope that has the CPUs of a smaller one is left out. */
static void plan_scaling(struct run *run) {
    if (!choose_streams(run, false)) return;
    run_begin_quietly(run);
    size_t former = 0;
    for (int64_t scope = 0; scope < 3; scope++) {
        struct cpulist cpus = {0};
        scope_cpus(run, scope, &cpus);
        for (size_t n = 1; n <= cpus.count && cpus.count > former; n++)
            for (int64_t s = 0; s < STREAMS; s++)
                if (wanted[s] && ((scope == 0 && cpus.count <= 16) || n == cpus.count || (n & (n - 1)) == 0))
                    add_cell(run, &cpus, (struct unit){{scope, (int64_t)n, s}});
        former = cpus.count;
        cpulist_free(&cpus);
    }
}

static void plan_cpus(struct run *run) {
    if (!choose_streams(run, false)) return;
    for (size_t i = 0; i < run->chosen.count; i++) {
        struct cpulist alone = {0};
        cpulist_add(&alone, run->chosen.cpu[i]);
        for (int64_t s = 0; s < STREAMS; s++)
            if (wanted[s]) add_cell(run, &alone, (struct unit){{run->chosen.cpu[i], s}});
        cpulist_free(&alone);
    }
}

/* ---- measuring ---- */

/* As far as there is memory. */
static size_t bytes_for(const struct run *run, const struct cpulist *cpus, int node) {
    size_t bytes = buffer_affordable(&run->machine, node, wanted_bytes_of(cpus), 1);
    if (bytes >= LEAST_BYTES) return bytes;
    struct limit limit = memory_limit(&run->machine, node);
    fail(EXIT_NOT_AS_ASKED, "%zu MiB on NUMA node %d cannot be had: %llu MiB are %s", LEAST_BYTES >> 20, node,
         (unsigned long long)(limit.bytes >> 20), limit.what);
}

/* likwid's words for so many threads on all CPUs it may use (N), each stream said to be there; the policy of the process
 * decides where that is. */
static void add_workgroup(struct text *out, size_t bytes, size_t threads, size_t streams) {
    text_add(out, "N:%zukB:%zu-", bytes / 1000, threads);
    for (size_t i = 0; i < streams; i++) text_add(out, "%s%zu:N", i == 0 ? "" : ",", i);
}

static size_t iterations(size_t bytes, size_t threads) {
    double rate = (double)threads * RATE_A_THREAD < HIGHEST_RATE ? (double)threads * RATE_A_THREAD : HIGHEST_RATE;
    size_t count = (size_t)(AIMED_S * rate / (double)bytes) + 1;
    return count < 4 ? 4 : count;
}

/* Whether its memory was looked at while it was there. */
static bool was_seen(const struct child *child, size_t bytes) {
    return child->most_bytes >= bytes / 2;
}

static void check(const struct child *child, const struct cpulist *cpus, size_t bytes, double *rate) {
    const char *kernel = child->arguments[2];
    if (child->exit_code == -2)
        fail(EXIT_NOT_AS_ASKED, "likwid-bench -t %s did not end within %d s", kernel, LONGEST_S);
    if (child->exit_code != 0 || !likwid_rate(child->said.data, rate)) {
        size_t end = child->said.length;
        while (end > 0 && (child->said.data[end - 1] == '\n' || child->said.data[end - 1] == '-')) end--;
        size_t start = end;
        while (start > 0 && child->said.data[start - 1] != '\n') start--;
        fail(EXIT_NOT_AS_ASKED, "likwid-bench -t %s ends with %d and no rate; its last output: %.*s", kernel,
             child->exit_code, (int)(end - start), child->said.data + start);
    }
    struct cpulist ran = {0}, asked = {0};
    likwid_cpus(child->said.data, &ran);
    for (size_t i = 0; i < cpus->count; i++) cpulist_add(&asked, cpus->cpu[i]);
    cpulist_sort(&asked);
    if (ran.count != asked.count || memcmp(ran.cpu, asked.cpu, ran.count * sizeof *ran.cpu) != 0)
        fail(EXIT_NOT_AS_ASKED, "likwid-bench -t %s ran %zu threads, not one on each of the %zu CPUs asked", kernel,
             ran.count, asked.count);
    cpulist_free(&ran);
    cpulist_free(&asked);
    if (was_seen(child, bytes) && (double)child->placed_bytes < 0.95 * (double)child->most_bytes)
        fail(EXIT_NOT_AS_ASKED, "likwid-bench -t %s has %zu of %zu MiB on another NUMA node than asked", kernel,
             (child->most_bytes - child->placed_bytes) >> 20, child->most_bytes >> 20);
}

static unsigned bench(const struct run *run, const struct cpulist *cpus, const int *nodes, size_t node_count,
                      int64_t stream, struct text *members) {
    size_t bytes = bytes_for(run, cpus, nodes[0]);
    struct text workgroup = {0}, count = {0};
    double rate = 0;
    add_workgroup(&workgroup, bytes, cpus->count, streams_of[stream]);
    text_add(&count, "%zu", iterations(bytes, cpus->count));
    const char *const arguments[] = {"likwid-bench", "-t", kernel_of[stream], "-w",
                                     workgroup.data, "-i", count.data,        NULL};
    struct child child = {
        .arguments = arguments, .cpus = cpus, .nodes = nodes, .node_count = node_count, .seconds = LONGEST_S};
    child_run(&child);
    if (child.exit_code != -1) {
        check(&child, cpus, bytes, &rate);
        text_add(members, ",\"rate_bytes_per_s\":%.9g,\"threads\":%zu,\"size_bytes\":%zu", rate, cpus->count, bytes);
        if (was_seen(&child, bytes))
            text_add(members, ",\"placed_share\":%.4f", (double)child.placed_bytes / (double)child.most_bytes);
        text_add(members, ",\"raw\":");
        text_add_json(members, child.said.data);
    }
    text_free(&workgroup);
    text_free(&count);
    text_free(&child.said);
    return child.exit_code == -1 ? UNIT_STOPPED : 0;
}

static unsigned measure_nodes(struct run *run, uint32_t pass, const struct unit *unit, struct text *members) {
    (void)pass;
    int memory = (int)unit->key[1];
    struct cpulist cpus;
    cpus_of_node(run, (int)unit->key[0], &cpus);
    unsigned flags = bench(run, &cpus, &memory, 1, unit->key[2], members);
    cpulist_free(&cpus);
    return flags;
}

/* A socket's memory is all of its nodes'. */
static unsigned measure_scaling(struct run *run, uint32_t pass, const struct unit *unit, struct text *members) {
    (void)pass;
    struct cpulist cpus = {0};
    scope_cpus(run, unit->key[0], &cpus);
    int *nodes = grow(NULL, cpus.count, sizeof *nodes);
    size_t node_count = 0;
    for (size_t i = 0; i < cpus.count; i++) {
        int home = machine_home_of(&run->machine, cpus.cpu[i]);
        bool known = unit->key[0] < 2 && node_count > 0;
        for (size_t n = 0; n < node_count; n++) known = known || nodes[n] == home;
        if (!known) nodes[node_count++] = home;
    }
    cpus.count = (size_t)unit->key[1];
    unsigned flags = bench(run, &cpus, nodes, node_count, unit->key[2], members);
    cpulist_free(&cpus);
    free(nodes);
    return flags;
}

static unsigned measure_cpu(struct run *run, uint32_t pass, const struct unit *unit, struct text *members) {
    (void)pass;
    int cpu = (int)unit->key[0], home = machine_home_of(&run->machine, cpu);
    struct cpulist cpus = {0};
    cpulist_add(&cpus, cpu);
    unsigned flags = bench(run, &cpus, &home, 1, unit->key[1], members);
    cpulist_free(&cpus);
    return flags;
}

static void facts(struct run *run, bool end, struct text *members) {
    (void)run;
    const char *separator = "";
    if (end) return;
    text_add(members, ",\"benchmarks\":{");
    for (size_t s = 0; s < STREAMS; s++) {
        if (!wanted[s]) continue;
        text_add(members, "%s\"%s\":{\"kernel\":\"%s\",\"streams\":%zu}", separator, stream_words[s], kernel_of[s],
                 streams_of[s]);
        separator = ",";
    }
    text_add(members, "}");
}

static uint64_t memory_planned(const struct run *run) {
    (void)run;
    return most_bytes;
}

static double plan_seconds(const struct run *run, const struct unit *unit, double hop_ns) {
    (void)run;
    (void)unit;
    (void)hop_ns;
    return 1.6 + (double)most_bytes / INITIALIZED_A_SECOND;
}

#define BANDWIDTH_VALUES "\"rate_bytes_per_s\":\"B/s\",\"threads\":\"1\",\"size_bytes\":\"B\",\"placed_share\":\"1\""

static const struct operation operations[] = {
    {.name = "nodes",
     .summary = "the CPUs of each NUMA node together, in the memory of each",
     .quantity = "rate",
     .unit = "B/s",
     .record = "cell",
     .values = BANDWIDTH_VALUES,
     .keys = {"cpu_node", "memory_node", "stream"},
     .words = {NULL, NULL, stream_words},
     .plan = plan_nodes,
     .memory = memory_planned,
     .facts = facts,
     .measure = measure_nodes,
     .seconds = plan_seconds},
    {.name = "scaling",
     .summary = "by the number of cores of the first CPU's CCX, NUMA node and socket",
     .quantity = "rate",
     .unit = "B/s",
     .record = "cell",
     .values = BANDWIDTH_VALUES,
     .keys = {"scope", "cores", "stream"},
     .words = {scope_words, NULL, stream_words},
     .plan = plan_scaling,
     .memory = memory_planned,
     .facts = facts,
     .measure = measure_scaling,
     .seconds = plan_seconds},
    {.name = "cpus",
     .summary = "each CPU alone in its own memory",
     .quantity = "rate",
     .unit = "B/s",
     .record = "cell",
     .values = BANDWIDTH_VALUES,
     .keys = {"cpu", "stream"},
     .words = {NULL, stream_words},
     .plan = plan_cpus,
     .memory = memory_planned,
     .facts = facts,
     .measure = measure_cpu,
     .seconds = plan_seconds},
};

KERNEL_MAIN("bandwidth", settings)
