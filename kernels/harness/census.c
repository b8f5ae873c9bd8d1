#include "census.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "cache.h"
#include "clock.h"
#include "fail.h"
#include "schedule.h"
#include "stats.h"

enum { ROUNDS = 16, DRAW_CENSUS = 3, MOST_STRATA = 64, NO_STRATUM = 255 };

struct reload {
    const struct pool *pool;
    const uint32_t *lines;
    double *ns;
};

/* Of some timed loads, each after a flush, the middle half: one that met an interrupt or a refresh is not the line's. */
static void reload_lines(size_t role, void *argument) {
    (void)role;
    const struct reload *reload = argument;
    static double ns[CENSUS_LINES][ROUNDS];
    for (size_t round = 0; round < ROUNDS; round++)
        for (size_t i = 0; i < CENSUS_LINES; i++) {
            _Atomic uint32_t *line =
                (_Atomic uint32_t *)(void *)(reload->pool->bytes + (size_t)reload->lines[i] * LINE_BYTES);
            cache_flush((const void *)line);
            cache_fence();
            uint64_t start = clock_ticks();
            (void)atomic_load_explicit(line, memory_order_acquire);
            ns[i][round] = (double)(clock_ticks() - start) * clock_facts.ns_per_tick;
        }
    for (size_t i = 0; i < CENSUS_LINES; i++) reload->ns[i] = midmean(ns[i], ROUNDS);
}

size_t census_strata(const double *reload, size_t cpus, size_t lines, unsigned char *stratum) {
    enum { QUARTERS = 4 };
    double *sorted = grow(NULL, lines, sizeof *sorted), *medians = grow(NULL, cpus, sizeof *medians);
    for (size_t cpu = 0; cpu < cpus; cpu++) {
        memcpy(sorted, reload + cpu * lines, lines * sizeof *sorted);
        sort_ascending(sorted, lines);
        medians[cpu] = median_sorted(sorted, lines);
    }
    for (size_t line = 0; line < lines; line++) {
        size_t nearest = 0;
        for (size_t cpu = 1; cpu < cpus; cpu++)
            if (reload[cpu * lines + line] - medians[cpu] < reload[nearest * lines + line] - medians[nearest])
                nearest = cpu;
        if (cpus == 1)
            while (nearest < QUARTERS - 1 && reload[line] > sorted[(nearest + 1) * lines / QUARTERS]) nearest++;
        stratum[line] = (unsigned char)nearest;
    }
    free(sorted);
    free(medians);
    return cpus == 1 ? QUARTERS : cpus;
}

static void write_record(struct text *records, int home, int cpu, const uint32_t *lines, const double *ns) {
    text_add(records, "{\"record\":\"census\",\"home\":%d,\"cpu\":%d,\"lines\":[", home, cpu);
    for (size_t i = 0; i < CENSUS_LINES; i++) text_add(records, "%s%" PRIu32, i == 0 ? "" : ",", lines[i]);
    text_add(records, "],\"reload_ns\":[");
    for (size_t i = 0; i < CENSUS_LINES; i++) text_add(records, "%s%.1f", i == 0 ? "" : ",", ns[i]);
    text_add(records, "]}\n");
}

void census_take(struct run *run, bool stratify, struct text *records) {
    size_t cpus = 0, *member = grow(NULL, MOST_STRATA, sizeof *member);
    for (size_t i = 0; i < run->selection.cpus.count && cpus < MOST_STRATA; i++) {
        bool known = false;
        for (size_t j = 0; j < cpus; j++) known = known || select_closeness(&run->selection, member[j], i) <= SAME_L3;
        if (!known) member[cpus++] = i;
    }
    double *reload_ns = grow(NULL, cpus * CENSUS_LINES, sizeof *reload_ns);
    uint32_t lines[CENSUS_LINES];
    for (size_t h = 0; h < run->home_count; h++) {
        struct home *home = &run->homes[h];
        struct random random = random_stream(run->seed + run->segment, DRAW_CENSUS, (uint64_t)home->node);
        draw_without_replacement(&random, lines, CENSUS_LINES, POOL_LINES / 2);
        for (size_t i = 0; i < cpus; i++) {
            struct reload reload = {&home->pool, lines, reload_ns + i * CENSUS_LINES};
            workers_run(&run->workers, &member[i], 1, reload_lines, &reload);
            write_record(records, home->node, run->selection.cpus.cpu[member[i]], lines, reload.ns);
        }
        if (!stratify) continue;
        unsigned char stratum[CENSUS_LINES];
        census_strata(reload_ns, cpus, CENSUS_LINES, stratum);
        home->strata = grow(home->strata, POOL_LINES, 1);
        memset(home->strata, NO_STRATUM, POOL_LINES);
        for (size_t i = 0; i < CENSUS_LINES; i++) home->strata[lines[i]] = stratum[i];
    }
    free(reload_ns);
    free(member);
}

void census_draw(const struct home *home, struct random *random, uint32_t *drawn, size_t count) {
    uint32_t *lines[MOST_STRATA] = {NULL};
    size_t left[MOST_STRATA] = {0}, known = 0;
    for (uint32_t line = 0; line < POOL_LINES; line++) {
        size_t stratum = home->strata[line];
        if (stratum == NO_STRATUM) continue;
        if (lines[stratum] == NULL) lines[stratum] = grow(NULL, CENSUS_LINES, sizeof **lines);
        lines[stratum][left[stratum]++] = line;
        known = stratum >= known ? stratum + 1 : known;
    }
    for (size_t i = 0, stratum = 0; i < count; stratum = (stratum + 1) % known) {
        if (left[stratum] == 0) continue;
        size_t pick = (size_t)random_below(random, left[stratum]);
        drawn[i++] = lines[stratum][pick];
        lines[stratum][pick] = lines[stratum][--left[stratum]];
    }
    for (size_t stratum = 0; stratum < known; stratum++) free(lines[stratum]);
}
