/* barrier: how long the cores of a CCX, a socket and the machine take to wait for each other: by a counter that all add
 * to, whose line visits every core in turn, and by a tree of flags, each written by one core and read by a few. */
#include <math.h>
#include <stdalign.h>
#include <stdlib.h>

#include "barrier/meeting.h"
#include "harness/clock.h"
#include "harness/fail.h"
#include "harness/frequency.h"
#include "harness/gate.h"
#include "harness/run.h"

static const char help[] = "USAGE\n"
                           "  barrier --op all --cpus cores --out FILE [options]\n"
                           "  example: kernels/build/barrier --op all --cpus 0-7 --out here.jsonl\n"
                           "\n"
                           "REQUIREMENTS\n"
                           "  Linux on x86-64 or aarch64, two CPUs. No root.\n"
                           "\n"
                           "OVERHEAD\n"
                           "  Up to all cores are busy, some milliseconds a cell.\n"
                           "\n"
                           "WARNING\n"
                           "  A barrier waits for the slowest core: one that another program takes delays all.\n";

enum {
    BATCHES = 33,
    MOST_ROUNDS = 1 << 16,
};
static const double SHORTEST_BATCH_NS = 30e3, SHORTEST_BATCH_STEPS = 200;
static const double MARGIN = 1.4; /* batches differ: the next one shall not be too short again */

enum scope { SCOPE_CCX, SCOPE_SOCKET, SCOPE_MACHINE, SCOPES };
static const char *const scope_words[] = {"ccx", "socket", "machine", NULL};
static const char *const kind_words[] = {"counter", "tree", NULL};

struct crowd {
    struct gate gate;
    struct meeting meeting;
    size_t rounds; /* barriers of the next batch: more until one is long enough for the clock; 0: it is over */
    double values[BATCHES];
    size_t values_count;
};

/* The first core alone keeps the time, and says how long the next batch is; the barrier before it makes that known. */
static void decide(struct crowd *crowd, double ticks) {
    double rounds = (double)crowd->rounds;
    double fewest = fmax(SHORTEST_BATCH_NS / clock_facts.ns_per_tick, SHORTEST_BATCH_STEPS * clock_facts.step_ticks);
    if (ticks < fewest && crowd->rounds < MOST_ROUNDS) { /* one before it that seemed long enough was interrupted */
        crowd->rounds = (size_t)ceil(rounds * (2 * ticks < fewest ? 2 : MARGIN * fewest / ticks));
        crowd->values_count = 0;
    } else
        crowd->values[crowd->values_count++] = ticks * clock_facts.ns_per_tick / rounds;
    if (crowd->values_count == BATCHES || run_stopping()) crowd->rounds = 0;
}

static void meet(size_t role, void *argument) {
    struct crowd *crowd = argument;
    unsigned number = 0;
    core_hz(1, 8e3);
    gate_pass(&crowd->gate);
    for (;;) {
        meeting_pass(&crowd->meeting, role, ++number);
        size_t rounds = crowd->rounds;
        if (rounds == 0) return;
        uint64_t start = clock_ticks();
        for (size_t i = 0; i < rounds; i++) meeting_pass(&crowd->meeting, role, ++number);
        if (role == 0) decide(crowd, (double)(clock_ticks() - start));
    }
}

/* ---- who meets ---- */

static bool belongs(const struct cpu_place *place, const struct cpu_place *first, enum scope scope) {
    if (scope == SCOPE_MACHINE) return true;
    return scope == SCOPE_CCX ? place->l3 == first->l3 : place->socket == first->socket;
}

/* Workers of the group whose first is worker `first`, those of a socket and of a CCX side by side: so a part of the
 * tree is a part of the machine as far as can be. */
