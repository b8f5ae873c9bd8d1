/* load: what cores do and at what clock, alone and all at once, and whether they calculate rightly. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/clock.h"
#include "harness/fail.h"
#include "harness/frequency.h"
#include "harness/gate.h"
#include "harness/run.h"
#include "harness/sensors.h"
#include "harness/stats.h"
#include "load/check.h"
#include "load/flops.h"
#include "load/wrong.h"

static const char help[] =
    "USAGE\n"
    "  load --op together --cpus cores --out FILE [options]\n"
    "  example: kernels/build/load --op together --seconds 60 --cpus cores --out here.jsonl\n"
    "\n"
    "REQUIREMENTS\n"
    "  Linux on x86-64 or aarch64. No root; energy, temperatures and throttling are recorded where sysfs has them and\n"
    "  this user may read them.\n"
    "\n"
    "OVERHEAD\n"
    "  alone: one core is busy at a time, 0.2 s each. ladder: up to all cores of a socket, 0.4 s a step. together: "
    "all\n"
    "  cores calculate at once, for --seconds. check: the same time, a ninth of it for each unit.\n"
    "\n"
    "WARNING\n"
    "  It heats the node: what is measured behind it is measured on a hot one.\n";

/* A burst is so short that most of them are whole also where other programs take a core now and then. Between two probes
 * of the clock is a time in which it does not change for them. */
enum { MOST_BURSTS = 4096, BURSTS_A_PROBE = 20 };
static const double BURST_S = 0.5e-3, PROBE_S = 50e-6;
static const double ALONE_SETTLING_S = 30e-3, ALONE_S = 120e-3, STEP_SETTLING_S = 150e-3, STEP_S = 250e-3;

static uint64_t seconds = 60;

static const struct setting settings[] = {
    SETTING_SECONDS(&seconds, "together, check: how long (default 60)"),
    {0},
};

enum kind_of_work { SCALAR, VECTOR, VECTOR_MEMORY, KINDS_OF_WORK };
static const char *const work_words[] = {"scalar", "vector", "vector_memory", NULL};

/* ---- a stretch of work ---- */

/* What a core did in it: medians over bursts, which do not change where it is taken away now and then, and the mean over
 * all, which does. */
struct stretch {
    double flops_per_s, core_hz, mean_flops_per_s;
    struct wrong wrong;
};

struct work {
    struct gate gate;
    enum kind_of_work kind;
    double settling_s, duration_s;
    struct stretch *stretches; /* by role */
    const int *cpus;
};

static struct flops_kind vector;
static uint64_t burst_turns;                                /* that take the first worker BURST_S; all have as many */
static double begins[MOST_NUMBERS], expected[MOST_NUMBERS]; /* what each burst begins and must end with */

static double since(uint64_t start_ns) {
    return (double)(clock_raw_ns() - start_ns) / 1e9;
}

/* By the fastest of some tries: what is interrupted seems to need fewer turns. */
static void choose_turns(size_t role, void *argument) {
    enum { FEWEST = 1024, TRIES = 4 };
    double most = 0, numbers[MOST_NUMBERS];
    (void)role;
    (void)argument;
    for (uint64_t turns = FEWEST;; turns *= 2) {
        double least_s = INFINITY;
        for (int i = 0; i < TRIES; i++) {
            memcpy(numbers, begins, sizeof numbers);
            uint64_t start = clock_raw_ns();
            vector.turns(turns, numbers);
            least_s = fmin(least_s, since(start));
        }
        most = fmax(most, (double)turns / least_s);
        if (least_s <= BURST_S / 4) continue;
        burst_turns = (uint64_t)(most * BURST_S) + 1;
        return;
    }
}

static void calculate_reference(size_t role, void *argument) {
    (void)role;
    flops_reference(&vector, 2 * burst_turns, argument);
}

struct bursts {
    double flops[MOST_BURSTS], hz[MOST_BURSTS], all_flops;
    size_t flops_count, hz_count;
};

static void add_to(double *values, size_t *count, double value) {
    if (*count < MOST_BURSTS) values[(*count)++] = value;
}

