/* What the arrays of a stream hold before it, and whether they hold after it what they must. */
#ifndef NODEPRINT_CONTENTS_H
#define NODEPRINT_CONTENTS_H

#include <stdbool.h>

#include "bandwidth/flow.h"
#include "harness/run.h"
#include "harness/streams.h"

/* The slices of some workers, as flow_run takes them. */
struct contents {
    struct run *run;
    enum stream stream;
    const size_t *roles;
    size_t count, slice_bytes;
    const struct share *shares;
};

/* Let the workers fill their slices. What is read differs in all words. */
void contents_fill(struct contents *contents);

/* How many of the workers find a wrong word in their slices after these sweeps. */
size_t contents_wrong(struct contents *contents, const struct sweeps *sweeps);

/* How long both take, each of the workers at its slices of so many bytes: estimated. */
double contents_seconds(const struct run *run, const size_t *roles, size_t count, size_t thread_bytes);

#endif
