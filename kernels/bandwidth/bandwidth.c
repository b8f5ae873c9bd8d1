/* bandwidth: bytes a second between cores and memory, by streams as STREAM has them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bandwidth/caches.h"
#include "bandwidth/contents.h"
#include "bandwidth/flow.h"
#include "harness/die.h"
#include "harness/fail.h"
#include "harness/footprint.h"
#include "harness/run.h"
#include "harness/sample.h"
#include "harness/streams.h"

static const char help[] = "USAGE\n"
                           "  bandwidth --op machine --cpus cores --out FILE [options]\n"
                           "  example: kernels/build/bandwidth --op groups --cpus cores --passes 1 --out here.jsonl\n"
                           "\n"
                           "REQUIREMENTS\n"
                           "  Linux on x86-64 or aarch64; free memory on each NUMA node as --plan says. No root.\n"
                           "\n"
                           "OVERHEAD\n"
                           "  The cores of a cell are busy for eleven sweeps a stream, 70 ms or more; others sleep.\n"
                           "\n"
                           "WARNING\n"
                           "  copy and triad with ordinary stores read each line before they overwrite it, which "
                           "STREAM does not count: compare\n"
                           "  the _mem streams, which store past the caches, with what vendors state. A port or a link "
                           "is shown only by cores\n"
                           "  that can draw more than it carries: give it all of them.\n"
                           "\n"
                           "LADDER\n"
                           "  Reads and writes at the memory are in the ratios of Intel MLC: load (MLC's all reads), "
                           "read3_write1 (-W3),\n"
                           "  read2_write1 (-W2), read1_write1 (-W5), store_mem (-W6). readN_write1 reads a line, adds "
                           "1 to each number and stores\n"
                           "  it, and reads N - 1 lines of another array. Each line that is read counts, and each that "
                           "is written.\n";

enum page_word { HUGE, BASE, PAGE_WORDS };
static const char *const page_words[] = {"huge", "base", NULL};

static const char *streams_word = "default", *pages_word = NULL;

static const struct setting settings[] = {
    {.name = "streams",
     .value = "LIST",
     .word = &streams_word,
     .shapes = true,
     .help =
         "of load,store_mem,copy,copy_mem,triad,triad_mem,store; all (but store); or default: machine all; groups load "
         "and store_mem; nodes all for up to two NUMA nodes, load and store_mem for up to four, else load; scaling and "
         "cpus load; caches load,store,copy, and no other; ladder "
         "load,read3_write1,read2_write1,read1_write1,store_mem, and no other"},
    {.name = "pages",
     .value = "KIND",
     .word = &pages_word,
     .shapes = true,
     .help = "huge, base or both (default huge; base where the system gives no transparent huge pages)"},
    SAMPLE_SETTING("nodes"),
    {0},
};

static bool wanted[STREAMS], kinds[PAGE_WORDS];
static int *die;               /* of each CPU of the selection, -1 where its CCX is all of it */
static struct buffer *buffers; /* of each NUMA node of the machine; none where it has no memory */
static enum page_word placed;  /* the pages that they have */
static size_t *most_bytes;     /* of each of them, by node */
static struct text too_large;  /* why some cells have no figure */

/* ---- the cells of an operation ---- */

/* Which workers stream for a unit, and from which NUMA nodes, as indices, each of them does. */
struct shape {
    size_t (*members)(const struct run *run, const struct unit *unit, size_t *roles);
    size_t (*sources)(const struct run *run, const struct unit *unit, size_t role, size_t *nodes);
    size_t stream_key; /* the kind of pages is the next one */
};
static const struct shape *shape;

static size_t index_of_node(const struct run *run, int number) {
    size_t n = 0;
    while (n + 1 < run->machine.nodes && run->machine.node[n].number != number) n++;
    return n;
}

static size_t own_node(const struct run *run, const struct unit *unit, size_t role, size_t *nodes) {
    (void)unit;
    nodes[0] = index_of_node(run, run->selection.place[role].home);
    return 1;
}

/* --- nodes */

static size_t members_of_node(const struct run *run, const struct unit *unit, size_t *roles) {
    size_t count = 0;
    for (size_t i = 0; i < run->chosen.count; i++)
        if (run->selection.place[i].node == unit->key[0]) roles[count++] = i;
    return count;
}

