/* Which CPUs take part, where they are, and which pairs they make. */
#ifndef NODEPRINT_SELECT_H
#define NODEPRINT_SELECT_H

#include <stddef.h>

#include "cpulist.h"
#include "machine.h"
#include "settings.h"

/* Where a CPU is. Parts are named by their lowest CPU (core, L3) or by the number that sysfs gives them. */
struct cpu_place {
    int core, l3, node;
    int socket; /* -1 where sysfs does not report it */
    int home;   /* the nearest NUMA node that has memory */
};

/* What two CPUs share, nearest first. */
enum closeness { SAME_CORE, SAME_L3, SAME_NODE, SAME_SOCKET, OTHER_SOCKET, CLOSENESS_COUNT };
extern const char *const closeness_names[];

struct pair {
    int a, b; /* indices into `cpus`; the lower OS number first */
};

struct selection {
    struct cpulist chosen;   /* by --cpus, in the order given */
    struct cpulist cpus;     /* chosen, then with --siblings their siblings: a worker each */
    struct cpu_place *place; /* of each of them */
    struct pair *pairs;
    size_t pair_count;
};

extern const struct setting select_settings[];

/* By the settings read. With `planning` the CPUs need not be on this machine. Ends the process with 2 or 3. */
void select_cpus(struct selection *selection, const struct machine *machine, bool planning);

enum closeness select_closeness(const struct selection *selection, size_t i, size_t j);

/* The homes that --home asks for, of the pair or CPU whose places are given: `homes` gets at most machine->nodes. */
size_t select_homes(const struct selection *selection, const struct machine *machine, size_t first, size_t second,
                    int *homes);

/* What --home comes to on this machine: `sockets` is `first` where there is one socket. */
const char *select_home_policy(void);

/* Whether another home than the default is asked for. */
bool select_home_asked(void);

/* --passes of each home: with `--home sockets` a share of all, rounded up; and the lines of each, fewer by what was
 * rounded, in whole fours for the clusters that they are drawn from. */
uint64_t select_passes(uint64_t passes);
size_t select_lines(size_t lines, uint64_t passes);

/* Ends the process where there is no pair: with 2 where the caller named the CPUs, with 3 where this machine or what it
 * allows has no two. */
void select_require_pairs(const struct selection *selection);

/* -1 where sysfs does not report it. */
int select_socket_of(int cpu);

/* Whether the CPUs were chosen by a name (cores, all) and not by their numbers. */
bool select_cpus_by_name(void);

/* Whether the pairs were named by the caller (--pairs); else an operation may choose one pair for each closeness. */
bool select_pairs_named(void);

#endif
