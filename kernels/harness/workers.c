#include "workers.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "clock.h"
#include "fail.h"
#include "headroom.h"
#include "machine.h"
#include "proc.h"

enum { STACK_BYTES = 256 * 1024 };
static const double AWAKE_S = 0.0005; /* a worker woken ahead whose task does not come sleeps again */

static void wait_for(sem_t *semaphore) {
    while (sem_wait(semaphore) != 0)
        if (errno != EINTR) fail(EXIT_NOT_AS_ASKED, "waiting for a worker failed: %s", strerror(errno));
}

static void post(sem_t *semaphore) {
    if (sem_post(semaphore) != 0) fail(EXIT_NOT_AS_ASKED, "waking a worker failed: %s", strerror(errno));
}

/* Give a worker a new state; it sleeps on its semaphore only while it is WORKER_ASLEEP, so that each post has its wait. */
static void call_worker(struct worker *worker, int state) {
    if (atomic_exchange_explicit(&worker->state, state, memory_order_acq_rel) == WORKER_ASLEEP) post(&worker->wake);
}

/* Return when a task is given. */
static void wait_for_task(struct worker *self) {
    for (;;) {
        double limit = clock_monotonic_s() + AWAKE_S;
        while (atomic_load_explicit(&self->state, memory_order_acquire) == WORKER_AWAKE && clock_monotonic_s() < limit)
            continue;
        int awake = WORKER_AWAKE;
        atomic_compare_exchange_strong_explicit(&self->state, &awake, WORKER_ASLEEP, memory_order_acq_rel,
                                                memory_order_acquire);
        if (awake == WORKER_GIVEN) return;
        wait_for(&self->wake);
    }
}

static _Thread_local struct worker *looking; /* the worker of this thread */

void worker_look(void) {
    int cpu = sched_getcpu();
    if (looking != NULL && cpu != looking->cpu) looking->seen_cpu = cpu;
}

static void *work(void *argument) {
    struct worker *self = argument;
    looking = self;
    for (;;) {
        struct rusage before, after;
        wait_for_task(self);
        getrusage(RUSAGE_THREAD, &before);
        self->seen_cpu = self->cpu;
        double ran_before_s = clock_thread_s(), began_s = clock_monotonic_s();
        self->task(self->role, self->argument);
        double task_s = clock_monotonic_s() - began_s, ran_s = clock_thread_s() - ran_before_s;
        getrusage(RUSAGE_THREAD, &after);
        self->last_lost_share = 0;
        self->last_ran_s = ran_s;
        if (!self->sleeps) { /* also what a stopped process (SIGSTOP, a freezer) loses, which counts as a sleep */
            self->task_s += task_s;
            self->lost_s += fmax(task_s - ran_s, 0);
            if (task_s > ran_s) self->last_lost_share = (task_s - ran_s) / task_s;
        }
        self->voluntary += after.ru_nvcsw - before.ru_nvcsw;
        self->involuntary += after.ru_nivcsw - before.ru_nivcsw;
        worker_look();
        struct workers *all = self->all;
        atomic_store_explicit(&self->state, self->stay ? WORKER_AWAKE : WORKER_ASLEEP, memory_order_release);
        if (atomic_fetch_sub_explicit(&all->busy, 1, memory_order_acq_rel) == 1) post(&all->finished);
    }
    return NULL;
}

/* likwid-pin works through a preloaded library; its environment alone says nothing (a static program is not pinned). */
static bool under_likwid(void) {
    FILE *maps = proc_open("self/maps");
    char line[4096];
    bool found = false;
    while (maps != NULL && !found && fgets(line, sizeof line, maps) != NULL) found = strstr(line, "likwidpin") != NULL;
    if (maps != NULL) fclose(maps);
    return found;
}

struct mask_check {
    struct worker *worker;
    const size_t *members;
};

