/* What sysfs says of CPUs and NUMA nodes, and which CPUs this process may use. */
#ifndef NODEPRINT_MACHINE_H
#define NODEPRINT_MACHINE_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "cpulist.h"

struct numa_node {
    int number;
    bool has_memory;    /* that this process may use and that is not full */
    char left_out[128]; /* why not, where it has memory all the same; else empty */
    struct cpulist cpus;
};

struct machine {
    struct cpulist online, allowed; /* ascending */
    struct numa_node *node;         /* ascending by number; one node 0 where the kernel has no NUMA */
    size_t nodes;
    bool numa; /* false: no node folder in sysfs, so there is one home and nothing to bind to */
};

/* The root of sysfs. Tests point NODEPRINT_SYSFS, and NODEPRINT_PROCFS (proc.h), at trees of their own; nothing else sets
 * them. */
const char *sysfs(void);

/* A file below sysfs without its last newline; false when it cannot be read or is longer than `size`. */
bool read_sysfs(char *content, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* A list of CPUs below sysfs, ascending; false when it cannot be read. */
bool read_sysfs_list(struct cpulist *list, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* sched_getaffinity's shape, so that tests can stand in a machine with more CPUs than this one. */
typedef int affinity_call(pid_t pid, size_t bytes, cpu_set_t *mask);

/* The CPUs of this process's mask, ascending. The mask grows until the call accepts it: machines with more than 1,024
 * CPUs answer EINVAL to glibc's fixed cpu_set_t. False with errno when the call fails otherwise. */
bool machine_affinity(affinity_call *call, struct cpulist *allowed);

/* Read the machine. Called before the first thread is created: likwid-pin narrows the mask of the main thread then. */
void machine_read(struct machine *machine);

/* The CPU's thread siblings, itself among them, ascending. */
void machine_siblings(int cpu, struct cpulist *siblings);

/* NUMA node of `cpu`, 0 when unknown; `machine_home` is the nearest node that has memory. */
int machine_node_of(const struct machine *machine, int cpu);
int machine_home_of(const struct machine *machine, int cpu);
const struct numa_node *machine_node(const struct machine *machine, int number);

/* The distance between two nodes that sysfs reports (10 for a node and itself); where it reports none, 10 and 20. */
long machine_distance(const struct machine *machine, int a, int b);

/* NUMA nodes whose memory this process may use, ascending (Mems_allowed_list); false where that is not reported. */
bool machine_allowed_nodes(struct cpulist *nodes);

/* Bytes that `node` can give without pushing out anybody's anonymous memory; UINT64_MAX when unknown. */
uint64_t machine_free_bytes(const struct machine *machine, int node);

/* Interrupts since boot of each of `cpus` (/proc/interrupts); false where they cannot be read. */
bool machine_interrupts(const struct cpulist *cpus, uint64_t *counts);

/* From /proc/stat: steal time in clock ticks of the CPUs in `cpus`, and interrupts of the whole machine; 0 where it
 * cannot be read. */
struct machine_counts {
    uint64_t steal_ticks, interrupts;
};
struct machine_counts machine_counts(const struct cpulist *cpus);

#endif