static size_t named_node(const struct run *run, const struct unit *unit, size_t role, size_t *nodes) {
    (void)role;
    nodes[0] = index_of_node(run, (int)unit->key[1]);
    return 1;
}

static const struct shape node_shape = {members_of_node, named_node, 2};

/* --- scaling: the CPUs of the first one's CCX, NUMA node or socket, in the order of --cpus */

enum { SCALING_CCX, SCALING_NODE, SCALING_SOCKET, SCALING_SCOPES };
static const char *const scaling_words[] = {"ccx", "node", "socket", NULL};

static size_t members_of_scope(const struct run *run, const struct unit *unit, size_t *roles) {
    const struct cpu_place *place = run->selection.place;
    size_t count = 0, first = run_worker(run, run->chosen.cpu[0]);
    for (size_t c = 0; c < run->chosen.count && (unit->key[1] == 0 || count < (size_t)unit->key[1]); c++) {
        size_t i = run_worker(run, run->chosen.cpu[c]);
        bool inside = unit->key[0] == SCALING_CCX    ? place[i].l3 == place[first].l3
                      : unit->key[0] == SCALING_NODE ? place[i].node == place[first].node
                                                     : place[i].socket == place[first].socket;
        if (inside) roles[count++] = i;
    }
    return count;
}

static const struct shape scaling_shape = {members_of_scope, own_node, 2};

/* --- cpus */

static size_t member_alone(const struct run *run, const struct unit *unit, size_t *roles) {
    roles[0] = run_worker(run, unit->key[0]);
    return 1;
}

static const struct shape cpu_shape = {member_alone, own_node, 1};

/* --- groups and machine */

enum group { CCX, CCD, SOCKET, MACHINE };
static const char *const group_words[] = {"ccx", "ccd", NULL};
static const char *const whole_words[] = {"socket", "machine", NULL};
enum target { OWN, OTHER, ALL };
static const char *const target_words[] = {"own", "other_socket", "all", NULL};

static bool same_group(const struct run *run, size_t i, size_t j, enum group group) {
    const struct cpu_place *place = run->selection.place;
    switch (group) {
    case CCX:
        return place[i].l3 == place[j].l3;
    case CCD:
        return die[i] >= 0 && die[i] == die[j];
    case SOCKET:
        return place[i].socket == place[j].socket;
    case MACHINE:
        return true;
    }
    return false;
}

static size_t members_of_group(const struct run *run, const struct unit *unit, enum group group, size_t *roles) {
    size_t count = 0, first = run_worker(run, unit->key[0]);
    for (size_t i = 0; i < run->selection.cpus.count; i++)
        if (same_group(run, i, first, group)) roles[count++] = i;
    return count;
}

static size_t members_of_die(const struct run *run, const struct unit *unit, size_t *roles) {
    return members_of_group(run, unit, unit->key[1] == 0 ? CCX : CCD, roles);
}

static size_t members_of_whole(const struct run *run, const struct unit *unit, size_t *roles) {
    return members_of_group(run, unit, unit->key[1] == 0 ? SOCKET : MACHINE, roles);
}

/* No CPU of these nodes need take part. */
static size_t target_nodes(const struct run *run, size_t role, enum target target, size_t *nodes) {
    const struct cpu_place *place = &run->selection.place[role];
    size_t count = 0;
    for (size_t n = 0; n < run->machine.nodes; n++) {
        const struct numa_node *node = &run->machine.node[n];
        if (!node->has_memory) continue;
        bool other = node->cpus.count > 0 && select_socket_of(node->cpus.cpu[0]) != place->socket;
        if (target == OWN ? node->number == place->home : target == ALL || other) nodes[count++] = n;
    }
    return count;
}

static size_t target_of_unit(const struct run *run, const struct unit *unit, size_t role, size_t *nodes) {
    return target_nodes(run, role, (enum target)unit->key[2], nodes);
}

static const struct shape group_shape = {members_of_die, target_of_unit, 3};
static const struct shape whole_shape = {members_of_whole, own_node, 2};

/* --- ladder */

enum rung { ONE_CORE, ONE_CCD, ONE_NODE, ALL_NODES, RUNGS };
static const char *const rung_words[] = {"core", "ccd", "numa", "machine", NULL};