/* With `memory` it is read and written, too. */
static void vector_burst(struct bursts *bursts, struct stretch *stretch, int cpu, uint64_t probe, size_t number,
                         struct flops_memory *memory) {
    double numbers[MOST_NUMBERS];
    uint64_t turns = burst_turns;
    memcpy(numbers, begins, vector.chains * vector.lanes * sizeof *numbers);
    uint64_t start = clock_raw_ns();
#ifdef FLIP_A_BIT_ON_CPU /* a build for the tests */
    if (cpu == FLIP_A_BIT_ON_CPU) {
        vector.turns(burst_turns / 2, numbers);
        ((unsigned char *)&numbers[1])[3] ^= 1;
        turns -= burst_turns / 2;
    }
#endif
    (void)cpu;
    if (memory != NULL)
        vector.memory_turns(turns, numbers, memory);
    else
        vector.turns(turns, numbers);
    add_to(bursts->flops, &bursts->flops_count, (double)burst_turns * vector.a_turn / since(start));
    bursts->all_flops += (double)burst_turns * vector.a_turn;
    wrong_compare(&stretch->wrong, numbers, expected, vector.chains * vector.lanes, vector.lanes);
    if (number % BURSTS_A_PROBE != 0) return;
    start = clock_raw_ns();
    additions(probe);
    add_to(bursts->hz, &bursts->hz_count, (double)probe * ADDITIONS_A_TURN / since(start));
}

static void scalar_burst(struct bursts *bursts, uint64_t probe) {
    uint64_t start = clock_raw_ns();
    additions(probe);
    add_to(bursts->hz, &bursts->hz_count, (double)probe * ADDITIONS_A_TURN / since(start));
}

static double median_or_0(double *values, size_t count) {
    sort_ascending(values, count);
    return count > 0 ? median_sorted(values, count) : 0;
}

static void work_role(size_t role, void *argument) {
    struct work *work = argument;
    struct bursts *bursts = malloc(sizeof *bursts);
    struct stretch stretch = {0};
    struct flops_memory *memory = aligned_alloc(alignof(struct flops_memory), sizeof *memory);
    if (bursts == NULL || memory == NULL) fail(EXIT_NOT_AS_ASKED, "out of memory");
    flops_memory_set(memory);
    uint64_t probe = (uint64_t)(core_hz(3, PROBE_S * 1e9) * PROBE_S / ADDITIONS_A_TURN) + 1;
    gate_pass(&work->gate);
    uint64_t start = clock_raw_ns(), settled = start;
    bool counted = false;
    bursts->flops_count = bursts->hz_count = 0;
    bursts->all_flops = 0;
    for (size_t number = 0; !counted || since(start) < work->settling_s + work->duration_s; number++) {
        if (!counted && since(start) >= work->settling_s) { /* what came before is forgotten */
            counted = true;
            settled = clock_raw_ns();
            number = bursts->flops_count = bursts->hz_count = 0;
            bursts->all_flops = 0;
        }
        worker_look();
        if (work->kind == SCALAR)
            scalar_burst(bursts, probe);
        else
            vector_burst(bursts, &stretch, work->cpus[role], probe, number,
                         work->kind == VECTOR_MEMORY ? memory : NULL);
    }
    stretch.mean_flops_per_s = bursts->all_flops / since(settled);
    stretch.flops_per_s = median_or_0(bursts->flops, bursts->flops_count);
    stretch.core_hz = median_or_0(bursts->hz, bursts->hz_count);
    work->stretches[role] = stretch;
    free(memory);
    free(bursts);
}

static void work_together(struct run *run, const size_t *workers, size_t count, enum kind_of_work kind,
                          double settling_s, double duration_s, struct stretch *stretches) {
    struct work *work = aligned_alloc(alignof(struct work), sizeof *work);
    if (work == NULL) fail(EXIT_NOT_AS_ASKED, "out of memory");
    gate_set(&work->gate, count);
    work->kind = kind;
    work->settling_s = settling_s;
    work->duration_s = duration_s;
    work->stretches = stretches;
    int *cpus = grow(NULL, count, sizeof *cpus);
    for (size_t i = 0; i < count; i++) cpus[i] = run->workers.worker[workers[i]].cpu;
    work->cpus = cpus;
    workers_run(&run->workers, workers, count, work_role, work);
    free(cpus);
    free(work);
}

