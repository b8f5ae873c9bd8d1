/* What an operation says of a unit: its fields, each declared once, and a number for each of them. The values that the
 * header names, a unit's record and the figure on the terminal are made of these. */
#ifndef NODEPRINT_FIELDS_H
#define NODEPRINT_FIELDS_H

#include <stddef.h>

#include "text.h"

enum { MOST_FIELDS = 20 };

/* What a value counts or measures; a NUMBER is a count, a share or a ratio. CPU_NUMBER says where something was measured:
 * the header does not name it. */
enum dimension { NUMBER, SECONDS, NANOSECONDS, HERTZ, BYTES, BYTES_PER_S, PER_S, FLOPS_PER_S, CPU_NUMBER };

enum notation {
    DECIMALS,    /* so many digits behind the point; with none a whole number */
    SIGNIFICANT, /* so many digits, with an exponent where that is shorter */
    PLAIN,       /* so many digits without an exponent, at most three of them behind the point */
};

struct field {
    const char *name; /* ends with its unit: latency_ns, rate_bytes_per_s */
    enum dimension dimension;
    enum notation notation;
    int digits;
};

/* The fields of a latency, the first ones of an operation that measures one: values by summary_set_values(). */
enum { LATENCY_NS, CI_LOW_NS, CI_HIGH_NS, MIN_NS, P25_NS, MEDIAN_NS, P99_NS, LINE_SD_NS, LATENCY_FIELDS };

/* A batch resolves no more digits, and each digit more of a pair makes the records of a node longer by a fiftieth. */
#define LATENCY_FIELD(at, its_name, its_digits) [at] = {its_name, NANOSECONDS, PLAIN, its_digits}
#define FIELDS_OF_LATENCY                                                                                              \
    LATENCY_FIELD(LATENCY_NS, "latency_ns", 5), LATENCY_FIELD(CI_LOW_NS, "ci_low_ns", 4),                              \
        LATENCY_FIELD(CI_HIGH_NS, "ci_high_ns", 4), LATENCY_FIELD(MIN_NS, "min_ns", 4),                                \
        LATENCY_FIELD(P25_NS, "p25_ns", 4), LATENCY_FIELD(MEDIAN_NS, "median_ns", 4),                                  \
        LATENCY_FIELD(P99_NS, "p99_ns", 4), LATENCY_FIELD(LINE_SD_NS, "line_sd_ns", 4)

/* The same where others draw from memory meanwhile: how much, and how many CPUs do. */
enum { TRAFFIC_BYTES_PER_S = LATENCY_FIELDS, TRAFFIC_CPUS };
#define FIELDS_OF_LATENCY_BESIDE_TRAFFIC                                                                               \
    FIELDS_OF_LATENCY, [TRAFFIC_BYTES_PER_S] = {"rate_bytes_per_s", BYTES_PER_S, SIGNIFICANT, 6},                      \
                       [TRAFFIC_CPUS] = {"injectors", NUMBER, DECIMALS, 0}

/* Append `value` as the field writes it, without its name. */
void field_write(const struct field *field, double value, struct text *out);

/* Append ,"name":value for each field that has a finite value. */
void fields_write(const struct field *fields, size_t count, const double *values, struct text *out);

/* Append "name":"unit",... of the fields that are values, as the header has them. */
void fields_describe(const struct field *fields, size_t count, struct text *out);

/* In what unit people read the field, and what its values are multiplied by for that. */
struct readable {
    const char *unit;
    double scale;
};
struct readable field_readable(const struct field *field);

/* The same of a column whose largest value is `largest`: seconds below one are in ms or us. */
struct readable field_readable_of(const struct field *field, double largest);

/* Append what the column of a field in `unit` is called: "own, ns" of own_ns. */
void field_title(const struct field *field, const char *unit, struct text *out);

#endif
