#include <math.h>

#include "coherence/operations.h"
#include "harness/clock.h"

uint32_t round_trips_needed(uint32_t round_trips, double ticks) {
    static const double shortest_ns = 2000, fewest_steps = 200;
    static const double margin = 1.05; /* no two lines are alike: the next one shall not be too short again */
    double fewest = fmax(shortest_ns / clock_facts.ns_per_tick, fewest_steps * clock_facts.step_ticks);
    if (ticks >= fewest) return round_trips;
    double at_most = fmax(ticks, clock_facts.step_ticks); /* less than a step reads as nothing */
    return (uint32_t)fmin(margin * round_trips * fewest / at_most + 1, MOST_ROUND_TRIPS);
}
