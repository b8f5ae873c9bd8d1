#define _GNU_SOURCE
#include "run.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "census.h"
#include "clock.h"
#include "fail.h"
#include "progress.h"
#include "resume.h"
#include "schedule.h"
#include "stats.h"

enum { SCHEMA = 1, MOST_LINES = 512 };
enum purpose { DRAW_ORDER = 1, DRAW_LINES = 2 };
enum done { TO_DO, DONE, MOVED_TO_DO };

static const double SENTINEL_EVERY_S = 0.25, SENTINEL_SHARE = 0.05, AGAIN_SD = 4;

#if defined(__x86_64__)
#define ATOMICS "lock"
#elif defined(__ARM_FEATURE_ATOMICS)
#define ATOMICS "lse"
#elif defined(__aarch64__)
#define ATOMICS "ll-sc"
#else
#define ATOMICS "unknown"
#endif

/* ---- the command line ---- */

static const char *out_path, *operation_word;
static bool share_l3, detail, census, any_lines, huge_pages, plan_only, help_only;
static uint64_t passes = 3, lines, ci_percent, budget_s, parallel, seed = UINT64_MAX, job = 1, run_number = 1;

static const struct setting common[] = {
    {.name = "op", .value = "NAME", .word = &operation_word, .shapes = true, .help = "the operation (below)"},
    {.name = "out", .value = "FILE", .word = &out_path, .help = "the record file; an incomplete one is continued"},
    {.name = "passes",
     .value = "N",
     .number = &passes,
     .lowest = 1,
     .highest = 10000,
     .shapes = true,
     .help = "sweeps over everything, each on lines of its own (default 3)"},
    {.name = "seed",
     .value = "N",
     .number = &seed,
     .highest = INT64_MAX,
     .help = "orders and lines are drawn by it (default: random, or the file's)"},
    {.name = "job", .value = "J", .number = &job, .lowest = 1, .highest = 1000000, .help = "recorded (default 1)"},
    {.name = "run",
     .value = "R",
     .number = &run_number,
     .lowest = 1,
     .highest = 1000000,
     .help = "recorded (default 1)"},
    {.name = "plan",
     .on = &plan_only,
     .help = "print what would be measured, its time and memory; CPUs need not be here"},
    {.name = "help", .on = &help_only, .help = "print this"},
    {0},
};

static const struct setting pair_settings[] = {
    {.name = "lines",
     .value = "N",
     .number = &lines,
     .lowest = 6,
     .highest = MOST_LINES,
     .shapes = true,
     .help = "lines a pass draws, the same for all its pairs (default 32)"},
    {.name = "ci",
     .value = "PERCENT",
     .number = &ci_percent,
     .lowest = 1,
     .highest = 50,
     .shapes = true,
     .help = "add lines to a pair until half its interval is at most that, 512 lines at most"},
    {.name = "budget",
     .value = "SECONDS",
     .number = &budget_s,
     .lowest = 1,
     .highest = 1000000,
     .shapes = true,
     .help = "when the passes are done, go on where intervals are widest until then"},
    {.name = "parallel",
     .value = "K",
     .number = &parallel,
     .lowest = 2,
     .highest = MAX_PARALLEL,
     .shapes = true,
     .help = "measure up to K pairs at once, no two in one L3 (a measurement of interference)"},
    {.name = "share-l3", .on = &share_l3, .shapes = true, .help = "with --parallel: pairs at once may share an L3"},
    {.name = "detail", .on = &detail, .shapes = true, .help = "keep the value of each line"},
    {.name = "census",
     .on = &census,
     .shapes = true,
     .help = "record how far lines are from a CPU of each L3 also where there is one L3"},
    {.name = "any-lines",
     .on = &any_lines,
     .shapes = true,
     .help = "draw lines from the whole pool, not equally from the clusters that they live in"},
    {.name = "huge-pages",
     .on = &huge_pages,
     .shapes = true,
     .help =
         "lines in transparent huge pages, whose offsets are more bits of the physical address, where there are any"},
    {0},
};

static void print_help(const struct kernel *kernel) {
    struct text text = {0};
    text_add(&text, "%s\nOPTIONS\n", kernel->help);
    settings_help(&text, common);
    settings_help(&text, kernel->settings);
    text_add(&text, "\nWHICH CPUS AND MEMORY\n");
    settings_help(&text, select_settings);
    text_add(&text, "\nPAIRS (operations marked *)\n");
    settings_help(&text, pair_settings);
    text_add(&text, "\nOPERATIONS\n");
    for (size_t i = 0; i < kernel->operation_count; i++)
        text_add(&text, "  %-9s%c %s; quantity %s\n", kernel->operations[i].name,
                 kernel->operations[i].measure_pairs != NULL ? '*' : ' ', kernel->operations[i].summary,
                 kernel->operations[i].quantity);
    text_add(&text, "\nEXIT CODES\n"
                    "  0 done, also when FILE was complete before   2 bad arguments or input\n"
                    "  3 could not measure as asked                 128 + signal: stopped; the same call continues "
                    "FILE\n                                               (a second signal stops it at once)\n");
    fputs(text.data, stdout);
    text_free(&text);
}

static const struct operation *find_operation(const struct kernel *kernel) {
    struct text known = {0};
    for (size_t i = 0; operation_word != NULL && i < kernel->operation_count; i++)
        if (strcmp(kernel->operations[i].name, operation_word) == 0) return &kernel->operations[i];
    for (size_t i = 0; i < kernel->operation_count; i++)
        text_add(&known, "%s%s", i == 0 ? "" : ", ", kernel->operations[i].name);
    if (operation_word == NULL) fail(EXIT_BAD_INPUT, "--op is missing; known are %s", known.data);
    fail(EXIT_BAD_INPUT, "unknown operation %s; known are %s", operation_word, known.data);
}

