/* Rates of several threads: a span that contradicts its own threads is flagged. */
#include "bandwidth/flow.h"

#include <stdio.h>

#include "harness/clock.h"
#include "tests/check.h"

/* Two threads that sweep for a million ticks, ten times; the second one's clock is `ahead`. */
static unsigned flags_where_clocks_are(uint64_t ahead, double *values) {
    static struct sweeps sweeps[2];
    for (size_t i = 0; i < 2; i++) {
        sweeps[i].count = BEST_OF;
        for (size_t s = 0; s < BEST_OF; s++) {
            sweeps[i].begin[s] = 2000000 * s + (i == 1 ? ahead : 0);
            sweeps[i].end[s] = sweeps[i].begin[s] + 1000000;
        }
    }
    return flow_set_rates(sweeps, 2, 1e6, values);
}

int main(void) {
    double values[FLOW_FIELDS];
    clock_facts = (struct clock_facts){.ns_per_tick = 1};
    CHECK(flags_where_clocks_are(0, values) == 0);
    CHECK(values[RATE_BYTES_PER_S] > 1.99e9 && values[RATE_BYTES_PER_S] < 2.01e9);
    CHECK(flags_where_clocks_are(10000, values) == 0);
    CHECK(flags_where_clocks_are(100000000, values) == FLAG_DISTURBED); /* 0.1 s: a tenth of what it is, and less */
    CHECK(values[RATE_BYTES_PER_S] < 0.1e9);
    if (failures == 0) puts("flow: all hold");
    return failures == 0 ? 0 : 1;
}
