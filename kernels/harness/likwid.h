/* What likwid-bench prints. */
#ifndef NODEPRINT_LIKWID_H
#define NODEPRINT_LIKWID_H

#include <stdbool.h>
#include <stddef.h>

#include "cpulist.h"

/* The rate in bytes a second of a run's output; false where it prints none. likwid's MByte is 10^6 bytes. */
bool likwid_rate(const char *output, double *bytes_per_s);

/* The CPUs its threads say that they ran on, ascending. */
void likwid_cpus(const char *output, struct cpulist *cpus);

/* How many streams a kernel has, from `likwid-bench -l KERNEL`; 0 where it does not say. */
size_t likwid_streams(const char *output);

/* True when `likwid-bench -a` lists the kernel. */
bool likwid_has(const char *output, const char *kernel);

#endif
