#include "sweep.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "fail.h"
#include "figure.h"
#include "options.h"
#include "output.h"
#include "progress.h"
#include "schedule.h"
#include "stats.h"

enum purpose { DRAW_ORDER = 1, DRAW_LINES = 2 };
enum done { TO_DO, DONE, MOVED_TO_DO };

static const double SENTINEL_EVERY_S = 0.25, SENTINEL_SHARE = 0.05, AGAIN_SD = 4, MOST_LOST_SHARE = 0.25;

static void draw_lines(const struct operation *operation, struct random *random, uint32_t *set, size_t count) {
    enum { PAGE_LINES = 4096 / LINE_BYTES };
    uint32_t share = operation->line_a_page ? PAGE_LINES : operation->two_lines ? 2 : 1;
    draw_without_replacement(random, set, count, POOL_LINES / share);
    for (size_t i = 0; operation->line_a_page && i < count; i++)
        set[i] = set[i] * PAGE_LINES + (uint32_t)random_below(random, PAGE_LINES);
}

enum census_mode sweep_census_mode(void) {
    return options.census ? CENSUS_ALWAYS : options.any_lines ? CENSUS_NEVER : CENSUS_AS_NEEDED;
}

void sweep_take_census(struct run *run) {
    run->recount = false;
    if (run->operation->measure_pairs == NULL || run->not_applicable != NULL) return;
    census_take(run, sweep_census_mode(), run->lines * options_slots(), &run->records.pending);
}

