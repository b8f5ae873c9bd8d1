/* What a core's units calculate, so that an error in a single bit of a result shows: an exercise a unit. */
#ifndef NODEPRINT_EXERCISES_H
#define NODEPRINT_EXERCISES_H

#include <stddef.h>
#include <stdint.h>

enum { MOST_WORDS = 1024 };

enum unit_of_core { FMA, INTEGER, SHUFFLE, AES, CARRYLESS, CRC, EXERCISES };

/* The state is vectors of `lanes` words. A turn replaces each vector by what its unit makes of it, so that no error is
 * forgotten: another state has another successor. Only FMA rounds. There all numbers are also added without carry to the
 * last vectors. */
struct exercise {
    size_t vectors, lanes; /* 0: this CPU has no such unit */
    void (*start)(uint64_t *state);
    void (*turns)(uint64_t turns, uint64_t *state);
    void (*reference)(uint64_t turns, uint64_t *state); /* the same in plain C, each word for itself */
};

/* By unit. */
void exercises_of_this_cpu(struct exercise exercises[EXERCISES]);

/* Loads and stores: each turn replaces each of `words` in memory. */
void sweep_start(uint64_t *memory, size_t words);
void sweep_turns(uint64_t turns, uint64_t *memory, size_t words);

/* The first word that is not what it is after so many turns, with what it must be; `words` if all are. */
size_t sweep_difference(uint64_t turns, const uint64_t *memory, size_t words, uint64_t *expected);

#endif
