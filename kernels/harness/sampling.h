/* From the batches of a pair to its value, and how much of the spread comes from where. */
#ifndef NODEPRINT_SAMPLING_H
#define NODEPRINT_SAMPLING_H

#include <stddef.h>
#include <stdint.h>

struct summary {
    double latency;               /* median over lines of each line's lowest batch */
    double ci_low, ci_high;       /* of that median, 95 %, by order statistics over lines */
    double min, p25, median, p99; /* over all batches */
    double line_sd;               /* over lines */
    double slow_share;            /* batches above twice p25 */
};

/* `values` holds `lines` x `batches` numbers, the batches of a line side by side. `lowest`, where not NULL, gets each
 * line's lowest batch. */
struct summary summarize(const double *values, size_t lines, size_t batches, double *lowest);

/* The same for lines that live in `clusters` places: the latency is the mean of the clusters' medians, and so are the
 * ends of the interval, their distances from it taken as independent. `cluster` has the number of each line's cluster;
 * `medians`, where not NULL, gets each cluster's (NAN of one without a line). */
struct summary summarize_clusters(const double *values, size_t lines, size_t batches, const unsigned char *cluster,
                                  size_t clusters, double *lowest, double *medians);

/* Half the interval's width as a share of the value. */
double summary_half_width(const struct summary *summary);

/* Set LATENCY_NS ... LINE_SD_NS of the values of a record (fields.h) to a summary of ns. */
void summary_set_values(const struct summary *summary, double *values);

/* 1.4826 times the median absolute difference between passes of the same unit, `values` by pass and unit; 0 when there
 * are too few to tell. Of up to nine passes all pairs count; of more, those that follow each other, the first being the
 * last one's next, so that time and memory grow as the passes do. */
double robust_pass_sd(const double *values, size_t units, size_t passes);

/* Standard deviations as shares of a pair's value: `line`, what all pairs of a pass see alike in a line; `line_pair`,
 * what only one pair sees in it; `revisit`, between the batches of one visit. NAN where it cannot be estimated. */
struct spread {
    double line, line_pair, revisit;
};

/* Sums that grow with each pair; a set of lines has sums of its own, and each pair as many lines. */
struct line_sums {
    double *sum, *squares; /* of each line */
    size_t lines, pairs;
};
struct spread_sums {
    double pure_squares; /* of differences between batches */
    size_t pure_count;
    double line_variance, line_pair_variance; /* summed over the sets that are closed */
    size_t sets;
};
/* `center` is what each line's values are compared with: the latency, or the median of the line's cluster. */
void spread_add(struct spread_sums *sums, struct line_sums *set, const double *values, size_t lines, size_t batches,
                const double *center);
void spread_close_set(struct spread_sums *sums, struct line_sums *set);
struct spread spread_of(const struct spread_sums *sums, size_t batches);

#endif