/* Pairs that are measured at once, at most. */
static size_t slots(void) {
    return parallel > 0 ? (size_t)parallel : 1;
}

static void check_pair_settings(const struct operation *operation) {
    struct text given = {0};
    settings_json(&given, pair_settings);
    if (given.length > 0 && operation->measure_pairs == NULL)
        fail(EXIT_BAD_INPUT, "%s is not for operation %s; --help marks those it is for", given.data, operation->name);
    if (census && any_lines) fail(EXIT_BAD_INPUT, "--census and --any-lines exclude each other");
    if (share_l3 && parallel == 0) fail(EXIT_BAD_INPUT, "--share-l3 goes with --parallel");
    if (parallel > 0 && budget_s > 0)
        fail(EXIT_BAD_INPUT, "--budget measures pairs alone and does not go with --parallel");
    text_free(&given);
}

/* ---- units ---- */

void run_add_unit(struct run *run, struct unit unit) {
    if ((run->unit_count & (run->unit_count - 1)) == 0)
        run->units = grow(run->units, run->unit_count == 0 ? 1 : run->unit_count * 2, sizeof *run->units);
    run->units[run->unit_count++] = unit;
}

void run_add_pairs(struct run *run) {
    const struct selection *selection = &run->selection;
    select_require_pairs(selection);
    int *homes = grow(NULL, run->machine.nodes, sizeof *homes);
    for (size_t i = 0; i < selection->pair_count; i++) {
        struct pair pair = selection->pairs[i];
        size_t count = select_homes(selection, &run->machine, (size_t)pair.a, (size_t)pair.b, homes);
        for (size_t h = 0; h < count; h++)
            run_add_unit(run, (struct unit){{selection->cpus.cpu[pair.a], selection->cpus.cpu[pair.b], homes[h]}});
    }
    free(homes);
}

/* What counts of interrupts are compared by: those within a factor of two are the same. */
static int doublings(uint64_t count) {
    int bits = 0;
    for (; count > 0; count >>= 1) bits++;
    return bits;
}

void run_begin_quietly(struct run *run) {
    struct cpulist *chosen = &run->chosen, order = {0};
    uint64_t *counts = grow(NULL, chosen->count, sizeof *counts);
    if (!machine_interrupts(chosen, counts)) {
        free(counts);
        return;
    }
    const struct cpu_place *place = run->selection.place; /* the chosen CPUs are the first of the selection's */
    size_t best = 0;
    int fewest = INT_MAX;
    bool free_to_choose = select_cpus_by_name();
    for (size_t i = 0; free_to_choose && i < chosen->count; i++) { /* a group's busiest CPU stands for it */
        if (place[i].node != place[0].node) continue;
        int most = 0;
        for (size_t j = 0; j < chosen->count; j++)
            if (place[j].l3 == place[i].l3 && doublings(counts[j]) > most) most = doublings(counts[j]);
        if (most < fewest) {
            fewest = most;
            best = i;
        }
    }
    text_add(&run->begins, ",\"begins\":{\"cpu\":%d,\"interrupts\":%" PRIu64 ",\"interrupts_of\":{\"%d\":%" PRIu64 "}}",
             chosen->cpu[best], counts[best], chosen->cpu[0], counts[0]);
    for (size_t i = 0; i < chosen->count; i++)
        if (place[i].l3 == place[best].l3) cpulist_add(&order, chosen->cpu[i]);
    for (size_t i = 0; i < chosen->count; i++)
        if (place[i].l3 != place[best].l3) cpulist_add(&order, chosen->cpu[i]);
    free(counts);
    *chosen = order; /* the selection keeps its own */
}

bool run_pair_stands(const struct run *run, size_t i) {
    const struct pair *pairs = run->selection.pairs;
    enum closeness closeness = select_closeness(&run->selection, (size_t)pairs[i].a, (size_t)pairs[i].b);
    for (size_t j = 0; !select_pairs_named() && j < i; j++)
        if (select_closeness(&run->selection, (size_t)pairs[j].a, (size_t)pairs[j].b) == closeness) return false;
    return true;
}

void run_not_measured(struct run *run, const char *what, const char *why) {
    text_add(&run->not_measured, "%s", run->not_measured.length > 0 ? "," : "");
    text_add_json(&run->not_measured, what);
    text_add(&run->not_measured, ":");
    text_add_json(&run->not_measured, why);
}

struct home *run_home(const struct run *run, int node) {
    for (size_t i = 0; i < run->home_count; i++)
        if (run->homes[i].node == node) return &run->homes[i];
    return NULL;
}

size_t run_worker(const struct run *run, int64_t cpu) {
    return workers_on(&run->workers, (int)cpu);
}

/* The index of the key that names the home of the lines; that behind the last key where there is none. */
static size_t home_key(const struct operation *operation) {
    size_t key = 0;
    while (operation->keys[key] != NULL && strcmp(operation->keys[key], "home") != 0) key++;
    return key;
}

static bool uses_homes(const struct operation *operation) {
    return operation->keys[home_key(operation)] != NULL;
}

static void collect_homes(struct run *run) {
    size_t key = home_key(run->operation);
    for (size_t i = 0; uses_homes(run->operation) && i < run->unit_count; i++) {
        int node = (int)run->units[i].key[key];
        if (run_home(run, node) != NULL) continue;
        run->homes = grow(run->homes, run->home_count + 1, sizeof *run->homes);
        run->homes[run->home_count++] = (struct home){.node = node};
    }
}

/* ---- what is written ---- */

unsigned run_add_latency(struct text *members, const double *values, size_t line_count, size_t batches) {
    struct summary summary = summarize(values, line_count, batches, NULL);
    summary_write(members, &summary, "ns");
    return summary.slow_share > 0.25 ? FLAG_DISTURBED : 0;
}

