/* What a kernel that was called by hand says on the terminal: its figure, as a matrix, a table, or by class. */
#ifndef NODEPRINT_FIGURE_H
#define NODEPRINT_FIGURE_H

#include "run.h"

enum { FIGURE_NAME_BYTES = 64 };

/* The name of the value that stands for a unit: the operation's own, or the first of its values. */
void figure_name(const struct operation *operation, char name[FIGURE_NAME_BYTES]);

/* That value among a record's members (,"name":value,...); NAN where it is null or not there. */
double figure_in(const char *members, const char *name);

/* Print to stdout the medians over passes of `values` (by pass and unit): of pairs of up to 32 CPUs a matrix, else a row
 * a class; of cells a row each, of more than 40 of them a row for each of their words; the lowest, mean and highest. With
 * `csv` every unit is a line, its keys and its median. */
void figure_print(const struct run *run, const double *values, bool csv);

#endif
