#include "bandwidth/caches.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bandwidth/contents.h"
#include "harness/cache.h"
#include "harness/die.h"
#include "harness/fail.h"

enum scope { CCX, CCD, SCOPES };
const char *const caches_scopes[] = {"ccx", "ccd", NULL};
enum level { L1, L2, L3 }; /* CACHE_LEVELS of them */
const char *const caches_levels[] = {"l1", "l2", "l3", NULL};
enum { CPU_KEY, SCOPE_KEY, CORES_KEY, LEVEL_KEY, STREAM_KEY };

/* What a core moves in a sweep: a millisecond's worth and more, so that neither the clock nor the gate counts. */
static const size_t sweep_bytes[CACHE_LEVELS] = {128 << 20, 64 << 20, 32 << 20};

static int *die; /* of each CPU of the selection, as by die_of_cpus */
static bool huge_pages;
static size_t *node_bytes;     /* what the largest cell needs of each node */
static struct buffer *buffers; /* of each node; none where it needs nothing */

/* ---- who streams ---- */

static bool same_scope(const struct run *run, size_t i, size_t j, enum scope scope) {
    return scope == CCX ? run->selection.place[i].l3 == run->selection.place[j].l3 : die[i] >= 0 && die[i] == die[j];
}

static bool first_of_scope(const struct run *run, size_t i, enum scope scope) {
    for (size_t j = 0; j < i; j++)
        if (same_scope(run, i, j, scope)) return false;
    return scope == CCX || die[i] >= 0;
}

/* At most `most` CPUs of the scope of the one with index `first`. */
static size_t members(const struct run *run, size_t first, enum scope scope, size_t most, size_t *roles) {
    size_t count = 0;
    for (size_t i = 0; i < run->selection.cpus.count && count < most; i++)
        if (same_scope(run, i, first, scope)) roles[count++] = i;
    return count;
}

static size_t members_of_unit(const struct run *run, const struct unit *unit, size_t *roles) {
    size_t first = 0;
    while (run->selection.cpus.cpu[first] != unit->key[CPU_KEY]) first++;
    return members(run, first, (enum scope)unit->key[SCOPE_KEY], (size_t)unit->key[CORES_KEY], roles);
}

/* ---- working sets ---- */

/* Bytes of a cache for each CPU of the selection that shares it. */
static size_t share_of(const struct run *run, int cpu, int level) {
    struct cpulist sharers = {0};
    size_t count = 0;
    cache_sharers_of(cpu, level, &sharers);
    for (size_t i = 0; i < run->selection.cpus.count; i++) count += cpulist_has(&sharers, run->selection.cpus.cpu[i]);
    cpulist_free(&sharers);
    return count == 0 ? 0 : cache_bytes(cpu, level) / count;
}

/* What each of these CPUs goes through, a power of two of bytes: within half of its share of the cache, and twice what the
 * caches above hold or more, so that neither they nor, in a victim cache, what they keep apart answers. 0 where there is
 * no such size. */
static size_t working_set(const struct run *run, const size_t *roles, size_t count, enum level level) {
    int cpu = run->selection.cpus.cpu[roles[0]];
    size_t half = power_of_two_within(share_of(run, cpu, (int)level + 1) / 2), above = 0, sharing = 0;
    for (int l = 1; l <= (int)level; l++)
        if (cache_bytes(cpu, l) > above) above = cache_bytes(cpu, l);
    if (half < (size_t)2 * TURN_BYTES) return 0;
    if (half >= 2 * above) return half;
    if (level != L3) return 0;
    /* few cores may have a larger part of an L3 than their share when all are at work */
    for (size_t i = 0; i < count; i++)
        sharing += run->selection.place[roles[i]].l3 == run->selection.place[roles[0]].l3;
    size_t least = 2 * power_of_two_within(2 * above - 1);
    return least * sharing <= cache_bytes(cpu, 3) / 2 ? least : 0;
}

/* ---- plan ---- */