/* A CCX that shares its die with none is a CCD. */
static bool same_rung(const struct run *run, size_t i, size_t j, enum rung rung) {
    switch (rung) {
    case ONE_CORE:
        return i == j;
    case ONE_CCD:
        return die[i] < 0 ? same_group(run, i, j, CCX) : same_group(run, i, j, CCD);
    case ONE_NODE:
        return run->selection.place[i].node == run->selection.place[j].node;
    case ALL_NODES:
    case RUNGS:
        break;
    }
    return true;
}

static size_t members_of_rung(const struct run *run, const struct unit *unit, size_t *roles) {
    size_t count = 0, first = run_worker(run, unit->key[0]);
    for (size_t i = 0; i < run->selection.cpus.count; i++)
        if (same_rung(run, first, i, (enum rung)unit->key[1])) roles[count++] = i;
    return count;
}

static const struct shape ladder_shape = {members_of_rung, own_node, 2};

/* ---- memory ---- */

/* Bytes of each thread's slice of each buffer that it goes through by turns: room for its part of each array. A part is an
 * odd number of chunks: a power of two apart, lines at the same place of two arrays are in the same banks of the memory. */
static size_t slice_of(const struct run *run, const struct unit *unit, const size_t *roles, size_t count,
                       size_t sources) {
    struct cpulist cpus = {0};
    for (size_t i = 0; i < count; i++) cpulist_add(&cpus, run->selection.cpus.cpu[roles[i]]);
    /* NOLINTNEXTLINE(clang-analyzer-core.DivideZero): a cell is planned for memory that is there */
    size_t part = (footprint_of_each(&cpus) + sources - 1) / sources;
    cpulist_free(&cpus);
    size_t chunks = ((part + STREAM_CHUNK_BYTES - 1) / STREAM_CHUNK_BYTES) | 1;
    return chunks * STREAM_CHUNK_BYTES * stream_arrays((enum stream)unit->key[shape->stream_key]);
}

/* Streams' shares: the slices of a buffer go to the roles that use it, in their order. `threads` gets how many there are
 * by node. */
static void share_out(const struct run *run, const struct unit *unit, const size_t *roles, size_t count,
                      struct share *shares, size_t *threads) {
    size_t *nodes = grow(NULL, run->machine.nodes, sizeof *nodes);
    memset(threads, 0, run->machine.nodes * sizeof *threads);
    for (size_t i = 0; i < count; i++) {
        size_t sources = shape->sources(run, unit, roles[i], nodes), slice = 0;
        const struct buffer **from = grow(NULL, sources, sizeof(const struct buffer *));
        for (size_t s = 0; s < sources; s++) {
            from[s] = buffers == NULL ? NULL : &buffers[nodes[s]];
            slice = threads[nodes[s]] > slice ? threads[nodes[s]] : slice;
        }
        for (size_t s = 0; s < sources; s++) threads[nodes[s]] = slice + 1;
        shares[i] = (struct share){from, sources, slice};
    }
    free(nodes);
}

static size_t memory_nodes(const struct run *run) {
    size_t count = 0;
    for (size_t n = 0; n < run->machine.nodes; n++) count += run->machine.node[n].has_memory;
    return count;
}

/* What a cell is made of. */
struct cell {
    size_t *roles, count;
    struct share *shares; /* of each role */
    size_t slice;         /* bytes of each of them */
    size_t *bytes;        /* of each node's buffer */
};

static struct cell cell_of(const struct run *run, const struct unit *unit) {
    size_t nodes = run->machine.nodes;
    struct cell cell = {.roles = grow(NULL, run->selection.cpus.count, sizeof *cell.roles)};
    cell.count = shape->members(run, unit, cell.roles);
    cell.shares = grow(NULL, cell.count, sizeof *cell.shares);
    cell.bytes = grow(NULL, nodes, sizeof *cell.bytes);
    share_out(run, unit, cell.roles, cell.count, cell.shares, cell.bytes);
    cell.slice = slice_of(run, unit, cell.roles, cell.count, cell.shares[0].buffer_count);
    for (size_t n = 0; n < nodes; n++) cell.bytes[n] *= cell.slice;
    return cell;
}

static void free_cell(struct cell *cell) {
    for (size_t i = 0; i < cell->count; i++) free((void *)cell->shares[i].buffers);
    free(cell->shares);
    free(cell->bytes);
    free(cell->roles);
}

