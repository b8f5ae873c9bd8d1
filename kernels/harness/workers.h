/* One persistent thread per CPU. The coordinator (the main thread) hands out tasks and blocks; it is no worker. */
#ifndef NODEPRINT_WORKERS_H
#define NODEPRINT_WORKERS_H

#include <pthread.h>
#include <semaphore.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "cpulist.h"

struct workers;

enum worker_state {
    WORKER_ASLEEP,
    WORKER_AWAKE, /* was woken ahead of its task and looks for it */
    WORKER_GIVEN, /* has a task */
};

/* What a worker does; `role` is its place among the members of this task. */
typedef void worker_task(size_t role, void *argument);

struct worker {
    alignas(256) sem_t wake; /* nothing of one worker shares a line, or a pair of lines, with another's */
    struct workers *all;
    atomic_int state; /* enum worker_state */
    worker_task *task;
    void *argument;
    size_t role;
    int cpu, seen_cpu;
    bool mask_is_own;
    bool stay;                       /* its next task comes at once: it waits awake when it has ended this one */
    bool sleeps;                     /* its next tasks sleep on purpose: then that time is not lost */
    long voluntary, involuntary;     /* context switches within all its tasks, by getrusage(RUSAGE_THREAD) */
    double task_s, lost_s;           /* of its tasks: how long they took, and how long of that it did not run */
    double seen_task_s, seen_lost_s; /* the same when workers_lost looked last */
    double lost_share;               /* between its last two looks, as a share */
    double last_lost_share;          /* of its last task, as a share; 0 where it slept on purpose */
    double last_ran_s;               /* CPU seconds of its last task */
    pthread_t thread;
};

struct workers {
    struct worker *worker; /* in the order of `--cpus` */
    size_t count;
    const char *pinned_by; /* "likwid-pin" or "native" */
    atomic_size_t busy;
    sem_t finished;
    double busy_s;  /* of all tasks the CPU seconds of the member that used the most, which all others wait for */
    size_t next[2]; /* members of the task that comes next, to be woken ahead; `next_count` 0: none */
    size_t next_count;
};

/* Create a worker on each CPU and verify, after the last creation, that each runs where it was asked to; ends the
 * process with 3 otherwise. Under likwid-pin, which must have got the list rotated by one, likwid pins; where its masks
 * are not as asked, the workers are pinned natively and `pinned_by` says so. */
void workers_start(struct workers *workers, const struct cpulist *cpus);

/* Run `task` on the workers with these indices at once; returns when all have ended it. Ends the process with 3 if one
 * of them was on another CPU when it ended it or called worker_look. */
void workers_run(struct workers *workers, const size_t *members, size_t count, worker_task *task, void *argument);

/* In a long task, between what is timed: looks on which CPU this worker is, as it may be back on its own at the end. */
void worker_look(void);

/* Called by a member of the running task shortly before it ends, outside timed sections: the workers in `next` leave
 * their sleep (33 us by a futex, more out of a deep idle state) and wait for their task awake. */
void workers_wake_next(struct workers *workers);

/* The largest share of its last task in which one of these workers did not run. */
double workers_lost_share(const struct workers *workers, const size_t *members, size_t count);

/* Set `lost_share` of all workers that had tasks since the last call; the largest of these, 0 where none had. */
double workers_lost(struct workers *workers);

/* Context switches of these workers in all their tasks so far. */
long workers_switches(const struct workers *workers, const size_t *members, size_t count);

#endif