static void add_levels(struct run *run, const bool streams[STREAMS], struct unit unit, const size_t *roles,
                       size_t count, size_t without[CACHE_LEVELS]) {
    for (int64_t level = 0; level < CACHE_LEVELS; level++)
        for (int64_t stream = 0; stream < STREAMS; stream++) {
            if (!streams[stream]) continue;
            unit.key[LEVEL_KEY] = level;
            unit.key[STREAM_KEY] = stream;
            if (working_set(run, roles, count, (enum level)level) > 0)
                run_add_unit(run, unit);
            else
                without[level]++;
        }
}

/* The powers of two and all of the CPUs of a scope; in a CCD those of more than one CCX. */
static void add_scope(struct run *run, const bool streams[STREAMS], size_t first, enum scope scope,
                      size_t without[CACHE_LEVELS]) {
    size_t *roles = grow(NULL, run->selection.cpus.count, sizeof *roles), former = 0;
    if (scope == CCD) former = members(run, first, CCX, SIZE_MAX, roles);
    size_t all = members(run, first, scope, SIZE_MAX, roles);
    for (size_t n = former + 1; n <= all; n++)
        if (n == all || (n & (n - 1)) == 0)
            add_levels(run, streams, (struct unit){{run->selection.cpus.cpu[first], (int64_t)scope, (int64_t)n}}, roles,
                       n, without);
    free(roles);
}

static void choose_memory(struct run *run) {
    size_t nodes = run->machine.nodes, *roles = grow(NULL, run->selection.cpus.count, sizeof *roles);
    node_bytes = grow(NULL, nodes, sizeof *node_bytes);
    memset(node_bytes, 0, nodes * sizeof *node_bytes);
    for (size_t u = 0; u < run->unit_count; u++) {
        const struct unit *unit = &run->units[u];
        size_t count = members_of_unit(run, unit, roles);
        size_t bytes = working_set(run, roles, count, (enum level)unit->key[LEVEL_KEY]);
        for (size_t n = 0; n < nodes; n++) {
            size_t at_home = 0;
            for (size_t i = 0; i < count; i++)
                at_home += run->selection.place[roles[i]].home == run->machine.node[n].number;
            if (at_home * bytes > node_bytes[n]) node_bytes[n] = at_home * bytes;
        }
    }
    free(roles);
}

void caches_plan(struct run *run, const bool streams[STREAMS], bool huge) {
    size_t without[CACHE_LEVELS] = {0};
    huge_pages = huge;
    die = grow(NULL, run->selection.cpus.count, sizeof *die);
    die_of_cpus(&run->selection, die);
    for (size_t i = 0; i < run->selection.cpus.count; i++)
        for (int scope = 0; scope < SCOPES; scope++)
            if (first_of_scope(run, i, (enum scope)scope)) add_scope(run, streams, i, (enum scope)scope, without);
    for (size_t level = 0; level < CACHE_LEVELS; level++) {
        char what[64];
        if (without[level] == 0) continue;
        snprintf(what, sizeof what, "%zu cells of %s", without[level], caches_levels[level]);
        run_not_measured(run, what,
                         "no size is at least twice the caches above and at most half of the cores' share, as sysfs "
                         "reports them");
    }
    if (run->unit_count == 0) run->not_applicable = "sysfs reports no cache that is large enough for the cores";
    choose_memory(run);
}

uint64_t caches_memory(const struct run *run) {
    uint64_t bytes = 0;
    for (size_t n = 0; n < run->machine.nodes; n++) bytes += node_bytes[n];
    return bytes;
}

/* ---- measuring ---- */

