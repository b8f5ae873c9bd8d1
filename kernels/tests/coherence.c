/* Offsets of counters and asymmetry of ways, planted in made-up stamps and found again; the length of a batch; what
 * an addition of nothing asks for; what comes before a pair. Prints nothing when all holds. */
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "coherence/operations.h"
#include "harness/clock.h"
#include "harness/schedule.h"
#include "tests/check.h"

enum { CPUS = 4, PAIRS = CPUS * (CPUS - 1) / 2, RING = 64 };
static const double OFFSETS[CPUS] = {0, 1234.5, -87.25, 4e6}; /* ns ahead of the first CPU's counter */

/* What the kernel makes of stamps: the way there and back, each with the difference of the counters in it. */
static struct pair_offset stamped(size_t a, size_t b, double there_ns, double back_ns) {
    double ab = there_ns + OFFSETS[b] - OFFSETS[a], ba = back_ns + OFFSETS[a] - OFFSETS[b];
    return (struct pair_offset){a, b, (ab - ba) / 2};
}

/* All pairs; ways are as long there as back, but for what `longer` says of a way from a CPU to another, in ns. */
static void stamp_all(struct pair_offset pairs[PAIRS], const double longer[CPUS][CPUS]) {
    size_t count = 0;
    for (size_t a = 0; a < CPUS; a++)
        for (size_t b = a + 1; b < CPUS; b++) {
            double way_ns = 50 + 30 * (double)(b - a);
            pairs[count++] = stamped(a, b, way_ns + longer[a][b], way_ns + longer[b][a]);
        }
}

static bool near(double a, double b) {
    return fabs(a - b) < 1e-3;
}

static void test_offsets(void) {
    struct pair_offset pairs[PAIRS];
    double offset[CPUS];
    stamp_all(pairs, (const double[CPUS][CPUS]){{0}});
    oneway_solve(pairs, PAIRS, offset, CPUS);
    for (size_t cpu = 0; cpu < CPUS; cpu++) CHECK(near(offset[cpu], OFFSETS[cpu]));
    struct closure closure = oneway_closure(pairs, PAIRS, offset);
    CHECK(near(closure.rms_ns, 0) && near(closure.worst_ns, 0));
}

/* A way of one pair that is 16 ns longer one way. Of the 8 ns in its difference, least squares over n CPUs give 8 / n to
 * each of its two offsets; 8 (1 - 2 / n) stay on the pair, 8 / n on each of the 2 (n - 2) pairs that share a CPU with it. */
static void test_asymmetry(void) {
    struct pair_offset pairs[PAIRS];
    double offset[CPUS];
    stamp_all(pairs, (const double[CPUS][CPUS]){[1][2] = 16});
    oneway_solve(pairs, PAIRS, offset, CPUS);
    struct closure closure = oneway_closure(pairs, PAIRS, offset);
    CHECK(near(closure.worst_ns, 4));
    CHECK(near(closure.rms_ns, sqrt((4.0 * 4 + 4 * 2.0 * 2) / PAIRS)));
    CHECK(near(offset[1], OFFSETS[1] - 2) && near(offset[2], OFFSETS[2] + 2) && near(offset[3], OFFSETS[3]));
}

/* What cannot be told: a CPU from which all ways are longer looks like an offset, and so does any way between two. */
static void test_what_closes(void) {
    struct pair_offset pairs[PAIRS], one;
    double offset[CPUS];
    stamp_all(pairs, (const double[CPUS][CPUS]){[2] = {10, 10, 0, 10}});
    oneway_solve(pairs, PAIRS, offset, CPUS);
    CHECK(near(offset[2], OFFSETS[2] - 5) && near(offset[1], OFFSETS[1]));
    CHECK(near(oneway_closure(pairs, PAIRS, offset).worst_ns, 0));
    one = stamped(0, 1, 60, 40);
    oneway_solve(&one, 1, offset, 2);
    CHECK(near(offset[1], OFFSETS[1] + 10) && near(oneway_closure(&one, 1, offset).worst_ns, 0));
}

/* Pairs that were named may be few: round a ring everything is still tied, and all that does not close is shared. */
static void test_ring(void) {
    struct pair_offset pairs[RING];
    double planted[RING], offset[RING];
    struct random random = random_stream(1, 2, 3);
    for (size_t cpu = 0; cpu < RING; cpu++) planted[cpu] = cpu == 0 ? 0 : (double)random_below(&random, 1000);
    for (size_t cpu = 0; cpu < RING; cpu++) {
        size_t next = (cpu + 1) % RING;
        pairs[cpu] = (struct pair_offset){cpu, next, planted[next] - planted[cpu] + (cpu == 5 ? 6.4 : 0)};
    }
    oneway_solve(pairs, RING, offset, RING);
    struct closure closure = oneway_closure(pairs, RING, offset);
    CHECK(fabs(closure.rms_ns - 6.4 / RING) < 0.01 && fabs(closure.worst_ns - 6.4 / RING) < 0.01);
    for (size_t cpu = 1; cpu < RING; cpu++) CHECK(fabs(offset[cpu] - planted[cpu]) < 6.4);
}

