/* How large an array has to be so that memory answers for it, and no cache. */
#ifndef NODEPRINT_FOOTPRINT_H
#define NODEPRINT_FOOTPRINT_H

#include <stddef.h>

#include "cpulist.h"

/* Bytes of the part of an array that each of `cpus` goes through, so that the parts together are at least four times the
 * L3s into which these CPUs can allocate (STREAM's rule for each of its arrays), and every part is four times its own
 * CPU's share of them and four times its L2. By the topology alone: how much memory there is changes nothing.
 *
 * AMD's cores allocate in the L3 of their CCX. On other processors lines go to all L3s of the socket, whichever of them
 * sysfs reports as a core's. A CPU of which no L3 is reported may have one all the same (virtual machines, aarch64): of
 * 16 MiB, and no less than its share of 64 MiB. */
size_t footprint_of_each(const struct cpulist *cpus);

#endif
