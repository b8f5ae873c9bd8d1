/* Workers that stream at once, and what they move in windows of time. */
#ifndef NODEPRINT_FLOW_H
#define NODEPRINT_FLOW_H

#include <stddef.h>

#include "bandwidth/streams.h"
#include "harness/run.h"

enum { WINDOWS = 7 };
static const double WINDOW_NS = 7e6;

/* What one thread streams through: in turns a chunk of each of these buffers, from its slice of each. */
struct share {
    const struct buffer *const *buffers;
    size_t buffer_count;
    size_t slice; /* its number in each buffer */
};

/* What one thread moved: in each window; and in all its chunks since then, with their time. */
struct moved {
    double bytes[WINDOWS], all_bytes, elapsed_s, core_hz;
};

/* Let the workers with these indices stream, each through its share in slices of `slice_bytes`: each once through all of
 * it, for at least 14 ms, so that nothing that the caches had of it is left and clocks and prefetchers have settled, and
 * then for WINDOWS windows. */
void flow_run(struct run *run, const size_t *roles, size_t count, enum stream stream, size_t slice_bytes,
              const struct share *shares, struct moved *moved);

/* The rate over windows, the threads' mean rates together and the lowest of these, the threads and their clock. */
enum {
    RATE_BYTES_PER_S,
    CI_LOW_BYTES_PER_S,
    CI_HIGH_BYTES_PER_S,
    MEAN_BYTES_PER_S,
    SLOWEST_THREAD_BYTES_PER_S,
    THREADS,
    CORE_HZ,
    FLOW_FIELDS
};

/* Set the values of these fields. Returns FLAG_DISTURBED where a thread was kept from running through a whole window: the
 * rate is then the sum of the threads' mean rates. */
unsigned flow_set_rates(const struct moved *moved, size_t count, double *values);

/* How long they stream before the first window, where a thread goes through `bytes`: estimated. */
double flow_settling_s(const struct run *run, const size_t *roles, size_t count, size_t bytes);

#endif