static void prepare(struct run *run) {
    struct energy counters[MOST_ENERGY_COUNTERS];
    bool refused;
    vector = flops_widest();
    flops_start(&vector, begins);
    workers_run(&run->workers, &(size_t){0}, 1, choose_turns, NULL);
    reference_agreed(run, calculate_reference, begins, expected, vector.chains * vector.lanes * sizeof *expected);
    if (sensors_energy(counters, &refused) == 0)
        run_not_measured(run, "energy",
                         refused ? "the counters (powercap) can be read by root alone" : "the system reports none");
}

static void facts(struct run *run, bool end, struct text *members) {
    if (!end) text_add(members, ",\"vector\":\"%s\",\"flops_a_turn\":%.0f", vector.name, vector.a_turn);
    text_add(members, ",\"sensors\":");
    sensors_read(&run->machine, members);
}

/* ---- alone ---- */

static void plan_alone(struct run *run) {
    for (size_t i = 0; i < run->chosen.count; i++) run_add_unit(run, (struct unit){{run->chosen.cpu[i]}});
}

enum { ALONE_FLOPS_PER_S, ALONE_CORE_HZ, ALONE_FLOPS_PER_CYCLE, ALONE_MEAN_FLOPS_PER_S, ALONE_WRONG_BURSTS };

static const struct field alone_fields[] = {
    [ALONE_FLOPS_PER_S] = {"flops_per_s", FLOPS_PER_S, SIGNIFICANT, 6},
    [ALONE_CORE_HZ] = {"core_hz", HERTZ, SIGNIFICANT, 5},
    [ALONE_FLOPS_PER_CYCLE] = {"flops_per_cycle", NUMBER, SIGNIFICANT, 4},
    [ALONE_MEAN_FLOPS_PER_S] = {"mean_flops_per_s", FLOPS_PER_S, SIGNIFICANT, 6},
    [ALONE_WRONG_BURSTS] = {"wrong_bursts", NUMBER, DECIMALS, 0},
};

static unsigned measure_alone(struct run *run, uint32_t pass, const struct unit *unit, struct result *result) {
    (void)pass;
    size_t worker = run_worker(run, unit->key[0]);
    struct stretch stretch;
    work_together(run, &worker, 1, VECTOR, ALONE_SETTLING_S, ALONE_S, &stretch);
    result->values[ALONE_FLOPS_PER_S] = stretch.flops_per_s;
    result->values[ALONE_CORE_HZ] = stretch.core_hz;
    result->values[ALONE_FLOPS_PER_CYCLE] = stretch.flops_per_s / stretch.core_hz;
    result->values[ALONE_MEAN_FLOPS_PER_S] = stretch.mean_flops_per_s;
    result->values[ALONE_WRONG_BURSTS] = (double)wrong_add(result, 0, (int)unit->key[0], &stretch.wrong);
    return run_stopping() ? UNIT_STOPPED : 0;
}

/* ---- ladder: the first cores of a CCX or socket, in the order of --cpus ---- */

enum { LADDER_CCX, LADDER_SOCKET, LADDER_SCOPES };
static const char *const ladder_words[] = {"ccx", "socket", NULL};

static size_t members_of(const struct run *run, const struct unit *unit, size_t *workers) {
    const struct cpu_place *place = run->selection.place;
    size_t first = 0, count = 0;
    while (run->selection.cpus.cpu[first] != unit->key[0]) first++;
    for (size_t i = 0; i < run->chosen.count && (unit->key[2] == 0 || count < (size_t)unit->key[2]); i++)
        if (unit->key[1] == LADDER_CCX ? place[i].l3 == place[first].l3 : place[i].socket == place[first].socket)
            workers[count++] = i;
    return count;
}

/* One CCX of each socket, and each socket that has more cores than that: the powers of two, and all; with all of them also
 * with loads and stores. */
static void plan_ladder(struct run *run) {
    bool memory = flops_widest().memory_turns != NULL;
    if (!memory) run_not_measured(run, "vector_memory", "loads and stores beside vectors are written for x86-64 alone");
    const struct cpu_place *place = run->selection.place;
    size_t *workers = grow(NULL, run->chosen.count, sizeof *workers);
    for (size_t i = 0; i < run->chosen.count; i++) {
        bool first = true;
        for (size_t j = 0; j < i; j++) first = first && place[j].socket != place[i].socket;
        size_t former = 0;
        for (int64_t scope = 0; first && scope < LADDER_SCOPES; scope++) {
            size_t all = members_of(run, &(struct unit){{run->chosen.cpu[i], scope}}, workers);
            for (size_t n = 1; n <= all && all > former; n++)
                for (int64_t kind = 0; kind < KINDS_OF_WORK; kind++)
                    if (kind == VECTOR_MEMORY ? memory && n == all : n == all || (n & (n - 1)) == 0)
                        run_add_unit(run, (struct unit){{run->chosen.cpu[i], scope, (int64_t)n, kind}});
            former = all;
        }
    }
    free(workers);
}

