/* remap: the same memory at two addresses, written through the one and read through the other. */
#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
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
    "  remap --op ring --cpus cores --out FILE [options]\n"
    "  example: kernels/build/remap --op ring --cpus 0-7 --out here.jsonl\n"
    "           kernels/build/remap --op pairs --cpus 0 --same-cpu --alias different --out here.jsonl\n"
    "\n"
    "REQUIREMENTS\n"
    "  Linux on x86-64 or aarch64; --size-mib of memory, and addresses for two mappings of it a pair. No root.\n"
    "\n"
    "OVERHEAD\n"
    "  Up to all CPUs are busy; 0.1 s for each number of pairs and pass, and a few seconds for the ring.\n"
    "\n"
    "WARNING\n"
    "  All pairs work in the same memory: the result is coherence traffic, not the bandwidth of memory. The mappings "
    "are\n"
    "  made once and stay (double mapping): it does not measure what changing a mapping costs.\n";

enum {
    HUGE_PAGE_BYTES = 2 << 20,
    LINES_A_CHUNK = 256, /* 16 KiB between two looks at the clock */
    MOST_CHUNKS = 32768, /* whose times are kept */
    FARTHEST = 1 << 28,  /* addresses a multiple of this apart look alike to an L1 that guesses by them (Zen) */
    EACH_NUMBER_UP_TO = 16,
};
static const double PAIRS_S = 0.1;

static bool same_cpu;
static const char *alias_word = NULL;
static uint64_t size_mib;
static bool huge_pages, unpopulated;
static int memory_file = -1; /* of which pairs map; kept where mappings are made anew */

static const struct setting settings[] = {
    {.name = "same-cpu", .on = &same_cpu, .shapes = true, .help = "writer and reader of a pair take turns on one CPU"},
    {.name = "alias",
     .value = "HOW",
     .word = &alias_word,
     .shapes = true,
     .only = "pairs",
     .help =
         "same: the second address a multiple of 2^28 on; different: a page behind the first; only within one core"},
    {.name = "size-mib",
     .value = "N",
     .number = &size_mib,
     .lowest = 1,
     .highest = 1 << 16,
     .shapes = true,
     .help = "the memory (default 64, ring 4); with --alias each pair has half an L1 of it"},
    {.name = "huge-pages", .on = &huge_pages, .shapes = true, .help = "in huge pages that are reserved"},
    {.name = "unpopulated",
     .on = &unpopulated,
     .shapes = true,
     .help = "map anew before each trial, so that faults on every page are in it, as xcpumemperf by default"},
    {0},
};

typedef _Atomic uint64_t word_t;
enum { WORDS_A_LINE = LINE_BYTES / sizeof(word_t), CHUNK_BYTES = LINES_A_CHUNK * LINE_BYTES };

/* A writer and a reader, each with a mapping of its own that it may only write or only read. Both are workers. */
struct pair_of_mappings {
    word_t *written;
    const word_t *seen;
    size_t writer, reader;
};

static struct pair_of_mappings *pairs;
static size_t pair_count;
static size_t space_bytes;
static size_t slice_bytes;   /* of a pair: the whole memory, or what its L1 holds */
static size_t address_bytes; /* from the one address of a pair to the other */

static const char NOT_ONE_CORE[] = "two addresses of a line can only be in each other's way in the L1 of one core: "
                                   "--alias needs --same-cpu, or pairs of sibling threads";

/* ---- what a worker does ---- */

/* The times of chunks that one worker wrote or read, in ticks. */
struct way {
    double ticks[MOST_CHUNKS];
    size_t kept;
    uint64_t chunks;
    double own_s, end_s,
        staggered_s; /* in it; to the end of its last chunk from the common start, from its own waking */
};

struct side {
    struct way written, seen;
};

struct contest {
    struct gate gate;
    size_t pairs;      /* those with lower numbers take part */
    double duration_s; /* 0: until all of the memory was gone through */
    const size_t *workers;
    struct side **sides; /* by role */
};

/* A word of each line and a full fence: the other words of a line cost nothing more. Relaxed atomics: the reader may see
 * a word before or after the writer's pass, and both is fine. */
