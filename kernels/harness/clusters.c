#include "clusters.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "fail.h"

enum { MOST_MERGED = 512, FEWEST_LINES = 8, MOST_SWEEPS = 50 };
static const double SEPARATION = 3.5;

/* Lines as points: `dims` coordinates each, side by side. */
struct points {
    double *at;
    size_t count, dims;
};

static const double *point(const struct points *points, size_t i) {
    return points->at + i * points->dims;
}

static double squared_distance(const double *a, const double *b, size_t dims) {
    double sum = 0;
    for (size_t d = 0; d < dims; d++) sum += (a[d] - b[d]) * (a[d] - b[d]);
    return sum;
}

/* ---- what distinguishes lines ---- */

/* Distances less the mean of their CPU and of their line. */
static struct points centered(const double *distances, size_t cpus, size_t lines) {
    struct points points = {grow(NULL, cpus * lines, sizeof(double)), lines, cpus};
    double *of_cpu = grow(NULL, cpus, sizeof *of_cpu), grand = 0;
    for (size_t c = 0; c < cpus; c++) {
        of_cpu[c] = 0;
        for (size_t l = 0; l < lines; l++) of_cpu[c] += distances[c * lines + l] / (double)lines;
        grand += of_cpu[c] / (double)cpus;
    }
    for (size_t l = 0; l < lines; l++) {
        double of_line = 0;
        for (size_t c = 0; c < cpus; c++) of_line += distances[c * lines + l] / (double)cpus;
        for (size_t c = 0; c < cpus; c++)
            points.at[l * cpus + c] = distances[c * lines + l] - of_cpu[c] - of_line + grand;
    }
    free(of_cpu);
    return points;
}

/* Bring each CPU's coordinate of both halves to units of its noise, so that a CPU which was disturbed counts less. */
static void scale_by_noise(struct points *first, struct points *second) {
    for (size_t d = 0; d < first->dims; d++) {
        double squares = 0;
        for (size_t l = 0; l < first->count; l++) {
            double difference = point(first, l)[d] - point(second, l)[d];
            squares += difference * difference;
        }
        double noise = sqrt(squares / (double)first->count);
        for (size_t l = 0; l < first->count && noise > 0; l++) {
            first->at[l * first->dims + d] /= noise;
            second->at[l * second->dims + d] /= noise;
        }
    }
}

/* ---- clusters ---- */

struct merge {
    size_t kept, gone;
};

/* Ward's merges of the first `count` points, from one cluster a point down to one of all; the update of distances is
 * that of Lance and Williams (1967). */
static void ward(const struct points *points, size_t count, struct merge *merges) {
    double *apart = grow(NULL, count * count, sizeof *apart);
    size_t *size = grow(NULL, count, sizeof *size), *nearest = grow(NULL, count, sizeof *nearest);
    for (size_t i = 0; i < count; i++) {
        size[i] = 1;
        for (size_t j = 0; j < count; j++)
            apart[i * count + j] = squared_distance(point(points, i), point(points, j), points->dims);
    }
    for (size_t i = 0; i < count; i++) nearest[i] = count;
    for (size_t step = 0; step + 1 < count; step++) {
        size_t a = count;
        for (size_t i = 0; i < count; i++) {
            if (size[i] == 0) continue;
            if (nearest[i] == count)
                for (size_t j = 0; j < count; j++)
                    if (j != i && size[j] > 0 &&
                        (nearest[i] == count || apart[i * count + j] < apart[i * count + nearest[i]]))
                        nearest[i] = j;
            if (a == count || apart[i * count + nearest[i]] < apart[a * count + nearest[a]]) a = i;
        }
        size_t b = nearest[a];
        double between = apart[a * count + b], na = (double)size[a], nb = (double)size[b];
        merges[step] = (struct merge){a, b};
        size[a] += size[b];
        size[b] = 0;
        for (size_t k = 0; k < count; k++) {
            if (size[k] == 0 || k == a) continue;
            double nk = (double)size[k];
            apart[a * count + k] = apart[k * count + a] =
                ((na + nk) * apart[a * count + k] + (nb + nk) * apart[b * count + k] - nk * between) / (na + nb + nk);
            if (nearest[k] == a || nearest[k] == b)
                nearest[k] = count; /* to be looked for again */
            else if (apart[k * count + a] < apart[k * count + nearest[k]])
                nearest[k] = a;
        }
        nearest[a] = count;
    }
    free(apart);
    free(size);
    free(nearest);
}

