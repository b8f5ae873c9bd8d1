#define _GNU_SOURCE
#include "machine.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fail.h"

const char *sysfs(void) {
    const char *root = getenv("NODEPRINT_SYSFS");
    return root != NULL ? root : "/sys";
}

bool read_sysfs(char *content, size_t size, const char *format, ...) {
    char relative[256], path[PATH_MAX];
    va_list values;
    va_start(values, format);
    vsnprintf(relative, sizeof relative, format, values);
    va_end(values);
    if (snprintf(path, sizeof path, "%s/%s", sysfs(), relative) >= (int)sizeof path) return false;
    FILE *file = fopen(path, "re");
    if (file == NULL) return false;
    size_t length = fread(content, 1, size - 1, file);
    bool whole = length < size - 1 && ferror(file) == 0;
    fclose(file);
    while (length > 0 && (content[length - 1] == '\n' || content[length - 1] == ' ')) length--;
    content[length] = '\0';
    return whole;
}

enum { LIST_BYTES = 64 * 1024 };

bool read_sysfs_list(struct cpulist *list, const char *format, ...) {
    char relative[256], *content = grow(NULL, LIST_BYTES, 1);
    const char *why;
    va_list values;
    va_start(values, format);
    vsnprintf(relative, sizeof relative, format, values);
    va_end(values);
    *list = (struct cpulist){0};
    bool read = read_sysfs(content, LIST_BYTES, "%s", relative);
    if (read && *content != '\0' && !cpulist_parse(content, list, &why))
        fail(EXIT_BAD_INPUT, "%s/%s is not a list of CPUs: %s", sysfs(), relative, why);
    free(content);
    cpulist_sort(list);
    return read;
}

bool machine_affinity(affinity_call *call, struct cpulist *allowed) {
    *allowed = (struct cpulist){0};
    for (size_t cpus = 1024; cpus <= CPU_LIMIT; cpus *= 2) {
        cpu_set_t *mask = CPU_ALLOC(cpus);
        size_t bytes = CPU_ALLOC_SIZE(cpus);
        if (mask == NULL) return false;
        CPU_ZERO_S(bytes, mask);
        int result = call(0, bytes, mask), error = errno;
        for (size_t cpu = 0; result == 0 && cpu < cpus; cpu++)
            if (CPU_ISSET_S(cpu, bytes, mask)) cpulist_add(allowed, (int)cpu);
        CPU_FREE(mask);
        errno = error;
        if (result == 0 || error != EINVAL) return result == 0;
    }
    return false;
}

static int by_number(const void *a, const void *b) {
    return ((const struct numa_node *)a)->number - ((const struct numa_node *)b)->number;
}

static void read_nodes(struct machine *machine) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/devices/system/node", sysfs());
    DIR *folder = opendir(path);
    struct cpulist with_memory = {0};
    bool known = read_sysfs_list(&with_memory, "devices/system/node/has_memory");
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        if (strncmp(entry->d_name, "node", 4) != 0 || !isdigit((unsigned char)entry->d_name[4])) continue;
        struct numa_node node = {.number = atoi(entry->d_name + 4)};
        if (!read_sysfs_list(&node.cpus, "devices/system/node/node%d/cpulist", node.number)) continue;
        node.has_memory = !known || cpulist_has(&with_memory, node.number);
        machine->node = grow(machine->node, machine->nodes + 1, sizeof *machine->node);
        machine->node[machine->nodes++] = node;
    }
    if (folder != NULL) closedir(folder);
    cpulist_free(&with_memory);
    machine->numa = machine->nodes > 0;
    if (machine->numa) {
        qsort(machine->node, machine->nodes, sizeof *machine->node, by_number);
        return;
    }
    machine->node = grow(NULL, 1, sizeof *machine->node);
    machine->node[0] = (struct numa_node){.has_memory = true};
    for (size_t i = 0; i < machine->online.count; i++) cpulist_add(&machine->node[0].cpus, machine->online.cpu[i]);
    machine->nodes = 1;
}

void machine_read(struct machine *machine) {
    *machine = (struct machine){0};
    if (!machine_affinity(sched_getaffinity, &machine->allowed))
        fail(EXIT_NOT_AS_ASKED, "the CPUs allowed to this process cannot be read (sched_getaffinity: %s)",
             strerror(errno));
    if (!read_sysfs_list(&machine->online, "devices/system/cpu/online"))
        for (size_t i = 0; i < machine->allowed.count; i++) cpulist_add(&machine->online, machine->allowed.cpu[i]);
    read_nodes(machine);
}

void machine_siblings(int cpu, struct cpulist *siblings) {
    if (!read_sysfs_list(siblings, "devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu) ||
        siblings->count == 0)
        cpulist_add(siblings, cpu);
}

int machine_node_of(const struct machine *machine, int cpu) {
    for (size_t i = 0; i < machine->nodes; i++)
        if (cpulist_has(&machine->node[i].cpus, cpu)) return machine->node[i].number;
    return 0;
}

const struct numa_node *machine_node(const struct machine *machine, int number) {
    for (size_t i = 0; i < machine->nodes; i++)
        if (machine->node[i].number == number) return &machine->node[i];
    return NULL;
}

int machine_home_of(const struct machine *machine, int cpu) {
    int own = machine_node_of(machine, cpu), nearest = own;
    const struct numa_node *node = machine_node(machine, own);
    char distances[4096];
    if (node == NULL || node->has_memory ||
        !read_sysfs(distances, sizeof distances, "devices/system/node/node%d/distance", own))
        return own;
    long lowest = LONG_MAX;
    char *at = distances;
    for (size_t i = 0; i < machine->nodes; i++) { /* one distance for each node, in the order of their numbers */
        long distance = strtol(at, &at, 10);
        if (machine->node[i].has_memory && distance < lowest) {
            lowest = distance;
            nearest = machine->node[i].number;
        }
    }
    return nearest;
}

uint64_t machine_free_bytes(const struct machine *machine, int node) {
    char content[8192];
    if (!machine->numa || !read_sysfs(content, sizeof content, "devices/system/node/node%d/meminfo", node))
        return UINT64_MAX;
    /* clean file pages are given up before anything is killed */
    static const char *const counted[] = {"MemFree:", "Inactive(file):", "SReclaimable:"};
    uint64_t kib = 0;
    for (size_t i = 0; i < sizeof counted / sizeof *counted; i++) {
        const char *found = strstr(content, counted[i]);
        if (found == NULL && i == 0) return UINT64_MAX;
        if (found != NULL) kib += strtoull(found + strlen(counted[i]), NULL, 10);
    }
    return kib * 1024;
}

struct machine_counts machine_counts(const struct cpulist *cpus) {
    FILE *file = fopen("/proc/stat", "re");
    char *line = NULL;
    size_t capacity = 0;
    struct machine_counts counts = {0};
    while (file != NULL && getline(&line, &capacity, file) > 0) {
        int cpu;
        uint64_t steal;
        if (sscanf(line, "cpu%d %*u %*u %*u %*u %*u %*u %*u %" SCNu64, &cpu, &steal) == 2 && cpulist_has(cpus, cpu))
            counts.steal_ticks += steal;
        sscanf(line, "intr %" SCNu64, &counts.interrupts);
    }
    free(line);
    if (file != NULL) fclose(file);
    return counts;
}