/* The first node whose `room` a cell does not fit into; the number of nodes where it fits. */
static size_t short_of(const struct run *run, const struct cell *cell, const size_t *room) {
    size_t n = 0;
    while (n < run->machine.nodes && cell->bytes[n] <= room[n]) n++;
    return n;
}

static void say_without(struct run *run, size_t cells, size_t bytes, size_t room, size_t node) {
    char what[64];
    snprintf(what, sizeof what, "%zu of %zu cells", cells, run->unit_count);
    text_add(&too_large, "arrays of four times the L3s take up to %zu MiB on NUMA node %d, where %zu MiB may be taken",
             bytes >> 20, run->machine.node[node].number, room >> 20);
    run_not_measured(run, what, too_large.data);
}

/* What the largest cell needs of each node, of those cells for which all nodes have it at once. The others have no figure:
 * in smaller arrays it would be the caches'. */
static void choose_memory(struct run *run) {
    size_t nodes = run->machine.nodes, without = 0, most = 0, on = 0;
    size_t *room = grow(NULL, nodes, sizeof *room);
    most_bytes = grow(NULL, nodes, sizeof *most_bytes);
    memset(most_bytes, 0, nodes * sizeof *most_bytes);
    for (size_t n = 0; n < nodes; n++)
        room[n] = buffer_affordable(&run->machine, run->machine.node[n].number, SIZE_MAX, memory_nodes(run));
    for (size_t u = 0; u < run->unit_count; u++) {
        struct cell cell = cell_of(run, &run->units[u]);
        size_t lacking = short_of(run, &cell, room);
        for (size_t n = 0; lacking == nodes && n < nodes; n++)
            if (cell.bytes[n] > most_bytes[n]) most_bytes[n] = cell.bytes[n];
        without += lacking < nodes;
        if (lacking < nodes && cell.bytes[lacking] > most) {
            most = cell.bytes[lacking];
            on = lacking;
        }
        free_cell(&cell);
    }
    if (without > 0) say_without(run, without, most, room[on], on);
    free(room);
}

static uint64_t memory_planned(const struct run *run) {
    uint64_t bytes = 0;
    for (size_t n = 0; n < run->machine.nodes; n++) bytes += most_bytes[n];
    return bytes;
}

/* ---- plans ---- */

static void want(const char *names) {
    char *list = strdup(names);
    if (list == NULL) fail(EXIT_NOT_AS_ASKED, "out of memory");
    for (char *rest = list, *name; (name = strtok_r(rest, ",", &rest)) != NULL;) {
        size_t s = 0;
        while (s < STREAMS && strcmp(stream_words[s], name) != 0) s++;
        if (s == STREAMS) fail(EXIT_BAD_INPUT, "--streams has no %s; see --help", name);
        wanted[s] = true;
    }
    free(list);
}

static void choose_streams(const char *by_default) {
    const char *names = strcmp(streams_word, "default") == 0 ? by_default : streams_word;
    want(strcmp(names, "all") == 0 ? "load,store_mem,copy,copy_mem,triad,triad_mem" : names);
}

static void choose_pages(struct run *run) {
    bool both = pages_word != NULL && strcmp(pages_word, "both") == 0;
    kinds[HUGE] = both || pages_word == NULL || strcmp(pages_word, "huge") == 0;
    kinds[BASE] = both || (pages_word != NULL && strcmp(pages_word, "base") == 0);
    if (!kinds[HUGE] && !kinds[BASE]) fail(EXIT_BAD_INPUT, "--pages takes huge, base or both, not %s", pages_word);
    if (!kinds[HUGE] || buffer_huge_pages_work()) return;
    kinds[HUGE] = false;
    run_not_measured(run, "huge pages", "the system gives no transparent huge pages of up to 32 MiB");
    if (pages_word == NULL) kinds[BASE] = true;
}

/* A unit for each stream and kind of pages, the keys before those as given. */
static void add_cells(struct run *run, struct unit unit) {
    for (int64_t stream = 0; stream < STREAMS; stream++)
        for (int64_t kind = 0; kind < PAGE_WORDS; kind++) {
            if (!wanted[stream] || !kinds[kind]) continue;
            unit.key[shape->stream_key] = stream;
            unit.key[shape->stream_key + 1] = kind;
            run_add_unit(run, unit);
        }
}

