/* remap: one physical space seen at two virtual addresses, written through the one and read through the other. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness/cache.h"
#include "harness/clock.h"
#include "harness/fail.h"
#include "harness/gate.h"
#include "harness/memory.h"
#include "harness/run.h"
#include "harness/stats.h"

static const char help[] =
    "USAGE\n"
    "  remap --op pairs --cpus cores --out FILE [options]\n"
    "  example: kernels/build/remap --op pairs --cpus 0-7 --out here.jsonl\n"
    "           kernels/build/remap --op pairs --cpus 0 --same-cpu --alias different --out here.jsonl\n"
    "\n"
    "REQUIREMENTS\n"
    "  Linux on x86-64 or aarch64; --size-mib of memory, and 512 MiB of addresses. No root.\n"
    "\n"
    "OVERHEAD\n"
    "  Up to all CPUs are busy; 0.1 s for each number of pairs and pass.\n"
    "\n"
    "WARNING\n"
    "  All pairs work in the same space: the result is coherence traffic, not the bandwidth of memory.\n";

enum {
    WINDOWS = 9,
    WORDS_A_CHUNK = 512, /* 4 KiB between two looks at the clock */
    FARTHEST = 1 << 28,  /* addresses a multiple of this apart look alike to an L1 that guesses by them (Zen) */
};
static const double WINDOW_S = 10e-3;

static bool same_cpu;
static const char *alias_word = NULL;
static uint64_t size_mib = 64;

static const struct setting settings[] = {
    {.name = "same-cpu", .on = &same_cpu, .shapes = true, .help = "writer and reader of a pair take turns on one CPU"},
    {.name = "alias",
     .value = "HOW",
     .word = &alias_word,
     .shapes = true,
     .help =
         "same: the second address a multiple of 2^28 on; different: a page behind the first; only within one core"},
    {.name = "size-mib",
     .value = "N",
     .number = &size_mib,
     .lowest = 1,
     .highest = 1 << 16,
     .shapes = true,
     .help = "the space (default 64); with --alias each pair has half an L1 of it"},
    {0},
};

typedef _Atomic uint64_t word_t;

static word_t *written, *seen; /* the same words at two addresses */
static size_t space_bytes;
static size_t slice_bytes; /* of a pair: the whole space, or what its L1 holds */

static const char NOT_ONE_CORE[] = "two addresses of a line can only be in each other's way in the L1 of one core: "
                                   "--alias needs --same-cpu, or pairs of sibling threads";

struct contest {
    struct gate gate[WINDOWS];
    double (*bytes_per_s)[2]; /* by role and window: [0] written, [1] read; role * WINDOWS + window */
};

/* Relaxed atomics: the reader may see a word before or after the writer's pass, and both is fine. */
static size_t write_chunk(size_t at, size_t end, uint64_t value) {
    size_t to = at + WORDS_A_CHUNK < end ? at + WORDS_A_CHUNK : end;
    for (; at < to; at++) atomic_store_explicit(&written[at], value, memory_order_relaxed);
    return to;
}

static size_t read_chunk(size_t at, size_t end) {
    size_t to = at + WORDS_A_CHUNK < end ? at + WORDS_A_CHUNK : end;
    for (; at < to; at++) (void)atomic_load_explicit(&seen[at], memory_order_relaxed);
    return to;
}

/* One window of one worker, from the beginning of its slice, round and round. */
static void work(struct contest *contest, size_t role, size_t window) {
    bool writes = same_cpu || role % 2 == 0, reads = same_cpu || role % 2 == 1;
    size_t pair = same_cpu ? role : role / 2;
    size_t first = slice_bytes < space_bytes ? pair * slice_bytes / sizeof(word_t) : 0;
    size_t end = first + slice_bytes / sizeof(word_t), at = first;
    uint64_t words = 0, duration = (uint64_t)(WINDOW_S * clock_facts.hz);
    gate_pass(&contest->gate[window]);
    uint64_t start = clock_ticks(), now = start;
    while (now - start < duration) {
        size_t to = at;
        if (writes) to = write_chunk(at, end, words);
        if (reads) to = read_chunk(at, end);
        words += to - at;
        at = to == end ? first : to;
        now = clock_ticks();
    }
    double rate = (double)(words * sizeof(word_t)) / ((double)(now - start) * clock_facts.ns_per_tick / 1e9);
    contest->bytes_per_s[role * WINDOWS + window][0] = writes ? rate : 0;
    contest->bytes_per_s[role * WINDOWS + window][1] = reads ? rate : 0;
}