static size_t group(const struct run *run, size_t first, enum scope scope, size_t *members) {
    const struct cpu_place *place = run->selection.place;
    size_t count = 0;
    for (size_t i = 0; i < run->chosen.count; i++) {
        if (!belongs(&place[i], &place[first], scope)) continue;
        size_t at = count++;
        for (; at > 0; at--) {
            const struct cpu_place *before = &place[members[at - 1]];
            if (before->socket < place[i].socket || (before->socket == place[i].socket && before->l3 <= place[i].l3))
                break;
            members[at] = members[at - 1];
        }
        members[at] = i;
    }
    return count;
}

/* The place of a chosen CPU, also while nothing but a plan is made. */
static size_t chosen_at(const struct run *run, int64_t cpu) {
    size_t i = 0;
    while (run->chosen.cpu[i] != cpu) i++;
    return i;
}

static bool first_of_group(const struct run *run, size_t i, enum scope scope) {
    for (size_t j = 0; j < i; j++)
        if (belongs(&run->selection.place[j], &run->selection.place[i], scope)) return false;
    return true;
}

/* Each CCX, each socket that is more than one, and the machine where it is more than a socket. */
static void plan(struct run *run) {
    size_t *members = grow(NULL, run->chosen.count, sizeof *members);
    for (size_t i = 0; i < run->chosen.count; i++) {
        size_t former = 1;
        for (int64_t scope = 0; scope < SCOPES; scope++) {
            size_t count = group(run, i, (enum scope)scope, members);
            if (count > former && first_of_group(run, i, (enum scope)scope))
                for (int64_t kind = 0; kind < KINDS; kind++)
                    run_add_unit(run, (struct unit){{run->chosen.cpu[i], scope, kind}});
            former = count;
        }
    }
    free(members);
    if (run->unit_count == 0) run->not_applicable = "only one core takes part: it has none to wait for";
}

enum { THREADS = LATENCY_FIELDS };

static const struct field fields[] = {FIELDS_OF_LATENCY, [THREADS] = {"threads", NUMBER, DECIMALS, 0}};

static unsigned measure(struct run *run, uint32_t pass, const struct unit *unit, struct result *result) {
    (void)pass;
    static struct crowd crowd;
    size_t *workers = grow(NULL, run->chosen.count, sizeof *workers);
    size_t count = group(run, chosen_at(run, unit->key[0]), (enum scope)unit->key[1], workers);
    struct seat *seats = aligned_alloc(alignof(struct seat), count * sizeof *seats);
    if (seats == NULL) fail(EXIT_NOT_AS_ASKED, "out of memory");
    gate_set(&crowd.gate, count);
    meeting_set(&crowd.meeting, (enum meeting_kind)unit->key[2], seats, count);
    crowd.rounds = 1;
    crowd.values_count = 0;
    workers_run(&run->workers, workers, count, meet, &crowd);
    free(seats);
    free(workers);
    if (run_stopping()) return UNIT_STOPPED;
    result->values[THREADS] = (double)count;
    return run_set_latency(result, crowd.values, BATCHES, 1);
}

static double plan_seconds(const struct run *run, const struct unit *unit, double hop_ns) {
    size_t *workers = grow(NULL, run->chosen.count, sizeof *workers);
    size_t count = group(run, chosen_at(run, unit->key[0]), (enum scope)unit->key[1], workers);
    free(workers);
    /* all batches before those that count last as long as one of them */
    double barrier_ns = 2 * hop_ns * (double)count, batch_ns = fmax(barrier_ns, MARGIN * SHORTEST_BATCH_NS);
    return (BATCHES + 1) * batch_ns / 1e9 + (double)count * 10e-6;
}

static const struct operation operations[] = {
    {.name = "all",
     .summary = "the cores of each CCX, of each socket and of the machine, by a counter and by a tree",
     .quantity = "barrier",
     .unit = "ns",
     .record = "cell",
     FIELDS(fields),
     .keys = {"cpu", "scope", "kind"},
     .words = {NULL, scope_words, kind_words},
     .plan = plan,
     .measure = measure,
     .seconds = plan_seconds},
};

KERNEL_MAIN("barrier", NULL)
