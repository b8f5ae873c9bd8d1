/* What a record file holds from earlier calls, and whether this call may continue it. */
#ifndef NODEPRINT_RESUME_H
#define NODEPRINT_RESUME_H

#include "run.h"

/* What a continuation must have in common with the file, as JSON text. */
struct identity {
    struct text host, arguments, cpus;
    char pairs[17]; /* hash of the pairs that --pairs named, as its file may change under its name; empty without */
    uint64_t job, run;
};

struct former {
    unsigned char *done; /* a byte for each unit of each pass */
    double *value;       /* of each of them: latency_ns of pairs, else what the operation keeps */
    double *figure;      /* of each of them the fields that are printed (figure_fields); NAN where it has none */
    size_t *done_in_pass;
    size_t count;
    int64_t segments;
    uint64_t seed; /* of the last segment */
    bool complete;
};

/* Read run->records. Ends the process with 2 where the file is malformed and with 3 where it is another measurement. */
void resume_read(struct former *former, struct run *run, const struct identity *identity);

/* Ascending by keys. */
int resume_compare_units(const void *a, const void *b);

#endif
