#include "costs.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "buffer.h"
#include "cache.h"
#include "clock.h"
#include "cycle.h"
#include "fail.h"
#include "frequency.h"
#include "gate.h"
#include "memory.h"

enum {
    PROBE_BYTES = COSTS_LEAST_BYTES << (COSTS_SIZES - 1),
    CHECKED_BYTES = 4 << 20,
    HUGE_PAGE_BYTES = 2 << 20,
    BASE_PAGE_BYTES = 4096,
    COLD_PAGES = COLD_BYTES / BASE_PAGE_BYTES,
    COLD_LINES = COLD_BYTES / ELEMENT_BYTES,
    MOST_STEPS = 1 << 14,
    COLD_STEPS = 4096,
    FEW_CPUS = 4, /* of a socket: each streams through COLD_BYTES, of more through a quarter of that */
};

const struct costs costs_of_slow_server = {
    .base_byte_s = 1e-6 / BASE_PAGE_BYTES,
    .huge_byte_s = 100e-6 / (1 << 20),
    .set_byte_s = 100e-6 / (1 << 20),
    .checked_page_s = 0.3e-6,
    .line = {{10, 20}, {10, 20}, {10, 20}},
    .cold = {{{60, 120}, 60, 120, 40}, {{30, 120}, 60, 120, 40}},
    .store_ns = 7,
    .flush_ns = 6,
    .read_ns = 1.1,
    .shared_ns = 180,
    .cache_bytes_per_s = {{[LOAD] = 50e9, [STORE] = 50e9, [COPY] = 50e9},
                          {[LOAD] = 25e9, [STORE] = 25e9, [COPY] = 25e9},
                          {[LOAD] = 8e9, [STORE] = 8e9, [COPY] = 8e9}},
    .core_bytes_per_s = {20e9, 20e9, 13e9, 20e9, 15e9, 20e9, 10e9, 26e9, 26e9, 26e9},
    .socket_bytes_per_s = {150e9, 150e9, 100e9, 150e9, 112e9, 150e9, 75e9, 150e9, 150e9, 150e9},
    .core_hz = 2.5e9,
    .task_s = 6e-6,
    .wake_s = 33e-6};

static unsigned char *map(size_t size, bool huge) {
    unsigned char *bytes = buffer_map(size, HUGE_PAGE_BYTES);
    if (bytes != NULL)
        (void)madvise(bytes, size, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE); /* it may have base pages alone */
    return bytes;
}

static double since_ns(double *start_s, size_t count) {
    double now_s = clock_thread_s(), took_s = now_s - *start_s;
    *start_s = now_s;
    return took_s * 1e9 / (double)count;
}

/* To get so much memory and give it back. The least of some: the host of a virtual machine may have to find it first, which
 * takes ten times as long. INFINITY where it cannot be had. */
static double byte_s(size_t size, bool huge) {
    double least_s = INFINITY;
    for (int i = 0; i < 4; i++) {
        double start_s = clock_thread_s();
        unsigned char *bytes = map(size, huge);
        if (bytes == NULL) return INFINITY;
        for (size_t at = 0; at < size; at += BASE_PAGE_BYTES) *(volatile unsigned char *)(bytes + at) = 1;
        munmap(bytes, size);
        least_s = fmin(least_s, clock_thread_s() - start_s);
    }
    return least_s / (double)size;
}

/* Memory of `size` bytes, which are written twice. NULL where it cannot be had. */
static unsigned char *written(size_t size, bool huge, double *set_byte_s) {
    unsigned char *bytes = map(size, huge);
    if (bytes == NULL) return NULL;
    memset(bytes, 0, size);
    double start_s = clock_thread_s();
    memset(bytes, 0, size);
    *set_byte_s = (clock_thread_s() - start_s) / (double)size;
    return bytes;
}

static void read_lines(const unsigned char *bytes, size_t size) {
    for (size_t at = 0; at < size; at += ELEMENT_BYTES) (void)*(const volatile unsigned char *)(bytes + at);
}

