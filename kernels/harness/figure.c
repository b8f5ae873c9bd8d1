#include "figure.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fail.h"
#include "stats.h"

enum { MATRIX_CPUS = 32, SPREAD_CPUS = 16, MOST_ROWS = 40, LABEL_BYTES = 160 };

const struct field *figure_field(const struct operation *operation) {
    return operation->figure != NULL ? operation->figure : operation->fields;
}

struct shown figure_fields(const struct operation *operation) {
    if (operation->table) return (struct shown){operation->fields, operation->field_count};
    return (struct shown){figure_field(operation), 1};
}

static double median_of_passes(const struct run *run, const double *values, size_t unit, size_t field) {
    double *passes = grow(NULL, run->passes, sizeof *passes);
    size_t count = 0, fields = figure_fields(run->operation).count;
    for (uint64_t p = 0; p < run->passes; p++) {
        double value = values[(p * run->unit_count + unit) * fields + field];
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

static void print_csv(const struct run *run, const double *table, struct shown shown) {
    struct text number = {0};
    const char *separator = "";
    for (size_t k = 0; run->operation->keys[k] != NULL; k++) printf("%s,", run->operation->keys[k]);
    for (size_t f = 0; f < shown.count; f++, separator = ",") printf("%s%s", separator, shown.fields[f].name);
    printf("\n");
    for (size_t u = 0; u < run->unit_count; u++) {
        char label[LABEL_BYTES];
        label_of(run, &run->units[u], ",", false, label);
        printf("%s", label);
        for (size_t f = 0; f < shown.count; f++) {
            double value = table[u * shown.count + f];
            text_clear(&number);
            if (isfinite(value)) field_write(&shown.fields[f], value, &number);
            printf(",%s", number.length > 0 ? number.data : "");
        }
        printf("\n");
    }
    text_free(&number);
}

/* A value in a column as wide as its title. */
static void print_cell(double value, size_t width) {
    if (isfinite(value))
        printf(" %*.4g", (int)width, value);
    else
        printf(" %*s", (int)width, "-");
}

/* A row a unit and a column a field, and their means below. */
static void print_table(const struct run *run, const double *table, struct shown shown) {
    enum { LABEL = 24, NARROWEST = 10 };
    char label[LABEL_BYTES];
    struct text *titles = grow(NULL, shown.count, sizeof *titles);
    double *scales = grow(NULL, shown.count, sizeof *scales);
    printf("%-*s", LABEL, "");
    for (size_t f = 0; f < shown.count; f++) {
        double largest = 0;
        for (size_t u = 0; u < run->unit_count; u++) largest = fmax(largest, table[u * shown.count + f]);
        struct readable readable = field_readable_of(&shown.fields[f], largest);
        scales[f] = readable.scale;
        titles[f] = (struct text){0};
        field_title(&shown.fields[f], readable.unit, &titles[f]);
        while (titles[f].length < NARROWEST) text_add(&titles[f], " ");
        printf(" %s", titles[f].data);
    }
    printf("\n");
    for (size_t u = 0; u <= run->unit_count; u++) {
        bool below = u == run->unit_count;
        if (!below) label_of(run, &run->units[u], " ", false, label);
        printf("%-*s", LABEL, below ? "mean" : label);
        for (size_t f = 0; f < shown.count; f++) {
            double sum = 0, count = 0;
            for (size_t v = below ? 0 : u; v < (below ? u : u + 1); v++) {
                double value = table[v * shown.count + f];
                sum += isfinite(value) ? value : 0;
                count += isfinite(value);
            }
            print_cell(count > 0 ? sum / count * scales[f] : NAN, titles[f].length);
        }
        printf("\n");
    }
    for (size_t f = 0; f < shown.count; f++) text_free(&titles[f]);
    free(titles);
    free(scales);
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

/* What the passes of a pair are apart: half of the highest less the lowest; NAN with one pass. */
static double spread_of_passes(const struct run *run, const double *values, size_t unit) {
    struct range passes = {0};
    for (uint64_t p = 0; p < run->passes; p++) add_to_range(&passes, values[p * run->unit_count + unit]);
    return passes.count > 1 ? (passes.high - passes.low) / 2 : NAN;
}

/* One matrix over the CPUs of all pairs, the mean over homes where there are several, each cell with the half of what its
 * passes are apart where there is room. */
static void print_matrix(const struct run *run, const double *values, const double *medians, double scale) {
    const struct cpulist *cpus = &run->cpus;
    bool spreads = run->passes > 1 && cpus->count <= SPREAD_CPUS;
    int width = spreads ? 11 : 6;
    printf("%5s", "");
    for (size_t j = 0; j < cpus->count; j++) printf(" %*d", width, cpus->cpu[j]);
    printf("\n");
    for (size_t i = 0; i < cpus->count; i++) {
        printf("%5d", cpus->cpu[i]);
        for (size_t j = 0; j < cpus->count; j++) {
            struct range cell = {0}, spread = {0};
            for (size_t u = 0; u < run->unit_count; u++) {
                const int64_t *key = run->units[u].key;
                if ((key[0] == cpus->cpu[i] && key[1] == cpus->cpu[j]) ||
                    (key[1] == cpus->cpu[i] && key[0] == cpus->cpu[j])) {
                    add_to_range(&cell, medians[u] * scale);
                    add_to_range(&spread, spread_of_passes(run, values, u) * scale);
                }
            }
            if (cell.count == 0)
                printf(" %*s", width, "-");
            else if (spreads && spread.count > 0)
                printf(" %6.1f\u00b1%-4.1f", cell.sum / (double)cell.count, spread.high);
            else
                printf(" %*.1f", width, cell.sum / (double)cell.count);
        }
        printf("\n");
    }
}

/* The pairs with the lowest and the highest value. */
static void print_ends(const struct run *run, const double *values, const double *medians, const char *unit,
                       double scale) {
    size_t ends[2] = {0, 0};
    for (size_t u = 0; u < run->unit_count; u++) {
        if (!(medians[ends[0]] <= medians[u]) && isfinite(medians[u])) ends[0] = u;
        if (!(medians[ends[1]] >= medians[u]) && isfinite(medians[u])) ends[1] = u;
    }
    for (size_t i = 0; i < 2; i++) {
        const int64_t *key = run->units[ends[i]].key;
        double spread = spread_of_passes(run, values, ends[i]) * scale;
        printf("%s %.4g", i == 0 ? "lowest:" : "highest:", medians[ends[i]] * scale);
        if (isfinite(spread)) printf("\u00b1%.2g", spread);
        printf(" %s, CPUs %" PRId64 " and %" PRId64 "\n", unit, key[0], key[1]);
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
    const struct shown shown = figure_fields(run->operation);
    double *medians = grow(NULL, run->unit_count, sizeof *medians);
    double *table = grow(NULL, run->unit_count * shown.count, sizeof *table);
    bool pairs = strcmp(run->operation->record, "pair") == 0;
    struct range all = {0};
    const struct field *field = figure_field(run->operation);
    const char *unit = field_readable(field).unit;
    double scale = field_readable(field).scale;
    for (size_t u = 0; u < run->unit_count; u++) {
        for (size_t f = 0; f < shown.count; f++) table[u * shown.count + f] = median_of_passes(run, values, u, f);
        medians[u] = table[u * shown.count + (size_t)(field - shown.fields)];
        add_to_range(&all, medians[u] * scale);
    }
    if (csv) {
        print_csv(run, table, shown);
    } else {
        printf("%s %s: %s, medians over %" PRIu64 " passes\n", run->kernel->name, run->operation->name, unit,
               run->passes);
        bool few = !pairs && run->unit_count <= MOST_ROWS;
        if (pairs && run->cpus.count <= MATRIX_CPUS) print_matrix(run, values, medians, scale);
        if (few && run->operation->table) print_table(run, table, shown);
        for (size_t u = 0; few && !run->operation->table && u < run->unit_count; u++) {
            label_of(run, &run->units[u], " ", false, label);
            printf("%-24s %10.4g\n", label, medians[u] * scale);
        }
        printf("%-24s %10s %10s %10s\n", "", "lowest", "mean", "highest");
        if (pairs || run->unit_count > MOST_ROWS) print_classes(run, medians, scale, unit);
        print_range("all", &all, unit);
        if (pairs && run->unit_count > 0) print_ends(run, values, medians, unit, scale);
        if (run->operation->conclude != NULL) run->operation->conclude(run, table);
    }
    free(table);
    free(medians);
}