static void write_chunk(word_t *at, uint64_t value) {
    for (size_t line = 0; line < LINES_A_CHUNK; line++) {
        atomic_store_explicit(&at[line * WORDS_A_LINE], value, memory_order_relaxed);
        cache_fence();
    }
}

static void read_chunk(const word_t *at) {
    for (size_t line = 0; line < LINES_A_CHUNK; line++) {
        (void)atomic_load_explicit(&at[line * WORDS_A_LINE], memory_order_relaxed);
        cache_fence();
    }
}

static void count_chunk(struct way *way, uint64_t begin, uint64_t start, uint64_t woken) {
    uint64_t now = clock_ticks();
    double seconds_a_tick = clock_facts.ns_per_tick / 1e9;
    if (way->kept < MOST_CHUNKS) way->ticks[way->kept++] = (double)(now - begin);
    way->chunks++;
    way->own_s += (double)(now - begin) * seconds_a_tick;
    way->end_s = (double)(now - start) * seconds_a_tick;
    way->staggered_s = (double)(now - woken) * seconds_a_tick;
}

/* By chunks in turns: writes for the pair whose writer it is, reads for the one whose reader it is. */
static void take_part(size_t role, void *argument) {
    struct contest *contest = argument;
    uint64_t woken = clock_ticks();
    size_t worker = contest->workers[role], words_a_chunk = CHUNK_BYTES / sizeof(word_t);
    struct side *side = contest->sides[role];
    const struct pair_of_mappings *writes = NULL, *reads = NULL;
    for (size_t p = 0; p < contest->pairs; p++) {
        if (pairs[p].writer == worker) writes = &pairs[p];
        if (pairs[p].reader == worker) reads = &pairs[p];
    }
    size_t chunks = slice_bytes / CHUNK_BYTES, slices = slice_bytes < space_bytes;
    gate_pass(&contest->gate);
    uint64_t start = clock_ticks();
    double duration = contest->duration_s * clock_facts.hz;
    for (uint64_t turn = 0; duration > 0 ? turn == 0 || (double)(clock_ticks() - start) < duration : turn < chunks;
         turn++) {
        size_t at = turn % chunks * words_a_chunk;
        uint64_t begin = clock_ticks();
        if (writes != NULL) {
            write_chunk(writes->written + at + slices * (size_t)(writes - pairs) * slice_bytes / sizeof(word_t), turn);
            count_chunk(&side->written, begin, start, woken);
            begin = clock_ticks();
        }
        if (reads != NULL) {
            read_chunk(reads->seen + at + slices * (size_t)(reads - pairs) * slice_bytes / sizeof(word_t));
            count_chunk(&side->seen, begin, start, woken);
        }
    }
}

/* ---- plan ---- */

static bool same_core(const struct run *run, size_t i, size_t j) {
    return run->selection.place[i].core == run->selection.place[j].core;
}

/* The ring: every CPU writes for a pair of its own, and reads for that of a CPU before it on another core: the next but
 * as many as a core has threads. With --alias beyond one CPU pairs are of siblings. */
static void make_pairs(struct run *run) {
    size_t cpus = run->chosen.count, step = 0, first = run_worker(run, run->chosen.cpu[0]);
    while (!same_cpu && alias_word == NULL && step + 1 < cpus &&
           (step == 0 || same_core(run, first, run_worker(run, run->chosen.cpu[step]))))
        step++;
    pairs = grow(NULL, cpus, sizeof *pairs);
    bool siblings = alias_word != NULL && !same_cpu;
    for (size_t i = 0; i < cpus; i += siblings ? 2 : 1) {
        size_t reader = siblings ? i + 1 : (i + step) % cpus;
        if (reader >= cpus) break;
        pairs[pair_count++] = (struct pair_of_mappings){.writer = run_worker(run, run->chosen.cpu[i]),
                                                        .reader = run_worker(run, run->chosen.cpu[reader])};
    }
}

static bool siblings_pairwise(const struct run *run) {
    bool siblings = run->chosen.count >= 2;
    for (size_t i = 0; siblings && i + 1 < run->chosen.count; i += 2)
        siblings = same_core(run, run_worker(run, run->chosen.cpu[i]), run_worker(run, run->chosen.cpu[i + 1]));
    return siblings;
}

