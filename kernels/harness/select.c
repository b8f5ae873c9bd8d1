#include "select.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cache.h"
#include "fail.h"
#include "text.h"

const char *const closeness_names[] = {"core", "l3", "node", "socket", "machine", NULL};

static const char *cpus_word = "cores", *home_word = "first", *pairs_path;
static int *node_socket;    /* with --home sockets: of each NUMA node that has CPUs and memory; -1 of others */
static int *sockets;        /* those that have such a node, */
static size_t socket_count; /* 0 where they are fewer than two, or another home is asked for */
static bool siblings;

const struct setting select_settings[] = {
    {.name = "cpus",
     .value = "LIST",
     .word = &cpus_word,
     .shapes = true,
     .help = "0-3,8,10-14:2 as Linux writes them, all (that are allowed), or cores (one thread of each; default)"},
    {.name = "siblings", .on = &siblings, .shapes = true, .help = "also each core's own pair of sibling threads"},
    {.name = "pairs",
     .value = "FILE",
     .word = &pairs_path,
     .shapes = true,
     .help = "only these pairs: two CPUs a line; a pair may be there more than once"},
    {.name = "home",
     .value = "WHERE",
     .word = &home_word,
     .shapes = true,
     .help = "coherence: NUMA node of the lines: of the pair's first (default) or second CPU, each, a number, or "
             "sockets: first, and "
             "its like in each other socket, which share --passes and lines"},
    {0},
};

bool select_home_asked(void) {
    return strcmp(home_word, "first") != 0;
}

const char *select_home_policy(void) {
    return strcmp(home_word, "sockets") == 0 && socket_count == 0 ? "first" : home_word;
}

uint64_t select_passes(uint64_t passes) {
    return socket_count == 0 ? passes : (passes + socket_count - 1) / socket_count;
}

size_t select_lines(size_t lines, uint64_t passes) {
    enum { MOST_PLACES = 4, FEWEST = 8 };
    if (socket_count == 0) return lines;
    size_t share = lines * (size_t)passes / (socket_count * (size_t)select_passes(passes)) / MOST_PLACES * MOST_PLACES;
    return share > FEWEST ? share : FEWEST;
}

bool select_cpus_by_name(void) {
    return strcmp(cpus_word, "all") == 0 || strcmp(cpus_word, "cores") == 0;
}

bool select_pairs_named(void) {
    return pairs_path != NULL;
}

/* ---- CPUs ---- */

int select_socket_of(int cpu) {
    char content[64];
    bool told = read_sysfs(content, sizeof content, "devices/system/cpu/cpu%d/topology/physical_package_id", cpu);
    return told ? atoi(content) : -1;
}

static struct cpu_place place_of(const struct machine *machine, int cpu) {
    struct cpu_place place = {
        .node = machine_node_of(machine, cpu), .home = machine_home_of(machine, cpu), .socket = select_socket_of(cpu)};
    struct cpulist shared = {0};
    machine_siblings(cpu, &shared);
    place.core = shared.cpu[0];
    cpulist_free(&shared);
    cache_sharers(cpu, &shared);
    place.l3 = shared.cpu[0];
    cpulist_free(&shared);
    return place;
}

static void copy(struct cpulist *to, const struct cpulist *from) {
    for (size_t i = 0; i < from->count; i++) cpulist_add(to, from->cpu[i]);
}

/* The allowed CPUs that are the first allowed thread of their core. */
static void add_cores(struct cpulist *chosen, const struct machine *machine) {
    for (size_t i = 0; i < machine->allowed.count; i++) {
        struct cpulist threads = {0};
        int first = -1;
        machine_siblings(machine->allowed.cpu[i], &threads);
        for (size_t t = 0; first < 0 && t < threads.count; t++)
            if (cpulist_has(&machine->allowed, threads.cpu[t])) first = threads.cpu[t];
        if (first == machine->allowed.cpu[i]) cpulist_add(chosen, first);
        cpulist_free(&threads);
    }
}

static void check_cpus(const struct cpulist *chosen, const struct machine *machine) {
    struct text online = {0}, allowed = {0};
    cpulist_write(&online, &machine->online, true);
    cpulist_write(&allowed, &machine->allowed, true);
    for (size_t i = 0; i < chosen->count; i++) {
        if (!cpulist_has(&machine->online, chosen->cpu[i]))
            fail(EXIT_BAD_INPUT, "CPU %d is not online on this machine, whose CPUs are %s", chosen->cpu[i],
                 online.data);
        if (!cpulist_has(&machine->allowed, chosen->cpu[i]))
            fail(EXIT_NOT_AS_ASKED, "CPU %d is online but not allowed to this process (affinity or cpuset), %s is",
                 chosen->cpu[i], allowed.data);
    }
    text_free(&online);
    text_free(&allowed);
}

/* ---- pairs ---- */

