#include "schedule.h"

#include <stdlib.h>
#include <string.h>

#include "fail.h"

uint64_t random_next(struct random *random) {
    uint64_t z = (random->state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

struct random random_stream(uint64_t seed, uint64_t purpose, uint64_t number) {
    struct random random = {seed};
    random.state = random_next(&random) ^ purpose;
    random.state = random_next(&random) ^ number;
    random_next(&random);
    return random;
}

uint64_t random_below(struct random *random, uint64_t limit) {
    uint64_t skewed = UINT64_MAX - UINT64_MAX % limit; /* above it some remainders would come once more often */
    uint64_t draw;
    do draw = random_next(random);
    while (draw >= skewed);
    return draw % limit;
}

void shuffled(struct random *random, uint32_t *order, size_t count) {
    for (size_t i = 0; i < count; i++) {
        size_t j = (size_t)random_below(random, i + 1);
        order[i] = order[j];
        order[j] = (uint32_t)i;
    }
}

void draw_without_replacement(struct random *random, uint32_t *drawn, size_t count, uint32_t limit) {
    size_t bytes = limit / 8 + 1;
    unsigned char *taken = grow(NULL, bytes, 1);
    memset(taken, 0, bytes);
    for (size_t i = 0; i < count;) {
        uint32_t candidate = (uint32_t)random_below(random, limit);
        if ((taken[candidate / 8] & (1u << (candidate % 8))) != 0) continue;
        taken[candidate / 8] = (unsigned char)(taken[candidate / 8] | (1u << (candidate % 8)));
        drawn[i++] = candidate;
    }
    free(taken);
}
