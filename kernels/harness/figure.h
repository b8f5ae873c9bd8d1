/* What a kernel that was called by hand says on the terminal: its figure, as a matrix, a table, or by class. */
#ifndef NODEPRINT_FIGURE_H
#define NODEPRINT_FIGURE_H

#include "run.h"

/* The field that stands for a unit: the operation's own, or the first. */
const struct field *figure_field(const struct operation *operation);

/* The fields of a unit that are printed: all of a table, else the one above. */
struct shown {
    const struct field *fields;
    size_t count;
};
struct shown figure_fields(const struct operation *operation);

/* Print to stdout the medians over passes of `values` (by pass, unit and field that is printed): of pairs of up to 32 CPUs a matrix, else a row
 * a class; of cells a row each with a column for each field, of more than 40 of them a row for each of their words; the lowest,
 * mean and highest. With `csv` every unit is a line, its keys and its medians. */
void figure_print(const struct run *run, const double *values, bool csv);

#endif
