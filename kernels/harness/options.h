/* The options that all kernels have, and those of operations that measure pairs. */
#ifndef NODEPRINT_OPTIONS_H
#define NODEPRINT_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "run.h"
#include "settings.h"

enum { MOST_LINES = 512 };

/* As given, or their defaults; 0 or NULL where an option has none. */
struct options {
    const char *out, *operation;
    bool plan_only, help_only, csv;
    uint64_t passes, seed, job, run; /* seed: UINT64_MAX where none was given */
    /* of pairs */
    bool share_l3, detail, census, any_lines, huge_pages;
    uint64_t lines, parallel;
};

extern struct options options;
extern const struct setting common_settings[], pair_settings[];

void options_print_help(const struct kernel *kernel);

/* The one that --op names; ends the process with 2 where the kernel has none of that name. */
const struct operation *options_operation(const struct kernel *kernel);

/* Ends the process with 2 where an option of pairs is given to an operation without, or two exclude each other. */
void options_check_pairs(const struct operation *operation);

/* Pairs that are measured at once, at most. */
size_t options_slots(void);

#endif
