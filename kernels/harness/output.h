/* What a kernel writes: the header of a record file, a line for each unit, the trailer (docs/formats.md). */
#ifndef NODEPRINT_OUTPUT_H
#define NODEPRINT_OUTPUT_H

#include <stdint.h>

#include "resume.h"
#include "run.h"
#include "sweep.h"
#include "text.h"

struct identity output_identity(const struct run *run);
void output_header(struct run *run, const struct identity *identity, struct text *out);

/* `record` is its kind: the operation's own, or "sentinel" or "again". */
void output_unit(const struct run *run, const char *record, uint32_t pass, const struct unit *unit,
                 const struct result *result, struct text *out);

/* Appends the operation's last records and the trailer to what is pending. */
void output_trailer(const struct sweep *sweep);

#endif
