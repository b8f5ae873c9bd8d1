#include "coherence/operations.h"
#include "harness/clock.h"

bool long_enough(double ticks) {
    static const double shortest_ns = 2000, fewest_steps = 200;
    return ticks * clock_facts.ns_per_tick >= shortest_ns && ticks >= fewest_steps * clock_facts.step_ticks;
}