static void refuse_other_streams(const char *operation, const bool streams[STREAMS]) {
    for (size_t s = 0; s < STREAMS; s++)
        if (wanted[s] && !streams[s])
            fail(EXIT_BAD_INPUT, "%s has no stream %s; see --help", operation, stream_words[s]);
}

static void begin_plan(struct run *run, const struct shape *of, const char *by_default) {
    shape = of;
    choose_streams(by_default);
    choose_pages(run);
}

static void end_plan(struct run *run) {
    if (run->unit_count > 0) choose_memory(run);
}

static void plan_nodes(struct run *run) {
    begin_plan(run, &node_shape, memory_nodes(run) <= 2 ? "all" : memory_nodes(run) <= 4 ? "load,store_mem" : "load");
    bool bind = memory_may_bind(&run->machine);
    if (!bind && memory_nodes(run) > 1)
        run_not_measured(run, "memory of other NUMA nodes", "binding memory is not permitted (mbind)");
    size_t nodes = run->machine.nodes, count = 0, *roles = grow(NULL, run->chosen.count, sizeof *roles);
    struct node_pair *pairs = grow(NULL, nodes * nodes, sizeof *pairs);
    for (size_t c = 0; c < nodes; c++)
        for (size_t m = 0; m < nodes; m++)
            if (run->machine.node[m].has_memory && (bind || c == m))
                pairs[count++] = (struct node_pair){run->machine.node[c].number, run->machine.node[m].number};
    count = sample_pairs(run, pairs, count);
    for (size_t i = 0; i < count; i++) {
        struct unit unit = {{pairs[i].a, pairs[i].b}};
        if (members_of_node(run, &unit, roles) > 0) add_cells(run, unit);
    }
    free(pairs);
    free(roles);
    end_plan(run);
}

/* Every number of cores in a CCX of up to 16; else the powers of two and all. A scope that has the CPUs of a smaller one is left out. */
static void plan_scaling(struct run *run) {
    begin_plan(run, &scaling_shape, "load");
    run_begin_quietly(run);
    size_t former = 0, *roles = grow(NULL, run->chosen.count, sizeof *roles);
    for (int64_t scope = 0; scope < SCALING_SCOPES; scope++) {
        size_t all = members_of_scope(run, &(struct unit){{scope}}, roles);
        for (size_t n = 1; n <= all && all > former; n++)
            if ((scope == SCALING_CCX && all <= 16) || n == all || (n & (n - 1)) == 0)
                add_cells(run, (struct unit){{scope, (int64_t)n}});
        former = all;
    }
    free(roles);
    end_plan(run);
}

static void plan_cpus(struct run *run) {
    begin_plan(run, &cpu_shape, "load");
    for (size_t i = 0; i < run->chosen.count; i++) add_cells(run, (struct unit){{run->chosen.cpu[i]}});
    end_plan(run);
}

static bool first_of_group(const struct run *run, size_t i, enum group group) {
    for (size_t j = 0; j < i; j++)
        if (same_group(run, i, j, group)) return false;
    return true;
}

static void add_group(struct run *run, size_t first, int64_t scope) {
    size_t *nodes = grow(NULL, run->machine.nodes, sizeof *nodes);
    for (int64_t target = OWN; target <= ALL; target++) {
        size_t count = target_nodes(run, first, (enum target)target, nodes);
        if (count > 0 && (target != ALL || count > 1))
            add_cells(run, (struct unit){{run->selection.cpus.cpu[first], scope, target}});
    }
    free(nodes);
}

static void plan_groups(struct run *run) {
    begin_plan(run, &group_shape, "load,store_mem");
    die = grow(NULL, run->selection.cpus.count, sizeof *die);
    die_of_cpus(&run->selection, die);
    for (size_t i = 0; i < run->selection.cpus.count; i++) {
        if (first_of_group(run, i, CCX)) add_group(run, i, 0);
        if (die[i] >= 0 && first_of_group(run, i, CCD)) add_group(run, i, 1);
    }
    end_plan(run);
}