static void take_part(size_t role, void *argument) {
    for (size_t window = 0; window < WINDOWS; window++) work(argument, role, window);
}

/* ---- plan ---- */

static bool siblings_pairwise(const struct run *run) {
    bool siblings = run->chosen.count >= 2;
    for (size_t i = 0; siblings && i + 1 < run->chosen.count; i += 2) {
        struct cpulist threads = {0};
        machine_siblings(run->chosen.cpu[i], &threads);
        siblings = cpulist_has(&threads, run->chosen.cpu[i + 1]);
        cpulist_free(&threads);
    }
    return siblings;
}

static void plan(struct run *run) {
    run_begin_quietly(run);
    size_t most = same_cpu ? run->chosen.count : run->chosen.count / 2;
    if (alias_word != NULL && strcmp(alias_word, "same") != 0 && strcmp(alias_word, "different") != 0)
        fail(EXIT_BAD_INPUT, "--alias takes same or different, not %s", alias_word);
    if (most == 0) run->not_applicable = "only one CPU takes part: there is no pair";
    if (alias_word != NULL && !same_cpu && !siblings_pairwise(run)) run->not_applicable = NOT_ONE_CORE;
    if (run->not_applicable != NULL) return;
    space_bytes = (size_t)size_mib << 20;
    slice_bytes = space_bytes;
    if (alias_word != NULL) {
        size_t l1 = cache_bytes(run->chosen.cpu[0], 1);
        slice_bytes = (l1 > 0 ? l1 : 32 << 10) / 2;
        if (space_bytes < slice_bytes * most) space_bytes = slice_bytes * most;
    }
    if (space_bytes > FARTHEST) fail(EXIT_BAD_INPUT, "--size-mib must be %d at most", FARTHEST >> 20);
    for (size_t pairs = most; pairs >= 1; pairs--) run_add_unit(run, (struct unit){{(int64_t)pairs}});
}

static uint64_t memory_planned(const struct run *run) {
    (void)run;
    return space_bytes;
}

/* ---- measuring ---- */

static void touch(size_t role, void *argument) {
    (void)role;
    (void)argument;
    for (size_t at = 0; at < space_bytes / sizeof(word_t); at++)
        atomic_store_explicit(&written[at], at, memory_order_relaxed);
    for (size_t at = 0; at < space_bytes / sizeof(word_t); at++)
        (void)atomic_load_explicit(&seen[at], memory_order_relaxed); /* no fault is left for the timed part */
}

static void *map_at(unsigned char *address, int fd) {
    void *mapped = mmap(address, space_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
    if (mapped == MAP_FAILED) fail(EXIT_NOT_AS_ASKED, "the space cannot be mapped: %s", strerror(errno));
    return mapped;
}

static void prepare(struct run *run) {
    int home = machine_home_of(&run->machine, run->chosen.cpu[0]);
    size_t page = (size_t)sysconf(_SC_PAGESIZE), mapped = (space_bytes + page - 1) / page * page;
    size_t distance = alias_word != NULL && strcmp(alias_word, "different") == 0 ? mapped + page : FARTHEST;
    buffer_require_room(&run->machine, home, space_bytes);
    int fd = memfd_create("nodeprint-remap", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)space_bytes) != 0)
        fail(EXIT_NOT_AS_ASKED, "no shared memory of %zu MiB: %s", space_bytes >> 20, strerror(errno));
    unsigned char *reserved =
        mmap(NULL, distance + space_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED)
        fail(EXIT_NOT_AS_ASKED, "%zu MiB of addresses cannot be had: %s", (distance + space_bytes) >> 20,
             strerror(errno));
    written = map_at(reserved, fd);
    seen = map_at(reserved + distance, fd);
    close(fd);
    struct buffer space = {.bytes = (unsigned char *)reserved, .size = space_bytes, .home = home, .pages = "base"};
    space.bound = memory_bind(&run->machine, reserved, space_bytes, home);
    size_t toucher = memory_toucher(&run->machine, &run->workers, home);
    workers_run(&run->workers, &toucher, 1, touch, NULL);
    space.verified_by = memory_verify(&run->machine, reserved, space_bytes, page, home, space.bound);
    run_add_placement(run, "space", &space);
}

