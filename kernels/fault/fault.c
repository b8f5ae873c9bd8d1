/* fault: what it costs to get memory from the system, by CPU and kind of page, and how many huge pages it has to give. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "harness/clock.h"
#include "harness/fail.h"
#include "harness/frequency.h"
#include "harness/proc.h"
#include "harness/run.h"
#include "harness/stats.h"

static const char help[] =
    "USAGE\n"
    "  fault --op rate --cpus cores --out FILE [options]\n"
    "  example: kernels/build/fault --op huge --cpus cores --out here.jsonl\n"
    "\n"
    "REQUIREMENTS\n"
    "  Linux on x86-64 or aarch64; huge: up to --size-mib of free memory on each NUMA node. No root.\n"
    "\n"
    "OVERHEAD\n"
    "  One CPU is busy at a time: 10 ms a cell of rate; huge clears the memory that it asks for.\n"
    "\n"
    "WARNING\n"
    "  rate: what was given back a moment ago is given again, and its pages may still be in a cache.\n";

enum {
    BATCHES = 33,
    BATCH_PAGES = 64,             /* base pages of a batch; of huge pages one is a batch */
    LEAST_REGION_BYTES = 8 << 20, /* touched, given back, and touched again */
    HUGE_PAGES = 4,               /* of the region, at least */
};

static uint64_t size_mib = 1024;

static const struct setting settings[] = {
    {.name = "size-mib",
     .value = "N",
     .number = &size_mib,
     .lowest = 2,
     .highest = 1 << 20,
     .shapes = true,
     .help = "huge: what is asked for on each NUMA node, where it has so much to spare (default 1024)"},
    {0},
};

static size_t base_page(void) {
    return (size_t)sysconf(_SC_PAGESIZE);
}

static size_t huge_page(void) {
    char content[64];
    return read_sysfs(content, sizeof content, "kernel/mm/transparent_hugepage/hpage_pmd_size")
               ? strtoul(content, NULL, 10)
               : 0;
}

/* ---- rate ---- */

enum kind { KIND_BASE, KIND_THP };
static const char *const kind_words[] = {"base", "thp", NULL};

struct touching {
    unsigned char *bytes;
    size_t size, batch; /* bytes: of the region, of a batch */
    double batch_ns[BATCHES];
    long faults;                    /* that the system counts in all batches */
    size_t asked_bytes, huge_bytes; /* in whole regions, and what of it came in huge pages; not counted of base pages */
};

static long faults_so_far(void) {
    struct rusage use;
    return getrusage(RUSAGE_THREAD, &use) == 0 ? use.ru_minflt + use.ru_majflt : 0;
}

/* Touch the memory of each batch in steps of a base page: where a huge page fails, all the faults that come instead of one
 * are in its time. */
static void touch_all(size_t role, void *argument) {
    (void)role;
    struct touching *touching = argument;
    size_t at = 0, stride = base_page();
    core_hz(1, 50e3);
    long before = faults_so_far();
    for (size_t batch = 0; batch < BATCHES; batch++) {
        if (at + touching->batch > touching->size) { /* all is touched: back with it */
            touching->asked_bytes += touching->size;
            touching->huge_bytes += smaps_huge_bytes(touching->bytes);
            if (madvise(touching->bytes, touching->size, MADV_DONTNEED) != 0)
                fail(EXIT_NOT_AS_ASKED, "memory cannot be given back: %s", strerror(errno));
            at = 0;
        }
        volatile unsigned char *bytes = touching->bytes + at;
        uint64_t start = clock_ticks();
        for (size_t i = 0; i < touching->batch; i += stride) bytes[i] = 1;
        touching->batch_ns[batch] = (double)(clock_ticks() - start) * clock_facts.ns_per_tick;
        at += touching->batch;
    }
    touching->faults = faults_so_far() - before;
}

/* By its settings: where the system has them and cannot give one, that shows in the rate. */
static bool huge_pages_are_on(void) {
    enum { MOST_BYTES = 32 << 20 };
    char enabled[128];
    bool known = read_sysfs(enabled, sizeof enabled, "kernel/mm/transparent_hugepage/enabled");
    return known && strstr(enabled, "[never]") == NULL && huge_page() > 0 && huge_page() <= MOST_BYTES;
}

static void plan_rate(struct run *run) {
    bool huge = huge_pages_are_on();
    for (size_t i = 0; i < run->chosen.count; i++)
        for (int64_t kind = KIND_BASE; kind <= (huge ? KIND_THP : KIND_BASE); kind++)
            run_add_unit(run, (struct unit){{run->chosen.cpu[i], kind}});
    if (!huge)
        run_not_measured(run, "faults of huge pages",
                         "the system has no transparent huge pages of up to 32 MiB, or they are off");
}