/* Where there is one socket it is the machine. */
static void plan_machine(struct run *run) {
    begin_plan(run, &whole_shape, "all");
    size_t sockets = 0;
    for (size_t i = 0; i < run->selection.cpus.count; i++) sockets += first_of_group(run, i, SOCKET);
    for (size_t i = 0; sockets > 1 && i < run->selection.cpus.count; i++)
        if (first_of_group(run, i, SOCKET)) add_cells(run, (struct unit){{run->selection.cpus.cpu[i], 0}});
    add_cells(run, (struct unit){{run->selection.cpus.cpu[0], 1}});
    end_plan(run);
}

static bool first_of_rung(const struct run *run, size_t i, enum rung rung) {
    for (size_t j = 0; j < i; j++)
        if (same_rung(run, j, i, rung)) return false;
    return true;
}

/* Whether the CPUs of two rungs are the same ones. */
static bool rungs_coincide(const struct run *run, size_t i, enum rung one, enum rung other) {
    for (size_t j = 0; j < run->selection.cpus.count; j++)
        if (same_rung(run, i, j, one) != same_rung(run, i, j, other)) return false;
    return true;
}

/* One core of each CCD stands for its others. Rungs with the same CPUs as a wider one are left out. */
static void plan_ladder(struct run *run) {
    static const bool of_ladder[STREAMS] = {
        [LOAD] = true, [READ3_WRITE1] = true, [READ2_WRITE1] = true, [READ1_WRITE1] = true, [STORE_MEM] = true};
    begin_plan(run, &ladder_shape, "load,read3_write1,read2_write1,read1_write1,store_mem");
    refuse_other_streams("ladder", of_ladder);
    die = grow(NULL, run->selection.cpus.count, sizeof *die);
    die_of_cpus(&run->selection, die);
    for (size_t i = 0; i < run->selection.cpus.count; i++)
        for (int rung = ONE_CORE; rung < RUNGS; rung++) {
            bool wider = false;
            for (int other = rung + 1; other < RUNGS; other++)
                wider = wider || rungs_coincide(run, i, (enum rung)rung, (enum rung)other);
            if (!wider && first_of_rung(run, i, rung == ONE_CORE ? ONE_CCD : (enum rung)rung))
                add_cells(run, (struct unit){{run->selection.cpus.cpu[i], rung}});
        }
    end_plan(run);
}

static void plan_caches(struct run *run) {
    static const bool of_caches[STREAMS] = {[LOAD] = true, [STORE] = true, [COPY] = true};
    choose_streams("load,store,copy");
    choose_pages(run);
    refuse_other_streams("caches", of_caches);
    if (kinds[HUGE] && kinds[BASE]) fail(EXIT_BAD_INPUT, "caches takes one kind of pages");
    caches_plan(run, wanted, kinds[HUGE]);
}

/* ---- measuring ---- */

/* Give all buffers pages of a kind; those that are not there yet are made for huge ones if any cell has them. */
static void place(struct run *run, enum page_word kind) {
    enum page_kind pages = kind == HUGE ? PAGES_TRANSPARENT : PAGES_BASE;
    for (size_t n = 0; n < run->machine.nodes; n++) {
        struct buffer *buffer = &buffers[n];
        int number = run->machine.node[n].number;
        if (most_bytes[n] == 0) continue;
        if (buffer->bytes == NULL)
            *buffer = buffer_create(&run->machine, &run->workers, number, most_bytes[n], pages);
        else
            buffer_change_pages(buffer, &run->machine, &run->workers, pages);
        if (kind == HUGE && buffer->huge_bytes < buffer->size) /* figures of mixed pages are neither's */
            fail(EXIT_NOT_AS_ASKED,
                 "only %zu of %zu MiB on NUMA node %d are in huge pages: its memory is fragmented; free it, or use "
                 "--pages base",
                 buffer->huge_bytes >> 20, buffer->size >> 20, number);
    }
    placed = kind;
}

static void prepare(struct run *run) {
    if (memory_planned(run) == 0) fail(EXIT_NOT_AS_ASKED, "%s", too_large.data);
    flow_check_clocks(run);
    buffers = grow(NULL, run->machine.nodes, sizeof *buffers);
    memset(buffers, 0, run->machine.nodes * sizeof *buffers);
    place(run, kinds[HUGE] ? HUGE : BASE); /* a pass begins with these; of the others each cell says its page_bytes */
    for (size_t n = 0; n < run->machine.nodes; n++) {
        char name[32];
        if (most_bytes[n] == 0) continue;
        snprintf(name, sizeof name, "%d", run->machine.node[n].number);
        run_add_placement(run, name, &buffers[n]);
    }
}

