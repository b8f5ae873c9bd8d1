#include <math.h>

#include "coherence/operations.h"
#include "harness/clock.h"

uint32_t round_trips_needed(uint32_t round_trips, const double *ticks, size_t batches) {
    static const double shortest_ns = 2000, fewest_steps = 200;
    static const double margin = 1.05; /* no two lines are alike: the next one shall not be too short again */
    double fewest = fmax(shortest_ns / clock_facts.ns_per_tick, fewest_steps * clock_facts.step_ticks);
    double least = INFINITY;
    for (size_t i = 0; i < batches; i++) least = fmin(least, ticks[i]);
    if (least >= fewest) return round_trips;
    least = fmax(least, clock_facts.step_ticks); /* less than a step reads as nothing */
    return (uint32_t)fmin(margin * round_trips * fewest / least + 1, MOST_ROUND_TRIPS);
}
