#include "costs.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "buffer.h"
#include "clock.h"
#include "cycle.h"
#include "frequency.h"
#include "memory.h"

enum {
    PROBE_BYTES = COSTS_LEAST_BYTES << (COSTS_SIZES - 1),
    BASE_PROBE_BYTES = 4 << 20,
    HUGE_PROBE_BYTES = 32 << 20, /* more is zeroed than an L3 takes */
    HUGE_PAGE_BYTES = 2 << 20,
    BASE_PAGE_BYTES = 4096,
    MOST_STEPS = 1 << 16
};

const struct costs costs_of_slow_server = {.base_byte_s = 1e-6 / BASE_PAGE_BYTES,
                                           .huge_byte_s = 100e-6 / (1 << 20),
                                           .set_byte_s = 100e-6 / (1 << 20),
                                           .checked_page_s = 0.3e-6,
                                           .line = {{10, 20}, {10, 20}, {10, 20}},
                                           .memory_ns = 120,
                                           .flush_ns = 20,
                                           .core_hz = 2.5e9,
                                           .task_s = 6e-6,
                                           .wake_s = 33e-6};

/* To get memory and give it back, and to write all of it. The lesser of two: the host of a virtual machine may have to find it
 * first, which takes ten times as long. INFINITY where it cannot be had. */
static double byte_s(size_t size, int advice, double *set_byte_s) {
    double least_s = INFINITY, set_s = INFINITY;
    for (int i = 0; i < 2; i++) {
        double start_s = clock_thread_s();
        unsigned char *bytes = buffer_map(size, HUGE_PAGE_BYTES);
        if (bytes == NULL) return INFINITY;
        (void)madvise(bytes, size, advice); /* a kernel without huge pages has base pages alone */
        for (size_t at = 0; at < size; at += BASE_PAGE_BYTES) *(volatile unsigned char *)(bytes + at) = 1;
        double there_s = clock_thread_s();
        memset(bytes, 0, size);
        double written_s = clock_thread_s();
        munmap(bytes, size);
        set_s = fmin(set_s, written_s - there_s);
        least_s = fmin(least_s, clock_thread_s() - start_s - (written_s - there_s));
    }
    *set_byte_s = set_s / (double)size;
    return least_s / (double)size;
}

static double since_ns(double *start_s, size_t count) {
    double now_s = clock_thread_s(), took_s = now_s - *start_s;
    *start_s = now_s;
    return took_s * 1e9 / (double)count;
}

static void probe_lines(struct costs *costs, unsigned char *bytes) {
    struct random random = random_stream(1, 130, 0);
    void *at = bytes;
    double start_s;
    for (size_t i = 0; i < COSTS_SIZES; i++) {
        size_t lines = ((size_t)COSTS_LEAST_BYTES << i) / ELEMENT_BYTES,
               steps = lines < MOST_STEPS ? lines : MOST_STEPS;
        start_s = clock_thread_s();
        cycle_lay(bytes, lines, &random);
        costs->line[i].lay_ns = since_ns(&start_s, lines);
        at = cycle_follow(bytes, steps);
        costs->line[i].load_ns = since_ns(&start_s, steps);
    }
    start_s = clock_thread_s();
    flush_all(bytes, PROBE_BYTES);
    costs->flush_ns = since_ns(&start_s, PROBE_BYTES / ELEMENT_BYTES);
    cycle_follow(at, WARM_UP_STEPS);
    costs->memory_ns = since_ns(&start_s, WARM_UP_STEPS);
}

static bool bind_to(pthread_t thread, int cpu) {
    cpu_set_t *mask = CPU_ALLOC((size_t)cpu + 1);
    size_t bytes = CPU_ALLOC_SIZE((size_t)cpu + 1);
    if (mask == NULL) return false;
    CPU_ZERO_S(bytes, mask);
    CPU_SET_S((size_t)cpu, bytes, mask);
    int error = pthread_setaffinity_np(thread, bytes, mask);
    CPU_FREE(mask);
    return error == 0;
}

enum { ECHOES = 64 };

struct echo {
    sem_t there, back;
};

static void *answer(void *argument) {
    struct echo *echo = argument;
    for (int i = 0; i < ECHOES; i++) {
        while (sem_wait(&echo->there) != 0) continue;
        sem_post(&echo->back);
    }
    return NULL;
}