static int by_hz(const void *a, const void *b) {
    double x = ((const struct stretch *)a)->core_hz, y = ((const struct stretch *)b)->core_hz;
    return (x > y) - (x < y);
}

enum { STEP_CORE_HZ, STEP_LOWEST_CORE_HZ, STEP_FLOPS_PER_S, STEP_WRONG_BURSTS };

static const struct field step_fields[] = {
    [STEP_CORE_HZ] = {"core_hz", HERTZ, SIGNIFICANT, 5},
    [STEP_LOWEST_CORE_HZ] = {"lowest_core_hz", HERTZ, SIGNIFICANT, 5},
    [STEP_FLOPS_PER_S] = {"flops_per_s", FLOPS_PER_S, SIGNIFICANT, 6},
    [STEP_WRONG_BURSTS] = {"wrong_bursts", NUMBER, DECIMALS, 0},
};

static unsigned measure_step(struct run *run, uint32_t pass, const struct unit *unit, struct result *result) {
    (void)pass;
    size_t *workers = grow(NULL, run->chosen.count, sizeof *workers), count = members_of(run, unit, workers);
    struct stretch *stretches = grow(NULL, count, sizeof *stretches);
    double flops = 0;
    uint64_t wrong = 0;
    work_together(run, workers, count, (enum kind_of_work)unit->key[3], STEP_SETTLING_S, STEP_S, stretches);
    for (size_t i = 0; i < count; i++) {
        flops += stretches[i].flops_per_s;
        wrong = wrong_add(result, wrong, run->workers.worker[workers[i]].cpu, &stretches[i].wrong);
    }
    qsort(stretches, count, sizeof *stretches, by_hz);
    result->values[STEP_CORE_HZ] = (stretches[(count - 1) / 2].core_hz + stretches[count / 2].core_hz) / 2;
    result->values[STEP_LOWEST_CORE_HZ] = stretches[0].core_hz;
    if (unit->key[3] != SCALAR) {
        result->values[STEP_FLOPS_PER_S] = flops;
        result->values[STEP_WRONG_BURSTS] = (double)wrong;
    }
    free(stretches);
    free(workers);
    return run_stopping() ? UNIT_STOPPED : 0;
}

/* ---- together ---- */

/* The first second holds the turbo's rise and the change of clocks for wide vectors; up to the fifth a socket may take
 * more power than it may for long; what it holds when it is hot is the last third. */
enum phase { RAMP, FIRST, STEADY, PHASES };
static const char *const phase_words[] = {"ramp", "first", "steady", NULL};
enum { FIRST_SECONDS = 5 };

static struct stretch *session; /* by second and worker */
static int64_t session_pass = -1;
static struct text session_records;

static void plan_together(struct run *run) {
    for (size_t i = 0; i < run->chosen.count; i++)
        for (int64_t phase = 0; phase < PHASES; phase++) run_add_unit(run, (struct unit){{run->chosen.cpu[i], phase}});
}

/* Its seconds from `from` on up to `to`; at least one. */
static void seconds_of(enum phase phase, size_t *from, size_t *to) {
    size_t all = (size_t)seconds, third = all / 3 > 0 ? all / 3 : 1;
    *from = phase == RAMP ? 0 : phase == FIRST ? (all > 1 ? 1 : 0) : all - third;
    *to = phase == RAMP ? 1 : phase == FIRST && all > FIRST_SECONDS ? FIRST_SECONDS : all;
}

/* Of one CPU in a phase, or of the workers of a socket in a second: medians. */
static struct stretch median_of(const struct stretch *stretches, size_t count, size_t step) {
    double *values = grow(NULL, count, sizeof *values);
    struct stretch median = {0};
    double *const results[] = {&median.flops_per_s, &median.core_hz, &median.mean_flops_per_s};
    for (size_t r = 0; r < 3; r++) {
        for (size_t i = 0; i < count; i++) {
            const struct stretch *stretch = &stretches[i * step];
            values[i] = r == 0 ? stretch->flops_per_s : r == 1 ? stretch->core_hz : stretch->mean_flops_per_s;
        }
        sort_ascending(values, count);
        *results[r] = median_sorted(values, count);
    }
    free(values);
    return median;
}