void run_add_placement(struct run *run, const char *name, const struct buffer *buffer) {
    text_add(&run->placement, "%s\"%s\":", run->placement.length > 0 ? "," : "", name);
    buffer_describe(buffer, &run->placement);
    if (buffer->bound) return;
    run->unbound = grow(run->unbound, run->unbound_count + 1, sizeof *run->unbound);
    run->unbound[run->unbound_count++] = *buffer;
}

static void add_flags(struct text *out, unsigned flags) {
    static const char *const names[] = {"mixed_lines", "disturbed", "moved"};
    const char *separator = "";
    text_add(out, ",\"flags\":[");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if ((flags & 1u << i) == 0) continue;
        text_add(out, "%s\"%s\"", separator, names[i]);
        separator = ",";
    }
    text_add(out, "]");
}

static void host_name(char name[256]) {
    if (gethostname(name, 256) != 0) fail(EXIT_NOT_AS_ASKED, "the host has no name: %s", strerror(errno));
    name[255] = '\0';
    name[strcspn(name, ".")] = '\0';
}

static void boot_id(char id[64]) {
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (file == NULL || fgets(id, 64, file) == NULL) strcpy(id, "unknown");
    if (file != NULL) fclose(file);
    id[strcspn(id, "\n")] = '\0';
}

/* FNV-1a over the keys of the units, 16 hexadecimal digits. */
static void hash_units(const struct run *run, char hash[17]) {
    uint64_t sum = 0xcbf29ce484222325u;
    for (size_t i = 0; i < run->unit_count; i++)
        for (size_t k = 0; k < MAX_KEYS; k++)
            for (unsigned bits = 0; bits < 64; bits += 8)
                sum = (sum ^ ((uint64_t)run->units[i].key[k] >> bits & 255)) * 0x100000001b3u;
    snprintf(hash, 17, "%016" PRIx64, sum);
}

static struct identity identify(const struct run *run) {
    struct identity identity = {.job = job, .run = run_number};
    const struct setting *const tables[] = {select_settings, common, pair_settings, run->kernel->settings};
    char host[256];
    host_name(host);
    text_add_json(&identity.host, host);
    text_add(&identity.arguments, "[");
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        struct text own = {0};
        settings_json(&own, tables[i]);
        if (own.length > 0) text_add(&identity.arguments, "%s%s", identity.arguments.length > 1 ? "," : "", own.data);
        text_free(&own);
    }
    text_add(&identity.arguments, "]");
    text_add(&identity.cpus, "[");
    cpulist_write(&identity.cpus, &run->cpus, false);
    text_add(&identity.cpus, "]");
    if (select_pairs_named()) hash_units(run, identity.pairs);
    return identity;
}

static void add_header(struct run *run, const struct identity *identity, struct text *out) {
    char boot[64], now[32];
    time_t seconds = time(NULL);
    struct tm utc;
    boot_id(boot);
    if (gmtime_r(&seconds, &utc) == NULL || strftime(now, sizeof now, "%Y-%m-%dT%H:%M:%SZ", &utc) == 0)
        strcpy(now, "unknown");
    text_add(out, "{\"record\":\"header\",\"schema\":%d,\"segment\":%u,\"kernel\":\"%s\",\"operation\":\"%s\"", SCHEMA,
             run->segment, run->kernel->name, run->operation->name);
    text_add(out, ",\"quantity\":\"%s\",\"unit\":\"%s\",\"host\":%s,\"boot_id\":", run->operation->quantity,
             run->operation->unit, identity->host.data);
    text_add_json(out, boot);
    text_add(out, ",\"job\":%" PRIu64 ",\"run\":%" PRIu64 ",\"seed\":%" PRIu64 ",\"start_time\":\"%s\"", job,
             run_number, run->seed, now);
    text_add(out, ",\"arguments\":%s,\"kernel_hash\":\"%s\",\"compiler\":", identity->arguments.data,
             run->kernel->hash);
    text_add_json(out, COMPILER);
    if (*identity->pairs != '\0') text_add(out, ",\"pairs_hash\":\"%s\"", identity->pairs);
    text_add(out,
             ",\"atomics\":\"" ATOMICS
             "\",\"clock\":{\"source\":\"%s\",\"hz\":%.1f,\"step_ns\":%.3f,\"calibrated_on\":%d}",
             clock_facts.source, clock_facts.hz, clock_facts.step_ticks * clock_facts.ns_per_tick, clock_facts.cpu);
    text_add(out, ",\"cpus\":%s", identity->cpus.data);
    if (run->operation->values != NULL) {
        text_add(out, ",\"cells\":{\"dims\":[");
        for (size_t k = 0; run->operation->keys[k] != NULL; k++)
            text_add(out, "%s\"%s\"", k == 0 ? "" : ",", run->operation->keys[k]);
        text_add(out, "],\"values\":{%s}}", run->operation->values);
    } else {
        text_add(out, ",\"home\":");
        text_add_json(out, select_home_policy());
    }
    if (run->not_applicable != NULL) {
        text_add(out, ",\"applicable\":false,\"reason\":");
        text_add_json(out, run->not_applicable);
    }
    text_add(out, ",\"passes\":%" PRIu64, run->passes);
    if (run->lines > 0)
        text_add(out, ",\"lines\":%zu,\"batches\":%zu,\"round_trips\":%zu", run->lines, run->batches, run->round_trips);
    if (run->operation->measure_pairs != NULL) text_add(out, ",\"parallel\":%zu", slots());
    text_add(out, ",\"pinned_by\":\"%s\",\"not_measured\":{%s},\"placement\":{", run->workers.pinned_by,
             run->not_measured.length > 0 ? run->not_measured.data : "");
    for (size_t i = 0; i < run->home_count; i++) {
        const struct pool *pool = &run->homes[i].pool;
        text_add(out, "%s\"%d\":{\"bytes\":%zu,\"bound\":%s,\"verified_by\":\"%s\",\"pages\":\"%s\"}",
                 i == 0 ? "" : ",", pool->home, pool->size, pool->bound ? "true" : "false", pool->verified_by,
                 pool->pages);
    }
    if (run->placement.length > 0) text_add(out, "%s%s", run->home_count > 0 ? "," : "", run->placement.data);
    text_add(out, "}");
    if (run->ramp.settled_hz > 0)
        text_add(out, ",\"ramp_up\":{\"first_hz\":%.4g,\"settled_hz\":%.4g,\"after_us\":%.1f,\"waited_us\":%.1f}",
                 run->ramp.first_hz, run->ramp.settled_hz, run->ramp.after_ns / 1e3, run->ramp_ns / 1e3);
    if (run->begins.length > 0) text_add(out, "%s", run->begins.data);
    if (run->operation->facts != NULL && run->not_applicable == NULL) run->operation->facts(run, false, out);
    text_add(out, "}\n");
}

