/* How fast the cores of a CCX or CCD read, write and copy what lies in their caches. */
#ifndef NODEPRINT_CACHES_H
#define NODEPRINT_CACHES_H

#include "bandwidth/flow.h"
#include "harness/run.h"
#include "harness/streams.h"

enum {
    CACHES_BYTES_PER_CYCLE = FLOW_FIELDS,
    CACHES_SLICE_BYTES,
    CACHES_PAGE_BYTES,
    CACHES_WRONG_BURSTS,
    CACHES_FIELDS
};

/* The keys of a unit: cpu (the first of those that stream), scope, cores, level and stream. */
extern const char *const caches_scopes[], *const caches_levels[];

/* Add the units of these streams; the memory is in huge pages, or in base pages. */
void caches_plan(struct run *run, const bool streams[STREAMS], bool huge);
uint64_t caches_memory(const struct run *run);
void caches_prepare(struct run *run);
unsigned caches_measure(struct run *run, uint32_t pass, const struct unit *unit, struct result *result);
double caches_seconds(const struct run *run, const struct unit *unit, double hop_ns);

#endif
