#include "stats.h"

#include <math.h>
#include <stdlib.h>

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void sort_ascending(double *values, size_t count) {
    if (count > 1) qsort(values, count, sizeof *values, ascending);
}

double median_sorted(const double *sorted, size_t count) {
    return count % 2 == 1 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

double quantile_sorted(const double *sorted, size_t count, double share) {
    double rank = ceil(share * (double)count);
    if (rank < 1) return sorted[0];
    return rank > (double)count ? sorted[count - 1] : sorted[(size_t)rank - 1];
}

double lower_mean(double *values, size_t count) {
    size_t kept = count - count / 4;
    double sum = 0;
    sort_ascending(values, count);
    for (size_t i = 0; i < kept; i++) sum += values[i];
    return sum / (double)kept;
}

double correlation(const double *x, const double *y, size_t count) {
    double mean_x = 0, mean_y = 0, xx = 0, yy = 0, xy = 0;
    for (size_t i = 0; i < count; i++) {
        mean_x += x[i] / (double)count;
        mean_y += y[i] / (double)count;
    }
    for (size_t i = 0; i < count; i++) {
        xx += (x[i] - mean_x) * (x[i] - mean_x);
        yy += (y[i] - mean_y) * (y[i] - mean_y);
        xy += (x[i] - mean_x) * (y[i] - mean_y);
    }
    return xx > 0 && yy > 0 ? xy / sqrt(xx * yy) : NAN;
}

double standard_deviation(const double *values, size_t count) {
    if (count < 2) return 0;
    double mean = 0, squares = 0;
    for (size_t i = 0; i < count; i++) mean += values[i] / (double)count;
    for (size_t i = 0; i < count; i++) squares += (values[i] - mean) * (values[i] - mean);
    return sqrt(squares / (double)(count - 1));
}

void median_interval(size_t count, double confidence, size_t *low, size_t *high) {
    double n = (double)count, below = 0;
    *low = 0;
    for (size_t k = 0; k < count / 2; k++) {
        /* P(X = k) through logarithms: 2^-count underflows for long samples */
        double x = (double)k;
        below += exp(lgamma(n + 1) - lgamma(x + 1) - lgamma(n - x + 1) - n * log(2.0));
        if (2 * below > 1 - confidence) break;
        *low = k; /* the interval from rank k misses the median with probability 2 P(X <= k) */
    }
    *high = count - 1 - *low;
}
