/* jitter: what takes a CPU away from a program that has it to itself. */
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "harness/clock.h"
#include "harness/fail.h"
#include "harness/frequency.h"
#include "harness/gate.h"
#include "harness/run.h"
#include "harness/stats.h"

static const char help[] =
    "USAGE\n"
    "  jitter --op detours --cpus all --out FILE [options]\n"
    "  example: kernels/build/jitter --op detours --cpus 0-3 --seconds 2 --out here.jsonl\n"
    "\n"
    "REQUIREMENTS\n"
    "  Linux on x86-64 or aarch64. No root.\n"
    "\n"
    "OVERHEAD\n"
    "  All CPUs are busy for --seconds in each pass.\n"
    "\n"
    "WARNING\n"
    "  This measures what other programs and the system take from the CPUs: a property of the system, not of a CPU.\n";

enum {
    QUANTUM_TURNS = 16,  /* 1,024 additions: about a third of a microsecond */
    BLOCK = 1024,        /* quanta after which the shortest is taken anew, as the clock moves */
    MOST_KEPT = 1 << 16, /* detours of a CPU whose length is kept */
};

static uint64_t seconds = 3;

static const struct setting settings[] = {
    SETTING_SECONDS(&seconds, "how long a pass takes (default 3)"),
    {0},
};

/* On lines of its own: a neighbor's note of a detour would otherwise take this one's line away, a detour of our making. */
struct watch {
    alignas(256) double *detour_ns;
    size_t kept, count;
    long faults; /* pages that were touched first, or had moved, while it watched */
    double quantum_ns, away_ns, longest_ns, elapsed_ns;
};

struct session {
    struct gate gate;
    struct watch *watch; /* by worker */
};

static struct watch *watches;
static int64_t watched_pass = -1;

static uint64_t shortest_quantum(void) {
    uint64_t shortest = UINT64_MAX;
    for (int i = 0; i < BLOCK; i++) {
        uint64_t start = clock_ticks();
        additions(QUANTUM_TURNS);
        uint64_t took = clock_ticks() - start;
        if (took < shortest) shortest = took;
    }
    return shortest;
}

static long page_faults(void) {
    struct rusage use;
    return getrusage(RUSAGE_THREAD, &use) == 0 ? use.ru_minflt + use.ru_majflt : 0;
}

static void take(struct watch *own, double ns) {
    own->count++;
    own->away_ns += ns;
    if (ns > own->longest_ns) own->longest_ns = ns;
    if (own->kept < MOST_KEPT) own->detour_ns[own->kept++] = ns;
    worker_look();
}

/* The same work again and again: a quantum that takes more than twice the shortest of the block before holds a detour. */
static void keep_watch(size_t role, void *argument) {
    struct session *session = argument;
    struct watch *own = &session->watch[role];
    *own = (struct watch){.detour_ns = own->detour_ns};
    memset(own->detour_ns, 0, MOST_KEPT * sizeof *own->detour_ns); /* a fault would be a detour of our own making */
    gate_pass(&session->gate);
    long faults = page_faults();
    uint64_t shortest = shortest_quantum(), first_shortest = shortest, begin = clock_ticks(), before = begin;
    uint64_t duration = (uint64_t)((double)seconds * clock_facts.hz);
    while (before - begin < duration && !run_stopping()) {
        uint64_t lowest = UINT64_MAX;
        for (int i = 0; i < BLOCK; i++) {
            additions(QUANTUM_TURNS);
            uint64_t now = clock_ticks(), took = now - before;
            before = now;
            if (took < lowest) lowest = took;
            if (took > 2 * shortest) take(own, (double)(took - shortest) * clock_facts.ns_per_tick);
        }
        shortest = lowest;
    }
    own->faults = page_faults() - faults;
    own->elapsed_ns = (double)(before - begin) * clock_facts.ns_per_tick;
    own->quantum_ns = (double)first_shortest * clock_facts.ns_per_tick;
}

