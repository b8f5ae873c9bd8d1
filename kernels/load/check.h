/* Whether each unit of each core calculates correctly: exercises by registers, and loads and stores through each cache. */
#ifndef NODEPRINT_LOAD_CHECK_H
#define NODEPRINT_LOAD_CHECK_H

#include "harness/run.h"

enum { CHECK_BURSTS, CHECK_WRONG_BURSTS, CHECK_FIELDS };

extern const struct field check_fields[CHECK_FIELDS];
extern const char *const check_units[]; /* NULL-terminated */

/* Adds a unit for each unit of each core. */
void check_plan(struct run *run);

/* Chooses the length of bursts, and calculates what they must end with. */
void check_prepare(struct run *run);

/* All CPUs at once for so many seconds, with the first unit of a pass; each unit then takes its own. */
unsigned check_measure(struct run *run, uint32_t pass, const struct unit *unit, struct result *result, double seconds);

#endif
