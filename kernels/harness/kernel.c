/* A kernel from its arguments to its trailer. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "census.h"
#include "clock.h"
#include "fail.h"
#include "figure.h"
#include "idle.h"
#include "options.h"
#include "output.h"
#include "resume.h"
#include "run.h"
#include "sweep.h"

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

static struct records *open_records;

static void keep_records(void) {
    records_flush(open_records);
}

/* ---- from beginning to end ---- */

static void see_ramp(size_t role, void *argument) {
    struct run *run = argument;
    (void)role;
    run->ramp = core_ramp();
    run->ramp_ns = ramp_wait_ns(&run->ramp);
}

/* Whether the plan is for CPUs that this process may use, and not of a tree that stands for another machine. */
static bool planned_here(const struct run *run) {
    bool here = strcmp(sysfs(), "/sys") == 0;
    for (size_t i = 0; i < run->cpus.count; i++) here = here && cpulist_has(&run->machine.allowed, run->cpus.cpu[i]);
    return here;
}

static double tasks_a_pass(const struct run *run) {
    double tasks = run->operation->tasks == NULL ? (double)run->unit_count : 0;
    for (size_t i = 0; run->operation->tasks != NULL && i < run->unit_count; i++)
        tasks += run->operation->tasks(run, &run->units[i]);
    return tasks;
}

/* Units, and a look at the end of a pass where the pages of the pools are. */
static double busy_a_pass(const struct run *run, double hop_ns) {
    double pages = (double)run->home_count * POOL_BYTES / (double)sysconf(_SC_PAGESIZE);
    double seconds = pages * run->costs.checked_page_s + tasks_a_pass(run) * run->costs.task_s;
    for (size_t i = 0; i < run->unit_count; i++) seconds += run->operation->seconds(run, &run->units[i], hop_ns);
    return seconds;
}

static double plan_a_pass(const struct run *run, double hop_ns) {
    return busy_a_pass(run, hop_ns) + tasks_a_pass(run) * run->costs.wake_s;
}

/* Before the first pass: pools, which one CPU touches, the census of lines, and what the operation needs. */
static double plan_once(const struct run *run) {
    double page = (double)sysconf(_SC_PAGESIZE);
    double pool_s =
        POOL_BYTES * (run->costs.base_byte_s + run->costs.set_byte_s) + POOL_BYTES / page * run->costs.checked_page_s;
    double once = (double)run->home_count * pool_s;
    if (run->operation->measure_pairs != NULL)
        once += (double)run->home_count * census_seconds(run, sweep_census_mode(), run->lines * options_slots());
    if (run->operation->prepare_seconds != NULL && run->not_applicable == NULL)
        once += run->operation->prepare_seconds(run);
    return once;
}

static void print_plan(struct run *run) {
    struct text cpus = {0}, pin_list = {0};
    struct cpulist rotated = {0}, first_socket = {0};
    const struct cpulist *all = &run->cpus;
    for (size_t i = 0; i < all->count; i++)
        if (run->selection.place[i].socket == run->selection.place[0].socket) cpulist_add(&first_socket, all->cpu[i]);
    /* as where it measures: on the first CPU, and where idle states are held off there, so here */
    if (planned_here(run)) {
        if (run->kernel->workers_wait) idle_hold_off(&run->idle_states);
        run->costs = costs_here(&run->machine, &run->cpus, &first_socket, run->operation->probes);
        if (run->operation->measure_pairs != NULL) see_ramp(0, run);
    }
    double once = plan_once(run), seconds_150 = plan_a_pass(run, 150), seconds_195 = plan_a_pass(run, 195);
    for (size_t i = 0; i < all->count; i++) /* likwid-pin gives its first CPU to the coordinator */
        cpulist_add(&rotated, all->cpu[(i + all->count - 1) % all->count]);
    cpulist_write(&cpus, all, true);
    cpulist_write(&pin_list, &rotated, false);
    printf("kernel %s\noperation %s\nquantity %s\n%ss %zu\npasses %" PRIu64 "\n", run->kernel->name,
           run->operation->name, run->operation->quantity, run->operation->record, run->unit_count, run->passes);
    printf("seconds_per_pass %.6f\nseconds_once %.6f\nseconds %.6f\nseconds_at_195_ns %.6f\n", seconds_150, once,
           seconds_150 * (double)run->passes + once, seconds_195 * (double)run->passes + once);
    printf("busy_seconds_per_pass %.6f\n", busy_a_pass(run, 150));
    uint64_t bytes = run->operation->memory != NULL ? run->operation->memory(run) : run->home_count * POOL_BYTES;
    bytes += all->count * run->operation->worker_bytes;
    printf("memory_bytes %" PRIu64 "\ncpus %s\npin_list %s\n", bytes, cpus.data, pin_list.data);
    if (run->not_measured.length > 0) printf("not_measured {%s}\n", run->not_measured.data);
    if (run->operation->measure_pairs != NULL)
        printf("ramp_us %.1f\n",
               run->ramp_ns / 1e3); /* 0 also where the CPUs are another machine's: up to 2 ms a pair */
    for (size_t i = 0; i < all->count; i++)
        if (!cpulist_has(&run->machine.online, all->cpu[i])) {
            note("not all of these CPUs are on this machine: their homes are a guess");
            break;
        }
    text_free(&cpus);
    text_free(&pin_list);
    cpulist_free(&rotated);
    cpulist_free(&first_socket);
}

