/* What a kernel that was called by hand says on the terminal: its figure, as a matrix, a table, or by class. */
#ifndef NODEPRINT_FIGURE_H
#define NODEPRINT_FIGURE_H

#include "run.h"

/* The field that stands for a unit: the operation's own, or the first. */
const struct field *figure_field(const struct operation *operation);

/* Print to stdout the medians over passes of `values` (by pass and unit): of pairs of up to 32 CPUs a matrix, else a row
 * a class; of cells a row each, of more than 40 of them a row for each of their words; the lowest, mean and highest. With
 * `csv` every unit is a line, its keys and its median. */
void figure_print(const struct run *run, const double *values, bool csv);

#endif
