/* What a core calculates under load: operands never repeat, vectors end where plain C does, and flipped bits show.
 *
 *   tests/load            checks; prints a checksum of what everything ends with, which no compiler may change
 *   tests/load --rates    prints the share of flips that are found, a line for each unit: by bit, and by the time to the end
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/checksum.h"
#include "harness/stats.h"
#include "load/exercises.h"
#include "load/flops.h"
#include "tests/check.h"

enum { BITS = 64, TURNS = 500, FAR = 100 };

static uint32_t ends;

static void add_end(const void *state, size_t bytes) {
    ends = checksum_add(ends, state, bytes);
}

static uint64_t drawn(uint64_t below) { /* xorshift: the same in each run */
    static uint64_t state = 88172645463325252;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % below;
}

/* ---- measured bursts ---- */

/* Whether the vectors end where scalar operations do, in one piece and in two. */
static bool burst_is_right(const struct flops_kind *kind, uint64_t turns) {
    static double whole[MOST_NUMBERS], parts[MOST_NUMBERS], expected[MOST_NUMBERS];
    size_t bytes = kind->chains * kind->lanes * sizeof *whole;
    flops_start(kind, whole);
    flops_start(kind, parts);
    flops_start(kind, expected);
    kind->turns(turns, whole);
    kind->turns(turns / 3, parts);
    kind->turns(turns - turns / 3, parts);
    flops_reference(kind, 2 * turns, expected);
    add_end(whole, bytes);
    bool right = memcmp(whole, expected, bytes) == 0 && memcmp(parts, expected, bytes) == 0;
    if (kind->memory_turns != NULL) {
        struct flops_memory *memory = aligned_alloc(alignof(struct flops_memory), sizeof *memory);
        flops_memory_set(memory);
        flops_start(kind, whole);
        kind->memory_turns(turns, whole, memory);
        right = right && memcmp(whole, expected, bytes) == 0;
        free(memory);
    }
    return right;
}

/* Whether all operands of a burst are finite and differ, within a chain and between chains. */
static bool operands_differ(const struct flops_kind *kind, size_t steps) {
    size_t chains = kind->chains * kind->lanes, count = chains * steps;
    double *operands = malloc(count * sizeof *operands), numbers[MOST_NUMBERS];
    bool differ = true;
    flops_start(kind, numbers);
    for (size_t step = 0; step < steps; step++) {
        memcpy(operands + step * chains, numbers, chains * sizeof *operands);
        flops_reference(kind, 1, numbers);
    }
    for (size_t i = 0; i < count; i++) differ = differ && isfinite(operands[i]) && fabs(operands[i]) < 2;
    sort_ascending(operands, count);
    for (size_t i = 1; i < count; i++) differ = differ && operands[i] != operands[i - 1];
    free(operands);
    return differ;
}

/* ---- flips: found of `tries` flips of a bit, `left` turns before the end ---- */

/* Whether a burst of TURNS ends otherwise than it must if a bit of a word flips in it. */
static bool flip_in_burst_is_found(unsigned bit, uint64_t left) {
    static double numbers[MOST_NUMBERS], expected[MOST_NUMBERS];
    static bool known = false;
    const struct flops_kind kind = flops_widest();
    size_t count = kind.chains * kind.lanes;
    if (!known) {
        flops_start(&kind, expected);
        kind.turns(TURNS, expected);
        known = true;
    }
    flops_start(&kind, numbers);
    kind.turns(TURNS - left, numbers);
    ((unsigned char *)&numbers[drawn(count)])[bit / 8] ^= (unsigned char)(1U << bit % 8);
    kind.turns(left, numbers);
    return memcmp(numbers, expected, count * sizeof *numbers) != 0;
}

static bool flip_in_exercise_is_found(const struct exercise *exercise, const uint64_t *expected, unsigned bit,
                                      uint64_t left) {
    static uint64_t state[MOST_WORDS];
    size_t count = exercise->vectors * exercise->lanes;
    exercise->start(state);
    exercise->turns(TURNS - left, state);
    state[drawn(count)] ^= UINT64_C(1) << bit;
    exercise->turns(left, state);
    return memcmp(state, expected, count * sizeof *state) != 0;
}

