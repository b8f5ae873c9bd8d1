/* Workers that stream at once, and what they move in windows of time. */
#ifndef NODEPRINT_FLOW_H
#define NODEPRINT_FLOW_H

#include <stddef.h>

#include "bandwidth/streams.h"
#include "harness/run.h"

enum { WINDOWS = 9, SETTLING = 2 }; /* the first windows are for clocks and prefetchers to settle */
static const double WINDOW_NS = 7e6;

/* What one thread streams through: in turns a chunk of each of these buffers, from its slice of each. */
struct share {
    const struct buffer *const *buffers;
    size_t buffer_count;
    size_t slice; /* its number in each buffer */
};

/* What one thread moved: in each window, and from the common start to the end of its last chunk. */
struct moved {
    double bytes[WINDOWS], all_bytes, elapsed_s, core_hz;
};

/* Let the workers with these indices stream for WINDOWS windows, each through its share in slices of `slice_bytes`. */
void flow_run(struct run *run, const size_t *roles, size_t count, enum stream stream, size_t slice_bytes,
              const struct share *shares, struct moved *moved);

/* Append the rate over windows and over all, the threads and their clock. Returns FLAG_DISTURBED where a thread was kept
 * from running through a whole window: the rate is then the sum of the threads' mean rates. */
unsigned flow_add_rates(const struct moved *moved, size_t count, struct text *members);

#define FLOW_VALUES                                                                                                    \
    "\"rate_bytes_per_s\":\"B/s\",\"ci_low_bytes_per_s\":\"B/s\",\"ci_high_bytes_per_s\":\"B/s\","                     \
    "\"mean_bytes_per_s\":\"B/s\",\"slowest_thread_bytes_per_s\":\"B/s\",\"threads\":\"1\",\"core_hz\":\"Hz\""

#endif
