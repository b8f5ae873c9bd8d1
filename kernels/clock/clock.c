/* clock: the clock that every core holds, alone and with all others at work. */
#include <stdlib.h>
#include <string.h>

#include "harness/clock.h"
#include "harness/fail.h"
#include "harness/frequency.h"
#include "harness/gate.h"
#include "harness/run.h"
#include "harness/sensors.h"
#include "harness/stats.h"

static const char help[] =
    "USAGE\n"
    "  clock --op together --cpus cores --out FILE [options]\n"
    "  example: kernels/build/clock --op alone --cpus 0-3 --passes 1 --out here.jsonl\n"
    "\n"
    "REQUIREMENTS\n"
    "  Linux on x86-64 or aarch64. No root, no counters of the CPU; temperatures, memory errors and throttling are\n"
    "  recorded where sysfs has them.\n"
    "\n"
    "OVERHEAD\n"
    "  alone: one CPU is busy at a time, 0.2 s each. together: all CPUs are busy for --seconds.\n"
    "\n"
    "WARNING\n"
    "  The load is integer additions: a power limit that only vector code reaches is not seen.\n";

enum { ALONE_WINDOWS = 50, MOST_WINDOWS = 1 << 20, PROBES = 64 };
static const double PROBE_S = 50e-6, WINDOW_S = 64 * 50e-6;

static uint64_t seconds = 30;

static const struct setting settings[] = {
    SETTING_SECONDS(&seconds, "together: how long (default 30)"),
    {0},
};

/* One CPU's windows, one after another: the median of each one's probes, which a CPU that is taken away now and then
 * does not change; and the mean over all, which it does. */
struct series {
    double *hz, mean_hz;
    size_t count, capacity;
    bool stopped;
};

struct session {
    struct gate gate;
    double seconds;
    struct series *series; /* by role */
};

static struct series *series;    /* of the pass that is measured, by worker */
static int64_t series_pass = -1; /* together: which pass that is */

/* Additions without a pause until the time is up; the clock is read between two probes and nothing is left out. */
static void probe(size_t role, void *argument) {
    struct session *session = argument;
    struct series *own = &session->series[role];
    uint64_t turns = (uint64_t)(core_hz(3, 50e3) * PROBE_S / ADDITIONS_A_TURN) + 1;
    own->count = 0;
    own->stopped = false;
    double probe_hz[PROBES];
    gate_pass(&session->gate);
    uint64_t begin = clock_raw_ns(), before = begin, duration = (uint64_t)(session->seconds * 1e9);
    while (own->count < own->capacity && (own->count == 0 || before - begin < duration)) {
        for (size_t i = 0; i < PROBES; i++) {
            additions(turns);
            uint64_t now = clock_raw_ns();
            probe_hz[i] = (double)turns * ADDITIONS_A_TURN * 1e9 / (double)(now - before);
            before = now;
        }
        sort_ascending(probe_hz, PROBES);
        own->hz[own->count++] = median_sorted(probe_hz, PROBES);
        own->mean_hz = (double)(turns * own->count * PROBES) * ADDITIONS_A_TURN * 1e9 / (double)(before - begin);
        own->stopped = run_stopping();
        if (own->stopped) return;
    }
}

static void run_session(struct run *run, const size_t *members, size_t count, double duration_s) {
    struct session *session = aligned_alloc(alignof(struct session), sizeof *session);
    if (session == NULL) fail(EXIT_NOT_AS_ASKED, "out of memory");
    session->seconds = duration_s;
    session->series = grow(NULL, count, sizeof *session->series);
    gate_set(&session->gate, count);
    for (size_t i = 0; i < count; i++) session->series[i] = series[members[i]];
    workers_run(&run->workers, members, count, probe, session);
    for (size_t i = 0; i < count; i++) series[members[i]] = session->series[i];
    free(session->series);
    free(session);
}

static double median_of(const double *values, size_t count) {
    double *sorted = grow(NULL, count, sizeof *sorted);
    memcpy(sorted, values, count * sizeof *sorted);
    sort_ascending(sorted, count);
    double median = median_sorted(sorted, count);
    free(sorted);
    return median;
}

enum { CORE_HZ, CI_LOW_HZ, CI_HIGH_HZ, P01_HZ, P99_HZ, START_HZ, END_HZ, MEAN_HZ, WINDOWS };

#define CLOCK_FIELD(at, its_name) [at] = {its_name, HERTZ, SIGNIFICANT, 5}

