#include "load/check.h"

#include <stdlib.h>
#include <string.h>

#include "harness/cache.h"
#include "harness/clock.h"
#include "harness/fail.h"
#include "load/exercises.h"
#include "load/wrong.h"

enum { L1 = EXERCISES, L2, L3, UNITS };
const char *const check_units[] = {"fma", "integer", "shuffle", "aes", "carryless", "crc", "l1", "l2", "l3", NULL};
/* So short that a wrong one tells the moment. */
enum { BURST_NS = 100000 };

/* What a unit begins with, must end with, and its turns in a burst; without turns it is not measured here. */
static struct check {
    struct exercise exercise;
    uint64_t turns, first[MOST_WORDS], expected[MOST_WORDS];
} checks[EXERCISES];

struct checked {
    uint64_t bursts;
    struct wrong wrong;
};

static struct checked *checked; /* by worker and unit */
static int64_t checked_pass = -1;
static double unit_s; /* for each unit */

/* Words of memory that do not fit into the level below, and into half of this one; of the L3 into half of a CPU's share. */
static size_t words_in(int cpu, size_t unit) {
    struct cpulist sharers = {0};
    size_t l1 = cache_bytes(cpu, 1), l2 = cache_bytes(cpu, 2), l3 = cache_bytes(cpu, 3), bytes = l1 / 2;
    if (unit == L2) bytes = l2 > l1 ? (l1 + l2) / 2 : 0;
    if (unit == L3) {
        cache_sharers(cpu, &sharers);
        bytes = l3 > 0 ? l2 + l3 / sharers.count / 2 : 0;
        cpulist_free(&sharers);
    }
    return bytes / sizeof(uint64_t);
}

static void choose_check_turns(size_t role, void *argument) {
    struct check *check = argument;
    (void)role;
    for (check->turns = 64;; check->turns *= 2) {
        uint64_t state[MOST_WORDS], start = clock_raw_ns();
        memcpy(state, check->first, sizeof state);
        check->exercise.turns(check->turns, state);
        if (clock_raw_ns() - start > BURST_NS / 2) return;
    }
}

static struct check *referenced;

static void calculate_check(size_t role, void *argument) {
    (void)role;
    referenced->exercise.reference(referenced->turns, argument);
}

void check_prepare(struct run *run) {
    struct exercise exercises[EXERCISES];
    exercises_of_this_cpu(exercises);
    for (size_t unit = 0; unit < EXERCISES; unit++) {
        struct check *check = referenced = &checks[unit];
        check->exercise = exercises[unit];
        if (check->exercise.vectors == 0) {
            run_not_measured(run, check_units[unit], "this CPU has no such instructions");
            continue;
        }
        check->exercise.start(check->first);
        workers_run(&run->workers, &(size_t){0}, 1, choose_check_turns, check);
        reference_agreed(run, calculate_check, check->first, check->expected,
                         check->exercise.vectors * check->exercise.lanes * sizeof *check->expected);
    }
}

static void check_burst(const struct check *check, struct checked *result, bool flip) {
    uint64_t state[MOST_WORDS], turns = check->turns;
    size_t count = check->exercise.vectors * check->exercise.lanes;
    memcpy(state, check->first, count * sizeof *state);
    if (flip) {
        check->exercise.turns(turns / 2, state);
        state[1] ^= 1;
        turns -= turns / 2;
    }
    check->exercise.turns(turns, state);
    wrong_compare(&result->wrong, state, check->expected, count, check->exercise.lanes);
    result->bursts++;
}

static void sweep_burst(uint64_t *memory, size_t words, struct checked *result, bool flip) {
    enum { SWEEPS = 4 };
    uint64_t right;
    sweep_start(memory, words);
    sweep_turns(SWEEPS / 2, memory, words);
    if (flip) memory[1] ^= 1;
    sweep_turns(SWEEPS / 2, memory, words);
    size_t at = sweep_difference(SWEEPS, memory, words, &right);
    wrong_compare(&result->wrong, at < words ? &memory[at] : &right, &right, 1, 1);
    result->bursts++;
}

static void check_role(size_t role, void *argument) {
    const struct run *run = argument;
    int cpu = run->workers.worker[role].cpu;
    bool flip = false;
#ifdef FLIP_A_BIT_ON_CPU /* a build for the tests */
    flip = cpu == FLIP_A_BIT_ON_CPU;
#endif
    for (size_t unit = 0; unit < UNITS; unit++) {
        struct checked *result = &checked[role * UNITS + unit];
        uint64_t start = clock_raw_ns(), *memory = NULL;
        size_t words = unit < EXERCISES ? 0 : words_in(cpu, unit);
        *result = (struct checked){0};
        if (unit < EXERCISES ? checks[unit].turns == 0 : words == 0) continue;
        if (words > 0) memory = grow(NULL, words, sizeof *memory);
        do {
            if (memory != NULL)
                sweep_burst(memory, words, result, flip);
            else
                check_burst(&checks[unit], result, flip);
        } while ((double)(clock_raw_ns() - start) < unit_s * 1e9 && !run_stopping());
        free(memory);
    }
}

void check_plan(struct run *run) {
    struct exercise exercises[EXERCISES];
    exercises_of_this_cpu(exercises);
    for (size_t i = 0; i < run->chosen.count; i++)
        for (size_t unit = 0; unit < UNITS; unit++)
            if (unit < EXERCISES ? exercises[unit].vectors > 0 : words_in(run->chosen.cpu[i], unit) > 0)
                run_add_unit(run, (struct unit){{run->chosen.cpu[i], (int64_t)unit}});
}

const struct field check_fields[CHECK_FIELDS] = {
    [CHECK_BURSTS] = {"bursts", NUMBER, DECIMALS, 0},
    [CHECK_WRONG_BURSTS] = {"wrong_bursts", NUMBER, DECIMALS, 0},
};

unsigned check_measure(struct run *run, uint32_t pass, const struct unit *unit, struct result *result, double seconds) {
    size_t count = run->workers.count, worker = run_worker(run, unit->key[0]);
    if (checked_pass != (int64_t)pass) {
        size_t *all = grow(NULL, count, sizeof *all);
        for (size_t i = 0; i < count; i++) all[i] = i;
        unit_s = seconds / UNITS;
        if (checked == NULL) checked = grow(NULL, count * UNITS, sizeof *checked);
        workers_run(&run->workers, all, count, check_role, run);
        free(all);
        checked_pass = pass;
    }
    if (run_stopping()) return UNIT_STOPPED;
    const struct checked *own = &checked[worker * UNITS + (size_t)unit->key[1]];
    result->values[CHECK_BURSTS] = (double)own->bursts;
    result->values[CHECK_WRONG_BURSTS] = (double)wrong_add(result, 0, (int)unit->key[0], &own->wrong);
    return 0;
}