static size_t region_bytes(enum kind kind) {
    return kind == KIND_THP && HUGE_PAGES * huge_page() > LEAST_REGION_BYTES ? HUGE_PAGES * huge_page()
                                                                             : LEAST_REGION_BYTES;
}

enum { FAULTS_PER_S, CI_LOW_PER_S, CI_HIGH_PER_S, RATE_BYTES_PER_S, RATE_PAGE_BYTES, FAULTS_A_PAGE, RATE_BASE_SHARE };

static const struct field rate_fields[] = {
    [FAULTS_PER_S] = {"faults_per_s", PER_S, SIGNIFICANT, 6},
    [CI_LOW_PER_S] = {"ci_low_per_s", PER_S, SIGNIFICANT, 6},
    [CI_HIGH_PER_S] = {"ci_high_per_s", PER_S, SIGNIFICANT, 6},
    [RATE_BYTES_PER_S] = {"bytes_per_s", BYTES_PER_S, SIGNIFICANT, 5},
    [RATE_PAGE_BYTES] = {"page_bytes", BYTES, DECIMALS, 0},
    [FAULTS_A_PAGE] = {"faults_a_page", NUMBER, SIGNIFICANT, 4},
    [RATE_BASE_SHARE] = {"base_share", NUMBER, DECIMALS, 5},
};

static unsigned measure_rate(struct run *run, uint32_t pass, const struct unit *unit, struct result *result) {
    (void)pass;
    enum kind kind = (enum kind)unit->key[1];
    size_t worker = run_worker(run, unit->key[0]), low, high;
    size_t page = kind == KIND_THP ? huge_page() : base_page(), size = region_bytes(kind);
    struct touching touching = {.size = size, .batch = kind == KIND_THP ? page : BATCH_PAGES * page};
    touching.bytes = buffer_map(size, page);
    if (touching.bytes == NULL) fail(EXIT_NOT_AS_ASKED, "%zu MiB cannot be mapped: %s", size >> 20, strerror(errno));
    if (madvise(touching.bytes, size, kind == KIND_THP ? MADV_HUGEPAGE : MADV_NOHUGEPAGE) != 0 && errno != EINVAL)
        fail(EXIT_NOT_AS_ASKED, "madvise failed: %s", strerror(errno)); /* EINVAL: a kernel without huge pages */
    workers_run(&run->workers, &worker, 1, touch_all, &touching);
    munmap(touching.bytes, size);

    double touches = (double)touching.batch / (double)page;
    sort_ascending(touching.batch_ns, BATCHES);
    median_interval(BATCHES, 0.95, &low, &high);
    double median_ns = median_sorted(touching.batch_ns, BATCHES);
    result->values[FAULTS_PER_S] = 1e9 * touches / median_ns;
    result->values[CI_LOW_PER_S] = 1e9 * touches / touching.batch_ns[high];
    result->values[CI_HIGH_PER_S] = 1e9 * touches / touching.batch_ns[low];
    result->values[RATE_BYTES_PER_S] = 1e9 * (double)touching.batch / median_ns;
    result->values[RATE_PAGE_BYTES] = (double)page;
    result->values[FAULTS_A_PAGE] = (double)touching.faults / (touches * BATCHES);
    if (kind == KIND_THP)
        result->values[RATE_BASE_SHARE] = 1 - (double)touching.huge_bytes / (double)touching.asked_bytes;
    return 0;
}

static double rate_seconds(const struct run *run, const struct unit *unit, double hop_ns) {
    static const double probe_s = 0.2e-3; /* of the clock */
    const struct costs *costs = &run->costs;
    (void)hop_ns;
    double base_s = (double)base_page() * BATCH_PAGES * costs->base_byte_s;
    double batch_s = unit->key[1] == KIND_THP ? (double)huge_page() * costs->huge_byte_s : base_s;
    return probe_s + BATCHES * batch_s;
}

/* ---- huge ---- */

static size_t asked_bytes(const struct run *run, int node) {
    size_t wanted = (size_t)size_mib << 20;
    return buffer_affordable(&run->machine, node, wanted, 1);
}

static void plan_huge(struct run *run) {
    if (huge_page() == 0) {
        run->not_applicable = "this system has no transparent huge pages";
        return;
    }
    for (size_t i = 0; i < run->machine.nodes; i++)
        if (run->machine.node[i].has_memory && asked_bytes(run, run->machine.node[i].number) >= huge_page())
            run_add_unit(run, (struct unit){{run->machine.node[i].number}});
    if (run->unit_count == 0) run->not_applicable = "no NUMA node has a huge page to spare";
}

