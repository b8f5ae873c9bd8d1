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
#include "proc.h"

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

/* One distance for each node, in the order of their numbers. */
long machine_distance(const struct machine *machine, int a, int b) {
    enum { OWN = 10, OTHER = 20 };
    char distances[4096];
    if (!read_sysfs(distances, sizeof distances, "devices/system/node/node%d/distance", a)) return a == b ? OWN : OTHER;
    char *at = distances;
    for (size_t i = 0; i < machine->nodes; i++) {
        char *end;
        long distance = strtol(at, &end, 10);
        if (end == at) break;
        if (machine->node[i].number == b) return distance;
        at = end;
    }
    return a == b ? OWN : OTHER;
}

int machine_home_of(const struct machine *machine, int cpu) {
    int own = machine_node_of(machine, cpu), nearest = own;
    const struct numa_node *node = machine_node(machine, own);
    long lowest = LONG_MAX;
    if (node == NULL || node->has_memory) return own;
    for (size_t i = 0; i < machine->nodes; i++) {
        long distance = machine_distance(machine, own, machine->node[i].number);
        if (machine->node[i].has_memory && distance < lowest) {
            lowest = distance;
            nearest = machine->node[i].number;
        }
    }
    return nearest;
}

bool machine_allowed_nodes(struct cpulist *nodes) {
    static const char name[] = "Mems_allowed_list:";
    char *line = NULL;
    const char *why;
    size_t capacity = 0;
    bool found = false;
    *nodes = (struct cpulist){0};
    FILE *file = proc_open("self/status");
    while (file != NULL && !found && getline(&line, &capacity, file) > 0) {
        if (strncmp(line, name, strlen(name)) != 0) continue;
        char *list = line + strlen(name);
        list += strspn(list, " \t");
        list[strcspn(list, "\n")] = '\0';
        found = cpulist_parse(list, nodes, &why);
    }
    free(line);
    if (file != NULL) fclose(file);
    cpulist_sort(nodes);
    return found;
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

/* The CPUs that the first line of /proc/interrupts names, in the order of its columns. */
static struct cpulist columns_of(char *line) {
    struct cpulist columns = {0};
    for (char *rest = line, *word; (word = strtok_r(rest, " \n", &rest)) != NULL;)
        if (strncmp(word, "CPU", 3) == 0) cpulist_add(&columns, atoi(word + 3));
    return columns;
}

/* The numbers of a line; false where it has not one for each column (ERR and MIS have one for all). */
static bool read_row(const char *line, uint64_t *row, size_t columns) {
    const char *at = strchr(line, ':');
    char *end;
    if (at == NULL) return false;
    at++;
    for (size_t column = 0; column < columns; column++) {
        row[column] = strtoull(at, &end, 10);
        if (end == at) return false;
        at = end;
    }
    return true;
}

bool machine_interrupts(const struct cpulist *cpus, uint64_t *counts) {
    char *line = NULL;
    size_t capacity = 0, found = 0;
    struct cpulist columns = {0};
    FILE *file = proc_open("interrupts");
    memset(counts, 0, cpus->count * sizeof *counts);
    if (file != NULL && getline(&line, &capacity, file) > 0) columns = columns_of(line);
    uint64_t *row = grow(NULL, columns.count + 1, sizeof *row);
    size_t *index = grow(NULL, columns.count + 1, sizeof *index); /* of each column among the CPUs */
    for (size_t column = 0; column < columns.count; column++) {
        index[column] = 0;
        while (index[column] < cpus->count && cpus->cpu[index[column]] != columns.cpu[column]) index[column]++;
        found += index[column] < cpus->count;
    }
    while (file != NULL && columns.count > 0 && getline(&line, &capacity, file) > 0) {
        bool whole = read_row(line, row, columns.count);
        for (size_t column = 0; whole && column < columns.count; column++)
            if (index[column] < cpus->count) counts[index[column]] += row[column];
    }
    free(index);
    free(row);
    free(line);
    cpulist_free(&columns);
    if (file != NULL) fclose(file);
    return cpus->count > 0 && found == cpus->count;
}

struct machine_counts machine_counts(const struct cpulist *cpus) {
    char *line = NULL;
    FILE *file = proc_open("stat");
    size_t capacity = 0;
    struct machine_counts counts = {0};
    while (file != NULL && getline(&line, &capacity, file) > 0) {
        int cpu;
        uint64_t steal;
        bool of_one = strncmp(line, "cpu", 3) == 0 && isdigit((unsigned char)line[3]); /* "cpu " is the sum of all */
        if (of_one && sscanf(line, "cpu%d %*u %*u %*u %*u %*u %*u %*u %" SCNu64, &cpu, &steal) == 2 &&
            cpulist_has(cpus, cpu))
            counts.steal_ticks += steal;
        sscanf(line, "intr %" SCNu64, &counts.interrupts);
    }
    free(line);
    if (file != NULL) fclose(file);
    return counts;
}