static void probe_lines(struct costs *costs, unsigned char *bytes, size_t l2_bytes) {
    enum { FEW_BYTES = 1 << 20 };
    struct random random = random_stream(1, 130, 0);
    double start_s;
    for (size_t i = 0; i < COSTS_SIZES; i++) {
        size_t lines = ((size_t)COSTS_LEAST_BYTES << i) / ELEMENT_BYTES,
               steps = lines < MOST_STEPS ? lines : MOST_STEPS;
        start_s = clock_thread_s();
        cycle_lay(bytes, lines, &random);
        costs->line[i].lay_ns = since_ns(&start_s, lines);
        void *at = cycle_follow(bytes, lines);
        start_s = clock_thread_s();
        cycle_follow(at, steps);
        costs->line[i].load_ns = since_ns(&start_s, steps);
    }
    cycle_begin(bytes, FEW_BYTES / ELEMENT_BYTES);
    start_s = clock_thread_s();
    flush_all(bytes, FEW_BYTES);
    costs->flush_ns = since_ns(&start_s, FEW_BYTES / ELEMENT_BYTES);
    cycle_begin(bytes, FEW_BYTES / ELEMENT_BYTES);
    costs->store_ns = since_ns(&start_s, FEW_BYTES / ELEMENT_BYTES);
    size_t read_bytes = l2_bytes > 0 && 4 * l2_bytes < COLD_BYTES ? 4 * l2_bytes : COSTS_LEAST_BYTES;
    read_lines(bytes, read_bytes);
    start_s = clock_thread_s();
    read_lines(bytes, read_bytes);
    costs->read_ns = since_ns(&start_s, read_bytes / ELEMENT_BYTES);
}

/* In memory as large as that of a cold chase, a part of what is done there: an eighth of the lines is led to itself, a few
 * are joined, and a line of each page is chased. */