static void begin_plan(struct run *run, uint64_t default_mib) {
    run_begin_quietly(run);
    if (alias_word != NULL && strcmp(alias_word, "same") != 0 && strcmp(alias_word, "different") != 0)
        fail(EXIT_BAD_INPUT, "--alias takes same or different, not %s", alias_word);
    if (!same_cpu && run->chosen.count < 2) run->not_applicable = "only one CPU takes part: there is no pair";
    if (alias_word != NULL && !same_cpu && !siblings_pairwise(run)) run->not_applicable = NOT_ONE_CORE;
    if (run->not_applicable != NULL) return;
    make_pairs(run);
    space_bytes = (size_t)(size_mib > 0 ? size_mib : default_mib) << 20;
    slice_bytes = space_bytes;
    if (alias_word != NULL) {
        size_t l1 = cache_bytes(run->chosen.cpu[0], 1);
        slice_bytes = (l1 > 0 ? l1 : 32 << 10) / 2;
        if (space_bytes < slice_bytes * pair_count) space_bytes = slice_bytes * pair_count;
    }
    if (space_bytes > FARTHEST) fail(EXIT_BAD_INPUT, "--size-mib must be %d at most", FARTHEST >> 20);
}

static void plan_pairs(struct run *run) {
    begin_plan(run, 64);
    for (size_t n = 1; n <= pair_count; n++)
        if (n <= EACH_NUMBER_UP_TO || n == pair_count || (n & (n - 1)) == 0)
            run_add_unit(run, (struct unit){{(int64_t)n}});
}

/* All pairs are measured at once, with the first unit of a pass. */
static void plan_ring(struct run *run) {
    begin_plan(run, 4);
    for (size_t p = 0; p < pair_count; p++)
        run_add_unit(
            run, (struct unit){{run->selection.cpus.cpu[pairs[p].writer], run->selection.cpus.cpu[pairs[p].reader]}});
}

static uint64_t memory_planned(const struct run *run) {
    (void)run;
    return space_bytes;
}

/* ---- memory ---- */

static void touch_first(size_t role, void *argument) {
    (void)role;
    (void)argument;
    for (size_t at = 0; at < space_bytes / sizeof(word_t); at += WORDS_A_LINE)
        atomic_store_explicit(&pairs[0].written[at], at, memory_order_relaxed);
}

/* Each through its own mappings, so that no fault is left for the timed part. */
static void touch_own(size_t role, void *argument) {
    enum { PAGE_WORDS = 4096 / sizeof(word_t) };
    (void)argument;
    for (size_t p = 0; p < pair_count; p++)
        for (size_t at = 0; at < space_bytes / sizeof(word_t); at += PAGE_WORDS) {
            if (pairs[p].writer == role) atomic_store_explicit(&pairs[p].written[at], at, memory_order_relaxed);
            if (pairs[p].reader == role) (void)atomic_load_explicit(&pairs[p].seen[at], memory_order_relaxed);
        }
}

static void *map_at(unsigned char *address, int protection, int fd) {
    void *mapped = mmap(address, space_bytes, protection, MAP_SHARED | MAP_FIXED, fd, 0);
    if (mapped == MAP_FAILED) fail(EXIT_NOT_AS_ASKED, "the memory cannot be mapped: %s", strerror(errno));
    return mapped;
}

static void map_pair(struct pair_of_mappings *pair, int fd) {
    size_t bytes = address_bytes + space_bytes;
    unsigned char *reserved = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED)
        fail(EXIT_NOT_AS_ASKED, "%zu MiB of addresses cannot be had: %s", bytes >> 20, strerror(errno));
    pair->written = map_at(reserved, PROT_WRITE, fd);
    pair->seen = map_at(reserved + address_bytes, PROT_READ, fd);
}

/* Both mappings of each pair once more, without a page in them. */
static void map_anew(void) {
    for (size_t p = 0; p < pair_count; p++) {
        unsigned char *written = (unsigned char *)pairs[p].written;
        map_at(written, PROT_WRITE, memory_file);
        map_at(written + address_bytes, PROT_READ, memory_file);
    }
}