static bool flip_in_memory_is_found(unsigned bit, uint64_t left) {
    enum { WORDS = 512 };
    static uint64_t memory[WORDS];
    uint64_t expected;
    sweep_start(memory, WORDS);
    sweep_turns(TURNS - left, memory, WORDS);
    memory[drawn(WORDS)] ^= UINT64_C(1) << bit;
    sweep_turns(left, memory, WORDS);
    return sweep_difference(TURNS, memory, WORDS, &expected) < WORDS;
}

/* The share of flips that are found, of so many of each bit from `lowest` to `highest`, `least` turns or more before the
 * end and less than `most`. */
static double share_found(const struct exercise *exercise, const uint64_t *expected, unsigned lowest, unsigned highest,
                          uint64_t least, uint64_t most, size_t tries) {
    size_t found = 0;
    for (unsigned bit = lowest; bit <= highest; bit++)
        for (size_t i = 0; i < tries; i++) {
            uint64_t left = least + drawn(most - least);
            found += exercise != NULL   ? flip_in_exercise_is_found(exercise, expected, bit, left)
                     : expected != NULL ? flip_in_memory_is_found(bit, left)
                                        : flip_in_burst_is_found(bit, left);
        }
    return (double)found / (double)((highest - lowest + 1) * tries);
}

static void print_rates(const char *name, const struct exercise *exercise, const uint64_t *expected, size_t tries) {
    printf("%-20s far from the end: bit 0 %.4f, bits 1 to 3 %.4f, 4 to 31 %.4f, 32 to 62 %.4f, 63 %.4f; in the last %d "
           "turns "
           "%.4f\n",
           name, share_found(exercise, expected, 0, 0, FAR, TURNS, tries),
           share_found(exercise, expected, 1, 3, FAR, TURNS, tries),
           share_found(exercise, expected, 4, 31, FAR, TURNS, tries),
           share_found(exercise, expected, 32, 62, FAR, TURNS, tries),
           share_found(exercise, expected, 63, 63, FAR, TURNS, tries), FAR,
           share_found(exercise, expected, 0, 63, 1, FAR, tries));
}

int main(int argc, char **argv) {
    static uint64_t state[MOST_WORDS], expected[MOST_WORDS];
    static const char *const names[EXERCISES] = {"fma", "integer", "shuffle", "aes", "carryless", "crc"};
    struct exercise exercises[EXERCISES];
    const bool rates = argc > 1 && strcmp(argv[1], "--rates") == 0;
    const size_t tries = rates ? 1000 : 20;
    const struct flops_kind kind = flops_widest();
    exercises_of_this_cpu(exercises);
    CHECK(burst_is_right(&kind, 10000));
    CHECK(operands_differ(&kind, rates ? 800000 : 20000));
    CHECK(share_found(NULL, NULL, 8, 62, FAR, TURNS, tries) > 0.99);  /* a square has no sign */
    CHECK(share_found(NULL, state, 0, 63, 0, TURNS, tries) > 0.9999); /* memory: not one is forgotten */
    if (rates) {
        print_rates("measured bursts", NULL, NULL, tries);
        print_rates("loads and stores", NULL, state, tries);
    }
    for (size_t i = 0; i < EXERCISES; i++) {
        const struct exercise *exercise = &exercises[i];
        if (exercise->vectors == 0) continue;
        size_t bytes = exercise->vectors * exercise->lanes * sizeof *state;
        exercise->start(state);
        exercise->start(expected);
        exercise->turns(TURNS / 3, state);
        exercise->turns(TURNS - TURNS / 3, state);
        exercise->reference(TURNS, expected);
        add_end(state, bytes);
        if (memcmp(state, expected, bytes) != 0) fprintf(stderr, "%s: ", names[i]);
        CHECK(memcmp(state, expected, bytes) == 0);
        double found = share_found(exercise, expected, 0, 63, 0, TURNS, tries);
        if (found < 0.9999) fprintf(stderr, "%s (%.4f): ", names[i], found);
        CHECK(found > 0.9999);
        if (rates) print_rates(names[i], exercise, expected, tries);
    }
    if (failures == 0) printf("load: all hold, with the checksum %08" PRIx32 "\n", ends);
    return failures == 0 ? 0 : 1;
}