static void add_unit_record(const struct run *run, const char *record, uint32_t pass, const struct unit *unit,
                            const struct result *result, struct text *out) {
    text_add(out, "{\"record\":\"%s\"", record);
    for (size_t k = 0; run->operation->keys[k] != NULL; k++) {
        const char *const *words = run->operation->words[k];
        if (words != NULL)
            text_add(out, ",\"%s\":\"%s\"", run->operation->keys[k], words[unit->key[k]]);
        else
            text_add(out, ",\"%s\":%" PRId64, run->operation->keys[k], unit->key[k]);
    }
    text_add(out, ",\"pass\":%" PRIu32 "%s", pass, result->members.length > 0 ? result->members.data : "");
    add_flags(out, result->flags);
    text_add(out, "}\n");
}

static void draw_lines(const struct operation *operation, struct random *random, uint32_t *set, size_t count) {
    enum { PAGE_LINES = 4096 / LINE_BYTES };
    uint32_t share = operation->line_a_page ? PAGE_LINES : operation->two_lines ? 2 : 1;
    draw_without_replacement(random, set, count, POOL_LINES / share);
    for (size_t i = 0; operation->line_a_page && i < count; i++)
        set[i] = set[i] * PAGE_LINES + (uint32_t)random_below(random, PAGE_LINES);
}

static enum census_mode census_mode(void) {
    return census ? CENSUS_ALWAYS : any_lines ? CENSUS_NEVER : CENSUS_AS_NEEDED;
}

static void take_census(struct run *run) {
    run->recount = false;
    if (run->operation->measure_pairs == NULL || run->not_applicable != NULL) return;
    census_take(run, census_mode(), run->drawn_lines * slots(), &run->records.pending);
}

/* Draw the lines of a pass and write them down, for each home. All slots of --parallel have lines of their own. */
static void begin_pass(struct run *run, uint32_t pass) {
    size_t count = run->drawn_lines * slots();
    if (run->recount) take_census(run);
    for (size_t i = 0; count > 0 && i < run->home_count; i++) {
        struct home *home = &run->homes[i];
        struct random random =
            random_stream(run->seed + run->segment, DRAW_LINES, (uint64_t)pass << 32 | (uint32_t)home->node);
        if (home->clusters > 1)
            census_draw(home, &random, home->line_set, count);
        else
            draw_lines(run->operation, &random, home->line_set, count);
        struct text *out = &run->records.pending;
        text_add(out, "{\"record\":\"pass\",\"pass\":%" PRIu32 ",\"home\":%d,\"line_set\":[", pass, home->node);
        for (size_t l = 0; l < count; l++) text_add(out, "%s%" PRIu32, l == 0 ? "" : ",", home->line_set[l]);
        text_add(out, "]}\n");
    }
    records_flush(&run->records);
}

/* ---- the run ---- */

static atomic_int stop_signal; /* lock-free, so a handler may write it and a worker read it */

static int stopped_by(void) {
    return atomic_load_explicit(&stop_signal, memory_order_relaxed);
}

bool run_stopping(void) {
    return stopped_by() != 0;
}

static void on_signal(int number) {
    atomic_store_explicit(&stop_signal, number, memory_order_relaxed); /* nothing else is told by it */
}

static void catch_signals(void) {
    struct sigaction action = {.sa_handler = on_signal,
                               .sa_flags = (int)SA_RESETHAND}; /* a second one ends it at once */
    static const int caught[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof caught / sizeof *caught; i++)
        if (sigaction(caught[i], &action, NULL) != 0)
            fail(EXIT_NOT_AS_ASKED, "signals cannot be caught: %s", strerror(errno));
}

static struct records *open_records;

static void keep_records(void) {
    records_flush(open_records);
}

/* What is going on while units are measured. */
struct sweep {
    struct run *run;
    struct former *former;
    uint32_t *order;
    double started_s, second_s, sentinel_s;
    struct machine_counts counts, first_counts;
    size_t *unsettled; /* units of this pass whose records are not written yet */
    size_t unsettled_count, moved_pages;
    struct result results[MAX_PARALLEL];
    size_t parallel_units, parallel_calls;
};

static void measure_units(struct sweep *sweep, uint32_t pass, const struct unit *const *units, size_t count) {
    for (size_t i = 0; i < count; i++) {
        sweep->results[i].flags = 0;
        sweep->results[i].value = sweep->results[i].half_width = 0;
        text_clear(&sweep->results[i].members);
    }
    struct run *run = sweep->run;
    if (run->operation->measure_pairs != NULL)
        run->operation->measure_pairs(run, units, count, sweep->results);
    else /* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): count is never 0 */
        sweep->results[0].flags = run->operation->measure(run, pass, units[0], &sweep->results[0].members);
}

