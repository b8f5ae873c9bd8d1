/* Rates of several threads: a span that contradicts its own threads is flagged. Loops: what they store, and where. */
#include "bandwidth/flow.h"

#include <stdio.h>

#include "harness/clock.h"
#include "tests/check.h"

/* Two threads that sweep for a million ticks, ten times; the second one's clock is `ahead`. */
static unsigned flags_where_clocks_are(uint64_t ahead, double *values) {
    static struct sweeps sweeps[2];
    for (size_t i = 0; i < 2; i++) {
        sweeps[i].count = BEST_OF;
        for (size_t s = 0; s < BEST_OF; s++) {
            sweeps[i].begin[s] = 2000000 * s + (i == 1 ? ahead : 0);
            sweeps[i].end[s] = sweeps[i].begin[s] + 1000000;
        }
    }
    return flow_set_rates(sweeps, 2, 1e6, values);
}

enum { WORDS = (size_t)2 * TURN_BYTES / sizeof(double) }; /* of each array, which are apart by as much */

static _Alignas(64) double memory[7 * WORDS];

/* What a stream leaves in a word of its first array, where the others hold `i` and 2 i. */
static double stored(enum stream stream, size_t i, size_t rounds) {
    double first = (double)i, second = 2 * (double)i;
    switch (stream) {
    case STORE:
    case STORE_MEM:
        return 1;
    case COPY:
    case COPY_MEM:
        return first;
    case TRIAD:
    case TRIAD_MEM:
        return first + 3 * second;
    case READ3_WRITE1:
    case READ2_WRITE1:
    case READ1_WRITE1:
        return -1 + (double)rounds;
    case LOAD:
    case STREAMS:
        break;
    }
    return -1;
}

/* Whether a loop that goes through its arrays `rounds` times stores what it must, and nothing beyond them. */
static bool stores_what_it_must(enum stream stream, size_t rounds) {
    unsigned char *array[MOST_ARRAYS];
    bool right = true;
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) memory[i] = -1;
    for (size_t a = 0; a < MOST_ARRAYS; a++) {
        double *words = memory + (2 * a + 1) * WORDS;
        for (size_t i = 0; a > 0 && i < WORDS; i++) words[i] = (double)(a * i);
        array[a] = (unsigned char *)words;
    }
    stream_loop_of(stream)(array, rounds * WORDS * sizeof *memory, WORDS * sizeof *memory - 1);
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) {
        size_t part = i / WORDS, at = i % WORDS, other = part / 2 * at;
        double expected = part % 2 == 0 ? -1 : part == 1 ? stored(stream, at, rounds) : (double)other;
        right = right && memory[i] == expected;
    }
    return right;
}

int main(void) {
    double values[FLOW_FIELDS];
    clock_facts = (struct clock_facts){.ns_per_tick = 1};
    CHECK(flags_where_clocks_are(0, values) == 0);
    CHECK(values[RATE_BYTES_PER_S] > 1.99e9 && values[RATE_BYTES_PER_S] < 2.01e9);
    CHECK(flags_where_clocks_are(10000, values) == 0);
    CHECK(flags_where_clocks_are(100000000, values) == FLAG_DISTURBED); /* 0.1 s: a tenth of what it is, and less */
    CHECK(values[RATE_BYTES_PER_S] < 0.1e9);
    for (enum stream stream = LOAD; stream < STREAMS; stream++) {
        CHECK(stores_what_it_must(stream, 1));
        CHECK(stream == READ3_WRITE1 || stores_what_it_must(stream, 5));
    }
    if (failures == 0) puts("flow: all hold");
    return failures == 0 ? 0 : 1;
}
