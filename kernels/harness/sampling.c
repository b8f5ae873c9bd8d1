#include "sampling.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fail.h"
#include "fields.h"
#include "stats.h"

struct summary summarize_clusters(const double *values, size_t lines, size_t batches, const unsigned char *cluster,
                                  size_t clusters, double *lowest, double *medians) {
    size_t count = lines * batches, low, high, known = 0;
    double *best = grow(NULL, lines, sizeof *best), *sorted = grow(NULL, count, sizeof *sorted), below = 0, above = 0;
    for (size_t line = 0; line < lines; line++) {
        best[line] = values[line * batches];
        for (size_t batch = 1; batch < batches; batch++)
            if (values[line * batches + batch] < best[line]) best[line] = values[line * batches + batch];
    }
    if (lowest != NULL) memcpy(lowest, best, lines * sizeof *best);
    struct summary summary = {.line_sd = standard_deviation(best, lines)};
    for (size_t c = 0; c < clusters; c++) {
        size_t members = 0;
        for (size_t line = 0; line < lines; line++)
            if (cluster == NULL || cluster[line] == c) sorted[members++] = best[line];
        if (medians != NULL) medians[c] = NAN;
        if (members == 0) continue;
        sort_ascending(sorted, members);
        median_interval(members, 0.95, &low, &high);
        double median = median_sorted(sorted, members);
        if (medians != NULL) medians[c] = median;
        summary.latency += median;
        below += (median - sorted[low]) * (median - sorted[low]);
        above += (sorted[high] - median) * (sorted[high] - median);
        known++;
    }
    summary.latency /= (double)known;
    summary.ci_low = summary.latency - sqrt(below) / (double)known;
    summary.ci_high = summary.latency + sqrt(above) / (double)known;
    memcpy(sorted, values, count * sizeof *sorted);
    sort_ascending(sorted, count);
    summary.min = sorted[0];
    summary.p25 = quantile_sorted(sorted, count, 0.25);
    summary.median = median_sorted(sorted, count);
    summary.p99 = quantile_sorted(sorted, count, 0.99);
    size_t slow = 0;
    for (size_t i = 0; i < count; i++) slow += sorted[i] > 2 * summary.p25;
    summary.slow_share = (double)slow / (double)count;
    free(best);
    free(sorted);
    return summary;
}

struct summary summarize(const double *values, size_t lines, size_t batches, double *lowest) {
    return summarize_clusters(values, lines, batches, NULL, 1, lowest, NULL);
}

double summary_half_width(const struct summary *summary) {
    return (summary->ci_high - summary->ci_low) / 2 / summary->latency;
}

void summary_set_values(const struct summary *summary, double *values) {
    values[LATENCY_NS] = summary->latency;
    values[CI_LOW_NS] = summary->ci_low;
    values[CI_HIGH_NS] = summary->ci_high;
    values[MIN_NS] = summary->min;
    values[P25_NS] = summary->p25;
    values[MEDIAN_NS] = summary->median;
    values[P99_NS] = summary->p99;
    values[LINE_SD_NS] = summary->line_sd;
}

double robust_pass_sd(const double *values, size_t units, size_t passes) {
    enum { MOST_PAIRED = 9, FEWEST_DIFFERENCES = 20 };
    size_t furthest = passes <= MOST_PAIRED ? passes / 2 : 1, count = 0;
    double *differences = grow(NULL, units * passes * furthest + 1, sizeof *differences);
    for (size_t apart = 1; apart <= furthest; apart++) {
        size_t firsts = 2 * apart == passes ? apart : passes; /* half way round each pair is met from both ends */
        for (size_t p = 0; p < firsts; p++)
            for (size_t unit = 0; unit < units; unit++)
                differences[count++] = fabs(values[p * units + unit] - values[(p + apart) % passes * units + unit]);
    }
    sort_ascending(differences, count);
    double sd = count < FEWEST_DIFFERENCES ? 0 : 1.4826 * differences[count / 2];
    free(differences);
    return sd;
}

/* A batch that was interrupted says nothing of the line: deviations beyond half the value are cut there. */
static double cut(double deviation) {
    return fmax(-0.5, fmin(0.5, deviation));
}

void spread_add(struct spread_sums *sums, struct line_sums *set, const double *values, size_t lines, size_t batches,
                const double *center) {
    if (set->lines == 0) {
        set->sum = grow(NULL, lines, sizeof *set->sum);
        set->squares = grow(NULL, lines, sizeof *set->squares);
        set->lines = lines;
        for (size_t i = 0; i < lines; i++) set->sum[i] = set->squares[i] = 0;
    }
    set->pairs++;
    for (size_t line = 0; line < lines; line++) {
        double mean = 0;
        for (size_t batch = 0; batch < batches; batch++)
            mean += cut(values[line * batches + batch] / center[line] - 1) / (double)batches;
        for (size_t batch = 0; batch < batches; batch++) {
            double pure = cut(values[line * batches + batch] / center[line] - 1) - mean;
            sums->pure_squares += pure * pure;
        }
        sums->pure_count += batches - 1;
        set->sum[line] += mean;
        set->squares[line] += mean * mean;
    }
}

/* Two-way layout without repetition, pairs by lines: the mean squares of lines and of what is left give the variances
 * of lines and of line x pair (which still holds the revisit's, divided by the batches). */
void spread_close_set(struct spread_sums *sums, struct line_sums *set) {
    double pairs = (double)set->pairs, total = 0, between = 0, within = 0;
    size_t lines = set->lines;
    if (pairs >= 2 && lines >= 2) {
        for (size_t i = 0; i < lines; i++) total += set->sum[i];
        double grand = total / (pairs * (double)lines);
        for (size_t i = 0; i < lines; i++) {
            double mean = set->sum[i] / pairs;
            between += (mean - grand) * (mean - grand);
            within += set->squares[i] - pairs * mean * mean;
        }
        double within_variance = within / ((pairs - 1) * (double)lines);
        sums->line_variance += fmax(0, between / (double)(lines - 1) - within_variance / pairs);
        sums->line_pair_variance += within_variance;
        sums->sets++;
    }
    for (size_t i = 0; i < lines; i++) set->sum[i] = set->squares[i] = 0;
    set->pairs = 0;
}

struct spread spread_of(const struct spread_sums *sums, size_t batches) {
    struct spread spread = {NAN, NAN, NAN};
    double pure = sums->pure_count > 0 ? sums->pure_squares / (double)sums->pure_count : NAN;
    spread.revisit = sqrt(pure);
    if (sums->sets > 0) {
        spread.line = sqrt(sums->line_variance / (double)sums->sets);
        spread.line_pair = sqrt(fmax(0, sums->line_pair_variance / (double)sums->sets - pure / (double)batches));
    }
    return spread;
}