static void facts(struct run *run, bool end, struct text *members) {
    (void)run;
    if (!end) text_add(members, ",\"vector_bytes\":%zu", streams_vector_bytes());
}

enum { SLICE_BYTES = FLOW_FIELDS, PAGE_BYTES };

#define FIELDS_OF_FLOW                                                                                                 \
    [RATE_BYTES_PER_S] = {"rate_bytes_per_s", BYTES_PER_S, SIGNIFICANT, 6},                                            \
    [CI_LOW_BYTES_PER_S] = {"ci_low_bytes_per_s", BYTES_PER_S, SIGNIFICANT, 6},                                        \
    [CI_HIGH_BYTES_PER_S] = {"ci_high_bytes_per_s", BYTES_PER_S, SIGNIFICANT, 6},                                      \
    [BEST_BYTES_PER_S] = {"best_bytes_per_s", BYTES_PER_S, SIGNIFICANT, 6},                                            \
    [SWEEPS] = {"sweeps", NUMBER, DECIMALS, 0},                                                                        \
    [MEAN_BYTES_PER_S] = {"mean_bytes_per_s", BYTES_PER_S, SIGNIFICANT, 6},                                            \
    [SLOWEST_THREAD_BYTES_PER_S] = {"slowest_thread_bytes_per_s", BYTES_PER_S, SIGNIFICANT, 6},                        \
    [THREADS] = {"threads", NUMBER, DECIMALS, 0}, [CORE_HZ] = {"core_hz", HERTZ, SIGNIFICANT, 5}

static const struct field fields[] = {
    FIELDS_OF_FLOW,
    [SLICE_BYTES] = {"slice_bytes", BYTES, DECIMALS, 0},
    [PAGE_BYTES] = {"page_bytes", BYTES, DECIMALS, 0},
};

enum { WRONG_BURSTS = PAGE_BYTES + 1 };

static const struct field ladder_fields[] = {
    FIELDS_OF_FLOW,
    [SLICE_BYTES] = {"slice_bytes", BYTES, DECIMALS, 0},
    [PAGE_BYTES] = {"page_bytes", BYTES, DECIMALS, 0},
    [WRONG_BURSTS] = {"wrong_bursts", NUMBER, DECIMALS, 0},
};

static const struct field cache_fields[CACHES_FIELDS] = {
    FIELDS_OF_FLOW,
    [CACHES_BYTES_PER_CYCLE] = {"bytes_per_cycle", NUMBER, SIGNIFICANT, 5},
    [CACHES_SLICE_BYTES] = {"slice_bytes", BYTES, DECIMALS, 0},
    [CACHES_PAGE_BYTES] = {"page_bytes", BYTES, DECIMALS, 0},
    [CACHES_WRONG_BURSTS] = {"wrong_bursts", NUMBER, DECIMALS, 0},
};

static unsigned measure(struct run *run, uint32_t pass, const struct unit *unit, struct result *result) {
    (void)pass;
    enum page_word kind = (enum page_word)unit->key[shape->stream_key + 1];
    if (kind != placed) place(run, kind);
    struct cell cell = cell_of(run, unit);
    unsigned flags = 0;
    if (short_of(run, &cell, most_bytes) == run->machine.nodes) { /* else no figure; the header says why */
        struct sweeps *sweeps = grow(NULL, cell.count, sizeof *sweeps);
        enum stream stream = (enum stream)unit->key[shape->stream_key];
        struct contents contents = {run, stream, cell.roles, cell.count, cell.slice, cell.shares};
        double thread_bytes = (double)(stream_counted(stream, cell.slice) * cell.shares[0].buffer_count);
        if (shape == &ladder_shape) contents_fill(&contents);
        flow_run(run, cell.roles, cell.count, stream, cell.slice, 0, cell.shares, sweeps);
        if (shape == &ladder_shape) result->values[WRONG_BURSTS] = (double)contents_wrong(&contents, sweeps);
        if (!run_stopping()) flags = flow_set_rates(sweeps, cell.count, thread_bytes, result->values);
        result->values[PAGE_BYTES] = (double)cell.shares[0].buffers[0]->page_bytes;
        free(sweeps);
    }
    result->values[SLICE_BYTES] = (double)cell.slice;
    free_cell(&cell);
    return run_stopping() ? UNIT_STOPPED : flags;
}