void caches_prepare(struct run *run) {
    flow_check_clocks(run);
    buffers = grow(NULL, run->machine.nodes, sizeof *buffers);
    memset(buffers, 0, run->machine.nodes * sizeof *buffers);
    for (size_t n = 0; n < run->machine.nodes; n++) {
        int number = run->machine.node[n].number;
        char name[32];
        if (node_bytes[n] == 0) continue;
        buffers[n] = buffer_create(&run->machine, &run->workers, number, node_bytes[n],
                                   huge_pages ? PAGES_TRANSPARENT : PAGES_BASE);
        if (huge_pages && buffers[n].huge_bytes < buffers[n].size) /* an L2 holds less of base pages, by chance */
            fail(EXIT_NOT_AS_ASKED,
                 "only %zu of %zu MiB on NUMA node %d are in huge pages: its memory is fragmented; free it, or use "
                 "--pages base",
                 buffers[n].huge_bytes >> 20, buffers[n].size >> 20, number);
        snprintf(name, sizeof name, "%d", number);
        run_add_placement(run, name, &buffers[n]);
    }
}

struct cell {
    size_t count, bytes;
    size_t *roles;
    const struct buffer **buffer; /* of each role */
    struct share *shares;
};

static struct cell cell_of(const struct run *run, const struct unit *unit) {
    size_t cpus = run->selection.cpus.count, *taken = grow(NULL, run->machine.nodes, sizeof *taken);
    struct cell cell = {0};
    memset(taken, 0, run->machine.nodes * sizeof *taken);
    cell.roles = grow(NULL, cpus, sizeof *cell.roles);
    cell.buffer = grow(NULL, cpus, sizeof(const struct buffer *));
    cell.shares = grow(NULL, cpus, sizeof *cell.shares);
    cell.count = members_of_unit(run, unit, cell.roles);
    cell.bytes = working_set(run, cell.roles, cell.count, (enum level)unit->key[LEVEL_KEY]);
    for (size_t i = 0; i < cell.count; i++) {
        size_t n = 0;
        while (run->machine.node[n].number != run->selection.place[cell.roles[i]].home) n++;
        cell.buffer[i] = &buffers[n];
        cell.shares[i] = (struct share){&cell.buffer[i], 1, taken[n]++};
    }
    free(taken);
    return cell;
}

static void free_cell(struct cell *cell) {
    free(cell->roles);
    free((void *)cell->buffer);
    free(cell->shares);
}

unsigned caches_measure(struct run *run, uint32_t pass, const struct unit *unit, struct result *result) {
    struct cell cell = cell_of(run, unit);
    enum stream stream = (enum stream)unit->key[STREAM_KEY];
    struct contents contents = {run, stream, cell.roles, cell.count, cell.bytes, cell.shares};
    struct sweeps *sweeps = grow(NULL, cell.count, sizeof *sweeps);
    size_t rounds = sweep_bytes[unit->key[LEVEL_KEY]] / cell.bytes;
    unsigned flags = UNIT_STOPPED;
    (void)pass;
    if (rounds == 0) rounds = 1;
    contents_fill(&contents);
    flow_run(run, cell.roles, cell.count, stream, cell.bytes, rounds, cell.shares, sweeps);
    size_t wrong = contents_wrong(&contents, sweeps);
    if (!run_stopping()) {
        double *values = result->values;
        flags = flow_set_rates(sweeps, cell.count, (double)(rounds * cell.bytes), values);
        values[CACHES_BYTES_PER_CYCLE] = values[RATE_BYTES_PER_S] / (double)cell.count / values[CORE_HZ];
        values[CACHES_SLICE_BYTES] = (double)cell.bytes;
        values[CACHES_PAGE_BYTES] = (double)cell.buffer[0]->page_bytes;
        values[CACHES_WRONG_BURSTS] = (double)wrong;
    }
    free(sweeps);
    free_cell(&cell);
    return flags;
}

double caches_seconds(const struct run *run, const struct unit *unit, double hop_ns) {
    static const double filled_a_second = 5e9;
    size_t *roles = grow(NULL, run->selection.cpus.count, sizeof *roles), level = (size_t)unit->key[LEVEL_KEY];
    (void)hop_ns;
    size_t bytes = working_set(run, roles, members_of_unit(run, unit, roles), (enum level)level);
    free(roles);
    double rate = run->costs.cache_bytes_per_s[level][unit->key[STREAM_KEY]];
    /* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): a level is one of the words */
    return flow_seconds_of((double)sweep_bytes[level] / rate) + 2 * (double)bytes / filled_a_second;
}
