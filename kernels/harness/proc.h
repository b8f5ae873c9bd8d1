/* Files below /proc, which NODEPRINT_PROCFS may put elsewhere. Nothing else opens any. */
#ifndef NODEPRINT_PROC_H
#define NODEPRINT_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* NULL where it cannot be read. */
FILE *proc_open(const char *path);

/* Call `see` for each line of cpuinfo that has a field and a value, in their order, until it returns false. */
typedef bool cpuinfo_line(const char *field, const char *value, void *argument);
void cpuinfo_read(cpuinfo_line *see, void *argument);

/* The first value of a field of cpuinfo, as much as there is room for; empty where there is none. */
void cpuinfo_first(const char *field, char *value, size_t size);

/* Bytes in huge pages, transparent or reserved, of the mapping that `bytes` are in (self/smaps). */
size_t smaps_huge_bytes(const unsigned char *bytes);

#endif
