#include "run.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "fail.h"

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

double run_pages_seconds(const struct run *run, int node, double bytes, bool huge) {
    enum { MOST_TOUCHERS = 4 }; /* more are no faster */
    static const double base_page_bytes = 4096;
    size_t touchers = 0;
    for (size_t i = 0; i < run->cpus.count && touchers < MOST_TOUCHERS; i++)
        touchers += run->selection.place[i].node == node;
    double touched_s = bytes * ((huge ? run->costs.huge_byte_s : run->costs.base_byte_s) + run->costs.set_byte_s);
    double checked_s = huge ? 0 : bytes / base_page_bytes * run->costs.checked_page_s;
    return touched_s / (double)(touchers > 0 ? touchers : 1) + checked_s;
}

double run_once_a_pass(const struct run *run, const struct unit *unit, double seconds) {
    return unit == run->units ? seconds : 0;
}

size_t run_worker(const struct run *run, int64_t cpu) {
    size_t i = cpulist_index(&run->cpus, (int)cpu);
    if (i == run->cpus.count) fail(EXIT_NOT_AS_ASKED, "no worker runs on CPU %d", (int)cpu);
    return i;
}

/* ---- signals ---- */

static atomic_int stop_signal; /* lock-free, so a handler may write it and a worker read it */

int run_stopped_by(void) {
    return atomic_load_explicit(&stop_signal, memory_order_relaxed);
}

bool run_stopping(void) {
    return run_stopped_by() != 0;
}

static void on_signal(int number) {
    atomic_store_explicit(&stop_signal, number, memory_order_relaxed); /* nothing else is told by it */
}

void run_catch_signals(void) {
    struct sigaction action = {.sa_handler = on_signal,
                               .sa_flags = (int)SA_RESETHAND}; /* a second one ends it at once */
    static const int caught[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof caught / sizeof *caught; i++)
        if (sigaction(caught[i], &action, NULL) != 0)
            fail(EXIT_NOT_AS_ASKED, "signals cannot be caught: %s", strerror(errno));
}
