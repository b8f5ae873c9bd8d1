#include "offset.h"

#include <math.h>
#include <stdalign.h>
#include <stdatomic.h>

#include "fail.h"
#include "gate.h"

enum { EXCHANGES = 64 };

/* Each word is written by one side alone. */
struct talk {
    alignas(256) atomic_uint asked;
    alignas(256) atomic_uint answered;
    alignas(256) uint64_t there;
    alignas(256) struct gate gate;
    uint64_t (*read)(void);
    double ns_per_tick;
    struct offset offset;
};

struct offset offset_of(uint64_t sent, uint64_t there, uint64_t back, double ns_per_tick) {
    double half = (double)(int64_t)(back - sent) / 2;
    return (struct offset){((double)(int64_t)(there - sent) - half) * ns_per_tick, half * ns_per_tick};
}

static void ask(struct talk *talk) {
    talk->offset = (struct offset){0, INFINITY};
    for (unsigned number = 1; number <= EXCHANGES; number++) {
        uint64_t sent = talk->read();
        atomic_store_explicit(&talk->asked, number, memory_order_release);
        while (atomic_load_explicit(&talk->answered, memory_order_acquire) != number) continue;
        struct offset offset = offset_of(sent, talk->there, talk->read(), talk->ns_per_tick);
        if (offset.error_ns < talk->offset.error_ns) talk->offset = offset;
    }
}

static void answer(struct talk *talk) {
    for (unsigned number = 1; number <= EXCHANGES; number++) {
        while (atomic_load_explicit(&talk->asked, memory_order_acquire) != number) continue;
        talk->there = talk->read();
        atomic_store_explicit(&talk->answered, number, memory_order_release);
    }
}

static void take_part(size_t role, void *argument) {
    struct talk *talk = argument;
    gate_pass(&talk->gate);
    if (role == 0)
        ask(talk);
    else
        answer(talk);
}

void offset_check(struct run *run, uint64_t (*read)(void), double ns_per_tick, double most_ns) {
    static struct talk talk;
    for (size_t i = 1; i < run->workers.count; i++) {
        const size_t both[] = {0, i};
        talk.read = read;
        talk.ns_per_tick = ns_per_tick;
        gate_set(&talk.gate, 2);
        atomic_store_explicit(&talk.asked, 0, memory_order_relaxed);
        atomic_store_explicit(&talk.answered, 0, memory_order_relaxed);
        workers_run(&run->workers, both, 2, take_part, &talk);
        if (fabs(talk.offset.ns) - talk.offset.error_ns <= most_ns) continue;
        fail(EXIT_NOT_AS_ASKED,
             "the clock of CPU %d is %.6g us %s that of CPU %d, so that their times cannot be subtracted; look for an "
             "unstable clock source in the system's log",
             run->cpus.cpu[i], fabs(talk.offset.ns) / 1e3, talk.offset.ns > 0 ? "ahead of" : "behind",
             run->cpus.cpu[0]);
    }
}
