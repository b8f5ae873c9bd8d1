/* How much memory this process may still take: of a NUMA node, of its control groups, of ulimit. */
#ifndef NODEPRINT_HEADROOM_H
#define NODEPRINT_HEADROOM_H

#include <stdint.h>

#include "machine.h"
#include "text.h"

struct limit {
    uint64_t bytes;   /* UINT64_MAX where nothing limits */
    const char *what; /* "free on the NUMA node", ... */
};

/* The tightest limit on all memory of this process, on whatever node. */
struct limit memory_limit_in_all(void);

/* The tightest limit on memory of `node`. */
struct limit memory_limit(const struct machine *machine, int node);

/* What the control groups of this process (self/cgroup) leave; both versions, parents included. Page cache that is not in
 * use counts as free. */
uint64_t cgroup_left(void);

/* The same for processes and threads (pids.max). */
uint64_t cgroup_tasks_left(void);

/* Add to `sentence` why pthread_create may have returned `error` for a thread with so large a stack, and the remedy. */
void thread_obstacle(int error, size_t stack, struct text *sentence);

#endif