static void facts(struct run *run, bool end, struct text *members) {
    (void)run;
    if (end) return;
    text_add(members, ",\"same_cpu\":%s,\"alias\":\"%s\",\"slice_bytes\":%zu,\"address_distance_bytes\":%zu",
             same_cpu ? "true" : "false", alias_word != NULL ? alias_word : "none", slice_bytes,
             (size_t)((const unsigned char *)seen - (const unsigned char *)written));
}

static void add_rates(const struct contest *contest, size_t workers, struct text *members) {
    double total[WINDOWS], sum[2] = {0};
    size_t low, high;
    for (size_t window = 0; window < WINDOWS; window++) {
        total[window] = 0;
        for (size_t role = 0; role < workers; role++)
            for (size_t i = 0; i < 2; i++) {
                total[window] += contest->bytes_per_s[role * WINDOWS + window][i];
                sum[i] += contest->bytes_per_s[role * WINDOWS + window][i] / WINDOWS;
            }
    }
    sort_ascending(total, WINDOWS);
    median_interval(WINDOWS, 0.95, &low, &high);
    text_add(members,
             ",\"rate_bytes_per_s\":%.6g,\"ci_low_bytes_per_s\":%.6g,\"ci_high_bytes_per_s\":%.6g,"
             "\"written_bytes_per_s\":%.6g,\"read_bytes_per_s\":%.6g",
             median_sorted(total, WINDOWS), total[low], total[high], sum[0], sum[1]);
}

static unsigned measure(struct run *run, uint32_t pass, const struct unit *unit, struct text *members) {
    (void)pass;
    size_t pairs = (size_t)unit->key[0], workers = same_cpu ? pairs : 2 * pairs;
    struct contest *contest = aligned_alloc(alignof(struct contest), sizeof *contest);
    size_t *roles = grow(NULL, workers, sizeof *roles);
    if (contest == NULL) fail(EXIT_NOT_AS_ASKED, "out of memory");
    contest->bytes_per_s = grow(NULL, workers * WINDOWS, sizeof *contest->bytes_per_s);
    for (size_t window = 0; window < WINDOWS; window++) gate_set(&contest->gate[window], workers);
    for (size_t i = 0; i < workers; i++) roles[i] = workers_on(&run->workers, run->chosen.cpu[i]);
    workers_run(&run->workers, roles, workers, take_part, contest);
    add_rates(contest, workers, members);
    free(contest->bytes_per_s);
    free(contest);
    free(roles);
    return 0;
}

static double plan_seconds(const struct run *run, const struct unit *unit, double hop_ns) {
    (void)run;
    (void)unit;
    (void)hop_ns;
    return WINDOWS * WINDOW_S * 1.1;
}

static const struct operation operations[] = {
    {.name = "pairs",
     .summary = "a writer and a reader a pair, on neighbours in --cpus, from all pairs down to one",
     .quantity = "rate",
     .unit = "B/s",
     .record = "cell",
     .values = "\"rate_bytes_per_s\":\"B/s\",\"ci_low_bytes_per_s\":\"B/s\",\"ci_high_bytes_per_s\":\"B/s\","
               "\"written_bytes_per_s\":\"B/s\",\"read_bytes_per_s\":\"B/s\"",
     .keys = {"pairs"},
     .plan = plan,
     .memory = memory_planned,
     .prepare = prepare,
     .facts = facts,
     .measure = measure,
     .seconds = plan_seconds},
};

KERNEL_MAIN("remap", settings)