/* The clusters that are left when all but the last `clusters` - 1 merges are made, numbered from 0. */
static void cut_tree(const struct merge *merges, size_t count, size_t clusters, unsigned char *cluster) {
    size_t *in = grow(NULL, count, sizeof *in), known = 0;
    for (size_t i = 0; i < count; i++) in[i] = i;
    for (size_t step = 0; step < count - clusters; step++) in[merges[step].gone] = merges[step].kept;
    for (size_t i = 0; i < count; i++)
        if (in[i] == i) cluster[i] = (unsigned char)known++;
    for (size_t i = 0; i < count; i++) {
        size_t root = i;
        while (in[root] != root) root = in[root];
        cluster[i] = cluster[root];
    }
    free(in);
}

/* The mean of each cluster's points, `clusters` x dims; false where a cluster has fewer than FEWEST_LINES. */
static bool centers_of(const struct points *points, size_t count, const unsigned char *cluster, size_t clusters,
                       double *centers) {
    size_t members[MOST_CLUSTERS] = {0};
    for (size_t i = 0; i < clusters * points->dims; i++) centers[i] = 0;
    for (size_t l = 0; l < count; l++) {
        members[cluster[l]]++;
        for (size_t d = 0; d < points->dims; d++) centers[cluster[l] * points->dims + d] += point(points, l)[d];
    }
    bool enough = true;
    for (size_t c = 0; c < clusters; c++) {
        enough = enough && members[c] >= FEWEST_LINES;
        for (size_t d = 0; d < points->dims && members[c] > 0; d++) centers[c * points->dims + d] /= (double)members[c];
    }
    return enough;
}

static unsigned char nearest_center(const double *at, const double *centers, size_t clusters, size_t dims) {
    size_t nearest = 0;
    double least = squared_distance(at, centers, dims);
    for (size_t c = 1; c < clusters; c++) {
        double distance = squared_distance(at, centers + c * dims, dims);
        if (distance < least) {
            least = distance;
            nearest = c;
        }
    }
    return (unsigned char)nearest;
}

/* Lloyd's algorithm from the clusters that are there; false where one of them becomes too small. */
static bool settle(const struct points *points, size_t count, unsigned char *cluster, size_t clusters,
                   double *centers) {
    bool enough = centers_of(points, count, cluster, clusters, centers);
    for (int sweep = 0; enough && sweep < MOST_SWEEPS; sweep++) {
        bool moved = false;
        for (size_t l = 0; l < count; l++) {
            unsigned char now = nearest_center(point(points, l), centers, clusters, points->dims);
            moved = moved || now != cluster[l];
            cluster[l] = now;
        }
        if (!moved) break;
        enough = centers_of(points, count, cluster, clusters, centers);
    }
    return enough;
}

/* How far clusters a and b are apart in `points`, along the line between their centers, in standard deviations. */
static double separation_of(const struct points *points, size_t count, const unsigned char *cluster,
                            const double *centers, size_t a, size_t b) {
    double sum[2] = {0}, squares[2] = {0}, members[2] = {0};
    for (size_t l = 0; l < count; l++) {
        if (cluster[l] != a && cluster[l] != b) continue;
        double along = 0;
        for (size_t d = 0; d < points->dims; d++)
            along += point(points, l)[d] * (centers[a * points->dims + d] - centers[b * points->dims + d]);
        size_t side = cluster[l] == a ? 0 : 1;
        sum[side] += along;
        squares[side] += along * along;
        members[side]++;
    }
    double mean[2], variance = 0;
    for (size_t side = 0; side < 2; side++) {
        mean[side] = sum[side] / members[side];
        variance += fmax(0, squares[side] / members[side] - mean[side] * mean[side]) / 2;
    }
    return variance > 0 ? (mean[0] - mean[1]) / sqrt(variance) : mean[0] > mean[1] ? INFINITY : 0;
}