static double touching_s(const struct run *run, enum page_word kind) {
    double seconds = 0;
    for (size_t n = 0; n < run->machine.nodes; n++)
        seconds += run_pages_seconds(run, run->machine.node[n].number, (double)most_bytes[n], kind == HUGE);
    return seconds;
}

static double prepare_seconds(const struct run *run) {
    return touching_s(run, kinds[HUGE] ? HUGE : BASE);
}

static double plan_seconds(const struct run *run, const struct unit *unit, double hop_ns) {
    static const double clock_probe_s = 1e-3;
    (void)hop_ns;
    double touch_s = 0;
    if (kinds[HUGE] && kinds[BASE]) /* a pass changes from one kind to the other, the next one back */
        touch_s = run_once_a_pass(run, unit, (touching_s(run, HUGE) + touching_s(run, BASE)) / 2);
    struct cell cell = cell_of(run, unit);
    size_t bytes = cell.slice * cell.shares[0].buffer_count;
    double seconds = flow_seconds(run, cell.roles, cell.count, (enum stream)unit->key[shape->stream_key], bytes);
    if (shape == &ladder_shape) seconds += contents_seconds(run, cell.roles, cell.count, bytes);
    free_cell(&cell);
    return touch_s + seconds + clock_probe_s;
}

#define BANDWIDTH_OPERATION(op, what, planner, of)                                                                     \
    .name = (op), .summary = (what), .quantity = "rate", .unit = "B/s", .record = "cell", FIELDS(of),                  \
    .block = "pages", .plan = (planner), .memory = memory_planned, .prepare = prepare, .facts = facts,                 \
    .measure = measure, .probes = PROBE_STREAMS, .seconds = plan_seconds, .prepare_seconds = prepare_seconds

static const struct operation operations[] = {
    {BANDWIDTH_OPERATION("nodes", "the CPUs of each NUMA node together, in the memory of each", plan_nodes, fields),
     .keys = {"cpu_node", "memory_node", "stream", "pages"}, .words = {NULL, NULL, stream_words, page_words}},
    {BANDWIDTH_OPERATION("scaling", "by the number of cores of the first CPU's CCX, NUMA node and socket", plan_scaling,
                         fields),
     .keys = {"scope", "cores", "stream", "pages"}, .words = {scaling_words, NULL, stream_words, page_words}},
    {BANDWIDTH_OPERATION("cpus", "each CPU alone in its own memory", plan_cpus, fields),
     .keys = {"cpu", "stream", "pages"}, .words = {NULL, stream_words, page_words}},
    {BANDWIDTH_OPERATION("groups", "the cores of each CCX and CCD together, by where the memory is", plan_groups,
                         fields),
     .keys = {"cpu", "scope", "memory", "stream", "pages"},
     .words = {NULL, group_words, target_words, stream_words, page_words}},
    {BANDWIDTH_OPERATION("machine", "the cores of each socket and of the whole machine, each in its own memory",
                         plan_machine, fields),
     .keys = {"cpu", "scope", "stream", "pages"}, .words = {NULL, whole_words, stream_words, page_words}},
    {BANDWIDTH_OPERATION("ladder", "by the ratio of reads to writes: a core and all of each CCD, each NUMA node, all",
                         plan_ladder, ladder_fields),
     .keys = {"cpu", "scope", "stream", "pages"}, .words = {NULL, rung_words, stream_words, page_words}},
    {.name = "caches",
     .summary = "by cache level and the number of cores of each CCX and CCD",
     .quantity = "rate",
     .unit = "B/s",
     .record = "cell",
     FIELDS(cache_fields),
     .plan = plan_caches,
     .memory = caches_memory,
     .prepare = caches_prepare,
     .facts = facts,
     .measure = caches_measure,
     .probes = PROBE_CACHES,
     .seconds = caches_seconds,
     .keys = {"cpu", "scope", "cores", "level", "stream"},
     .words = {NULL, caches_scopes, NULL, caches_levels, stream_words}},
};

KERNEL_MAIN("bandwidth", settings)