/* Whoever waits for it, or set a limit to the job, learns it before it begins. */
static void warn_of_long(const struct run *run) {
    static const double hour_s = 3600;
    double seconds = plan_a_pass(run, 150) * (double)run->passes;
    if (seconds > hour_s)
        note("all of it takes about %.1f hours; Ctrl-C ends it, and the same call continues it later",
             seconds / hour_s);
}

static struct pool pool_of(struct run *run, int node) {
    if (!options.huge_pages) return pool_create(&run->machine, &run->workers, node, POOL_BYTES);
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
        home->line_set = grow(NULL, run->lines * options_slots(), sizeof *home->line_set);
        home->sums = grow(NULL, options_slots(), sizeof *home->sums);
        memset(home->sums, 0, options_slots() * sizeof *home->sums);
    }
}

static void start_clock(size_t role, void *argument) {
    (void)role;
    (void)argument;
    clock_start();
}

/* Where somebody reads along; whoever keeps the output has the record. */
static void print_figure(const struct run *run, const struct former *former) {
    if (run->not_applicable == NULL && (options.csv || isatty(STDOUT_FILENO) == 1))
        figure_print(run, former->figure, options.csv);
}

static int measure(struct run *run) {
    static struct identity identity; /* these live as long as the process, and so does all they point to */
    static struct former former;
    static struct sweep sweep;
    identity = output_identity(run);
    records_open(&run->records, options.out);
    resume_read(&former, run, &identity);
    if (former.complete) {
        note("%s is complete: nothing is left to measure", options.out);
        print_figure(run, &former);
        return EXIT_DONE;
    }
    if (former.segments > 0) {
        note("%s is continued: %zu of %" PRIu64 " are done", options.out, former.count, run->unit_count * run->passes);
        if (options.seed == UINT64_MAX) run->seed = former.seed;
    }
    run->segment = (unsigned)former.segments;
    open_records = &run->records;
    fail_set_hook(keep_records);

    if (run->kernel->workers_wait) idle_hold_off(&run->idle_states);
    workers_start(&run->workers, &run->cpus);
    workers_run(&run->workers, &(size_t){0}, 1, start_clock, NULL); /* on a CPU that it stays on */
    if (run->operation->measure_pairs != NULL) workers_run(&run->workers, &(size_t){0}, 1, see_ramp, run);
    warn_of_long(run);
    double began_busy_s = sweep_busy_s(run);
    place_pools(run);
    if (run->operation->prepare != NULL && run->not_applicable == NULL) run->operation->prepare(run);
    if (run->not_applicable != NULL) note("not applicable: %s", run->not_applicable);
    output_header(run, &identity, &run->records.pending);
    sweep_take_census(run);
    records_flush(&run->records);

    sweep_begin(&sweep, run, &former);
    sweep.prepare_busy_s = sweep.began_busy_s - began_busy_s;
    sweep_measure(&sweep);

    bool complete = !run_stopping();
    if (complete) output_trailer(&sweep);
    fail_set_hook(NULL);
    records_close(&run->records);
    if (complete) print_figure(run, &former);
    if (complete) return EXIT_DONE;
    note("stopped by signal %d; the same call continues %s", run_stopped_by(), options.out);
    return 128 + run_stopped_by();
}

static void plan(struct run *run) {
    run->operation->plan(run);
    if (options.lines > 0)
        run->lines = options.lines;
    else if (run->operation->measure_pairs != NULL)
        run->lines = select_lines(run->lines, options.passes);
    run->detail = options.detail;
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
    /* a kernel's own come first: one of a name that pairs have too is its own */
    static const struct setting none[] = {{0}};
    const struct setting *const own = kernel->settings != NULL ? kernel->settings : none;
    const struct setting *const tables[] = {own, common_settings, select_settings, pair_settings};
    fail_set_name(kernel->name);
    settings_read(tables, sizeof tables / sizeof *tables, argc, argv);
    if (options.help_only) {
        options_print_help(kernel);
        return EXIT_DONE;
    }
    run.operation = options_operation(kernel);
    options_check_pairs(run.operation);
    if (select_home_asked() && !uses_homes(run.operation))
        fail(EXIT_BAD_INPUT, "--home is not for operation %s, whose memory has no other home to choose; leave it out",
             run.operation->name);
    settings_check(kernel->settings, run.operation->name);
    if (options.out == NULL && !options.plan_only) fail(EXIT_BAD_INPUT, "--out FILE is missing; see --help");
    run.seed = options.seed;
    run.costs = costs_of_slow_server;
    if (options.seed == UINT64_MAX) {
        uint32_t drawn;
        if (getrandom(&drawn, sizeof drawn, 0) != (ssize_t)sizeof drawn) drawn = (uint32_t)time(NULL);
        run.seed = drawn;
    }
    machine_read(&run.machine);
    memory_leave_out(&run.machine);
    select_cpus(&run.selection, &run.machine, options.plan_only);
    run.passes = select_passes(options.passes);
    run.chosen = run.selection.chosen;
    run.cpus = run.selection.cpus;
    plan(&run);
    if (options.plan_only) {
        if (run.not_applicable != NULL) note("not applicable: %s", run.not_applicable);
        print_plan(&run);
        return EXIT_DONE;
    }
    run_catch_signals();
    return measure(&run);
}
