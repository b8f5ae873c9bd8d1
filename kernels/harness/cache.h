/* Sizes of caches as sysfs reports them, and throwing lines out of all of them. */
#ifndef NODEPRINT_CACHE_H
#define NODEPRINT_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cpulist.h"

enum { CACHE_LEVELS = 3 };

/* Bytes of the data or unified cache of `level` that `cpu` uses; 0 where sysfs reports none. */
size_t cache_bytes(int cpu, int level);

/* The largest of `level` over the CPUs. */
size_t cache_largest(const struct cpulist *cpus, int level);

/* The largest power of two of bytes within so many; 0 of none. */
size_t power_of_two_within(size_t bytes);

/* CPUs that share the data or unified cache of `level` with `cpu`, itself among them; `cpu` alone where sysfs reports none. */
void cache_sharers_of(int cpu, int level, struct cpulist *sharers);

/* CPUs that share the last-level cache with `cpu`, itself among them; `cpu` alone where sysfs reports none. */
void cache_sharers(int cpu, struct cpulist *sharers);

/* Write the line back and drop it from every cache of the machine. False where the instruction set has no way. */
static inline bool cache_flush(const void *line) {
#if defined(__x86_64__)
    __asm__ volatile("clflush (%0)" : : "r"(line) : "memory");
    return true;
#elif defined(__aarch64__)
    __asm__ volatile("dc civac, %0" : : "r"(line) : "memory");
    return true;
#else
    (void)line;
    return false;
#endif
}

/* The line and the other one of its 128 bytes: prefetchers fetch lines in pairs, and whoever reads a line has its
 * neighbor in a cache, too (up to 18 % of all lines after a chase). */
static inline void cache_flush_pair(const void *line) {
    const unsigned char *byte = line;
    cache_flush(byte);
    cache_flush(((uintptr_t)byte & 64) == 0 ? byte + 64 : byte - 64);
}

/* What was stored, loaded and flushed is done before anything behind it begins. */
static inline void cache_fence(void) {
#if defined(__x86_64__)
    __asm__ volatile("mfence" : : : "memory");
#elif defined(__aarch64__)
    __asm__ volatile("dsb sy" : : : "memory");
#endif
}

#endif
