/* Where the lines of a pool live: how far each is from one CPU of each L3, by flushing it and loading it again, and the
 * clusters that they make (quadrants of an I/O die also where the NUMA node does not distinguish them, as in NPS1). */
#ifndef NODEPRINT_CENSUS_H
#define NODEPRINT_CENSUS_H

#include "run.h"
#include "schedule.h"

enum { CENSUS_LINES = 512, MOST_CENSUS_LINES = 4096 };

/* What is done with the lines of this run's pools. */
enum census_mode {
    CENSUS_AS_NEEDED, /* clusters where several L3s take part, else all lines are alike */
    CENSUS_ALWAYS,    /* the same, and the distances are recorded also where there is one L3 */
    CENSUS_NEVER,     /* all lines are alike */
};

/* Take the census of all homes, append its records and those of the clusters, and give each home its clusters, from
 * which census_draw draws. `drawn` lines are drawn at a time. */
void census_take(struct run *run, enum census_mode mode, size_t drawn, struct text *records);

/* Seconds that the census of one home takes, about. */
double census_seconds(const struct run *run, enum census_mode mode, size_t drawn);

/* Draw `count` lines of the home's clusters without replacement, by turns from each, so that any number of them that
 * follow each other are spread over the clusters as evenly as can be. */
void census_draw(const struct home *home, struct random *random, uint32_t *drawn, size_t count);

#endif
