/* Which CPUs share a die (CCD) where that is more than one L3: Rome and Bergamo have two CCXs on a CCD. */
#ifndef NODEPRINT_DIE_H
#define NODEPRINT_DIE_H

#include <stddef.h>

#include "select.h"

/* The die of each of the selection's CPUs, named by the lowest CPU among those that take part; -1 where it is not known
 * to be more than one L3 and less than a socket. By sysfs (die_cpus_list), which reports CCDs from Zen 4 and Linux 6.9
 * on; else, on processors that are known to have two CCXs on a CCD, neighboring L3s of a socket in the order of their
 * CPUs' APIC ids. */
void die_of_cpus(const struct selection *selection, int *die);

#endif