static size_t return_moved(const struct run *run) {
    size_t moved = 0;
    for (size_t i = 0; i < run->home_count; i++) {
        const struct pool *pool = &run->homes[i].pool;
        moved += memory_return_moved(pool->bytes, pool->size, pool->home, pool->verified_by);
    }
    for (size_t i = 0; i < run->unbound_count; i++) {
        const struct buffer *buffer = &run->unbound[i];
        moved += memory_return_moved(buffer->bytes, buffer->size, buffer->home, buffer->verified_by);
    }
    return moved;
}

/* Whether all memory is still where it was. When they are not, they are put back, and what has not been written yet
 * (`count` units) is forgotten, to be measured again. */
static bool pages_moved(struct sweep *sweep, size_t count) {
    struct run *run = sweep->run;
    size_t moved = return_moved(run);
    if (moved == 0) return false;
    note("%zu pages had moved to another NUMA node: %zu units are measured again", moved, count);
    sweep->moved_pages += moved;
    run->recount = true;
    text_clear(&run->records.pending);
    return true;
}

/* Write what is pending; once a second also what else happens on these CPUs. */
static void write_pending(struct sweep *sweep) {
    struct run *run = sweep->run;
    double now = clock_monotonic_s();
    if (now - sweep->second_s >= 1) {
        struct machine_counts counts = machine_counts(&run->cpus);
        text_add(&run->records.pending,
                 "{\"record\":\"second\",\"at_s\":%.3f,\"span_s\":%.3f,\"steal_s\":%.2f,\"interrupts\":%" PRIu64 "}\n",
                 now - sweep->started_s, now - sweep->second_s,
                 (double)(counts.steal_ticks - sweep->counts.steal_ticks) / (double)sysconf(_SC_CLK_TCK),
                 counts.interrupts - sweep->counts.interrupts);
        sweep->counts = counts;
        sweep->second_s = now;
    }
    records_flush(&run->records);
}

/* Once a second, between units: those that were measured stay measured, unless pages moved meanwhile. */
static void settle(struct sweep *sweep, uint32_t pass) {
    struct former *former = sweep->former;
    if (pages_moved(sweep, sweep->unsettled_count)) {
        for (size_t i = 0; i < sweep->unsettled_count; i++)
            former->done[pass * sweep->run->unit_count + sweep->unsettled[i]] = MOVED_TO_DO;
        former->done_in_pass[pass] -= sweep->unsettled_count;
        former->count -= sweep->unsettled_count;
    }
    sweep->unsettled_count = 0;
    write_pending(sweep);
}

/* Two pairs that are measured again and again: what drifts shows in them. */
static void measure_sentinels(struct sweep *sweep, uint32_t pass) {
    struct run *run = sweep->run;
    double now = clock_monotonic_s();
    if (run->operation->measure_pairs == NULL || now < sweep->sentinel_s) return;
    for (size_t i = 0; i < 2 && i < run->unit_count; i++) {
        const struct unit *unit = &run->units[i == 0 ? 0 : run->unit_count - 1];
        measure_units(sweep, pass, &unit, 1);
        text_add(&sweep->results[0].members, ",\"at_s\":%.3f", now - sweep->started_s);
        add_unit_record(run, "sentinel", pass, unit, &sweep->results[0], &run->records.pending);
    }
    double end = clock_monotonic_s(); /* on a slow or busy machine less often, they must not become the main work */
    sweep->sentinel_s = end + fmax(SENTINEL_EVERY_S, (end - now) / SENTINEL_SHARE);
}

static bool may_go_together(const struct run *run, const struct unit *x, const struct unit *y) {
    for (size_t i = 0; i < 2; i++)
        for (size_t j = 0; j < 2; j++) {
            enum closeness closeness =
                select_closeness(&run->selection, run_worker(run, x->key[i]), run_worker(run, y->key[j]));
            if (closeness == SAME_CORE || (closeness == SAME_L3 && !share_l3)) return false;
        }
    return true;
}

/* The unit at place `at` of the order and, with --parallel, later ones that may go with it. */
static size_t choose_together(const struct sweep *sweep, uint32_t pass, size_t at, size_t *chosen) {
    enum { LOOK_AHEAD = 1024 };
    const struct run *run = sweep->run;
    const unsigned char *done = sweep->former->done + pass * run->unit_count;
    size_t count = 0;
    chosen[count++] = sweep->order[at];
    for (size_t i = at + 1; count < slots() && i < run->unit_count && i < at + LOOK_AHEAD; i++) {
        bool fits = done[sweep->order[i]] != DONE;
        for (size_t c = 0; fits && c < count; c++)
            fits = may_go_together(run, &run->units[chosen[c]], &run->units[sweep->order[i]]);
        if (fits) chosen[count++] = sweep->order[i];
    }
    return count;
}

/* Say which workers come after this unit: those that take part in both wait awake, the others can be woken ahead unless
 * they share a core with a worker of this one. */
static void announce_next(struct sweep *sweep, uint32_t pass, size_t at) {
    struct run *run = sweep->run;
    run->workers.next_count = 0;
    if (run->operation->measure_pairs == NULL || parallel > 1) return;
    const struct unit *now = &run->units[sweep->order[at]];
    for (size_t i = 0; i < 2; i++) run->workers.worker[run_worker(run, now->key[i])].stay = false;
    size_t next = at + 1;
    while (next < run->unit_count && sweep->former->done[pass * run->unit_count + sweep->order[next]] == DONE) next++;
    if (next == run->unit_count) return;
    const struct unit *then = &run->units[sweep->order[next]];
    for (size_t i = 0; i < 2; i++) {
        size_t worker = run_worker(run, then->key[i]);
        if (then->key[i] == now->key[0] || then->key[i] == now->key[1])
            run->workers.worker[worker].stay = true;
        else if (select_closeness(&run->selection, worker, run_worker(run, now->key[0])) != SAME_CORE &&
                 select_closeness(&run->selection, worker, run_worker(run, now->key[1])) != SAME_CORE)
            run->workers.next[run->workers.next_count++] = worker;
    }
}