/* A thread on another CPU is woken and wakes this one, as a worker and the coordinator do. */
static void probe_task(struct costs *costs, int cpu) {
    struct echo echo;
    pthread_t thread;
    if (sem_init(&echo.there, 0, 0) != 0 || sem_init(&echo.back, 0, 0) != 0) return;
    if (pthread_create(&thread, NULL, answer, &echo) != 0) return;
    bool bound = bind_to(thread, cpu);
    double start_s = clock_thread_s(), began_s = clock_monotonic_s();
    for (int i = 0; i < ECHOES; i++) {
        sem_post(&echo.there);
        while (sem_wait(&echo.back) != 0) continue;
    }
    double ran_s = clock_thread_s() - start_s, took_s = clock_monotonic_s() - began_s;
    pthread_join(thread, NULL);
    if (!bound) return;
    costs->task_s = ran_s / ECHOES;
    costs->wake_s = fmax(took_s - ran_s, 0) / ECHOES;
}

static double checked_page_s(const struct machine *machine) {
    const char *verified_by;
    size_t page = (size_t)sysconf(_SC_PAGESIZE), size = BASE_PROBE_BYTES;
    unsigned char *bytes = buffer_map(size, page);
    if (bytes == NULL) return costs_of_slow_server.checked_page_s;
    (void)madvise(bytes, size, MADV_NOHUGEPAGE);
    memset(bytes, 0, size);
    double start_s = clock_thread_s();
    memory_elsewhere(machine, bytes, size, page, machine->node[0].number, &verified_by);
    double took_s = clock_thread_s() - start_s;
    munmap(bytes, size);
    return took_s * (double)page / (double)size;
}

struct costs costs_here(const struct machine *machine, const struct cpulist *cpus) {
    struct costs costs = costs_of_slow_server;
    bind_to(pthread_self(), cpus->cpu[0]);
    if (cpus->count > 1) probe_task(&costs, cpus->cpu[1]);
    double set_byte_s = 0, base_byte_s = byte_s(BASE_PROBE_BYTES, MADV_NOHUGEPAGE, &set_byte_s),
           huge_byte_s = byte_s(HUGE_PROBE_BYTES, MADV_HUGEPAGE, &set_byte_s);
    unsigned char *bytes = buffer_map(PROBE_BYTES, HUGE_PAGE_BYTES);
    if (bytes == NULL || isinf(base_byte_s + huge_byte_s)) return costs; /* whoever needs memory says so */
    costs.base_byte_s = base_byte_s;
    costs.huge_byte_s = huge_byte_s;
    costs.set_byte_s = set_byte_s;
    costs.checked_page_s = checked_page_s(machine);
    costs.core_hz = core_hz(3, 20e3);
    (void)madvise(bytes, PROBE_BYTES, MADV_HUGEPAGE);
    memset(bytes, 0, PROBE_BYTES);
    probe_lines(&costs, bytes);
    munmap(bytes, PROBE_BYTES);
    return costs;
}

/* In memory a core lays several lines at once, as no one depends on another; fewer where addresses of base pages miss. */
struct line_cost costs_line(const struct costs *costs, double bytes, bool huge) {
    const double mib = 1 << 20, l3_bytes = 32 * mib;
    size_t size = 0;
    if (bytes < mib) return (struct line_cost){10, 5};
    if (bytes >= l3_bytes) return (struct line_cost){costs->memory_ns / (huge ? 4 : 2), costs->memory_ns};
    while (size + 1 < COSTS_SIZES && bytes > 1.25 * (COSTS_LEAST_BYTES << size)) size++;
    return costs->line[size];
}

/* Steps double until a batch is long enough: it lasts from once to twice as long, and all before it as long again. All of
 * those are timed twice. */
static double chased(double load_ns, size_t batches) {
    double steps = CHASE_BATCH_NS / log(2) / load_ns;
    return (4 + (double)batches) * steps;
}

double costs_chase_s(double load_ns, size_t batches) {
    return chased(load_ns, batches) * load_ns / 1e9;
}

/* A load in each page, of which two are under way at once; the chase; and what was loaded is flushed in its order. */
double costs_chase_cold_s(const struct costs *costs, double bytes, size_t batches) {
    double loads = chased(costs->memory_ns, batches) + WARM_UP_STEPS;
    if (bytes > COLD_BYTES) loads += (bytes - COLD_BYTES) / ELEMENT_BYTES / 16;
    return (bytes / BASE_PAGE_BYTES * costs->memory_ns / 2 + loads * (costs->memory_ns + 2 * costs->flush_ns)) / 1e9;
}
