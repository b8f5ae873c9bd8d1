#include "census.h"

#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "cache.h"
#include "clock.h"
#include "clusters.h"
#include "fail.h"
#include "schedule.h"
#include "stats.h"

enum {
    HALVES = 2,
    ROUNDS = 32 /* of a half */,
    ALL_ROUNDS = HALVES * ROUNDS,
    DRAW_CENSUS = 3,
    MOST_CPUS = 64,
    MOST_VIEWS = 256 /* of all homes together, so that 32 of them, an L3 each, take 3 s and not 13 */,
    NO_CLUSTER = 255
};
static const double LOAD_S = 0.4e-6;
static const char one_l3[] = "all CPUs share one L3";

struct reload {
    const struct pool *pool;
    const uint32_t *lines;
    size_t count;
    double *ns[HALVES]; /* of each line */
    double *spare;      /* of each line, ROUNDS for each half */
};

/* Time loads of each line, each after a flush. Rounds belong to the halves by turns, so that what drifts is in both. */
static void reload_lines(size_t role, void *argument) {
    (void)role;
    const struct reload *reload = argument;
    for (size_t round = 0; round < ALL_ROUNDS; round++)
        for (size_t i = 0; i < reload->count; i++) {
            _Atomic uint32_t *line =
                (_Atomic uint32_t *)(void *)(reload->pool->bytes + (size_t)reload->lines[i] * LINE_BYTES);
            double *ns = reload->spare + i * ALL_ROUNDS + (round % HALVES) * ROUNDS;
            cache_flush((const void *)line);
            cache_fence();
            uint64_t start = clock_ticks();
            (void)atomic_load_explicit(line, memory_order_acquire);
            ns[round / HALVES] = (double)(clock_ticks() - start) * clock_facts.ns_per_tick;
        }
    for (size_t i = 0; i < reload->count; i++)
        for (size_t half = 0; half < HALVES; half++)
            reload->ns[half][i] = lower_mean(reload->spare + i * ALL_ROUNDS + half * ROUNDS, ROUNDS);
}

/* ---- which CPUs and lines ---- */

/* One CPU of each L3, MOST_CPUS at most, as indices; where many homes are looked at from many L3s, of some of these,
 * evenly over the machine. */
static size_t viewpoints(const struct run *run, size_t member[MOST_CPUS]) {
    size_t count = 0;
    for (size_t i = 0; i < run->selection.cpus.count && count < MOST_CPUS; i++) {
        bool known = false;
        for (size_t j = 0; j < count; j++) known = known || select_closeness(&run->selection, member[j], i) <= SAME_L3;
        if (!known) member[count++] = i;
    }
    size_t most = MOST_VIEWS / (run->home_count > 0 ? run->home_count : 1);
    most = most > 1 ? most : 1;
    if (count <= most) return count;
    for (size_t i = 0; i < most; i++) member[i] = member[i * count / most];
    return most;
}

/* Twice the lines that are drawn at a time, so that a small cluster has enough of them. */
static size_t census_lines(size_t drawn) {
    return 2 * drawn > CENSUS_LINES ? 2 * drawn : CENSUS_LINES;
}

/* Why there is no census; NULL where one is taken. */
static const char *why_none(const struct run *run, enum census_mode mode, size_t drawn, size_t cpus) {
    if (mode == CENSUS_NEVER) return "not asked for";
    if (run->operation->two_lines) return "a hop has two lines";
    if (census_lines(drawn) > MOST_CENSUS_LINES) return "more lines are drawn than a census takes";
    if (cpus == 1 && mode != CENSUS_ALWAYS) return one_l3;
    return NULL;
}

double census_seconds(const struct run *run, enum census_mode mode, size_t drawn) {
    size_t member[MOST_CPUS], cpus = viewpoints(run, member);
    if (why_none(run, mode, drawn, cpus) != NULL) return 0;
    return (double)(cpus * census_lines(drawn) * ALL_ROUNDS) * LOAD_S;
}

/* ---- records ---- */

static void write_numbers(struct text *records, const char *name, const uint32_t *numbers, size_t count) {
    text_add(records, ",\"%s\":[", name);
    for (size_t i = 0; i < count; i++) text_add(records, "%s%" PRIu32, i == 0 ? "" : ",", numbers[i]);
    text_add(records, "]");
}

static void write_times(struct text *records, const double *ns, size_t count) {
    for (size_t i = 0; i < count; i++) text_add(records, "%s%.1f", i == 0 ? "[" : ",", ns[i]);
    text_add(records, "]");
}

