/* Everything drawn by seed: orders and sets of lines. The same seed gives the same draw on every machine. */
#ifndef NODEPRINT_SCHEDULE_H
#define NODEPRINT_SCHEDULE_H

#include <stddef.h>
#include <stdint.h>

struct random {
    uint64_t state;
};

/* A stream of its own for each (seed, purpose, number), so that one draw does not shift another. */
struct random random_stream(uint64_t seed, uint64_t purpose, uint64_t number);
uint64_t random_next(struct random *random);                  /* splitmix64 (Steele, Lea, Flood 2014) */
uint64_t random_below(struct random *random, uint64_t limit); /* uniform in [0, limit), limit above 0 */

/* A random order of 0 .. count-1 (Fisher and Yates). */
void shuffled(struct random *random, uint32_t *order, size_t count);

/* `count` different numbers below `limit`, in random order; count at most limit. */
void draw_without_replacement(struct random *random, uint32_t *drawn, size_t count, uint32_t limit);

#endif
