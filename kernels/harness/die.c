#include "die.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fail.h"
#include "proc.h"

struct l3 {
    int first, socket; /* the lowest CPU, as struct cpu_place names an L3 */
    long apicid;       /* the lowest of its CPUs' */
};

/* ---- what the system says ---- */

/* The die as sysfs reports it, by its lowest CPU; -1 where it is an L3 alone, or all of the package. */
static int reported_die(const struct selection *selection, size_t i) {
    struct cpulist die = {0}, package = {0};
    int cpu = selection->cpus.cpu[i], found = -1;
    bool known = read_sysfs_list(&die, "devices/system/cpu/cpu%d/topology/die_cpus_list", cpu) &&
                 read_sysfs_list(&package, "devices/system/cpu/cpu%d/topology/package_cpus_list", cpu);
    if (known && die.count < package.count)
        for (size_t j = 0; j < selection->cpus.count; j++) {
            bool inside = cpulist_has(&die, selection->cpus.cpu[j]);
            if (inside && selection->place[j].l3 != selection->place[i].l3) found = die.cpu[0];
        }
    cpulist_free(&die);
    cpulist_free(&package);
    return found;
}

/* Family and model of the processors in cpuinfo, and the APIC id of each CPU (-1 unknown), `cpus` of them. */
struct processors {
    int family, model, cpus, cpu;
    long *apicid;
};

static bool read_processor(const char *field, const char *value, void *argument) {
    struct processors *processors = argument;
    int number;
    if (sscanf(value, "%d", &number) != 1) return true;
    if (strcmp(field, "processor") == 0) processors->cpu = number;
    if (strcmp(field, "cpu family") == 0) processors->family = number;
    if (strcmp(field, "model") == 0) processors->model = number;
    bool known = processors->cpu >= 0 && processors->cpu < processors->cpus;
    if (strcmp(field, "apicid") == 0 && known) processors->apicid[processors->cpu] = number;
    return true;
}

static struct processors read_processors(int cpus) {
    struct processors processors = {.family = -1, .model = -1, .cpus = cpus, .cpu = -1};
    processors.apicid = grow(NULL, (size_t)cpus, sizeof *processors.apicid);
    for (int i = 0; i < cpus; i++) processors.apicid[i] = -1;
    cpuinfo_read(read_processor, &processors);
    return processors;
}

/* Rome (17h/31h) and Bergamo (19h/A0h). */
static bool has_two_ccx_a_ccd(int family, int model) {
    return (family == 0x17 && model == 0x31) || (family == 0x19 && model == 0xa0);
}

/* ---- L3s in pairs ---- */

static int by_place(const void *a, const void *b) {
    const struct l3 *x = a, *y = b;
    if (x->socket != y->socket) return (x->socket > y->socket) - (x->socket < y->socket);
    if (x->apicid != y->apicid) return (x->apicid > y->apicid) - (x->apicid < y->apicid);
    return (x->first > y->first) - (x->first < y->first);
}

static size_t l3s_of(const struct selection *selection, const long *apicid, struct l3 *l3s) {
    size_t count = 0;
    for (size_t i = 0; i < selection->cpus.count; i++) {
        const struct cpu_place *place = &selection->place[i];
        long id = apicid[selection->cpus.cpu[i]];
        size_t k = 0;
        while (k < count && l3s[k].first != place->l3) k++;
        if (k == count) l3s[count++] = (struct l3){place->l3, place->socket, id};
        if (id < l3s[k].apicid) l3s[k].apicid = id;
    }
    qsort(l3s, count, sizeof *l3s, by_place);
    return count;
}

/* L3s 0 and 1 of a socket are on one die, 2 and 3 on the next. A socket with an odd number of L3s, as where not all CPUs
 * take part, says nothing. */
static void pair_l3s(const struct selection *selection, const struct l3 *l3s, size_t count, int *die) {
    for (size_t begin = 0, end; begin < count; begin = end) {
        for (end = begin; end < count && l3s[end].socket == l3s[begin].socket; end++) continue;
        if ((end - begin) % 2 != 0 || end - begin == 2) continue;
        for (size_t k = begin; k < end; k++) {
            const struct l3 *one = &l3s[begin + (k - begin) / 2 * 2], *other = one + 1;
            int name = one->first < other->first ? one->first : other->first;
            for (size_t i = 0; i < selection->cpus.count; i++)
                if (selection->place[i].l3 == l3s[k].first) die[i] = name;
        }
    }
}

void die_of_cpus(const struct selection *selection, int *die) {
    bool reported = false;
    int highest = 0;
    for (size_t i = 0; i < selection->cpus.count; i++) {
        die[i] = reported_die(selection, i);
        reported = reported || die[i] >= 0;
        if (selection->cpus.cpu[i] > highest) highest = selection->cpus.cpu[i];
    }
    if (reported) return;
    struct processors processors = read_processors(highest + 1);
    struct l3 *l3s = grow(NULL, selection->cpus.count, sizeof *l3s);
    if (has_two_ccx_a_ccd(processors.family, processors.model))
        pair_l3s(selection, l3s, l3s_of(selection, processors.apicid, l3s), die);
    free(processors.apicid);
    free(l3s);
}
