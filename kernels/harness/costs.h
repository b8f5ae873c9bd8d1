/* What memory costs, by which plans count: of this machine by a probe of some 40 ms, of another a slow server's. */
#ifndef NODEPRINT_COSTS_H
#define NODEPRINT_COSTS_H

#include <stdbool.h>
#include <stddef.h>

#include "cpulist.h"
#include "machine.h"

/* Working sets of 4, 8 and 16 MiB: a virtual machine gets a part of an L3, and others take of that. */
enum { COSTS_SIZES = 3, COSTS_LEAST_BYTES = 4 << 20 };

struct costs {
    double base_byte_s, huge_byte_s; /* of base pages and transparent huge ones: to get it, zeroed, and give it back */
    double set_byte_s;               /* to write all of it then, as whoever touches a buffer does */
    double checked_page_s;           /* to ask where a page is */
    struct line_cost {
        double lay_ns, load_ns; /* to lay a line of a cycle, and to load it then */
    } line[COSTS_SIZES];
    double memory_ns; /* to load a line from memory, with nothing else under way */
    double flush_ns;  /* to flush a line */
    double core_hz;
    double task_s, wake_s; /* of a task that is handed out: CPU seconds to do so, and until all are woken */
};

extern const struct costs costs_of_slow_server;

/* In CPU seconds of the first of these CPUs, to which the calling thread is bound. Whatever cannot be had or is not allowed
 * is not measured. */
struct costs costs_here(const struct machine *machine, const struct cpulist *cpus);

/* Of a line of a cycle through so many bytes. */
struct line_cost costs_line(const struct costs *costs, double bytes, bool huge);

/* Of chase_run and chase_run_cold (harness/cycle.h) with so many batches. */
double costs_chase_s(double load_ns, size_t batches);
double costs_chase_cold_s(const struct costs *costs, double bytes, size_t batches);

#endif
