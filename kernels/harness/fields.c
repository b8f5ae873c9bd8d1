#include "fields.h"

#include <math.h>
#include <string.h>

/* By dimension: the unit in the header, NULL where it is no value there; and that on the terminal, where a number has
 * none but the field's name. */
static const struct {
    const char *unit;
    struct readable readable;
} dimensions[] = {
    [NUMBER] = {"1", {NULL, 1}},
    [SECONDS] = {"s", {"s", 1}},
    [NANOSECONDS] = {"ns", {"ns", 1}},
    [HERTZ] = {"Hz", {"GHz", 1e-9}},
    [BYTES] = {"B", {NULL, 1}},
    [BYTES_PER_S] = {"B/s", {"GB/s", 1e-9}},
    [PER_S] = {"1/s", {"million/s", 1e-6}},
    [FLOPS_PER_S] = {"1/s", {"Gflop/s", 1e-9}},
    [CPU_NUMBER] = {NULL, {NULL, 1}},
};

struct readable field_readable(const struct field *field) {
    struct readable readable = dimensions[field->dimension].readable;
    if (readable.unit == NULL) readable.unit = field->name;
    return readable;
}

struct readable field_readable_of(const struct field *field, double largest) {
    if (field->dimension == SECONDS && largest < 1e-3) return (struct readable){"\u00b5s", 1e6};
    if (field->dimension == SECONDS && largest < 1) return (struct readable){"ms", 1e3};
    if (field->dimension == NANOSECONDS && largest >= 1e4) return (struct readable){"\u00b5s", 1e-3};
    return (struct readable){dimensions[field->dimension].readable.unit, dimensions[field->dimension].readable.scale};
}

void field_title(const struct field *field, const char *unit, struct text *out) {
    static const char *const suffixes[] = {"_bytes_per_s", "_flops_per_s", "_per_s", "_ns", "_s", "_hz", NULL};
    size_t length = strlen(field->name);
    for (size_t i = 0; unit != NULL && suffixes[i] != NULL; i++) {
        size_t end = strlen(suffixes[i]);
        if (length > end && strcmp(field->name + length - end, suffixes[i]) == 0) {
            length -= end;
            break;
        }
    }
    for (size_t i = 0; i < length; i++) text_add(out, "%c", field->name[i] == '_' ? ' ' : field->name[i]);
    if (unit != NULL) text_add(out, ", %s", unit);
}

/* Decimals that give `value` so many digits, at most three. */
static int decimals(double value, int digits) {
    int whole = value < 1 ? 1 : 1 + (int)log10(value);
    int some = digits > whole ? digits - whole : 0;
    return some < 3 ? some : 3;
}

void field_write(const struct field *field, double value, struct text *out) {
    if (field->notation == SIGNIFICANT)
        text_add(out, "%.*g", field->digits, value);
    else
        text_add(out, "%.*f", field->notation == PLAIN ? decimals(value, field->digits) : field->digits, value);
}

void fields_write(const struct field *fields, size_t count, const double *values, struct text *out) {
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(values[i])) continue;
        text_add(out, ",\"%s\":", fields[i].name);
        field_write(&fields[i], values[i], out);
    }
}

void fields_describe(const struct field *fields, size_t count, struct text *out) {
    const char *separator = "";
    for (size_t i = 0; i < count; i++) {
        const char *unit = dimensions[fields[i].dimension].unit;
        if (unit == NULL) continue;
        text_add(out, "%s\"%s\":\"%s\"", separator, fields[i].name, unit);
        separator = ",";
    }
}
