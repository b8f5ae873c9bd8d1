#include "bandwidth/contents.h"

#include <stdlib.h>

#include "harness/fail.h"

/* Words in a row: a first value, and what is added from each to the next. */
struct row {
    double first, step;
};

/* More than there are sweeps: what they add to a word never makes it that of another place. */
static const double STEP = 256;

static size_t words_of(const struct contents *of) {
    return of->slice_bytes / sizeof(double);
}

/* The first words of a slice are stored. */
static size_t words_stored(const struct contents *of) {
    return of->stream == LOAD ? 0 : words_of(of) / stream_arrays(of->stream);
}

/* What is read from this word of a slice on, by the slice's number. */
static struct row read_from(const struct contents *of, size_t slice, size_t word) {
    return (struct row){STEP * (double)(1 + slice * words_of(of) + word), STEP};
}

static struct row stored_before(const struct contents *of, size_t slice) {
    return of->stream >= READ3_WRITE1 ? read_from(of, slice, 0) : (struct row){0, 0};
}

static struct row stored_after(const struct contents *of, size_t slice, size_t sweeps) {
    if (of->stream == STORE || of->stream == STORE_MEM) return (struct row){1, 0};
    if (of->stream == COPY || of->stream == COPY_MEM) return read_from(of, slice, words_stored(of));
    struct row row = read_from(of, slice, 0);
    return (struct row){row.first + (double)sweeps, row.step};
}

static void fill(double *words, size_t count, struct row row) {
    for (size_t i = 0; i < count; i++) words[i] = row.first + row.step * (double)i;
}

static bool are(const double *words, size_t count, struct row row) {
    bool wrong = false;
    for (size_t i = 0; i < count; i++) wrong |= words[i] != row.first + row.step * (double)i;
    return !wrong;
}

static double *slice_of(const struct contents *of, size_t role, size_t buffer) {
    const struct share *share = &of->shares[role];
    return (double *)(void *)(share->buffers[buffer]->bytes + share->slice * of->slice_bytes);
}

static void fill_role(size_t role, void *argument) {
    const struct contents *of = argument;
    size_t stored = words_stored(of), buffers = of->shares[role].buffer_count;
    for (size_t b = 0; b < buffers; b++) {
        double *words = slice_of(of, role, b);
        size_t slice = role * buffers + b;
        fill(words, stored, stored_before(of, slice));
        fill(words + stored, words_of(of) - stored, read_from(of, slice, stored));
    }
}

struct check {
    const struct contents *contents;
    const struct sweeps *sweeps;
    bool *wrong; /* of each role, as those of `sweeps` */
};

static void check_role(size_t role, void *argument) {
    struct check *check = argument;
    const struct contents *of = check->contents;
    size_t stored = words_stored(of), buffers = of->shares[role].buffer_count;
    check->wrong[role] = false;
    for (size_t b = 0; b < buffers; b++) {
        double *words = slice_of(of, role, b);
        size_t slice = role * buffers + b;
#ifdef FLIP_A_BIT_ON_CPU /* a build for the tests */
        if (of->run->selection.cpus.cpu[of->roles[role]] == FLIP_A_BIT_ON_CPU) *(unsigned char *)words ^= 1;
#endif
        if (!are(words, stored, stored_after(of, slice, check->sweeps[role].all)) ||
            !are(words + stored, words_of(of) - stored, read_from(of, slice, stored)))
            check->wrong[role] = true;
    }
}

void contents_fill(struct contents *contents) {
    workers_run(&contents->run->workers, contents->roles, contents->count, fill_role, contents);
}

size_t contents_wrong(struct contents *contents, const struct sweeps *sweeps) {
    struct check check = {contents, sweeps, grow(NULL, contents->count, sizeof *check.wrong)};
    size_t wrong = 0;
    workers_run(&contents->run->workers, contents->roles, contents->count, check_role, &check);
    for (size_t i = 0; i < contents->count; i++) wrong += check.wrong[i];
    free(check.wrong);
    return wrong;
}

double contents_seconds(const struct run *run, const size_t *roles, size_t count, size_t thread_bytes) {
    return flow_sweep_seconds(run, roles, count, thread_bytes, STORE) +
           flow_sweep_seconds(run, roles, count, thread_bytes, LOAD);
}