static void add_pair(struct selection *selection, size_t i, size_t j) {
    const int *cpu = selection->cpus.cpu;
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): a list that has an i-th CPU has memory */
    struct pair pair = {cpu[i] < cpu[j] ? (int)i : (int)j, cpu[i] < cpu[j] ? (int)j : (int)i};
    size_t count = selection->pair_count;
    if ((count & (count - 1)) == 0)
        selection->pairs = grow(selection->pairs, count == 0 ? 1 : count * 2, sizeof *selection->pairs);
    selection->pairs[selection->pair_count++] = pair;
}

/* A pair as the file of --pairs has it. */
struct named_pair {
    int cpu[2];
    size_t line;
};

/* A line of the file without its comment; false at the end of the file. One that is too long, or has a zero byte in it,
 * becomes "?". */
static bool read_line(FILE *file, char *text, size_t size) {
    size_t length = 0;
    bool comment = false, bad = false;
    int c = getc(file);
    if (c == EOF) return false;
    for (; c != EOF && c != '\n' && !bad; c = getc(file)) {
        comment = comment || c == '#';
        bad = c == '\0' || length + 1 == size;
        if (!comment && !bad) text[length++] = (char)c;
    }
    text[length] = '\0';
    if (bad) strcpy(text, "?");
    return true;
}

/* Two CPUs a line, separated by blanks or a comma; # begins a comment. */
static size_t read_pairs(const char *path, struct named_pair **pairs) {
    FILE *file = fopen(path, "re");
    if (file == NULL) fail(EXIT_BAD_INPUT, "%s cannot be read: %s", path, strerror(errno));
    char text[256];
    size_t count = 0;
    for (size_t line = 1; read_line(file, text, sizeof text); line++) {
        struct named_pair pair = {.line = line};
        int *cpu = pair.cpu, end = 0;
        if (text[strspn(text, " \t\r")] == '\0') continue;
        bool good = sscanf(text, " %6d%*[ ,\t]%6d %n", &cpu[0], &cpu[1], &end) == 2 && text[end] == '\0';
        if (!good || cpu[0] < 0 || cpu[1] < 0 || cpu[0] == cpu[1])
            fail(EXIT_BAD_INPUT, "%s, line %zu: two different CPU numbers are expected", path, line);
        if ((count & (count - 1)) == 0) *pairs = grow(*pairs, count == 0 ? 1 : count * 2, sizeof **pairs);
        (*pairs)[count++] = pair;
    }
    if (ferror(file) != 0) fail(EXIT_BAD_INPUT, "%s cannot be read: %s", path, strerror(errno));
    fclose(file);
    if (count == 0) fail(EXIT_BAD_INPUT, "%s names no pair of CPUs", path);
    return count;
}

static void add_cpus_of(struct selection *selection, const struct named_pair *pairs, size_t count) {
    for (size_t i = 0; i < 2 * count; i++) {
        int cpu = pairs[i / 2].cpu[i % 2];
        if (!cpulist_has(&selection->cpus, cpu)) cpulist_add(&selection->cpus, cpu);
    }
}

static void add_named(struct selection *selection, const struct named_pair *pair) {
    size_t i = cpulist_index(&selection->cpus, pair->cpu[0]), j = cpulist_index(&selection->cpus, pair->cpu[1]);
    if (i == selection->cpus.count || j == selection->cpus.count)
        fail(EXIT_BAD_INPUT, "%s, line %zu: CPU %d is not among --cpus", pairs_path, pair->line,
             pair->cpu[i == selection->cpus.count ? 0 : 1]);
    add_pair(selection, i, j);
}

static void find_sockets(const struct machine *machine) {
    sockets = grow(NULL, machine->nodes, sizeof *sockets);
    node_socket = grow(NULL, machine->nodes, sizeof *node_socket);
    for (size_t n = 0; n < machine->nodes; n++) {
        const struct numa_node *node = &machine->node[n];
        bool known = false;
        node_socket[n] = node->has_memory && node->cpus.count > 0 ? select_socket_of(node->cpus.cpu[0]) : -1;
        for (size_t i = 0; i < socket_count; i++) known |= sockets[i] == node_socket[n];
        if (node_socket[n] >= 0 && !known) sockets[socket_count++] = node_socket[n];
    }
    if (socket_count < 2) socket_count = 0;
}