/* What second looks and finish() need of this unit. */
static void keep_value(const struct run *run, struct former *former, size_t index, const struct result *result) {
    if (run->operation->measure_pairs != NULL) {
        former->value[index] = result->value;
        former->half_width[index] = (float)result->half_width;
    } else if (run->operation->kept != NULL) {
        char name[64];
        snprintf(name, sizeof name, ",\"%s\":", run->operation->kept);
        const char *found = strstr(result->members.data, name);
        former->value[index] = found != NULL ? strtod(found + strlen(name), NULL) : 0;
    }
}

static void measure_pass(struct sweep *sweep, uint32_t pass) {
    struct run *run = sweep->run;
    struct former *former = sweep->former;
    unsigned char *done = former->done + pass * run->unit_count;
    unsigned mixed = former->done_in_pass[pass] > 0 ? FLAG_MIXED_LINES : 0;
    struct random random = random_stream(run->seed, DRAW_ORDER, pass);
    shuffled(&random, sweep->order, run->unit_count);
    begin_pass(run, pass);
    while (former->done_in_pass[pass] < run->unit_count && !run_stopping()) {
        for (size_t at = 0; at < run->unit_count && !run_stopping(); at++) {
            size_t chosen[MAX_PARALLEL];
            const struct unit *units[MAX_PARALLEL];
            if (done[sweep->order[at]] == DONE) continue;
            measure_sentinels(sweep, pass);
            size_t count = choose_together(sweep, pass, at, chosen);
            for (size_t i = 0; i < count; i++) units[i] = &run->units[chosen[i]];
            announce_next(sweep, pass, at);
            run->account = true;
            measure_units(sweep, pass, units, count);
            run->account = false;
            if ((sweep->results[0].flags & UNIT_STOPPED) != 0) break;
            sweep->parallel_units += count;
            sweep->parallel_calls++;
            for (size_t i = 0; i < count; i++) {
                size_t index = pass * run->unit_count + chosen[i];
                sweep->results[i].flags |= mixed | (former->done[index] == MOVED_TO_DO ? FLAG_MOVED : 0u);
                add_unit_record(run, run->operation->record, pass, units[i], &sweep->results[i], &run->records.pending);
                former->done[index] = DONE;
                keep_value(run, former, index, &sweep->results[i]);
                sweep->unsettled[sweep->unsettled_count++] = chosen[i];
            }
            former->done_in_pass[pass] += count;
            former->count += count;
            if (records_flush_is_due(&run->records)) settle(sweep, pass);
            progress_show(former->count);
        }
        settle(sweep, pass);
    }
    for (size_t i = 0; i < run->home_count; i++)
        for (size_t slot = 0; slot < slots(); slot++) spread_close_set(&run->spread, &run->homes[i].sums[slot]);
}

/* ---- second looks ---- */

/* Measure one unit once more, alone and on lines of its own. */
static double look_again(struct sweep *sweep, uint32_t pass, size_t unit, size_t use_lines, const char *reason) {
    struct run *run = sweep->run;
    const struct unit *again = &run->units[unit];
    begin_pass(run, pass);
    measure_sentinels(sweep, pass);
    run->use_lines = use_lines;
    run->workers.next_count = 0;
    unsigned moved = 0;
    do {
        measure_units(sweep, pass, &again, 1);
        sweep->results[0].flags |= moved;
        text_add(&sweep->results[0].members, ",\"reason\":\"%s\"", reason);
        add_unit_record(run, "again", pass, again, &sweep->results[0], &run->records.pending);
        moved = FLAG_MOVED;
    } while (pages_moved(sweep, 1));
    run->use_lines = run->lines;
    write_pending(sweep);
    return sweep->results[0].half_width;
}

/* Units whose passes differ by more than the passes of all units make likely. */
static size_t look_where_passes_differ(struct sweep *sweep, uint32_t *pass) {
    struct run *run = sweep->run;
    const struct former *former = sweep->former;
    double sd = robust_pass_sd(former->value, run->unit_count, run->passes);
    size_t looked = 0;
    for (size_t unit = 0; sd > 0 && unit < run->unit_count && !run_stopping(); unit++) {
        double low = former->value[unit], high = low;
        for (size_t p = 1; p < run->passes; p++) {
            double value = former->value[p * run->unit_count + unit];
            low = value < low ? value : low;
            high = value > high ? value : high;
        }
        if (high - low <= AGAIN_SD * sd) continue;
        look_again(sweep, (*pass)++, unit, run->lines, "passes_differ");
        looked++;
    }
    return looked;
}

/* Spend what is left of --budget where the interval is widest, twice as many lines at each look. A unit's interval is
 * that of its newest look, which has the most lines: the narrowest of many would be luck. */
static double look_where_widest(struct sweep *sweep, uint32_t *pass) {
    struct run *run = sweep->run;
    double *width = grow(NULL, run->unit_count, sizeof *width), widest;
    size_t *use = grow(NULL, run->unit_count, sizeof *use);
    for (size_t unit = 0; unit < run->unit_count; unit++) {
        width[unit] = 0;
        use[unit] = run->lines;
        for (size_t p = 0; p < run->passes; p++)
            width[unit] = fmax(width[unit], (double)sweep->former->half_width[p * run->unit_count + unit]);
    }
    for (;;) {
        size_t unit = 0;
        for (size_t i = 1; i < run->unit_count; i++)
            if (width[i] > width[unit]) unit = i;
        widest = width[unit];
        if (clock_monotonic_s() - sweep->started_s >= (double)budget_s || run_stopping()) break;
        use[unit] = use[unit] * 2 > MOST_LINES ? MOST_LINES : use[unit] * 2;
        width[unit] = look_again(sweep, (*pass)++, unit, use[unit], "budget");
    }
    free(width);
    free(use);
    return widest;
}

