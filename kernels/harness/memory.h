/* Pools of lines with a home: one NUMA node whose memory they are proved to be in. */
#ifndef NODEPRINT_MEMORY_H
#define NODEPRINT_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "machine.h"
#include "workers.h"

enum {
    LINE_BYTES = 64,
    POOL_BYTES = 16 * 1024 * 1024,
    POOL_LINES = POOL_BYTES / LINE_BYTES,
};

struct pool {
    unsigned char *bytes;
    size_t size;
    int home;
    bool bound;              /* by mbind; false: by first touch */
    const char *verified_by; /* "move_pages", "numa_maps" or "one_node" */
    const char *pages;       /* "base", "thp", or "mixed" where only some are huge */
    size_t page_bytes;       /* of its pages; where they are mixed those of a base page */
};

/* Mark the NUMA nodes whose memory cannot be measured as without memory, each with the reason: those that this process
 * may not use, those that are full, and where binding is not permitted those without a CPU to touch it first. The
 * node with the most free memory is never left out for being full. */
void memory_leave_out(struct machine *machine);

/* Whether memory can be bound to a node, or there is nothing to bind to. */
bool memory_may_bind(const struct machine *machine);

/* Map `size` bytes of base pages on node `home`, touched first by a pinned worker (one on that node where there is one)
 * and verified. Ends the process with 3 when the node has not so much free memory or the pages are elsewhere. */
struct pool pool_create(const struct machine *machine, struct workers *workers, int home, size_t size);

/* How many low bits of a line's physical address are those of its offset in the pool: those inside a page. */
unsigned pool_address_bits(const struct pool *pool);

/* Index of a worker that runs on node `home`, or of the first one. */
size_t memory_toucher(const struct machine *machine, const struct workers *workers, int home);

/* Those of all workers that run on node `home`, or of the first one: `members` has room for all. */
size_t memory_touchers(const struct machine *machine, const struct workers *workers, int home, size_t *members);

/* True when memory that is not touched yet will come from `home`; false where binding is not permitted. */
bool memory_bind(const struct machine *machine, void *bytes, size_t size, int home);

/* How many pages of `page` bytes are not on `home`; `verified_by` gets by what that was seen. Ends the process with 3 where
 * nothing says it. */
size_t memory_elsewhere(const struct machine *machine, const unsigned char *bytes, size_t size, size_t page, int home,
                        const char **verified_by);

/* The node that a touched byte is on, `unknown` where nothing says it. */
int memory_node_at(const unsigned char *byte, int unknown);

/* By what it is verified that all pages of `page` bytes are on `home`. Ends the process with 3 when they are not. */
const char *memory_verify(const struct machine *machine, const unsigned char *bytes, size_t size, size_t page, int home,
                          bool bound);

/* How many pages of base size had moved away from `home`; they are put back. Where `verified_by` is not move_pages 0, as
 * it cannot be asked. With `sampled` all of them are looked at only where one of up to 1,024 has moved, as
 * there may be millions. Ends the process with 3 where they cannot be put back. */
size_t memory_return_moved(const unsigned char *bytes, size_t size, int home, const char *verified_by, bool sampled);

#endif