void select_cpus(struct selection *selection, const struct machine *machine, bool planning) {
    const char *why;
    struct named_pair *named = NULL;
    size_t named_count = pairs_path != NULL ? read_pairs(pairs_path, &named) : 0;
    if (strcmp(cpus_word, "all") == 0)
        copy(&selection->cpus, &machine->allowed);
    else if (strcmp(cpus_word, "cores") == 0 && pairs_path == NULL)
        add_cores(&selection->cpus, machine);
    else if (strcmp(cpus_word, "cores") == 0)
        add_cpus_of(selection, named, named_count);
    else if (!cpulist_parse(cpus_word, &selection->cpus, &why))
        fail(EXIT_BAD_INPUT, "--cpus %s is not a list of CPUs: %s", cpus_word, why);
    if (!planning) check_cpus(&selection->cpus, machine);

    copy(&selection->chosen, &selection->cpus);
    size_t chosen = selection->chosen.count;
    for (size_t i = 0; pairs_path == NULL && i < chosen; i++)
        for (size_t j = i + 1; j < chosen; j++) add_pair(selection, i, j);
    for (size_t i = 0; siblings && i < chosen; i++) { /* a sibling that joins only for it meets its own core alone */
        struct cpulist threads = {0};
        /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): as above */
        machine_siblings(selection->cpus.cpu[i], &threads);
        for (size_t t = 0; t < threads.count; t++) {
            if (!cpulist_has(&machine->allowed, threads.cpu[t]) || cpulist_has(&selection->cpus, threads.cpu[t]))
                continue;
            cpulist_add(&selection->cpus, threads.cpu[t]);
            if (pairs_path == NULL) add_pair(selection, i, selection->cpus.count - 1);
        }
        cpulist_free(&threads);
    }
    for (size_t i = 0; i < named_count; i++) add_named(selection, &named[i]);
    free(named);
    if (selection->cpus.count == 0) fail(EXIT_BAD_INPUT, "there is no CPU to measure");
    selection->place = grow(NULL, selection->cpus.count, sizeof *selection->place);
    for (size_t i = 0; i < selection->cpus.count; i++) selection->place[i] = place_of(machine, selection->cpus.cpu[i]);
    if (strcmp(home_word, "sockets") == 0) find_sockets(machine);
}

void select_require_pairs(const struct selection *selection) {
    if (selection->pair_count > 0) return;
    fail(!select_cpus_by_name() || pairs_path != NULL ? EXIT_BAD_INPUT : EXIT_NOT_AS_ASKED,
         "a pair needs two CPUs, and here %s %zu", selection->cpus.count == 1 ? "is" : "are", selection->cpus.count);
}

enum closeness select_closeness(const struct selection *selection, size_t i, size_t j) {
    const struct cpu_place *x = &selection->place[i], *y = &selection->place[j];
    if (x->core == y->core) return SAME_CORE;
    if (x->l3 == y->l3) return SAME_L3;
    if (x->socket != y->socket) return OTHER_SOCKET; /* also where both are one NUMA node (NPS0, numa=off) */
    return x->node == y->node ? SAME_NODE : SAME_SOCKET;
}

/* ---- homes ---- */

/* Behind the home that a CPU has: in each other socket the node at the same place among its nodes. */
static size_t add_homes_of_sockets(const struct machine *machine, const struct cpu_place *place, int *homes) {
    size_t rank = 0, count = 1;
    for (size_t n = 0; n < machine->nodes && machine->node[n].number != homes[0]; n++)
        rank += node_socket[n] == place->socket;
    for (size_t s = 0; s < socket_count; s++) {
        size_t at = 0;
        int like = homes[0];
        for (size_t n = 0; n < machine->nodes; n++)
            if (node_socket[n] == sockets[s] && at++ <= rank) like = machine->node[n].number;
        if (sockets[s] != place->socket && like != homes[0]) homes[count++] = like;
    }
    return count;
}

size_t select_homes(const struct selection *selection, const struct machine *machine, size_t first, size_t second,
                    int *homes) {
    const char *policy = select_home_policy();
    homes[0] = selection->place[strcmp(policy, "second") == 0 ? second : first].home;
    if (strcmp(policy, "first") == 0 || strcmp(policy, "second") == 0) return 1;
    if (strcmp(policy, "sockets") == 0) return add_homes_of_sockets(machine, &selection->place[first], homes);
    if (strcmp(policy, "each") == 0) {
        size_t count = 0;
        for (size_t n = 0; n < machine->nodes; n++)
            if (machine->node[n].has_memory) homes[count++] = machine->node[n].number;
        return count;
    }
    if (strspn(home_word, "0123456789") != strlen(home_word) || strlen(home_word) > 6)
        fail(EXIT_BAD_INPUT, "--home takes first, second, each, sockets or the number of a NUMA node, not %s",
             home_word);
    const struct numa_node *node = machine_node(machine, atoi(home_word));
    if (node == NULL) fail(EXIT_BAD_INPUT, "there is no NUMA node %s on this machine", home_word);
    if (!node->has_memory)
        fail(EXIT_NOT_AS_ASKED, "NUMA node %s %s%s", home_word,
             node->left_out[0] != '\0' ? "cannot be used: " : "has no memory", node->left_out);
    homes[0] = node->number;
    return 1;
}