/* Say how many intervals --ci could not bring to what was asked for. */
static void note_unsettled(const struct sweep *sweep) {
    size_t wide = 0, all = sweep->former->count;
    for (size_t i = 0; i < sweep->run->unit_count * sweep->run->passes; i++)
        wide += (double)sweep->former->half_width[i] > sweep->run->ci_share;
    if (wide > 0) note("%zu of %zu intervals stay wider than +-%" PRIu64 " %%", wide, all, ci_percent);
}

/* ---- from beginning to end ---- */

static void add_share(struct text *out, const char *name, double share) {
    if (isfinite(share)) text_add(out, ",\"%s\":%.5f", name, share);
}

static void add_trailer(struct sweep *sweep, size_t looked, double widest, double elapsed_s) {
    struct run *run = sweep->run;
    struct text *out = &run->records.pending;
    struct machine_counts counts = machine_counts(&run->cpus);
    long voluntary = 0, involuntary = 0;
    for (size_t i = 0; i < run->workers.count; i++) {
        voluntary += run->workers.worker[i].voluntary;
        involuntary += run->workers.worker[i].involuntary;
    }
    if (run->operation->finish != NULL && run->not_applicable == NULL) run->operation->finish(run, out);
    text_add(out,
             "{\"record\":\"trailer\",\"elapsed_s\":%.6f,\"%ss\":%zu,\"voluntary_switches\":%ld,"
             "\"involuntary_switches\":%ld,\"steal_s\":%.2f,\"moved_pages\":%zu",
             elapsed_s, run->operation->record, sweep->former->count, voluntary, involuntary,
             (double)(counts.steal_ticks - sweep->first_counts.steal_ticks) / (double)sysconf(_SC_CLK_TCK),
             sweep->moved_pages);
    if (run->operation->measure_pairs != NULL) {
        struct spread spread = spread_of(&run->spread, run->batches);
        text_add(out, ",\"again\":%zu", looked);
        add_share(out, "line_sd_share", spread.line);
        add_share(out, "line_pair_sd_share", spread.line_pair);
        add_share(out, "revisit_sd_share", spread.revisit);
        add_share(out, "widest_ci_share", widest);
        if (parallel > 1 && sweep->parallel_calls > 0)
            text_add(out, ",\"mean_parallel\":%.2f", (double)sweep->parallel_units / (double)sweep->parallel_calls);
    }
    if (run->operation->facts != NULL && run->not_applicable == NULL) run->operation->facts(run, true, out);
    text_add(out, ",\"complete\":true}\n");
}

static void print_plan(const struct run *run) {
    double seconds_150 = 0, seconds_195 = 0, once = (double)budget_s;
    struct text cpus = {0}, pin_list = {0};
    struct cpulist rotated = {0};
    const struct cpulist *all = &run->cpus;
    for (size_t i = 0; i < run->unit_count; i++) {
        seconds_150 += run->operation->seconds(run, &run->units[i], 150);
        seconds_195 += run->operation->seconds(run, &run->units[i], 195);
    }
    if (run->operation->measure_pairs != NULL)
        once += (double)run->home_count * census_seconds(run, census_mode(), run->drawn_lines * slots());
    for (size_t i = 0; i < all->count; i++) /* likwid-pin gives its first CPU to the coordinator */
        cpulist_add(&rotated, all->cpu[(i + all->count - 1) % all->count]);
    cpulist_write(&cpus, all, true);
    cpulist_write(&pin_list, &rotated, false);
    printf("kernel %s\noperation %s\nquantity %s\n%ss %zu\npasses %" PRIu64 "\n", run->kernel->name,
           run->operation->name, run->operation->quantity, run->operation->record, run->unit_count, run->passes);
    printf("seconds_per_pass %.3f\nseconds_once %.3f\nseconds %.3f\nseconds_at_195_ns %.3f\n", seconds_150, once,
           seconds_150 * (double)run->passes + once, seconds_195 * (double)run->passes + once);
    printf("memory_bytes %" PRIu64 "\ncpus %s\npin_list %s\n",
           run->operation->memory != NULL ? run->operation->memory(run) : run->home_count * POOL_BYTES, cpus.data,
           pin_list.data);
    if (run->not_measured.length > 0) printf("not_measured {%s}\n", run->not_measured.data);
    for (size_t i = 0; i < all->count; i++)
        if (!cpulist_has(&run->machine.online, all->cpu[i])) {
            note("not all of these CPUs are on this machine: their homes are a guess");
            break;
        }
    text_free(&cpus);
    text_free(&pin_list);
    cpulist_free(&rotated);
}

static struct pool pool_of(struct run *run, int node) {
    if (!huge_pages) return pool_create(&run->machine, &run->workers, node, POOL_BYTES);
    struct buffer buffer = buffer_create(&run->machine, &run->workers, node, POOL_BYTES, PAGES_TRANSPARENT);
    return (struct pool){.bytes = buffer.bytes,
                         .size = buffer.size,
                         .home = node,
                         .bound = buffer.bound,
                         .verified_by = buffer.verified_by,
                         .pages = buffer.pages,
                         .page_bytes = buffer.page_bytes};
}

static void place_pools(struct run *run) {
    for (size_t i = 0; i < run->home_count; i++) {
        struct home *home = &run->homes[i];
        home->pool = pool_of(run, home->node);
        home->line_set = grow(NULL, run->drawn_lines * slots(), sizeof *home->line_set);
        home->sums = grow(NULL, slots(), sizeof *home->sums);
        memset(home->sums, 0, slots() * sizeof *home->sums);
    }
}

static void start_clock(size_t role, void *argument) {
    (void)role;
    (void)argument;
    clock_start();
}

static void see_ramp(size_t role, void *argument) {
    struct run *run = argument;
    (void)role;
    run->ramp = core_ramp();
    run->ramp_ns = ramp_wait_ns(&run->ramp);
}

