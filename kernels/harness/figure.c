#include "figure.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fail.h"
#include "stats.h"

enum { MATRIX_CPUS = 32, MOST_ROWS = 40, LABEL_BYTES = 160 };

const struct field *figure_field(const struct operation *operation) {
    return operation->figure != NULL ? operation->figure : operation->fields;
}

static double median_of_passes(const struct run *run, const double *values, size_t unit) {
    double *passes = grow(NULL, run->passes, sizeof *passes);
    size_t count = 0;
    for (uint64_t p = 0; p < run->passes; p++) {
        double value = values[p * run->unit_count + unit];
        if (isfinite(value)) passes[count++] = value;
    }
    sort_ascending(passes, count);
    double median = count > 0 ? median_sorted(passes, count) : NAN;
    free(passes);
    return median;
}

/* The keys of a unit, separated by `separator`; with `words_only` those that are words. */
static void label_of(const struct run *run, const struct unit *unit, const char *separator, bool words_only,
                     char label[LABEL_BYTES]) {
    const struct operation *operation = run->operation;
    size_t length = 0;
    label[0] = '\0';
    for (size_t k = 0; operation->keys[k] != NULL; k++) {
        const char *const *words = operation->words[k];
        if ((words_only && words == NULL) || length >= LABEL_BYTES) continue;
        int added = words != NULL ? snprintf(label + length, LABEL_BYTES - length, "%s%s", length > 0 ? separator : "",
                                             words[unit->key[k]])
                                  : snprintf(label + length, LABEL_BYTES - length, "%s%" PRId64,
                                             length > 0 ? separator : "", unit->key[k]);
        length += added > 0 ? (size_t)added : 0;
    }
}

static void print_csv(const struct run *run, const double *medians, const struct field *field) {
    struct text number = {0};
    for (size_t k = 0; run->operation->keys[k] != NULL; k++) printf("%s,", run->operation->keys[k]);
    printf("%s\n", field->name);
    for (size_t u = 0; u < run->unit_count; u++) {
        char label[LABEL_BYTES];
        label_of(run, &run->units[u], ",", false, label);
        text_clear(&number);
        if (isfinite(medians[u])) field_write(field, medians[u], &number);
        printf("%s,%s\n", label, number.length > 0 ? number.data : "");
    }
    text_free(&number);
}

/* Lowest, mean and highest of some values. */
struct range {
    double low, sum, high;
    size_t count;
};

static void add_to_range(struct range *range, double value) {
    if (!isfinite(value)) return;
    range->low = range->count == 0 ? value : fmin(range->low, value);
    range->high = range->count == 0 ? value : fmax(range->high, value);
    range->sum += value;
    range->count++;
}

static void print_range(const char *label, const struct range *range, const char *unit) {
    if (range->count == 0) return;
    printf("%-24s %10.4g %10.4g %10.4g %s (%zu)\n", label, range->low, range->sum / (double)range->count, range->high,
           unit, range->count);
}

/* One matrix over the CPUs of all pairs, the mean over homes where there are several. */
static void print_matrix(const struct run *run, const double *medians, double scale) {
    const struct cpulist *cpus = &run->cpus;
    printf("%5s", "");
    for (size_t j = 0; j < cpus->count; j++) printf(" %6d", cpus->cpu[j]);
    printf("\n");
    for (size_t i = 0; i < cpus->count; i++) {
        printf("%5d", cpus->cpu[i]);
        for (size_t j = 0; j < cpus->count; j++) {
            struct range cell = {0};
            for (size_t u = 0; u < run->unit_count; u++) {
                const int64_t *key = run->units[u].key;
                if ((key[0] == cpus->cpu[i] && key[1] == cpus->cpu[j]) ||
                    (key[1] == cpus->cpu[i] && key[0] == cpus->cpu[j]))
                    add_to_range(&cell, medians[u] * scale);
            }
            if (cell.count > 0)
                printf(" %6.1f", cell.sum / (double)cell.count);
            else
                printf(" %6s", "-");
        }
        printf("\n");
    }
}

static size_t place_of(const struct run *run, int64_t cpu) {
    size_t i = 0;
    while (run->selection.cpus.cpu[i] != cpu) i++;
    return i;
}

/* What a pair's class or a cell's words are called. */
static void class_of(const struct run *run, size_t u, char label[LABEL_BYTES]) {
    const int64_t *key = run->units[u].key;
    if (strcmp(run->operation->record, "pair") == 0)
        snprintf(label, LABEL_BYTES, "same %s",
                 closeness_names[select_closeness(&run->selection, place_of(run, key[0]), place_of(run, key[1]))]);
    else
        label_of(run, &run->units[u], " ", true, label);
}

static void print_classes(const struct run *run, const double *medians, double scale, const char *unit) {
    char label[LABEL_BYTES], other[LABEL_BYTES];
    for (size_t u = 0; u < run->unit_count; u++) {
        struct range range = {0};
        bool first = true;
        class_of(run, u, label);
        for (size_t v = 0; first && v < run->unit_count; v++) {
            class_of(run, v, other);
            if (strcmp(label, other) != 0) continue;
            first = v >= u;
            add_to_range(&range, medians[v] * scale);
        }
        if (first && label[0] != '\0') print_range(label, &range, unit);
    }
}

void figure_print(const struct run *run, const double *values, bool csv) {
    char label[LABEL_BYTES];
    double *medians = grow(NULL, run->unit_count, sizeof *medians);
    bool pairs = strcmp(run->operation->record, "pair") == 0;
    struct range all = {0};
    const struct field *field = figure_field(run->operation);
    const char *unit = field_readable(field).unit;
    double scale = field_readable(field).scale;
    for (size_t u = 0; u < run->unit_count; u++) {
        medians[u] = median_of_passes(run, values, u);
        add_to_range(&all, medians[u] * scale);
    }
    if (csv) {
        print_csv(run, medians, field);
    } else {
        printf("%s %s: %s, medians over %" PRIu64 " passes\n", run->kernel->name, run->operation->name, unit,
               run->passes);
        if (pairs && run->cpus.count <= MATRIX_CPUS) print_matrix(run, medians, scale);
        for (size_t u = 0; !pairs && run->unit_count <= MOST_ROWS && u < run->unit_count; u++) {
            label_of(run, &run->units[u], " ", false, label);
            printf("%-24s %10.4g\n", label, medians[u] * scale);
        }
        printf("%-24s %10s %10s %10s\n", "", "lowest", "mean", "highest");
        if (pairs || run->unit_count > MOST_ROWS) print_classes(run, medians, scale, unit);
        print_range("all", &all, unit);
    }
    free(medians);
}