static int shared_memory(void) {
    unsigned flags = MFD_CLOEXEC | (huge_pages ? MFD_HUGETLB : 0);
    int fd = memfd_create("nodeprint-remap", flags);
    if (fd < 0 || ftruncate(fd, (off_t)space_bytes) != 0)
        fail(EXIT_NOT_AS_ASKED, "no shared memory of %zu MiB%s: %s", space_bytes >> 20,
             huge_pages ? " in huge pages" : "", strerror(errno));
    return fd;
}

/* Huge pages that are not there end the process only where they are touched; a populated mapping says so. */
static void require_huge_pages(void) {
    void *all = mmap(NULL, space_bytes, PROT_WRITE, MAP_SHARED | MAP_POPULATE, memory_file, 0);
    if (all == MAP_FAILED)
        fail(EXIT_NOT_AS_ASKED, "%zu MiB in huge pages cannot be had (%s): reserve them in vm.nr_hugepages",
             space_bytes >> 20, strerror(errno));
    munmap(all, space_bytes);
}

static void prepare(struct run *run) {
    int home = machine_home_of(&run->machine, run->chosen.cpu[0]);
    size_t page = huge_pages ? HUGE_PAGE_BYTES : (size_t)sysconf(_SC_PAGESIZE),
           mapped = (space_bytes + page - 1) / page * page;
    address_bytes = alias_word != NULL && strcmp(alias_word, "same") == 0 ? FARTHEST : mapped + page;
    buffer_require_room(&run->machine, home, space_bytes);
    memory_file = shared_memory();
    if (huge_pages) require_huge_pages();
    for (size_t p = 0; p < pair_count; p++) map_pair(&pairs[p], memory_file);
    unsigned char *bytes = (unsigned char *)pairs[0].written;
    struct buffer space = {.bytes = bytes, .size = space_bytes, .home = home, .pages = huge_pages ? "huge" : "base"};
    space.bound = memory_bind(&run->machine, bytes, space_bytes, home);
    size_t toucher = memory_toucher(&run->machine, &run->workers, home);
    workers_run(&run->workers, &toucher, 1, touch_first, NULL);
    space.verified_by = memory_verify(&run->machine, bytes, space_bytes, page, home, space.bound);
    run_add_placement(run, "space", &space);
    if (unpopulated) run->watched_count = 0; /* mapped anew before each trial: no page is there to be asked for */
    size_t *all = grow(NULL, run->workers.count, sizeof *all);
    for (size_t i = 0; i < run->workers.count; i++) all[i] = i;
    workers_run(&run->workers, all, run->workers.count, touch_own, NULL);
    free(all);
}

static void facts(struct run *run, bool end, struct text *members) {
    (void)run;
    if (end) return;
    text_add(members, ",\"populated\":%s", unpopulated ? "false" : "true");
    text_add(members, ",\"same_cpu\":%s,\"alias\":\"%s\",\"slice_bytes\":%zu,\"address_distance_bytes\":%zu",
             same_cpu ? "true" : "false", alias_word != NULL ? alias_word : "none", slice_bytes, address_bytes);
}

/* ---- measuring ---- */

/* What a worker wrote or read: by the median chunk, which does not change where it is taken away now and then. */
struct rate {
    double bytes_per_s, end_s, staggered_s;
    double taken_share; /* of its time beyond what all chunks would have taken at the median */
};

static struct rate rate_of(struct way *way) {
    struct rate rate = {.end_s = way->end_s, .staggered_s = way->staggered_s};
    if (way->kept == 0) return rate;
    sort_ascending(way->ticks, way->kept);
    double chunk_s = median_sorted(way->ticks, way->kept) * clock_facts.ns_per_tick / 1e9;
    rate.bytes_per_s = CHUNK_BYTES / chunk_s;
    rate.taken_share = fmax(0, 1 - chunk_s * (double)way->chunks / way->own_s);
    return rate;
}

struct pair_rate {
    struct rate written, seen;
};