static int measure(struct run *run) {
    static struct identity identity; /* these live as long as the process, and so does all they point to */
    static struct former former;
    static struct sweep sweep;
    identity = identify(run);
    records_open(&run->records, out_path);
    resume_read(&former, run, &identity);
    if (former.complete) {
        note("%s is complete: nothing is left to measure", out_path);
        return EXIT_DONE;
    }
    if (former.segments > 0) {
        note("%s is continued: %zu of %" PRIu64 " are done", out_path, former.count, run->unit_count * run->passes);
        if (seed == UINT64_MAX) run->seed = former.seed;
    }
    run->segment = (unsigned)former.segments;
    open_records = &run->records;
    fail_set_hook(keep_records);

    workers_start(&run->workers, &run->cpus);
    workers_run(&run->workers, &(size_t){0}, 1, start_clock, NULL); /* on a CPU that it stays on */
    if (run->operation->measure_pairs != NULL) workers_run(&run->workers, &(size_t){0}, 1, see_ramp, run);
    place_pools(run);
    if (run->operation->prepare != NULL && run->not_applicable == NULL) run->operation->prepare(run);
    if (run->not_applicable != NULL) note("not applicable: %s", run->not_applicable);
    add_header(run, &identity, &run->records.pending);
    take_census(run);
    records_flush(&run->records);

    sweep.run = run;
    sweep.former = &former;
    sweep.order = grow(NULL, run->unit_count, sizeof *sweep.order);
    sweep.unsettled = grow(NULL, run->unit_count, sizeof *sweep.unsettled);
    sweep.counts = sweep.first_counts = machine_counts(&run->cpus);
    sweep.started_s = sweep.second_s = clock_monotonic_s();
    sweep.sentinel_s = sweep.started_s + SENTINEL_EVERY_S;
    for (size_t i = 0; i < run->workers.count; i++)
        run->workers.worker[i].voluntary = run->workers.worker[i].involuntary = 0;

    progress_start(run->operation->name, run->unit_count * run->passes, former.count);
    for (uint32_t pass = 0; pass < run->passes && !run_stopping(); pass++)
        if (former.done_in_pass[pass] < run->unit_count) measure_pass(&sweep, pass);
    uint32_t extra_pass = (uint32_t)run->passes;
    size_t looked = 0;
    double widest = NAN;
    if (run->operation->measure_pairs != NULL && !run_stopping() && parallel == 0)
        looked = look_where_passes_differ(&sweep, &extra_pass);
    if (budget_s > 0 && !run_stopping()) widest = look_where_widest(&sweep, &extra_pass);
    progress_end();
    double elapsed_s = clock_monotonic_s() - sweep.started_s;
    if (ci_percent > 0) note_unsettled(&sweep);

    bool complete = !run_stopping();
    if (complete) add_trailer(&sweep, looked, widest, elapsed_s);
    fail_set_hook(NULL);
    records_close(&run->records);
    if (complete && budget_s > 0) note("the widest interval is now +-%.2f %%", 100 * widest);
    if (complete) return EXIT_DONE;
    note("stopped by signal %d; the same call continues %s", stopped_by(), out_path);
    return 128 + stopped_by();
}

static void plan(struct run *run) {
    run->operation->plan(run);
    if (lines > 0)
        run->lines = lines;
    else if (run->operation->measure_pairs != NULL)
        run->lines = select_lines(run->lines, passes);
    run->ci_share = (double)ci_percent / 100;
    run->detail = detail;
    run->use_lines = run->lines;
    run->drawn_lines = ci_percent > 0 || budget_s > 0 ? MOST_LINES : run->lines;
    if (run->unit_count == 0 && run->not_applicable == NULL)
        fail(EXIT_NOT_AS_ASKED, "there is nothing to measure%s%s", run->not_measured.length > 0 ? ": " : "",
             run->not_measured.length > 0 ? run->not_measured.data : "");
    bool uses_memory = run->operation->memory != NULL || uses_homes(run->operation);
    for (size_t n = 0; uses_memory && n < run->machine.nodes; n++) {
        const struct numa_node *node = &run->machine.node[n];
        char what[64];
        snprintf(what, sizeof what, "memory of NUMA node %d", node->number);
        if (node->left_out[0] != '\0') run_not_measured(run, what, node->left_out);
    }
    if (run->unit_count > 0) qsort(run->units, run->unit_count, sizeof *run->units, resume_compare_units);
    collect_homes(run);
}

int kernel_main(const struct kernel *kernel, int argc, char **argv) {
    static struct run run;
    run.kernel = kernel;
    const struct setting *const tables[] = {common, select_settings, pair_settings, kernel->settings};
    fail_set_name(kernel->name);
    settings_read(tables, sizeof tables / sizeof *tables, argc, argv);
    if (help_only) {
        print_help(kernel);
        return EXIT_DONE;
    }
    run.operation = find_operation(kernel);
    check_pair_settings(run.operation);
    settings_check(kernel->settings, run.operation->name);
    if (out_path == NULL && !plan_only) fail(EXIT_BAD_INPUT, "--out FILE is missing; see --help");
    run.seed = seed;
    if (seed == UINT64_MAX) {
        uint32_t drawn;
        if (getrandom(&drawn, sizeof drawn, 0) != (ssize_t)sizeof drawn) drawn = (uint32_t)time(NULL);
        run.seed = drawn;
    }
    machine_read(&run.machine);
    memory_leave_out(&run.machine);
    select_cpus(&run.selection, &run.machine, plan_only);
    run.passes = select_passes(passes);
    run.chosen = run.selection.chosen;
    run.cpus = run.selection.cpus;
    plan(&run);
    if (plan_only) {
        print_plan(&run);
        return EXIT_DONE;
    }
    catch_signals();
    return measure(&run);
}