/* True when the mask of the calling thread is `cpu` alone. */
static void check_mask(size_t role, void *argument) {
    const struct mask_check *check = argument;
    struct worker *self = &check->worker[check->members[role]];
    size_t cpus = 1024;
    self->mask_is_own = false;
    while (cpus <= (size_t)self->cpu) cpus *= 2;
    for (; cpus <= CPU_LIMIT; cpus *= 2) {
        cpu_set_t *mask = CPU_ALLOC(cpus);
        size_t bytes = CPU_ALLOC_SIZE(cpus);
        if (mask == NULL) return;
        int result = sched_getaffinity(0, bytes, mask);
        if (result == 0)
            self->mask_is_own = CPU_COUNT_S(bytes, mask) == 1 && CPU_ISSET_S((size_t)self->cpu, bytes, mask);
        CPU_FREE(mask);
        if (result == 0 || errno != EINVAL) return;
    }
}

/* A mask of this CPU alone, and its size. */
static cpu_set_t *mask_of(int cpu, size_t *bytes) {
    size_t cpus = (size_t)cpu + 1;
    cpu_set_t *mask = CPU_ALLOC(cpus);
    if (mask == NULL) fail(EXIT_NOT_AS_ASKED, "out of memory");
    *bytes = CPU_ALLOC_SIZE(cpus);
    CPU_ZERO_S(*bytes, mask);
    CPU_SET_S((size_t)cpu, *bytes, mask);
    return mask;
}

static void create(struct worker *worker, bool pin) {
    pthread_attr_t attributes;
    size_t bytes;
    cpu_set_t *mask = mask_of(worker->cpu, &bytes);
    int error = pthread_attr_init(&attributes);
    if (error == 0) error = pthread_attr_setstacksize(&attributes, STACK_BYTES);
#if defined(__GLIBC__)
    if (error == 0 && pin) error = pthread_attr_setaffinity_np(&attributes, bytes, mask);
    if (error == 0) error = pthread_create(&worker->thread, &attributes, work, worker);
#else /* musl has no such attribute: the coordinator, which sleeps while workers work, pins a worker that has begun */
    if (error == 0) error = pthread_create(&worker->thread, &attributes, work, worker);
    if (error == 0 && pin) error = pthread_setaffinity_np(worker->thread, bytes, mask);
#endif
    if (error != 0) {
        struct text obstacle = {0};
        thread_obstacle(error, STACK_BYTES, &obstacle);
        fail(EXIT_NOT_AS_ASKED, "no thread could be started on CPU %d (pthread_create: %s). %s", worker->cpu,
             strerror(error), obstacle.data);
    }
    pthread_attr_destroy(&attributes);
    CPU_FREE(mask);
}

static void run_task(struct workers *workers, const size_t *members, size_t count, worker_task *task, void *argument) {
    atomic_store_explicit(&workers->busy, count, memory_order_relaxed);
    for (size_t i = 0; i < count; i++) {
        struct worker *worker = &workers->worker[members[i]];
        worker->task = task;
        worker->argument = argument;
        worker->role = i;
        call_worker(worker, WORKER_GIVEN);
    }
    wait_for(&workers->finished);
    double most_s = 0;
    for (size_t i = 0; i < count; i++) most_s = fmax(most_s, workers->worker[members[i]].last_ran_s);
    workers->busy_s += most_s;
}

/* Have all workers look where they are; the first that is not alone on its CPU, NULL where all are. */
static const struct worker *misplaced(struct workers *workers, const size_t *members) {
    struct mask_check check = {workers->worker, members};
    run_task(workers, members, workers->count, check_mask, &check);
    for (size_t i = 0; i < workers->count; i++) {
        const struct worker *worker = &workers->worker[i];
        if (!worker->mask_is_own || worker->seen_cpu != worker->cpu) return worker;
    }
    return NULL;
}

/* likwid-pin takes CPU numbers as places in the cpuset where not all CPUs are allowed: then the workers are pinned here. */
static void pin_natively(struct workers *workers) {
    for (size_t i = 0; i < workers->count; i++) {
        struct worker *worker = &workers->worker[i];
        size_t bytes;
        cpu_set_t *mask = mask_of(worker->cpu, &bytes);
        int error = pthread_setaffinity_np(worker->thread, bytes, mask);
        if (error != 0)
            fail(EXIT_NOT_AS_ASKED, "the worker of CPU %d could not be pinned: %s", worker->cpu, strerror(error));
        CPU_FREE(mask);
    }
    workers->pinned_by = "native";
}