/* The first `count` pairs at once. `results` gets what each did. */
static void run_contest(struct run *run, size_t count, double duration_s, struct pair_rate *results) {
    struct contest *contest = aligned_alloc(alignof(struct contest), sizeof *contest);
    size_t *workers = grow(NULL, run->workers.count, sizeof *workers), members = 0;
    struct side **sides = grow(NULL, run->workers.count, sizeof(struct side *));
    if (contest == NULL) fail(EXIT_NOT_AS_ASKED, "out of memory");
    for (size_t w = 0; w < run->workers.count; w++) {
        bool takes_part = false;
        for (size_t p = 0; p < count; p++) takes_part = takes_part || pairs[p].writer == w || pairs[p].reader == w;
        if (!takes_part) continue;
        workers[members] = w;
        sides[members] = grow(NULL, 1, sizeof *sides[members]);
        memset(sides[members++], 0, sizeof *sides[0]);
    }
    if (unpopulated) map_anew();
    gate_set(&contest->gate, members);
    contest->pairs = count;
    contest->duration_s = duration_s;
    contest->workers = workers;
    contest->sides = sides;
    workers_run(&run->workers, workers, members, take_part, contest);
    for (size_t m = 0; m < members; m++)
        for (size_t p = 0; p < count; p++) {
            if (pairs[p].writer == workers[m]) results[p].written = rate_of(&sides[m]->written);
            if (pairs[p].reader == workers[m]) results[p].seen = rate_of(&sides[m]->seen);
        }
    for (size_t m = 0; m < members; m++) free(sides[m]);
    free(sides);
    free(workers);
    free(contest);
}

static unsigned flags_of(const struct pair_rate *rate) {
    static const double most_taken = 0.25;
    return rate->written.taken_share > most_taken || rate->seen.taken_share > most_taken ? FLAG_DISTURBED : 0;
}

enum {
    RATE_BYTES_PER_S,
    WRITTEN_BYTES_PER_S,
    READ_BYTES_PER_S,
    ACCESSED_BYTES_PER_S, /* of each access, which takes a line along, one byte: as xcpumemperf counts */
    WRITER_S,
    READER_S,
    WRITER_STAGGERED_S,
    READER_STAGGERED_S,
};

#define FIELDS_OF_RATES                                                                                                \
    [RATE_BYTES_PER_S] = {"rate_bytes_per_s", BYTES_PER_S, SIGNIFICANT, 6},                                            \
    [WRITTEN_BYTES_PER_S] = {"written_bytes_per_s", BYTES_PER_S, SIGNIFICANT, 6},                                      \
    [READ_BYTES_PER_S] = {"read_bytes_per_s", BYTES_PER_S, SIGNIFICANT, 6},                                            \
    [ACCESSED_BYTES_PER_S] = {"accessed_bytes_per_s", BYTES_PER_S, SIGNIFICANT, 6}

static const struct field pairs_fields[] = {FIELDS_OF_RATES};
static const struct field ring_fields[] = {
    FIELDS_OF_RATES,
    [WRITER_S] = {"writer_s", SECONDS, DECIMALS, 6},
    [READER_S] = {"reader_s", SECONDS, DECIMALS, 6},
    [WRITER_STAGGERED_S] = {"writer_staggered_s", SECONDS, DECIMALS, 6},
    [READER_STAGGERED_S] = {"reader_staggered_s", SECONDS, DECIMALS, 6},
};

static unsigned measure_pairs(struct run *run, uint32_t pass, const struct unit *unit, struct result *result) {
    (void)pass;
    size_t count = (size_t)unit->key[0];
    struct pair_rate *rates = grow(NULL, count, sizeof *rates);
    double written = 0, seen = 0, through = 0;
    unsigned flags = 0;
    run_contest(run, count, PAIRS_S, rates);
    for (size_t p = 0; p < count; p++) {
        written += rates[p].written.bytes_per_s;
        seen += rates[p].seen.bytes_per_s;
        through += fmin(rates[p].written.bytes_per_s, rates[p].seen.bytes_per_s);
        flags |= flags_of(&rates[p]);
    }
    result->values[RATE_BYTES_PER_S] = through;
    result->values[WRITTEN_BYTES_PER_S] = written;
    result->values[READ_BYTES_PER_S] = seen;
    result->values[ACCESSED_BYTES_PER_S] = through / LINE_BYTES;
    free(rates);
    return run_stopping() ? UNIT_STOPPED : flags;
}

static struct pair_rate *ring; /* of the pass that is measured */
static int64_t ring_pass = -1;

