/* A kernel is a declaration of its operations and functions that measure units; the harness does the rest. */
#ifndef NODEPRINT_RUN_H
#define NODEPRINT_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buffer.h"
#include "costs.h"
#include "fields.h"
#include "frequency.h"
#include "machine.h"
#include "memory.h"
#include "records.h"
#include "sampling.h"
#include "select.h"
#include "settings.h"
#include "text.h"
#include "workers.h"

enum { MAX_KEYS = 5, MAX_PARALLEL = 64 };

/* What is measured at once and written as one record: its place in each pass, by the operation's keys. */
struct unit {
    int64_t key[MAX_KEYS];
};

enum unit_flag {
    FLAG_MIXED_LINES = 1, /* its pass was interrupted: pairs of it were measured on other lines */
    FLAG_DISTURBED = 2, /* more than a quarter of its batches took twice as long as the low quarter, or a worker lost a
                         * quarter of its time */
    FLAG_MOVED = 4,     /* pages had moved to another node: measured again after they were put back */
    UNIT_STOPPED = 1 << 8, /* a signal ended it early: nothing is recorded */
};

/* What measuring a unit gives. */
struct result {
    double values[MOST_FIELDS]; /* of the operation's fields; NAN: not measured here, and not in the record */
    struct text more;           /* further members of the record, lists for one, each as ,"name":value */
    unsigned flags;
};

struct run;

struct operation {
    const char *name, *summary; /* the summary is a line of --help */
    const char *quantity, *unit;
    const char *record;         /* "pair" or "cell"; the trailer counts them as "pairs" or "cells" */
    const struct field *fields; /* of a record, in its order; of a cell the header names those that are values */
    size_t field_count;
    const char *keys[MAX_KEYS + 1];     /* NULL-terminated; a key named "home" makes the harness place a pool there */
    const char *const *words[MAX_KEYS]; /* where a key is a word: the words by number, NULL-terminated */
    const char *block; /* a key: in a pass the units of one of its values come together; NULL: all in random order */
    const struct field *figure;    /* the one that is printed for a unit; NULL: the first */
    bool table;                    /* all fields are printed for a unit, and CSV has all of them */
    const struct field *kept;      /* the one that finish() needs of each record, also of former calls, in run->kept */
    bool two_lines;                /* a unit uses a line and the one half a pool further */
    bool line_a_page;              /* no two lines of a pass are in one page of 4 KiB */
    bool all_at_once;              /* the first unit measures all CPUs: a unit is disturbed by what its own CPU lost */
    void (*plan)(struct run *run); /* sets lines, batches, round_trips and adds the units of a pass */
    uint64_t (*memory)(const struct run *run); /* bytes that --plan states; NULL: the pools */
    size_t worker_bytes;                       /* that it states beside them for each CPU, wherever they lie */
    void (*prepare)(struct run *run);          /* before the header is written, with the workers there; may be NULL */
    void (*facts)(struct run *run, bool end, struct text *members); /* members of header and trailer; may be NULL */
    void (*finish)(struct run *run, struct text *records);          /* records before the trailer; may be NULL */
    void (*conclude)(const struct run *run, const double *medians); /* prints a line below a table; may be NULL */
    /* One of the two. Set the values that were measured, and return the record's flags; nothing in here may write. With
     * `measure_pairs` the units are pairs (keys a, b, home; the fields begin with those of a latency) that sentinels,
     * second looks and --parallel apply to, and `count` of them are measured at once. */
    unsigned (*measure)(struct run *run, uint32_t pass, const struct unit *unit, struct result *result);
    void (*measure_pairs)(struct run *run, const struct unit *const *units, size_t count, struct result *results);
    /* What --plan expects in CPU seconds of the busiest: of a unit, with the tasks that are handed out for it (NULL: one),
     * and of prepare() (NULL: nothing worth counting). */
    double (*seconds)(const struct run *run, const struct unit *unit, double hop_ns);
    unsigned probes; /* the costs that they rest on (enum probe) */
    double (*tasks)(const struct run *run, const struct unit *unit);
    double (*prepare_seconds)(const struct run *run);
};

/* The fields of an operation, of a constant array of them. */
#define FIELDS(array) .fields = (array), .field_count = sizeof(array) / sizeof *(array)

struct kernel {
    const char *name, *hash;
    const char *help;               /* USAGE, REQUIREMENTS, OVERHEAD, WARNING */
    const struct setting *settings; /* its own; NULL if it has none */
    const struct operation *operations;
    size_t operation_count;
    bool workers_wait; /* for one another, so that idle states are held off where that is allowed */
};