static void add_power(const struct energy *before, const struct energy *after, size_t count, double elapsed_s) {
    text_add(&session_records, ",\"power_w\":%s", count == 0 ? "null" : "{");
    for (size_t i = 0; i < count; i++) {
        double joules = after[i].joules - before[i].joules;
        if (joules < 0) joules += after[i].wraps_at;
        text_add(&session_records, "%s", i == 0 ? "" : ",");
        text_add_json(&session_records, after[i].name);
        text_add(&session_records, ":%.4g", joules / elapsed_s);
    }
    text_add(&session_records, count == 0 ? "}\n" : "}}\n");
}

/* What the cores of a socket did in a second: all, the median clock, and who had the lowest. */
static void add_socket(const struct run *run, int socket, const struct stretch *second) {
    size_t count = 0, slowest = 0, *workers = grow(NULL, run->workers.count, sizeof *workers);
    struct stretch *own = grow(NULL, run->workers.count, sizeof *own);
    double flops = 0;
    for (size_t i = 0; i < run->workers.count; i++) {
        if (run->selection.place[i].socket != socket) continue;
        workers[count] = i;
        own[count++] = second[i];
        flops += second[i].flops_per_s;
        if (second[i].core_hz < own[slowest].core_hz) slowest = count - 1;
    }
    text_add(&session_records,
             "%s{\"socket\":%d,\"flops_per_s\":%.6g,\"core_hz\":%.5g,\"lowest_core_hz\":%.5g,\"lowest_cpu\":%d}",
             session_records.data[session_records.length - 1] == '[' ? "" : ",", socket, flops,
             median_of(own, count, 1).core_hz, own[slowest].core_hz, run->workers.worker[workers[slowest]].cpu);
    free(own);
    free(workers);
}

static void add_second(const struct run *run, uint32_t pass, size_t second) {
    text_add(&session_records, "{\"record\":\"load_second\",\"pass\":%u,\"second\":%zu,\"sockets\":[", pass, second);
    for (size_t i = 0; i < run->workers.count; i++) {
        bool first = true;
        for (size_t j = 0; j < i; j++)
            first = first && run->selection.place[j].socket != run->selection.place[i].socket;
        if (first) add_socket(run, run->selection.place[i].socket, session + second * run->workers.count);
    }
    text_add(&session_records, "]");
}

/* Second by second, so that counters are read between two: the pause is a thousandth of a second. */
static void run_session(struct run *run, uint32_t pass) {
    size_t count = run->workers.count, *all = grow(NULL, count, sizeof *all);
    struct energy before[MOST_ENERGY_COUNTERS], after[MOST_ENERGY_COUNTERS];
    bool refused;
    if (session == NULL) session = grow(NULL, (size_t)seconds * count, sizeof *session);
    for (size_t i = 0; i < count; i++) all[i] = i;
    for (size_t second = 0; second < seconds && !run_stopping(); second++) {
        size_t counters = sensors_energy(before, &refused);
        uint64_t start = clock_raw_ns();
        work_together(run, all, count, VECTOR, 0, 1, session + second * count);
        size_t counters_after = sensors_energy(after, &refused);
        add_second(run, pass, second);
        add_power(before, after, counters == counters_after ? counters : 0, since(start));
    }
    free(all);
    session_pass = pass;
}

enum { PHASE_FLOPS_PER_S, PHASE_CORE_HZ, PHASE_MEAN_FLOPS_PER_S, PHASE_SECONDS, PHASE_WRONG_BURSTS };

static const struct field phase_fields[] = {
    [PHASE_FLOPS_PER_S] = {"flops_per_s", FLOPS_PER_S, SIGNIFICANT, 6},
    [PHASE_CORE_HZ] = {"core_hz", HERTZ, SIGNIFICANT, 5},
    [PHASE_MEAN_FLOPS_PER_S] = {"mean_flops_per_s", FLOPS_PER_S, SIGNIFICANT, 6},
    [PHASE_SECONDS] = {"seconds", NUMBER, DECIMALS, 0},
    [PHASE_WRONG_BURSTS] = {"wrong_bursts", NUMBER, DECIMALS, 0},
};

