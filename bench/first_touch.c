/* The first-touch microbenchmark by its definition, for bench/peers.py: two cores each touch an array first and then read
 * in four cases, each core at once with the other: both their own; both the first one's; both the second one's; each the
 * other's. A sample is one walk in random order through all lines.
 *
 * Where it has one sample of each case in that order, the first case finds in its caches what its own core just wrote,
 * and the last what both have read. Here a round of samples that nobody sees comes first, the cases of a round are in
 * random order, and each case has the median of its rounds. argv is two CPUs; prints the ns of a load by case. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { LINES = 1 << 20, LINE = 64, CASES = 4, ROUNDS = 9 };

static char *array[2];
static int cpus[2];
static double ns[CASES][2][ROUNDS];
static pthread_barrier_t together;

static double now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC_RAW, &time);
    return 1e9 * (double)time.tv_sec + (double)time.tv_nsec;
}

static uint32_t drawn(uint64_t *state, uint32_t below) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((*state >> 33) % below);
}

/* One cycle through all lines (Sattolo 1986). */
static void touch(char *at, uint64_t state) {
    uint32_t *order = malloc(LINES * sizeof *order);
    for (uint32_t i = 0; i < LINES; i++) order[i] = i;
    for (uint32_t i = LINES - 1; i > 0; i--) {
        uint32_t j = drawn(&state, i), swapped = order[i];
        order[i] = order[j];
        order[j] = swapped;
    }
    for (uint32_t i = 0; i < LINES; i++)
        *(char **)(at + (size_t)order[i] * LINE) = at + (size_t)order[(i + 1) % LINES] * LINE;
    free(order);
}

static double walk(char *at) {
    double start = now_ns();
    for (size_t i = 0; i < LINES; i++) at = *(char *volatile *)at;
    return (now_ns() - start) / LINES;
}

static void *core(void *argument) {
    int own = (int)(intptr_t)argument;
    cpu_set_t mask;
    CPU_ZERO(&mask);
    CPU_SET((size_t)cpus[own], &mask);
    if (sched_setaffinity(0, sizeof mask, &mask) != 0) exit(3);
    touch(array[own], 1 + (uint64_t)own);
    const int read[CASES] = {own, 0, 1, 1 - own};
    int order[CASES] = {0, 1, 2, 3};
    uint64_t state = 7; /* the same order on both cores */
    for (int round = -1; round < ROUNDS; round++)
        for (uint32_t i = 0; i < CASES; i++) {
            uint32_t j = i + drawn(&state, CASES - i);
            int which = order[j];
            order[j] = order[i];
            order[i] = which;
            pthread_barrier_wait(&together);
            double load_ns = walk(array[read[which]]);
            if (round >= 0) ns[which][own][round] = load_ns;
        }
    return NULL;
}

static int ascending(const void *a, const void *b) {
    double first = *(const double *)a, second = *(const double *)b;
    return (first > second) - (first < second);
}

static double median(double *values) {
    qsort(values, ROUNDS, sizeof *values, ascending);
    return values[ROUNDS / 2];
}

int main(int argc, char **argv) {
    pthread_t other;
    if (argc != 3) return 2;
    pthread_barrier_init(&together, NULL, 2);
    for (int i = 0; i < 2; i++) {
        cpus[i] = atoi(argv[1 + i]);
        array[i] = aligned_alloc(2 << 20, (size_t)LINES * LINE);
        if (array[i] == NULL) return 3;
    }
    if (pthread_create(&other, NULL, core, (void *)1) != 0) return 3;
    core(NULL);
    pthread_join(other, NULL);
    for (int i = 0; i < CASES; i++) printf("%.3f %.3f\n", median(ns[i][0]), median(ns[i][1]));
    return 0;
}
