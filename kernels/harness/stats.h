/* Order statistics. Low quantiles and medians hold on a busy machine where means break. */
#ifndef NODEPRINT_STATS_H
#define NODEPRINT_STATS_H

#include <stddef.h>

void sort_ascending(double *values, size_t count);

/* Of values in ascending order; count above 0. The median of an even count is the mean of the middle two. */
double median_sorted(const double *sorted, size_t count);

/* Nearest rank: the smallest value that at least `share` of the values do not exceed. */
double quantile_sorted(const double *sorted, size_t count, double share);

/* Mean of the lower three quarters, and sorts the values: what was interrupted is left out, and it is finer than the
 * steps that values come in where a counter advances by several ns at once. */
double lower_mean(double *values, size_t count);

/* Pearson's; NAN where one side does not vary. */
double correlation(const double *x, const double *y, size_t count);

/* Standard deviation with n - 1; 0 for fewer than two values. */
double standard_deviation(const double *values, size_t count);

/* Ranks (from 0) whose order statistics enclose the median with probability `confidence` or more, the narrowest
 * symmetric pair; lowest and highest where no pair is wide enough (fewer than 6 values at 95 %). Exact: the number of
 * values below the median is binomial(count, 1/2). */
void median_interval(size_t count, double confidence, size_t *low, size_t *high);

#endif