static const struct field fields[] = {
    CLOCK_FIELD(CORE_HZ, "core_hz"), CLOCK_FIELD(CI_LOW_HZ, "ci_low_hz"), CLOCK_FIELD(CI_HIGH_HZ, "ci_high_hz"),
    CLOCK_FIELD(P01_HZ, "p01_hz"),   CLOCK_FIELD(P99_HZ, "p99_hz"),       CLOCK_FIELD(START_HZ, "start_hz"),
    CLOCK_FIELD(END_HZ, "end_hz"),   CLOCK_FIELD(MEAN_HZ, "mean_hz"),     [WINDOWS] = {"windows", NUMBER, DECIMALS, 0},
};

static void set_series(const struct series *one, double *values) {
    size_t low, high, tenth = one->count / 10 > 0 ? one->count / 10 : 1;
    values[START_HZ] = median_of(one->hz, tenth);
    values[END_HZ] = median_of(one->hz + one->count - tenth, tenth);
    sort_ascending(one->hz, one->count);
    median_interval(one->count, 0.95, &low, &high);
    values[CORE_HZ] = median_sorted(one->hz, one->count);
    values[CI_LOW_HZ] = one->hz[low];
    values[CI_HIGH_HZ] = one->hz[high];
    values[P01_HZ] = quantile_sorted(one->hz, one->count, 0.01);
    values[P99_HZ] = quantile_sorted(one->hz, one->count, 0.99);
    values[MEAN_HZ] = one->mean_hz;
    values[WINDOWS] = (double)one->count;
}

static void plan(struct run *run) {
    for (size_t i = 0; i < run->chosen.count; i++) run_add_unit(run, (struct unit){{run->chosen.cpu[i]}});
}

static void prepare(struct run *run) {
    bool together = strcmp(run->operation->name, "together") == 0;
    size_t capacity = together ? (size_t)((double)seconds / WINDOW_S * 2) + 1 : ALONE_WINDOWS;
    if (capacity > MOST_WINDOWS) capacity = MOST_WINDOWS;
    series = grow(NULL, run->workers.count, sizeof *series);
    for (size_t i = 0; i < run->workers.count; i++)
        series[i] = (struct series){.hz = grow(NULL, capacity, sizeof(double)), .capacity = capacity};
}

static void facts(struct run *run, bool end, struct text *members) {
    (void)end;
    text_add(members, ",\"sensors\":");
    sensors_read(&run->machine, members);
}

static unsigned measure_alone(struct run *run, uint32_t pass, const struct unit *unit, struct result *result) {
    (void)pass;
    size_t member = run_worker(run, unit->key[0]);
    run_session(run, &member, 1, ALONE_WINDOWS * WINDOW_S);
    if (series[member].stopped) return UNIT_STOPPED;
    set_series(&series[member], result->values);
    return 0;
}

/* All CPUs are measured at once, with the first unit of a pass; each unit then takes its own. */
static unsigned measure_together(struct run *run, uint32_t pass, const struct unit *unit, struct result *result) {
    if (series_pass != (int64_t)pass) {
        size_t *all = grow(NULL, run->workers.count, sizeof *all);
        for (size_t i = 0; i < run->workers.count; i++) all[i] = i;
        run_session(run, all, run->workers.count, (double)seconds);
        free(all);
        series_pass = pass;
    }
    if (run_stopping()) return UNIT_STOPPED;
    set_series(&series[run_worker(run, unit->key[0])], result->values);
    return 0;
}

static double alone_seconds(const struct run *run, const struct unit *unit, double hop_ns) {
    (void)run;
    (void)unit;
    (void)hop_ns;
    return ALONE_WINDOWS * WINDOW_S * 1.05;
}

static double together_seconds(const struct run *run, const struct unit *unit, double hop_ns) {
    (void)hop_ns;
    return run_once_a_pass(run, unit, (double)seconds);
}

/* What both operations have alike. */
#define CLOCK_OF_CPUS                                                                                                  \
    .quantity = "frequency", .unit = "Hz", .record = "cell", FIELDS(fields), .keys = {"cpu"}, .plan = plan,            \
    .prepare = prepare, .facts = facts

static const struct operation operations[] = {
    {.name = "alone",
     .summary = "each CPU with all others idle",
     CLOCK_OF_CPUS,
     .measure = measure_alone,
     .seconds = alone_seconds},
    {.name = "together",
     .summary = "all CPUs at once for --seconds",
     CLOCK_OF_CPUS,
     .all_at_once = true,
     .measure = measure_together,
     .seconds = together_seconds},
};

KERNEL_MAIN("clock", settings)