static void probe_cold(struct cold_cost *cost, unsigned char *bytes) {
    enum { BEGUN = COLD_LINES / 8, JOINED = 16384 };
    static uint32_t order[COLD_PAGES];
    struct random random = random_stream(1, 131, 0);
    double start_s = clock_thread_s();
    cycle_begin(bytes, BEGUN);
    cost->line.lay_ns = since_ns(&start_s, BEGUN);
    cycle_join(bytes, COLD_LINES - JOINED, COLD_LINES, &random);
    cost->line.lay_ns += since_ns(&start_s, JOINED);
    shuffled(&random, order, COLD_PAGES);
    for (size_t i = 0; i < COLD_PAGES; i++)
        order[i] = order[i] * (BASE_PAGE_BYTES / ELEMENT_BYTES) +
                   (uint32_t)random_below(&random, BASE_PAGE_BYTES / ELEMENT_BYTES);
    unsigned char *first = bytes + (size_t)order[0] * ELEMENT_BYTES;
    cycle_link(bytes, order, COLD_PAGES);
    read_lines(bytes, COLD_BYTES);
    start_s = clock_thread_s();
    cycle_follow(first, COLD_STEPS);
    cost->line.load_ns = since_ns(&start_s, COLD_STEPS);
    cycle_flush(first, COLD_PAGES);
    start_s = clock_thread_s();
    cycle_translate(bytes, COLD_BYTES);
    cost->translate_ns = since_ns(&start_s, COLD_PAGES);
    void *warm = cycle_follow(first, WARM_UP_STEPS);
    start_s = clock_thread_s();
    cycle_follow(warm, COLD_STEPS);
    cost->load_ns = since_ns(&start_s, COLD_STEPS);
    cycle_flush(first, WARM_UP_STEPS + COLD_STEPS);
    cost->leave_ns = since_ns(&start_s, WARM_UP_STEPS + COLD_STEPS);
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

enum { ECHOES = 64, SHARED_BYTES = 4 << 20 };
static const double LONGEST_ECHOES_S = 30e-3; /* where other programs have that CPU */

struct echo {
    sem_t there, back;
    bool over; /* with this one */
    struct gate gate;
    int shared;     /* memory of SHARED_BYTES; -1 where no lines are shared */
    double line_ns; /* of them, by the other CPU */
};

typedef _Atomic uint64_t word_t;

/* Chunks of lines are written in one mapping and read in another, as by each CPU of remap's ring. */
static void share_lines(word_t *to, const word_t *from) {
    enum { LINE = ELEMENT_BYTES / sizeof(word_t), CHUNK = 256 * LINE, ALL = SHARED_BYTES / sizeof(word_t) };
    for (size_t chunk = 0; chunk < ALL; chunk += CHUNK) {
        for (size_t at = chunk; at < chunk + CHUNK; at += LINE) {
            atomic_store_explicit(&to[at], at, memory_order_relaxed);
            cache_fence();
        }
        for (size_t at = chunk; at < chunk + CHUNK; at += LINE) {
            (void)atomic_load_explicit(&from[at], memory_order_relaxed);
            cache_fence();
        }
    }
}

/* Both begin each round together. In the first one pages are mapped. */
static double shared_ns(struct echo *echo) {
    enum { ROUNDS = 3 };
    word_t *words[2];
    bool mapped = echo->shared >= 0;
    double start_s = 0, took_s = 0;
    for (size_t i = 0; i < 2 && mapped; i++) {
        words[i] = mmap(NULL, SHARED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, echo->shared, 0);
        mapped = words[i] != MAP_FAILED;
    }
    for (size_t round = 1; round <= ROUNDS; round++) {
        gate_pass_again(&echo->gate, round);
        start_s = clock_thread_s();
        if (mapped) share_lines(words[0], words[1]);
        if (round > 1) took_s += clock_thread_s() - start_s;
    }
    for (size_t i = 0; i < 2 && mapped; i++) munmap(words[i], SHARED_BYTES);
    return mapped ? took_s * 1e9 / (ROUNDS - 1) * ELEMENT_BYTES / SHARED_BYTES : NAN;
}

static void *answer(void *argument) {
    struct echo *echo = argument;
    bool over = false;
    while (!over) {
        while (sem_wait(&echo->there) != 0) continue;
        over = echo->over;
        sem_post(&echo->back);
    }
    echo->line_ns = shared_ns(echo);
    return NULL;
}

/* A thread on another CPU is woken and wakes this one, as a worker and the coordinator do; then both may share lines. */
static void probe_other(struct costs *costs, int cpu, bool shared) {
    struct echo echo = {.shared = shared ? memfd_create("nodeprint-probe", MFD_CLOEXEC) : -1};
    if (echo.shared >= 0 && ftruncate(echo.shared, SHARED_BYTES) != 0) return;
    pthread_t thread;
    gate_set(&echo.gate, 2);
    if (sem_init(&echo.there, 0, 0) != 0 || sem_init(&echo.back, 0, 0) != 0) return;
    if (pthread_create(&thread, NULL, answer, &echo) != 0) return;
    bool bound = bind_to(thread, cpu);
    double start_s = clock_thread_s(), began_s = clock_monotonic_s();
    size_t echoes = 0;
    while (!echo.over) {
        echo.over = ++echoes == ECHOES || clock_monotonic_s() - began_s > LONGEST_ECHOES_S;
        sem_post(&echo.there);
        while (sem_wait(&echo.back) != 0) continue;
    }
    double ran_s = clock_thread_s() - start_s, took_s = clock_monotonic_s() - began_s;
    double line_ns = shared_ns(&echo);
    pthread_join(thread, NULL);
    if (echo.shared >= 0) close(echo.shared);
    if (!bound) return;
    costs->task_s = ran_s / (double)echoes;
    costs->wake_s = fmax(took_s - ran_s, 0) / (double)echoes;
    if (isfinite(line_ns + echo.line_ns)) costs->shared_ns = fmax(line_ns, echo.line_ns);
}

static double checked_page_s(const struct machine *machine, const unsigned char *bytes) {
    const char *verified_by;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    double least_s = INFINITY;
    for (int i = 0; i < 2; i++) { /* as behind each pass: what the system has of these pages is in a cache */
        double start_s = clock_thread_s();
        memory_elsewhere(machine, bytes, CHECKED_BYTES, page, machine->node[0].number, &verified_by);
        least_s = fmin(least_s, clock_thread_s() - start_s);
    }
    return least_s * (double)page / CHECKED_BYTES;
}

/* ---- streams ---- */

enum { PARTS = 8 };

struct crowd {
    struct gate gate;
    sem_t begin;
    size_t part_bytes;
    struct member {
        struct crowd *crowd;
        pthread_t thread;
        int cpu;
        unsigned char *bytes; /* PARTS of them */
        double bytes_per_s[STREAMS];
    } * members;
};

/* Round and round in a half of an L1, of an L2, and in four times an L2. */
static void probe_caches(struct costs *costs, unsigned char *bytes, int cpu) {
    enum { MOVED_BYTES = 16 << 20 };
    static const enum stream streams[] = {LOAD, STORE, COPY};
    for (size_t level = 0; level < CACHE_LEVELS; level++) {
        size_t size = power_of_two_within(level == 2 ? 4 * cache_bytes(cpu, 2) : cache_bytes(cpu, (int)level + 1) / 2);
        for (size_t s = 0; size / 2 >= TURN_BYTES && size <= MOVED_BYTES && s < 3; s++) {
            size_t each = size / stream_arrays(streams[s]), all = MOVED_BYTES / stream_arrays(streams[s]);
            unsigned char *array[MOST_ARRAYS] = {bytes, bytes + each};
            stream_loop_of(streams[s])(array, each, each - 1);
            double start_s = clock_thread_s();
            stream_loop_of(streams[s])(array, all, each - 1);
            costs->cache_bytes_per_s[level][streams[s]] = MOVED_BYTES / (clock_thread_s() - start_s);
        }
    }
}

/* All streams, each through the next part, so that little of it is still in a cache. */
static void stream_all(struct member *member) {
    struct crowd *crowd = member->crowd;
    gate_pass(&crowd->gate);
    for (size_t s = 0; s < STREAMS; s++) {
        enum stream stream = (enum stream)s;
        size_t row = stream_arrays(stream) * STREAM_CHUNK_BYTES;
        size_t slice = ((crowd->part_bytes / row - 1) | 1) * row; /* of an odd number of chunks, as bandwidth's */
        unsigned char *part = member->bytes + s % PARTS * crowd->part_bytes;
        double start_s = clock_thread_s();
        for (size_t at = 0; at < slice / stream_arrays(stream); at += STREAM_CHUNK_BYTES)
            stream_chunk(stream, part, slice, at);
        member->bytes_per_s[s] = (double)stream_counted(stream, slice) / (clock_thread_s() - start_s);
    }
}

static void *take_part(void *argument) {
    struct member *member = argument;
    bind_to(pthread_self(), member->cpu);
    memset(member->bytes, 0, PARTS * member->crowd->part_bytes);
    while (sem_wait(&member->crowd->begin) != 0) continue;
    stream_all(member);
    return NULL;
}

/* The rates of all of them at once: as many times the slowest one's, as a sweep ends with the last. */
static void stream_at_once(struct crowd *crowd, size_t count, double *bytes_per_s) {
    gate_set(&crowd->gate, count);
    for (size_t i = 1; i < count; i++) sem_post(&crowd->begin);
    stream_all(&crowd->members[0]);
    for (size_t i = 1; i < count; i++) pthread_join(crowd->members[i].thread, NULL);
    for (size_t s = 0; s < STREAMS; s++) {
        bytes_per_s[s] = INFINITY;
        for (size_t i = 0; i < count; i++)
            bytes_per_s[s] = fmin(bytes_per_s[s], (double)count * crowd->members[i].bytes_per_s[s]);
    }
}

/* In COLD_BYTES of the calling thread, and as much or less of each other CPU of its socket. */
/* NOLINTNEXTLINE(readability-non-const-parameter): the members write there */
static void probe_streams(unsigned char *bytes, struct costs *costs, const struct machine *machine,
                          const struct cpulist *socket) {
    struct crowd crowd = {.part_bytes = (size_t)COLD_BYTES / PARTS / (socket->count > FEW_CPUS ? 4 : 1)};
    size_t each = PARTS * crowd.part_bytes, count = 1, all = each * socket->count;
    if (sem_init(&crowd.begin, 0, 0) != 0) return;
    crowd.members = grow(NULL, socket->count, sizeof *crowd.members);
    crowd.members[0] = (struct member){.crowd = &crowd, .bytes = bytes};
    stream_at_once(&crowd, 1, costs->core_bytes_per_s);
    if (buffer_affordable(machine, machine_home_of(machine, socket->cpu[0]), all, 1) >= all)
        for (; count < socket->count; count++) {
            struct member *member = &crowd.members[count];
            *member = (struct member){.crowd = &crowd, .cpu = socket->cpu[count], .bytes = map(each, true)};
            if (member->bytes == NULL) break;
            if (pthread_create(&member->thread, NULL, take_part, member) == 0) continue;
            munmap(member->bytes, each);
            break;
        }
    double together[STREAMS];
    stream_at_once(&crowd, count, together);
    if (count == socket->count) memcpy(costs->socket_bytes_per_s, together, sizeof together);
    for (size_t i = 1; i < count; i++) munmap(crowd.members[i].bytes, each);
    free(crowd.members);
}

/* ---- */

struct costs costs_here(const struct machine *machine, const struct cpulist *cpus, const struct cpulist *socket,
                        unsigned probes) {
    enum { FEW_BYTES = 8 << 20, MORE_BYTES = 32 << 20 }; /* more are zeroed than an L3 takes */
    struct costs costs = costs_of_slow_server;
    size_t size = probes != 0 ? COLD_BYTES : MORE_BYTES,
           base_size = (probes & PROBE_COLD) != 0 ? COLD_BYTES : FEW_BYTES;
    bind_to(pthread_self(), cpus->cpu[0]);
    costs.base_byte_s = byte_s(FEW_BYTES, false);
    costs.huge_byte_s = byte_s(MORE_BYTES, true);
    unsigned char *base = written(base_size, false, &costs.set_byte_s), *huge = written(size, true, &costs.set_byte_s);
    if (base == NULL || huge == NULL || isinf(costs.base_byte_s + costs.huge_byte_s))
        return costs_of_slow_server; /* whoever needs memory says so */
    if (cpus->count > 1) probe_other(&costs, cpus->cpu[1], (probes & PROBE_SHARED) != 0);
    costs.checked_page_s = checked_page_s(machine, base);
    costs.core_hz = core_hz(3, 20e3);
    if ((probes & PROBE_LINES) != 0) probe_lines(&costs, huge, cache_bytes(cpus->cpu[0], 2));
    if ((probes & PROBE_COLD) != 0) {
        probe_cold(&costs.cold[0], base);
        probe_cold(&costs.cold[1], huge);
    }
    if ((probes & PROBE_CACHES) != 0) probe_caches(&costs, huge, cpus->cpu[0]);
    if ((probes & PROBE_STREAMS) != 0) probe_streams(huge, &costs, machine, socket);
    munmap(base, base_size);
    munmap(huge, size);
    return costs;
}

/* Above 64 MiB caches hold a smaller share of it. */
struct line_cost costs_line(const struct costs *costs, double bytes, bool huge) {
    const double mib = 1 << 20, most = COLD_BYTES;
    const struct cold_cost *cold = &costs->cold[huge];
    size_t size = 0;
    if (bytes < mib) return (struct line_cost){10, 5};
    if (bytes >= most / 2) {
        double cached_ns = fmax(cold->load_ns - cold->line.load_ns, 0) * fmin(most / bytes, 1);
        return (struct line_cost){cold->line.lay_ns, cold->load_ns - cached_ns};
    }
    while (size + 1 < COSTS_SIZES && bytes > 1.25 * (COSTS_LEAST_BYTES << size)) size++;
    return costs->line[size];
}

/* Half a batch twice, with all shorter ones before it as long again, and of each some steps more than needed. */
static double chased(double load_ns, size_t batches) {
    return (1.5 + (double)batches) * (CHASE_BATCH_NS / load_ns + UNROLLED / 2.0);
}

double costs_chase_s(double load_ns, size_t batches) {
    return chased(load_ns, batches) * load_ns / 1e9;
}

double costs_chase_cold_s(const struct costs *costs, double bytes, bool huge, size_t batches) {
    const struct cold_cost *cold = &costs->cold[huge];
    double loads = chased(cold->load_ns, batches) + WARM_UP_STEPS;
    if (bytes > COLD_BYTES) loads += (bytes - COLD_BYTES) / ELEMENT_BYTES / 16;
    return (bytes / BASE_PAGE_BYTES * cold->translate_ns + loads * (cold->load_ns + cold->leave_ns)) / 1e9;
}
