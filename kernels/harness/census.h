/* How far each line of a pool is from one CPU of each L3 group, by flushing it and loading it again: maps addresses to
 * quadrants or channels also where the NUMA node does not distinguish them (NPS1). */
#ifndef NODEPRINT_CENSUS_H
#define NODEPRINT_CENSUS_H

#include "run.h"
#include "schedule.h"

enum { CENSUS_LINES = 1024 };

/* Take the census of all homes and append its records. With `stratify` the pools' lines get strata, from which
 * census_draw draws alike. */
void census_take(struct run *run, bool stratify, struct text *records);

/* Draw `count` lines, at most CENSUS_LINES, without replacement, as many from each stratum as can be. */
void census_draw(const struct home *home, struct random *random, uint32_t *drawn, size_t count);

/* Stratum of each line: the CPU that it is nearest to, compared with that CPU's median line; with one CPU the quarter
 * of the distances it is in. `reload` holds `cpus` x `lines` distances. Returns the number of strata. */
size_t census_strata(const double *reload, size_t cpus, size_t lines, unsigned char *stratum);

#endif
