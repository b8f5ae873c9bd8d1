/* Machines whose lines live in quadrants, for bench/lines.py: argv is the number of runs, the ns of a step from quadrant to quadrant, the shares
 * of the quadrants (four numbers), the L3s in a socket, the noise of a half of the census in ns, and a seed. Prints for
 * each run the clusters found, then what a pair of CPUs in one quadrant, in neighboring ones and in opposite ones is
 * measured at: by lines from the whole pool, and by lines from the clusters.
 *
 * The census, the clusters, the draws and the statistics are those of the kernel; the machine is made up here. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/census.h"
#include "harness/clusters.h"
#include "harness/sampling.h"
#include "harness/schedule.h"
#include "harness/stats.h"

enum { QUADRANTS = 4, PAIRS = 3, PASSES = 3, LINES = 32, BATCHES = 2 };
/* Half of what distinguishes a line is common to all pairs (docs/validation.md: 3.1 % over lines, 1 % over visits). */
static const double HOP_NS = 110, LINE = 0.031, VISIT = 0.01, RELOAD_NS = 120, RELOAD_LINE_NS = 3;

static unsigned char quadrant[POOL_LINES];
static double common[POOL_LINES];

static double normal(struct random *random) {
    double u = ((double)(random_next(random) >> 11) + 1) * 0x1p-53, v = (double)(random_next(random) >> 11) * 0x1p-53;
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

static int steps(int a, int b) {
    int apart = abs(a - b);
    return apart == 3 ? 1 : apart;
}

static void make_pool(struct random *random, const double *shares) {
    for (size_t l = 0; l < POOL_LINES; l++) {
        double draw = (double)(random_next(random) >> 11) * 0x1p-53;
        int q = 0;
        while (q < QUADRANTS - 1 && draw >= shares[q]) draw -= shares[q++];
        quadrant[l] = (unsigned char)q;
        common[l] = LINE * sqrt(0.5) * normal(random);
    }
}

/* A census as harness/census.c takes it. */
static size_t take_census(struct home *home, struct random *random, double spacing, size_t l3s, double noise) {
    static uint32_t lines[CENSUS_LINES];
    static unsigned char cluster[CENSUS_LINES];
    double *halves[2] = {malloc(l3s * sizeof lines * 2), malloc(l3s * sizeof lines * 2)};
    if (halves[0] == NULL || halves[1] == NULL) exit(3);
    draw_without_replacement(random, lines, CENSUS_LINES, POOL_LINES);
    for (size_t c = 0; c < l3s; c++)
        for (size_t i = 0; i < CENSUS_LINES; i++) {
            int apart = steps((int)(c * QUADRANTS / l3s), quadrant[lines[i]]);
            double truth = RELOAD_NS + spacing * apart + RELOAD_LINE_NS * normal(random);
            for (size_t half = 0; half < 2; half++)
                halves[half][c * CENSUS_LINES + i] = truth + noise * normal(random);
        }
    struct clustering found = cluster_lines(halves[0], halves[1], l3s, CENSUS_LINES, cluster);
    memset(home->cluster, 255, POOL_LINES);
    for (size_t i = 0; i < CENSUS_LINES; i++) home->cluster[lines[i]] = cluster[i];
    free(halves[0]);
    free(halves[1]);
    return home->clusters = found.count;
}

/* A run's figure of the pair with one CPU in quadrant 0 and one in `other`. */
static double measure(const struct home *home, struct random *random, double spacing, int other) {
    double passes[PASSES];
    for (size_t p = 0; p < PASSES; p++) {
        uint32_t drawn[LINES];
        unsigned char cluster[LINES] = {0};
        double values[LINES * BATCHES];
        if (home->clusters > 1)
            census_draw(home, random, drawn, LINES);
        else
            draw_without_replacement(random, drawn, LINES, POOL_LINES);
        for (size_t l = 0; l < LINES; l++) {
            int q = quadrant[drawn[l]];
            double truth = HOP_NS + spacing * (steps(0, q) + steps(other, q)) +
                           HOP_NS * (common[drawn[l]] + LINE * sqrt(0.5) * normal(random));
            if (home->clusters > 1) cluster[l] = home->cluster[drawn[l]];
            for (size_t b = 0; b < BATCHES; b++) values[l * BATCHES + b] = truth + HOP_NS * VISIT * normal(random);
        }
        passes[p] = summarize_clusters(values, LINES, BATCHES, cluster, home->clusters, NULL, NULL).latency;
    }
    sort_ascending(passes, PASSES);
    return median_sorted(passes, PASSES);
}

int main(int argc, char **argv) {
    if (argc != 10) return 2;
    size_t runs = strtoul(argv[1], NULL, 10), l3s = strtoul(argv[7], NULL, 10);
    double spacing = atof(argv[2]), noise = atof(argv[8]), shares[QUADRANTS];
    for (int q = 0; q < QUADRANTS; q++) shares[q] = atof(argv[3 + q]);
    static const int others[PAIRS] = {0, 1, 2};
    struct home pool = {.clusters = 1}, clustered = {.cluster = malloc(POOL_LINES)};
    if (clustered.cluster == NULL) return 3;
    for (size_t run = 0; run < runs; run++) {
        struct random random = random_stream(strtoul(argv[9], NULL, 10), 1, run);
        make_pool(&random, shares);
        printf("%zu", take_census(&clustered, &random, spacing, l3s, noise));
        for (size_t p = 0; p < PAIRS; p++)
            printf(" %.4f %.4f", measure(&pool, &random, spacing, others[p]),
                   measure(&clustered, &random, spacing, others[p]));
        putchar('\n');
    }
    free(clustered.cluster);
    return 0;
}