static double least_separation(const struct points *points, size_t count, const unsigned char *cluster,
                               const double *centers, size_t clusters) {
    double least = INFINITY;
    for (size_t a = 0; a < clusters; a++)
        for (size_t b = a + 1; b < clusters; b++)
            least = fmin(least, separation_of(points, count, cluster, centers, a, b));
    return least;
}

/* Number clusters by how many lines they have, the largest first. */
static void order_by_size(unsigned char *cluster, size_t lines, size_t clusters) {
    size_t members[MOST_CLUSTERS] = {0};
    unsigned char rank[MOST_CLUSTERS] = {0};
    for (size_t l = 0; l < lines; l++) members[cluster[l]]++;
    for (size_t a = 0; a < clusters; a++)
        for (size_t b = 0; b < clusters; b++)
            rank[a] = (unsigned char)(rank[a] + (members[b] > members[a] || (members[b] == members[a] && b < a)));
    for (size_t l = 0; l < lines; l++) cluster[l] = rank[cluster[l]];
}

struct clustering cluster_lines(const double *first, const double *second, size_t cpus, size_t lines,
                                unsigned char *cluster) {
    struct clustering found = {.count = 1, .agreement = 1};
    memset(cluster, 0, lines);
    size_t merged = lines < MOST_MERGED ? lines : MOST_MERGED;
    if (cpus < 2 || merged / 2 < FEWEST_LINES) return found;
    struct points a = centered(first, cpus, lines), b = centered(second, cpus, lines);
    scale_by_noise(&a, &b);
    struct merge *merges = grow(NULL, merged, sizeof *merges);
    unsigned char *tried = grow(NULL, lines, 1), *best = grow(NULL, lines, 1);
    double *centers = grow(NULL, MOST_CLUSTERS * cpus, sizeof *centers);
    double *centers_b = grow(NULL, MOST_CLUSTERS * cpus, sizeof *centers_b);
    ward(&a, merged, merges);
    for (size_t clusters = 2; clusters <= MOST_CLUSTERS; clusters++) {
        cut_tree(merges, merged, clusters, tried);
        if (!settle(&a, merged, tried, clusters, centers)) continue;
        double separation = least_separation(&b, merged, tried, centers, clusters);
        if (!(separation >= SEPARATION)) continue;
        found.count = clusters;
        found.separation = separation;
        memcpy(best, tried, merged);
    }
    if (found.count > 1) {
        size_t agree = 0;
        centers_of(&a, merged, best, found.count, centers);
        centers_of(&b, merged, best, found.count, centers_b);
        for (size_t l = 0; l < lines; l++)
            agree += nearest_center(point(&a, l), centers, found.count, cpus) ==
                     nearest_center(point(&b, l), centers_b, found.count, cpus);
        found.agreement = (double)agree / (double)lines;
        for (size_t i = 0; i < cpus * lines; i++) a.at[i] = (a.at[i] + b.at[i]) / 2;
        for (size_t i = 0; i < found.count * cpus; i++) centers[i] = (centers[i] + centers_b[i]) / 2;
        for (size_t l = 0; l < lines; l++) cluster[l] = nearest_center(point(&a, l), centers, found.count, cpus);
        order_by_size(cluster, lines, found.count);
    }
    free(a.at);
    free(b.at);
    free(merges);
    free(tried);
    free(best);
    free(centers);
    free(centers_b);
    return found;
}
