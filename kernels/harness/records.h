/* The record file: JSON Lines, kept in memory while something is timed, written between. */
#ifndef NODEPRINT_RECORDS_H
#define NODEPRINT_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "json.h"
#include "text.h"

enum { MOST_KINDS = 16, LONGEST_KIND = 24 };

struct records {
    const char *path;
    int fd;
    off_t whole;       /* bytes of the file that are complete lines */
    uint32_t checksum; /* of these, also of those that a former call wrote */
    struct {
        char name[LONGEST_KIND];
        size_t lines;
    } kinds[MOST_KINDS]; /* how many of them are of each kind, in the order in which the kinds first came */
    size_t kind_count;
    struct text pending; /* complete lines not yet written */
    double flushed_s;
};

/* Open and lock `path` (one kernel writes a file). Ends the process with 2 where its folder is not there, with 3 where
 * it cannot be written or another process holds it. */
void records_open(struct records *records, const char *path);

/* Hand each line to `take`; an incomplete last line is dropped with a note. Anything else that is no JSON object ends
 * the process with 2, naming file and line. */
typedef void records_take(const struct json_object *object, size_t line, void *argument);
void records_read(struct records *records, records_take *take, void *argument);

/* Ends the process with 2: file, line and what is wrong there. */
_Noreturn void records_malformed(const struct records *records, size_t line, const char *what);

/* Complete lines, newlines included, are kept in `pending`; write them out. A write that fails leaves a file of
 * complete lines and ends the process with 3. */
void records_flush(struct records *records);

/* End the last pending line, which is the trailer and still open, with what proves that the file is complete: how many lines
 * of each kind precede it, and the checksum of all bytes before its own name. Flushes what precedes the line. */
void records_seal(struct records *records);

/* Whether the last flush was a second ago. */
bool records_flush_is_due(const struct records *records);

/* Flush, make it durable, unlock. */
void records_close(struct records *records);

#endif