/* All CPUs are measured at once, with the first unit of a pass; each unit then takes its own. */
static unsigned measure_together(struct run *run, uint32_t pass, const struct unit *unit, struct result *result) {
    if (session_pass != (int64_t)pass) run_session(run, pass);
    if (run_stopping()) return UNIT_STOPPED;
    size_t from, to, count = run->workers.count, worker = run_worker(run, unit->key[0]);
    seconds_of((enum phase)unit->key[1], &from, &to);
    struct stretch median = median_of(session + from * count + worker, to - from, count);
    result->values[PHASE_FLOPS_PER_S] = median.flops_per_s;
    result->values[PHASE_CORE_HZ] = median.core_hz;
    result->values[PHASE_MEAN_FLOPS_PER_S] = median.mean_flops_per_s;
    result->values[PHASE_SECONDS] = (double)(to - from);
    uint64_t wrong = 0;
    if (unit->key[1] == STEADY && seconds > FIRST_SECONDS) from = FIRST_SECONDS; /* those between count here */
    for (size_t second = from; second < to; second++)
        wrong = wrong_add(result, wrong, (int)unit->key[0], &session[second * count + worker].wrong);
    result->values[PHASE_WRONG_BURSTS] = (double)wrong;
    return 0;
}

static void finish(struct run *run, struct text *records) {
    (void)run;
    text_add(records, "%s", session_records.length > 0 ? session_records.data : "");
}

/* ---- check ---- */

static unsigned measure_check(struct run *run, uint32_t pass, const struct unit *unit, struct result *result) {
    return check_measure(run, pass, unit, result, (double)seconds);
}

/* ---- */

static double alone_seconds(const struct run *run, const struct unit *unit, double hop_ns) {
    (void)run;
    (void)unit;
    (void)hop_ns;
    return ALONE_SETTLING_S + ALONE_S + 2 * BURST_S;
}

static double step_seconds(const struct run *run, const struct unit *unit, double hop_ns) {
    (void)run;
    (void)unit;
    (void)hop_ns;
    return STEP_SETTLING_S + STEP_S + BURST_S;
}

static double together_seconds(const struct run *run, const struct unit *unit, double hop_ns) {
    (void)hop_ns;
    return run_once_a_pass(run, unit, (double)seconds * 1.01);
}

static const struct operation operations[] = {
    {.name = "alone",
     .summary = "each core with all others idle",
     .quantity = "rate",
     .unit = "1/s",
     .record = "cell",
     FIELDS(alone_fields),
     .keys = {"cpu"},
     .plan = plan_alone,
     .prepare = prepare,
     .facts = facts,
     .measure = measure_alone,
     .seconds = alone_seconds},
    {.name = "ladder",
     .summary = "the clock by the number of cores at work in a CCX and a socket, by additions and by vectors",
     .quantity = "frequency",
     .unit = "Hz",
     .record = "cell",
     FIELDS(step_fields),
     .keys = {"cpu", "scope", "cores", "work"},
     .words = {NULL, ladder_words, NULL, work_words},
     .plan = plan_ladder,
     .prepare = prepare,
     .facts = facts,
     .measure = measure_step,
     .seconds = step_seconds},
    {.name = "together",
     .summary = "all cores at once for --seconds: the first second, the next four, the last third",
     .quantity = "rate",
     .unit = "1/s",
     .record = "cell",
     FIELDS(phase_fields),
     .keys = {"cpu", "phase"},
     .words = {NULL, phase_words},
     .plan = plan_together,
     .prepare = prepare,
     .facts = facts,
     .finish = finish,
     .all_at_once = true,
     .measure = measure_together,
     .seconds = together_seconds},
    {.name = "check",
     .summary = "whether each unit of each core calculates rightly, all cores at once for --seconds",
     .quantity = "count",
     .unit = "1",
     .record = "cell",
     FIELDS(check_fields),
     .keys = {"cpu", "unit"},
     .words = {NULL, check_units},
     .plan = check_plan,
     .prepare = check_prepare,
     .all_at_once = true,
     .measure = measure_check,
     .seconds = together_seconds},
};

KERNEL_MAIN("load", settings)
