/* All passes over the units, and the second looks behind them. */
#ifndef NODEPRINT_SWEEP_H
#define NODEPRINT_SWEEP_H

#include "census.h"
#include "resume.h"
#include "run.h"

/* What is going on while units are measured. */
struct sweep {
    struct run *run;
    struct former *former;
    uint32_t *order;
    double started_s, second_s, sentinel_s;
    double began_busy_s, prepare_busy_s; /* CPU seconds: of all that came before, and of pools and prepare() */
    struct machine_counts counts, first_counts;
    size_t *unsettled; /* units of this pass whose records are not written yet */
    size_t unsettled_count, moved_pages;
    struct result results[MAX_PARALLEL];
    size_t parallel_units, parallel_calls;
    /* when all is done */
    size_t looked_again;
    double elapsed_s, busy_s;
};

/* How the pools' lines are counted and drawn, by the options. */
enum census_mode sweep_census_mode(void);
void sweep_take_census(struct run *run);

/* CPU seconds so far of those that the others wait for: the busiest worker of each task, and the coordinator between. */
double sweep_busy_s(const struct run *run);

void sweep_begin(struct sweep *sweep, struct run *run, struct former *former);

/* Measures what `former` lacks and writes it; returns early once run_stopping(). */
void sweep_measure(struct sweep *sweep);

#endif