static void watch_all(struct run *run) {
    struct session *session = aligned_alloc(alignof(struct session), sizeof *session);
    size_t *all = grow(NULL, run->workers.count, sizeof *all);
    if (session == NULL) fail(EXIT_NOT_AS_ASKED, "out of memory");
    for (size_t i = 0; i < run->workers.count; i++) all[i] = i;
    gate_set(&session->gate, run->workers.count);
    session->watch = watches;
    workers_run(&run->workers, all, run->workers.count, keep_watch, session);
    free(all);
    free(session);
}

static void plan(struct run *run) {
    for (size_t i = 0; i < run->chosen.count; i++) run_add_unit(run, (struct unit){{run->chosen.cpu[i]}});
}

static void prepare(struct run *run) {
    watches = aligned_alloc(alignof(struct watch), run->workers.count * sizeof *watches);
    if (watches == NULL) fail(EXIT_NOT_AS_ASKED, "out of memory");
    for (size_t i = 0; i < run->workers.count; i++)
        watches[i] = (struct watch){.detour_ns = grow(NULL, MOST_KEPT, sizeof(double))};
}

enum { DETOURS, SHARE, LONGEST, MEDIAN, P90, P99, QUANTUM, ELAPSED, FAULTS };

static const struct field fields[] = {
    [DETOURS] = {"detours", NUMBER, DECIMALS, 0},         [SHARE] = {"share", NUMBER, SIGNIFICANT, 4},
    [LONGEST] = {"longest_ns", NANOSECONDS, DECIMALS, 1}, [MEDIAN] = {"median_ns", NANOSECONDS, DECIMALS, 1},
    [P90] = {"p90_ns", NANOSECONDS, DECIMALS, 1},         [P99] = {"p99_ns", NANOSECONDS, DECIMALS, 1},
    [QUANTUM] = {"quantum_ns", NANOSECONDS, DECIMALS, 1}, [ELAPSED] = {"elapsed_s", SECONDS, DECIMALS, 6},
    [FAULTS] = {"faults", NUMBER, DECIMALS, 0},
};

/* All CPUs are watched at once, with the first unit of a pass; each unit then takes its own. */
static unsigned measure(struct run *run, uint32_t pass, const struct unit *unit, struct result *result) {
    if (watched_pass != (int64_t)pass) {
        watch_all(run);
        watched_pass = pass;
    }
    if (run_stopping()) return UNIT_STOPPED;
    struct watch *own = &watches[run_worker(run, unit->key[0])];
    sort_ascending(own->detour_ns, own->kept);
    result->values[DETOURS] = (double)own->count;
    result->values[SHARE] = own->away_ns / own->elapsed_ns;
    result->values[LONGEST] = own->longest_ns;
    if (own->kept > 0) {
        result->values[MEDIAN] = median_sorted(own->detour_ns, own->kept);
        result->values[P90] = quantile_sorted(own->detour_ns, own->kept, 0.9);
        result->values[P99] = quantile_sorted(own->detour_ns, own->kept, 0.99);
    }
    result->values[QUANTUM] = own->quantum_ns;
    result->values[ELAPSED] = own->elapsed_ns / 1e9;
    result->values[FAULTS] = (double)own->faults;
    return 0;
}

static double plan_seconds(const struct run *run, const struct unit *unit, double hop_ns) {
    (void)hop_ns;
    return run_once_a_pass(run, unit, (double)seconds);
}

static const struct operation operations[] = {
    {.name = "detours",
     .summary = "fixed work on all CPUs at once; what took it away, per CPU",
     .quantity = "detour",
     .unit = "ns",
     .record = "cell",
     FIELDS(fields),
     .figure = &fields[SHARE],
     .keys = {"cpu"},
     .plan = plan,
     .worker_bytes = sizeof(struct watch) + MOST_KEPT * sizeof(double),
     .prepare = prepare,
     .all_at_once = true,
     .measure = measure,
     .seconds = plan_seconds},
};

KERNEL_MAIN("jitter", settings)