static uint64_t memory_of_huge(const struct run *run) {
    return run->unit_count > 0 ? size_mib << 20 : 0;
}

/* Bytes of reserved huge pages (hugetlbfs) of this node and size, in all or free; 0 where the system has none. */
static unsigned long long reserved(const struct run *run, int node, size_t kib, const char *which) {
    char content[64];
    bool known =
        run->machine.numa
            ? read_sysfs(content, sizeof content, "devices/system/node/node%d/hugepages/hugepages-%zukB/%s_hugepages",
                         node, kib, which)
            : read_sysfs(content, sizeof content, "kernel/mm/hugepages/hugepages-%zukB/%s_hugepages", kib, which);
    return known ? strtoull(content, NULL, 10) * (kib << 10) : 0;
}

enum { BASE_SHARE, ASKED_BYTES, HUGE_PAGE_BYTES, HUGE_SECONDS, RESERVED_BYTES, RESERVED_FREE_BYTES };

static const struct field huge_fields[] = {
    [BASE_SHARE] = {"base_share", NUMBER, DECIMALS, 5},
    [ASKED_BYTES] = {"asked_bytes", BYTES, DECIMALS, 0},
    [HUGE_PAGE_BYTES] = {"page_bytes", BYTES, DECIMALS, 0},
    [HUGE_SECONDS] = {"seconds", SECONDS, SIGNIFICANT, 4},
    [RESERVED_BYTES] = {"reserved_bytes", BYTES, DECIMALS, 0},
    [RESERVED_FREE_BYTES] = {"reserved_free_bytes", BYTES, DECIMALS, 0},
};

static unsigned measure_huge(struct run *run, uint32_t pass, const struct unit *unit, struct result *result) {
    (void)pass;
    int node = (int)unit->key[0];
    size_t size = asked_bytes(run, node);
    double start = clock_monotonic_s();
    struct buffer buffer = buffer_create(&run->machine, &run->workers, node, size, PAGES_TRANSPARENT);
    result->values[BASE_SHARE] = 1 - (double)buffer.huge_bytes / (double)buffer.size;
    result->values[ASKED_BYTES] = (double)buffer.size;
    result->values[HUGE_PAGE_BYTES] = (double)huge_page();
    result->values[HUGE_SECONDS] = clock_monotonic_s() - start;
    buffer_free(&buffer);
    unsigned long long all = 0, free_bytes = 0;
    for (size_t kib = 64; kib <= (size_t)16 << 20; kib *= 2) { /* from 64 KiB (Arm) to 16 GiB */
        all += reserved(run, node, kib, "nr");
        free_bytes += reserved(run, node, kib, "free");
    }
    result->values[RESERVED_BYTES] = (double)all;
    result->values[RESERVED_FREE_BYTES] = (double)free_bytes;
    return 0;
}

static void facts_huge(struct run *run, bool end, struct text *members) {
    static const char *const files[] = {"enabled", "defrag"};
    char content[128];
    (void)run;
    for (size_t i = 0; i < 2 && !end; i++) {
        text_add(members, ",\"thp_%s\":", files[i]);
        text_add_json(members, read_sysfs(content, sizeof content, "kernel/mm/transparent_hugepage/%s", files[i])
                                   ? content
                                   : "not reported");
    }
}

/* What the system says of limits, reserved pages and the node of each page is read as well, in some 100 small files. */
static double huge_seconds(const struct run *run, const struct unit *unit, double hop_ns) {
    static const double read_s = 0.85e-3;
    (void)hop_ns;
    return read_s + run_pages_seconds(run, (int)unit->key[0], (double)asked_bytes(run, (int)unit->key[0]), true);
}

/* ---- */

static const struct operation operations[] = {
    {.name = "rate",
     .summary = "page faults a second by each CPU, of base pages and of transparent huge ones",
     .quantity = "rate",
     .unit = "1/s",
     .record = "cell",
     FIELDS(rate_fields),
     .keys = {"cpu", "pages"},
     .words = {NULL, kind_words},
     .plan = plan_rate,
     .measure = measure_rate,
     .seconds = rate_seconds},
    {.name = "huge",
     .summary = "the share of what is asked for in huge pages that comes in base pages, on each NUMA node",
     .quantity = "ratio",
     .unit = "1",
     .record = "cell",
     FIELDS(huge_fields),
     .keys = {"memory_node"},
     .plan = plan_huge,
     .memory = memory_of_huge,
     .facts = facts_huge,
     .measure = measure_huge,
     .seconds = huge_seconds},
};

KERNEL_MAIN("fault", settings)