void workers_start(struct workers *workers, const struct cpulist *cpus) {
    bool likwid = under_likwid();
    *workers = (struct workers){.count = cpus->count, .pinned_by = likwid ? "likwid-pin" : "native"};
    workers->worker = aligned_alloc(alignof(struct worker), cpus->count * sizeof(struct worker));
    if (workers->worker == NULL) fail(EXIT_NOT_AS_ASKED, "out of memory");
    if (sem_init(&workers->finished, 0, 0) != 0) fail(EXIT_NOT_AS_ASKED, "no semaphore: %s", strerror(errno));

    sigset_t all, former; /* signals are the coordinator's */
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &former);
    size_t *members = grow(NULL, cpus->count, sizeof *members);
    for (size_t i = 0; i < cpus->count; i++) {
        struct worker *worker = &workers->worker[i];
        memset(worker, 0, sizeof *worker);
        worker->cpu = cpus->cpu[i];
        worker->all = workers;
        members[i] = i;
        if (sem_init(&worker->wake, 0, 0) != 0) fail(EXIT_NOT_AS_ASKED, "no semaphore: %s", strerror(errno));
        create(worker, !likwid);
    }
    pthread_sigmask(SIG_SETMASK, &former, NULL);

    const struct worker *wrong = misplaced(workers, members);
    if (wrong != NULL && likwid) {
        note("likwid-pin put the worker of CPU %d on CPU %d: the kernel pins itself", wrong->cpu, wrong->seen_cpu);
        pin_natively(workers);
        wrong = misplaced(workers, members);
    }
    if (wrong != NULL)
        fail(EXIT_NOT_AS_ASKED, "the worker of CPU %d runs on CPU %d, pinned by %s", wrong->cpu, wrong->seen_cpu,
             workers->pinned_by);
    free(members);
}

/* The system moves the thread of a CPU that is taken out to any other. */
static bool went_offline(int cpu) {
    char content[8];
    return read_sysfs(content, sizeof content, "devices/system/cpu/cpu%d/online", cpu) && strcmp(content, "0") == 0;
}

void workers_run(struct workers *workers, const size_t *members, size_t count, worker_task *task, void *argument) {
    run_task(workers, members, count, task, argument);
    for (size_t i = 0; i < count; i++) {
        const struct worker *worker = &workers->worker[members[i]];
        if (worker->seen_cpu != worker->cpu && went_offline(worker->cpu))
            fail(EXIT_NOT_AS_ASKED, "CPU %d went offline while it was measured", worker->cpu);
        if (worker->seen_cpu != worker->cpu)
            fail(EXIT_NOT_AS_ASKED,
                 "the worker of CPU %d was moved to CPU %d: something changes the affinity of this process",
                 worker->cpu, worker->seen_cpu);
    }
}

void workers_wake_next(struct workers *workers) {
    if (workers->next_count == 0) return; /* so with --parallel, where several call this at once */
    for (size_t i = 0; i < workers->next_count; i++) {
        struct worker *worker = &workers->worker[workers->next[i]];
        int asleep = WORKER_ASLEEP;
        if (atomic_compare_exchange_strong_explicit(&worker->state, &asleep, WORKER_AWAKE, memory_order_acq_rel,
                                                    memory_order_acquire))
            post(&worker->wake);
    }
    workers->next_count = 0;
}

double workers_lost_share(const struct workers *workers, const size_t *members, size_t count) {
    double most = 0;
    for (size_t i = 0; i < count; i++) most = fmax(most, workers->worker[members[i]].last_lost_share);
    return most;
}

double workers_lost(struct workers *workers) {
    double most = 0;
    for (size_t i = 0; i < workers->count; i++) {
        struct worker *worker = &workers->worker[i];
        double task_s = worker->task_s - worker->seen_task_s, lost_s = worker->lost_s - worker->seen_lost_s;
        if (task_s <= 0) continue;
        worker->lost_share = lost_s / task_s;
        worker->seen_task_s = worker->task_s;
        worker->seen_lost_s = worker->lost_s;
        most = fmax(most, worker->lost_share);
    }
    return most;
}

long workers_switches(const struct workers *workers, const size_t *members, size_t count) {
    long sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += workers->worker[members[i]].voluntary + workers->worker[members[i]].involuntary;
    return sum;
}