struct home {
    int node;
    struct pool pool;
    uint32_t *line_set;     /* of the pass under way: indices into the pool, `lines` for each slot of --parallel */
    size_t clusters;        /* in which the pool's lines live, at least 1 */
    unsigned char *cluster; /* of each line of the pool; NULL with one cluster */
    struct line_sums *sums; /* of each slot */
};

struct run {
    const struct kernel *kernel;
    const struct operation *operation;
    struct machine machine;
    struct selection selection;
    struct cpulist chosen, cpus; /* those of the selection */
    struct workers workers;
    struct records records;
    struct unit *units; /* of one pass, ascending */
    size_t unit_count;
    struct home *homes;
    size_t home_count;
    uint64_t seed, passes;
    size_t lines, batches, round_trips; /* as planned; 0 where an operation has none */
    bool detail;
    bool recount; /* pages moved: the census is taken again before the next pass */
    bool account; /* this unit's values go into the spread of the run */
    struct spread_sums spread;
    const double *kept;       /* by pass and unit: see struct operation */
    struct text not_measured; /* members of the header's not_measured object */
    struct text placement;    /* by run_add_placement */
    struct buffer *watched;   /* these buffers: is their memory still where it was? */
    size_t watched_count;
    struct text idle_states;    /* by idle_hold_off; empty where they stay as they are */
    struct text begins;         /* by run_begin_quietly */
    struct ramp ramp;           /* of the first CPU; all 0 where units are no pairs */
    double ramp_ns;             /* so long a core works before anything is timed; 0 where its clock is there at once */
    struct costs costs;         /* for plans */
    const char *not_applicable; /* set by plan(): why there is nothing to measure here; the record says so, complete */
    unsigned segment;
};

int kernel_main(const struct kernel *kernel, int argc, char **argv);

/* The main function of a file that has `help` and `operations`; `own_settings` may be NULL. What follows is further members
 * of struct kernel. */
#define KERNEL_MAIN(kernel_name, own_settings, ...)                                                                    \
    int main(int argc, char **argv) {                                                                                  \
        static const struct kernel kernel = {.name = (kernel_name),                                                    \
                                             .hash = KERNEL_HASH,                                                      \
                                             .help = help,                                                             \
                                             .settings = (own_settings),                                               \
                                             .operations = operations,                                                 \
                                             .operation_count = sizeof operations / sizeof *operations,                \
                                             __VA_ARGS__};                                                             \
        return kernel_main(&kernel, argc, argv);                                                                       \
    }

/* A signal came: what takes long ends early and returns UNIT_STOPPED. The signals are caught from run_catch_signals() on,
 * and run_stopped_by() is the one that came, or 0. */
bool run_stopping(void);
int run_stopped_by(void);
void run_catch_signals(void);

void run_add_unit(struct run *run, struct unit unit);

/* Add a unit for each selected pair at each home that --home asks for, keys a, b, home. */
void run_add_pairs(struct run *run);

/* Let the chosen CPUs begin with those of the L3 group in the first one's NUMA node that interrupts favor least, and say
 * so in the header; a list that the caller gave stays in its order. For what is measured from one CPU. */
void run_begin_quietly(struct run *run);

/* Whether pair number `i` stands for its closeness: all do when they were named, else the first of each. */
bool run_pair_stands(const struct run *run, size_t i);

/* Say in the header why something that was asked for is not measured. */
void run_not_measured(struct run *run, const char *what, const char *why);

/* Say in the header where a buffer lies: under its node, or a name where a node has several. It is looked at again while
 * units are measured, as pools are; where it is bound, so that nobody moves it but on purpose, a sample of its pages. */
void run_add_placement(struct run *run, const char *name, const struct buffer *buffer);

/* Set the values LATENCY_NS ... LINE_SD_NS of `line_count` x `batches` samples in ns (struct summary). Returns
 * FLAG_DISTURBED or 0. */
unsigned run_set_latency(struct result *result, const double *samples, size_t line_count, size_t batches);

struct home *run_home(const struct run *run, int node);

/* For `seconds` of an operation: what is done once in a pass is said of the pass's first unit, 0 of all others. */
double run_once_a_pass(const struct run *run, const struct unit *unit, double seconds);

/* How long buffer_create takes for `bytes` on `node`: its CPUs touch them together. */
double run_pages_seconds(const struct run *run, int node, double bytes, bool huge);

/* Index of the CPU with this OS number among run->cpus, and of its worker once there are workers. Ends the process with 3
 * where it takes no part. */
size_t run_worker(const struct run *run, int64_t cpu);

#endif
