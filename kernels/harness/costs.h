/* What memory costs, by which plans count: of this machine by a probe of some 0.1 s, of another a slow server's. */
#ifndef NODEPRINT_COSTS_H
#define NODEPRINT_COSTS_H

#include <stdbool.h>
#include <stddef.h>

#include "cache.h"
#include "cpulist.h"
#include "machine.h"
#include "streams.h"

/* Working sets of 4, 8 and 16 MiB: a virtual machine gets a part of an L3, and others take of that. */
enum { COSTS_SIZES = 3, COSTS_LEAST_BYTES = 4 << 20 };

struct costs {
    double base_byte_s, huge_byte_s; /* of base pages and transparent huge ones: to get it, zeroed, and give it back */
    double set_byte_s;               /* to write all of it then, as whoever touches a buffer does */
    double checked_page_s;           /* to ask where a page is */
    struct line_cost {
        double lay_ns, load_ns; /* to lay a line of a cycle, and to load it then */
    } line[COSTS_SIZES];
    struct cold_cost {         /* of COLD_BYTES (harness/cycle.h) in base pages and in huge ones */
        struct line_cost line; /* where nothing was flushed */
        double translate_ns;   /* cycle_translate, of a page */
        double load_ns;        /* of a line that is in no cache, with nothing else under way */
        double leave_ns;       /* cycle_flush, of a line */
    } cold[2];
    double store_ns, flush_ns,
        read_ns;      /* of lines in their order: that are in no cache; modified; four times an L2, again */
    double shared_ns; /* of a line that two CPUs write and read, with a fence behind each */
    double cache_bytes_per_s[CACHE_LEVELS][STREAMS]; /* of loads, stores and copies in each cache, by one CPU */
    double core_bytes_per_s[STREAMS],
        socket_bytes_per_s[STREAMS]; /* that count: one CPU alone, all of a socket at once */
    double core_hz;
    double task_s, wake_s; /* of a task that is handed out: CPU seconds to do so, and until all are woken */
};

extern const struct costs costs_of_slow_server;

/* What an operation's plan rests on beside pages and tasks: lines of caches, of memory, and shared ones; streams through caches
 * and memory. */
enum probe { PROBE_LINES = 1, PROBE_COLD = 2, PROBE_SHARED = 4, PROBE_CACHES = 8, PROBE_STREAMS = 16 };

/* In CPU seconds of the first of these CPUs, to which the calling thread is bound; `socket` are those of them in its socket.
 * Whatever cannot be had or is not allowed is not measured. */
struct costs costs_here(const struct machine *machine, const struct cpulist *cpus, const struct cpulist *socket,
                        unsigned probes);

/* Of a line of a cycle through so many bytes. */
struct line_cost costs_line(const struct costs *costs, double bytes, bool huge);

/* Of chase_run and chase_run_cold (harness/cycle.h) with so many batches. */
double costs_chase_s(double load_ns, size_t batches);
double costs_chase_cold_s(const struct costs *costs, double bytes, bool huge, size_t batches);

#endif