/* Of the loads of one CPU: both halves for each line, and how well they agree over the lines. */
static void write_census(struct text *records, int home, int cpu, const double *first, const double *second,
                         size_t lines) {
    text_add(records, "{\"record\":\"census\",\"home\":%d,\"cpu\":%d,\"reload_ns\":[", home, cpu);
    write_times(records, first, lines);
    text_add(records, ",");
    write_times(records, second, lines);
    text_add(records, "]");
    double r = correlation(first, second, lines);
    if (isfinite(r)) text_add(records, ",\"agreement\":%.4f", r);
    text_add(records, "}\n");
}

static void write_clusters(struct text *records, const struct home *home, const struct clustering *found,
                           const uint32_t *lines, const unsigned char *cluster, size_t count, const char *why) {
    text_add(records, "{\"record\":\"clusters\",\"home\":%d,\"address_bits\":%u,\"clusters\":%zu", home->node,
             pool_address_bits(&home->pool), found->count);
    if (why == NULL && found->count == 1) why = "nothing separates";
    if (why != NULL) {
        text_add(records, ",\"reason\":");
        text_add_json(records, why);
    }
    if (found->count > 1)
        text_add(records, ",\"separation\":%.2f,\"agreement\":%.4f", found->separation, found->agreement);
    if (count > 0) {
        uint32_t sizes[MOST_CLUSTERS] = {0}, *numbers = grow(NULL, count, sizeof *numbers);
        for (size_t i = 0; i < count; i++) {
            numbers[i] = cluster[i];
            sizes[cluster[i]]++;
        }
        write_numbers(records, "sizes", sizes, found->count);
        write_numbers(records, "lines", lines, count);
        write_numbers(records, "cluster", numbers, count);
        free(numbers);
    }
    text_add(records, "}\n");
}

/* ---- from beginning to end ---- */

static void take_of(struct run *run, struct home *home, const size_t *member, size_t cpus, size_t count,
                    struct text *records) {
    double *halves[HALVES], *spare = grow(NULL, count * ALL_ROUNDS, sizeof *spare);
    uint32_t *lines = grow(NULL, count, sizeof *lines);
    unsigned char *cluster = grow(NULL, count, 1);
    struct random random = random_stream(run->seed + run->segment, DRAW_CENSUS, (uint64_t)home->node);
    draw_without_replacement(&random, lines, count, POOL_LINES);
    for (size_t half = 0; half < HALVES; half++) halves[half] = grow(NULL, cpus * count, sizeof(double));
    for (size_t i = 0; i < cpus; i++) {
        struct reload reload = {&home->pool, lines, count, {halves[0] + i * count, halves[1] + i * count}, spare};
        workers_run(&run->workers, &member[i], 1, reload_lines, &reload);
        write_census(records, home->node, run->selection.cpus.cpu[member[i]], reload.ns[0], reload.ns[1], count);
    }
    struct clustering found = cluster_lines(halves[0], halves[1], cpus, count, cluster);
    write_clusters(records, home, &found, lines, cluster, count, cpus == 1 ? one_l3 : NULL);
    if (found.count > 1) {
        home->clusters = found.count;
        home->cluster = grow(home->cluster, POOL_LINES, 1);
        memset(home->cluster, NO_CLUSTER, POOL_LINES);
        for (size_t i = 0; i < count; i++) home->cluster[lines[i]] = cluster[i];
    }
    for (size_t half = 0; half < HALVES; half++) free(halves[half]);
    free(spare);
    free(lines);
    free(cluster);
}

void census_take(struct run *run, enum census_mode mode, size_t drawn, struct text *records) {
    size_t member[MOST_CPUS], cpus = viewpoints(run, member);
    const char *why = why_none(run, mode, drawn, cpus);
    for (size_t h = 0; h < run->home_count; h++) {
        struct home *home = &run->homes[h];
        home->clusters = 1;
        if (why == NULL)
            take_of(run, home, member, cpus, census_lines(drawn), records);
        else
            write_clusters(records, home, &(struct clustering){.count = 1}, NULL, NULL, 0, why);
    }
}

void census_draw(const struct home *home, struct random *random, uint32_t *drawn, size_t count) {
    uint32_t *lines[MOST_CLUSTERS] = {NULL};
    size_t left[MOST_CLUSTERS] = {0};
    for (size_t c = 0; c < home->clusters; c++) lines[c] = grow(NULL, MOST_CENSUS_LINES, sizeof **lines);
    for (uint32_t line = 0; line < POOL_LINES; line++)
        if (home->cluster[line] != NO_CLUSTER) lines[home->cluster[line]][left[home->cluster[line]]++] = line;
    for (size_t i = 0, c = 0; i < count; c = (c + 1) % home->clusters) {
        if (left[c] == 0) continue;
        size_t pick = (size_t)random_below(random, left[c]);
        drawn[i++] = lines[c][pick];
        lines[c][pick] = lines[c][--left[c]];
    }
    for (size_t c = 0; c < home->clusters; c++) free(lines[c]);
}