static void test_ties(void) {
    const struct pair chain[] = {{0, 1}, {1, 2}, {0, 1}, {3, 4}}, triangle[] = {{3, 4}, {1, 2}, {2, 3}, {1, 3}};
    size_t tied[5];
    CHECK(!oneway_tie(chain, 1, tied, 2) && tied[1] == 0);
    CHECK(!oneway_tie(chain, 4, tied, 5)); /* the second time is no third CPU */
    CHECK(tied[0] == 0 && tied[1] == 0 && tied[2] == 0 && tied[3] == 3 && tied[4] == 3);
    CHECK(oneway_tie(triangle, 4, tied, 5));
    CHECK(tied[0] == 0 && tied[1] == 1 && tied[2] == 1 && tied[3] == 1 && tied[4] == 1);
}

static void end_with(int number) {
    _exit(number);
}

/* The addition that faa polls with and state stores by asks for ownership: on a page that may only be read it ends the
 * process, where a load would do nothing. */
static void test_addition_of_nothing(void) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    line_t *line = mmap(NULL, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int status = 0;
    CHECK(line != MAP_FAILED);
    pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, end_with);
        _exit((int)atomic_fetch_add_explicit(line, unknown_zero(), memory_order_acq_rel));
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == SIGSEGV);
    munmap(line, page);
}

/* After a batch that took so long, and one that took long enough. */
static uint32_t needed(uint32_t round_trips, double ticks) {
    return round_trips_needed(round_trips, (double[]){1e9, ticks}, 2);
}

static void test_batches(void) {
    clock_facts = (struct clock_facts){.ns_per_tick = 0.5, .step_ticks = 1};
    CHECK(needed(25, 4000) == 25); /* 2 us */
    CHECK(needed(25, 3999) > 25 && needed(25, 3999) < 29);
    CHECK(needed(25, 1000) > 100 && needed(25, 1000) < 108);
    CHECK(needed(25, 0) == needed(25, 1) && needed(25, 0) > 100000);
    CHECK(needed(MOST_ROUND_TRIPS, 1) == MOST_ROUND_TRIPS); /* the most there are, however short */
    clock_facts.step_ticks = 100;                           /* 10 us, by the counter's grain */
    CHECK(needed(25, 20000) == 25 && needed(25, 10000) > 50);
    CHECK(needed(25, 0) == needed(25, 100) && needed(25, 0) < 6000);
}

/* Stamps of two counters that advance together, by 22.5 ticks at once, while the way takes 27: the least of them reads
 * 22, as does their lower half. One in ten is interrupted. */
static void test_time_of_a_line(void) {
    enum { STAMPS = 25, LINES = 400 };
    struct random random = random_stream(1, 2, 4);
    double sum = 0, ticks[STAMPS];
    for (size_t line = 0; line < LINES; line++) {
        for (size_t i = 0; i < STAMPS; i++) {
            double sent = (double)random_below(&random, 1u << 20) / 16;
            double seen = sent + 27 + (random_below(&random, 10) == 0 ? 5000 : 0);
            ticks[i] = floor(floor(seen / 22.5) * 22.5) - floor(floor(sent / 22.5) * 22.5);
        }
        sum += oneway_time(ticks, STAMPS, 22.5) / LINES;
    }
    CHECK(fabs(sum - 27) < 1);
    CHECK(near(oneway_time((double[]){-50, -48, -49, 900}, 4, 1), -49)); /* a counter that is behind */
}

/* Both sides work for as long as the core takes to its clock, before anything is timed. */
static void test_ramp_is_waited_for(void) {
    static struct run run = {.ramp_ns = 20e6};
    struct duel *duel = duel_of(&run, &(struct home){0}, 0);
    duel_begin(duel);
    for (size_t side = 0; side < 2; side++) { /* without lines the first ends at once, and the second with it */
        uint64_t start = clock_raw_ns();
        duel_play(duel, side);
        CHECK((double)(clock_raw_ns() - start) >= run.ramp_ns);
    }
    duel_free(duel);
}

int main(void) {
    test_ramp_is_waited_for();
    test_time_of_a_line();
    test_batches();
    test_offsets();
    test_asymmetry();
    test_what_closes();
    test_ring();
    test_ties();
    test_addition_of_nothing();
    return failures == 0 ? 0 : 1;
}