/* Draw the lines of a pass and write them down, for each home. All slots of --parallel have lines of their own. */
static void begin_pass(struct run *run, uint32_t pass) {
    size_t count = run->lines * options_slots();
    if (run->recount) sweep_take_census(run);
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

static void measure_units(struct sweep *sweep, uint32_t pass, const struct unit *const *units, size_t count) {
    for (size_t i = 0; i < count; i++) {
        sweep->results[i].flags = 0;
        for (size_t f = 0; f < MOST_FIELDS; f++) sweep->results[i].values[f] = NAN;
        text_clear(&sweep->results[i].more);
    }
    struct run *run = sweep->run;
    if (run->operation->measure_pairs != NULL) { /* looks at its batches, and tries again */
        run->operation->measure_pairs(run, units, count, sweep->results);
        return;
    }
    /* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): count is never 0 */
    sweep->results[0].flags = run->operation->measure(run, pass, units[0], &sweep->results[0]);
    double lost_share = workers_lost(&run->workers);
    if (run->operation->all_at_once) lost_share = run->workers.worker[run_worker(run, units[0]->key[0])].lost_share;
    if (lost_share > MOST_LOST_SHARE) sweep->results[0].flags |= FLAG_DISTURBED;
}

static size_t return_moved(const struct run *run) {
    size_t moved = 0;
    for (size_t i = 0; i < run->home_count; i++) {
        const struct pool *pool = &run->homes[i].pool;
        moved += memory_return_moved(pool->bytes, pool->size, pool->home, pool->verified_by, false);
    }
    for (size_t i = 0; i < run->watched_count; i++) {
        const struct buffer *buffer = &run->watched[i];
        moved += memory_return_moved(buffer->bytes, buffer->size, buffer->home, buffer->verified_by, buffer->bound);
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
        text_add(&sweep->results[0].more, ",\"at_s\":%.3f", now - sweep->started_s);
        output_unit(run, "sentinel", pass, unit, &sweep->results[0], &run->records.pending);
    }
    double end = clock_monotonic_s(); /* on a slow or busy machine less often, they must not become the main work */
    sweep->sentinel_s = end + fmax(SENTINEL_EVERY_S, (end - now) / SENTINEL_SHARE);
}

static bool may_go_together(const struct run *run, const struct unit *x, const struct unit *y) {
    for (size_t i = 0; i < 2; i++)
        for (size_t j = 0; j < 2; j++) {
            enum closeness closeness =
                select_closeness(&run->selection, run_worker(run, x->key[i]), run_worker(run, y->key[j]));
            if (closeness == SAME_CORE || (closeness == SAME_L3 && !options.share_l3)) return false;
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
    for (size_t i = at + 1; count < options_slots() && i < run->unit_count && i < at + LOOK_AHEAD; i++) {
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
    if (run->operation->measure_pairs == NULL || options.parallel > 1) return;
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

/* What second looks, finish() and the figure on the terminal need of this unit. */
static void keep_value(const struct run *run, struct former *former, size_t index, const struct result *result) {
    const struct operation *operation = run->operation;
    const struct shown shown = figure_fields(operation);
    memcpy(&former->figure[index * shown.count], &result->values[shown.fields - operation->fields],
           shown.count * sizeof *former->figure);
    if (operation->measure_pairs != NULL) {
        former->value[index] = result->values[LATENCY_NS];
    } else if (operation->kept != NULL) {
        former->value[index] = result->values[operation->kept - operation->fields];
    }
}

/* Where changing from one value of a key to another takes long, the order goes through its values, to and fro from pass to
 * pass. */
static void join_blocks(const struct run *run, uint32_t pass, uint32_t *order) {
    size_t key = 0;
    if (run->operation->block == NULL) return;
    while (strcmp(run->operation->keys[key], run->operation->block) != 0) key++;
    for (size_t i = 1; i < run->unit_count; i++) /* stable: inside a block the order stays random */
        for (size_t j = i; j > 0; j--) {
            int64_t before = run->units[order[j - 1]].key[key], value = run->units[order[j]].key[key];
            if (pass % 2 == 0 ? before <= value : before >= value) break;
            uint32_t moved = order[j];
            order[j] = order[j - 1];
            order[j - 1] = moved;
        }
}

static void measure_pass(struct sweep *sweep, uint32_t pass) {
    struct run *run = sweep->run;
    struct former *former = sweep->former;
    unsigned char *done = former->done + pass * run->unit_count;
    unsigned mixed = former->done_in_pass[pass] > 0 ? FLAG_MIXED_LINES : 0;
    struct random random = random_stream(run->seed, DRAW_ORDER, pass);
    shuffled(&random, sweep->order, run->unit_count);
    join_blocks(run, pass, sweep->order);
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
                output_unit(run, run->operation->record, pass, units[i], &sweep->results[i], &run->records.pending);
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
        for (size_t slot = 0; slot < options_slots(); slot++) spread_close_set(&run->spread, &run->homes[i].sums[slot]);
}

/* ---- second looks ---- */

/* Measure one unit once more, alone and on lines of its own. */
static void look_again(struct sweep *sweep, uint32_t pass, size_t unit) {
    struct run *run = sweep->run;
    const struct unit *again = &run->units[unit];
    begin_pass(run, pass);
    measure_sentinels(sweep, pass);
    run->workers.next_count = 0;
    unsigned moved = 0;
    do {
        measure_units(sweep, pass, &again, 1);
        sweep->results[0].flags |= moved;
        text_add(&sweep->results[0].more, ",\"reason\":\"passes_differ\"");
        output_unit(run, "again", pass, again, &sweep->results[0], &run->records.pending);
        moved = FLAG_MOVED;
    } while (pages_moved(sweep, 1));
    write_pending(sweep);
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
        look_again(sweep, (*pass)++, unit);
        looked++;
    }
    return looked;
}

double sweep_busy_s(const struct run *run) {
    return run->workers.busy_s + clock_thread_s();
}

void sweep_begin(struct sweep *sweep, struct run *run, struct former *former) {
    *sweep = (struct sweep){.run = run, .former = former};
    sweep->order = grow(NULL, run->unit_count, sizeof *sweep->order);
    sweep->unsettled = grow(NULL, run->unit_count, sizeof *sweep->unsettled);
    sweep->counts = sweep->first_counts = machine_counts(&run->cpus);
    sweep->started_s = sweep->second_s = clock_monotonic_s();
    sweep->sentinel_s = sweep->started_s + SENTINEL_EVERY_S;
    for (size_t i = 0; i < run->workers.count; i++) {
        struct worker *worker = &run->workers.worker[i];
        worker->voluntary = worker->involuntary = 0;
        worker->task_s = worker->lost_s = worker->seen_task_s = worker->seen_lost_s = 0;
    }
    sweep->began_busy_s = sweep_busy_s(run);
}

void sweep_measure(struct sweep *sweep) {
    struct run *run = sweep->run;
    struct former *former = sweep->former;
    progress_start(run->operation->name, run->unit_count * run->passes, former->count);
    for (uint32_t pass = 0; pass < run->passes && !run_stopping(); pass++)
        if (former->done_in_pass[pass] < run->unit_count) measure_pass(sweep, pass);
    uint32_t extra_pass = (uint32_t)run->passes;
    if (run->operation->measure_pairs != NULL && !run_stopping() && options.parallel == 0)
        sweep->looked_again = look_where_passes_differ(sweep, &extra_pass);
    progress_end();
    sweep->elapsed_s = clock_monotonic_s() - sweep->started_s;
    sweep->busy_s = sweep_busy_s(run) - sweep->began_busy_s;
}