static unsigned measure_ring(struct run *run, uint32_t pass, const struct unit *unit, struct result *result) {
    if (ring_pass != (int64_t)pass) {
        if (ring == NULL) ring = grow(NULL, pair_count, sizeof *ring);
        run_contest(run, pair_count, 0, ring);
        ring_pass = pass;
    }
    if (run_stopping()) return UNIT_STOPPED;
    size_t p = 0;
    while (run->selection.cpus.cpu[pairs[p].writer] != unit->key[0]) p++;
    const struct rate *written = &ring[p].written, *seen = &ring[p].seen;
    result->values[RATE_BYTES_PER_S] = fmin(written->bytes_per_s, seen->bytes_per_s);
    result->values[WRITTEN_BYTES_PER_S] = written->bytes_per_s;
    result->values[READ_BYTES_PER_S] = seen->bytes_per_s;
    result->values[ACCESSED_BYTES_PER_S] = result->values[RATE_BYTES_PER_S] / LINE_BYTES;
    result->values[WRITER_S] = written->end_s;
    result->values[READER_S] = seen->end_s;
    result->values[WRITER_STAGGERED_S] = written->staggered_s;
    result->values[READER_STAGGERED_S] = seen->staggered_s;
    return flags_of(&ring[p]);
}

/* As xcpumemperf's last line: the memory of each pair, in the time until the last worker was done. */
static void print_total(const struct run *run, const double *medians) {
    double longest_s = 0;
    for (size_t u = 0; u < run->unit_count; u++) {
        const double *of_pair = &medians[u * (sizeof ring_fields / sizeof *ring_fields)];
        longest_s = fmax(longest_s, fmax(of_pair[WRITER_S], of_pair[READER_S]));
    }
    double gib = (double)space_bytes * (double)pair_count / (1 << 30);
    printf("benched %.2f GiB in %.4f s a pass (%.2f GiB/s by lines; %.2f MiB/s by accesses, of a byte each as "
           "xcpumemperf\n"
           "counts, which goes through every byte of a line)\n",
           gib, longest_s, gib / longest_s, 1024 * gib / longest_s / LINE_BYTES);
    printf("Staggered seconds count from each worker's own start: rows that fall from pair to pair with them alone are "
           "the\ncreation of threads, which xcpumemperf times along as its join never waits.\n");
}

static double pairs_seconds(const struct run *run, const struct unit *unit, double hop_ns) {
    (void)run;
    (void)unit;
    (void)hop_ns;
    return PAIRS_S * 1.1;
}

/* Each line goes from each writer to the next. Who wrote it reads it at once. Both accesses fence. */
static double ring_seconds(const struct run *run, const struct unit *unit, double hop_ns) {
    double line_ns = run->costs.shared_ns + hop_ns * fmax((double)pair_count - 2, 0);
    return run_once_a_pass(run, unit, (double)space_bytes / LINE_BYTES * line_ns / 1e9);
}

/* Pages are made by the first, and each worker has a fault in each mapping for them. */
static double prepare_seconds(const struct run *run) {
    return 3 * (double)space_bytes * run->costs.base_byte_s;
}

static const struct operation operations[] = {
    {.name = "pairs",
     .summary = "a writer and a reader a pair, from one pair to all: how much goes through all of them",
     .quantity = "rate",
     .unit = "B/s",
     .record = "cell",
     FIELDS(pairs_fields),
     .table = true,
     .keys = {"pairs"},
     .plan = plan_pairs,
     .memory = memory_planned,
     .prepare = prepare,
     .facts = facts,
     .measure = measure_pairs,
     .seconds = pairs_seconds,
     .prepare_seconds = prepare_seconds},
    {.name = "ring",
     .summary = "every CPU writes in one pair and reads in another, all at once: each pair's rates and seconds",
     .quantity = "rate",
     .unit = "B/s",
     .record = "cell",
     FIELDS(ring_fields),
     .table = true,
     .conclude = print_total,
     .keys = {"writer", "reader"},
     .plan = plan_ring,
     .memory = memory_planned,
     .prepare = prepare,
     .facts = facts,
     .all_at_once = true,
     .measure = measure_ring,
     .probes = PROBE_SHARED,
     .seconds = ring_seconds,
     .prepare_seconds = prepare_seconds},
};

KERNEL_MAIN("remap", settings)
