/* xcpumemperf's ring by its definition, with a join that waits, for bench/peers.py: 2 N threads, of which pair i writes on
 * CPU i and reads on CPU i + 1, modulo N, all in the same memory; each has a mapping of its own that it may only write or
 * only read, goes once through it by single bytes with a full fence behind each, and has its page faults inside. All begin
 * on a barrier. argv is MiB and the CPUs; prints bytes a second of each writer and reader. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct side {
    int cpu, writes;
    double seconds;
    pthread_t thread;
};

static int memory;
static size_t bytes;
static pthread_barrier_t together;

static double now_s(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC_RAW, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void *run(void *argument) {
    struct side *side = argument;
    cpu_set_t mask;
    CPU_ZERO(&mask);
    CPU_SET((size_t)side->cpu, &mask);
    if (sched_setaffinity(0, sizeof mask, &mask) != 0) exit(3);
    volatile unsigned char *at =
        mmap(NULL, bytes, side->writes ? PROT_WRITE : PROT_READ, MAP_SHARED, memory, 0);
    if (at == MAP_FAILED) exit(3);
    pthread_barrier_wait(&together);
    double start = now_s();
    for (size_t i = 0; i < bytes; i++) {
        if (side->writes)
            at[i] = (unsigned char)i;
        else
            (void)at[i];
        __sync_synchronize();
    }
    side->seconds = now_s() - start;
    return NULL;
}

int main(int argc, char **argv) {
    int count = argc - 2;
    if (count < 2) return 2;
    struct side *sides = calloc(2 * (size_t)count, sizeof *sides);
    bytes = (size_t)atoi(argv[1]) << 20;
    memory = memfd_create("ring", 0);
    if (sides == NULL || memory < 0 || ftruncate(memory, (off_t)bytes) != 0) return 3;
    pthread_barrier_init(&together, NULL, 2 * (unsigned)count);
    for (int i = 0; i < 2 * count; i++) {
        sides[i] = (struct side){.cpu = atoi(argv[2 + (i / 2 + i % 2) % count]), .writes = i % 2 == 0};
        if (pthread_create(&sides[i].thread, NULL, run, &sides[i]) != 0) return 3;
    }
    for (int i = 0; i < 2 * count; i++) {
        pthread_join(sides[i].thread, NULL);
        printf("%s %.6g\n", sides[i].writes ? "writer" : "reader", (double)bytes / sides[i].seconds);
    }
    return 0;
}
