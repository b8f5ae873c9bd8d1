#include "sample.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "die.h"
#include "fail.h"

enum { ALL_UP_TO_NODES = 8, PAIRS_A_DISTANCE = 8, ALL_UP_TO_CPUS = 64 };

const char *sample_word; /* NULL: not given, until it is used */
/* The largest distance that firmware can give (ACPI's SLIT). */
static const long FARTHEST = 255;

static size_t different_nodes(const struct node_pair *pairs, size_t count) {
    struct cpulist nodes = {0};
    for (size_t i = 0; i < count; i++)
        if (!cpulist_has(&nodes, pairs[i].b)) cpulist_add(&nodes, pairs[i].b);
    size_t number = nodes.count;
    cpulist_free(&nodes);
    return number;
}

/* A low-discrepancy order (multiples of the golden ratio): the first few of any row are spread over it. */
static double golden(size_t index) {
    double whole;
    return modf((double)index * 0.6180339887498949, &whole);
}

static double spread(const struct machine *machine, int node) {
    size_t index = 0;
    while (index + 1 < machine->nodes && machine->node[index].number != node) index++;
    return golden(index);
}

/* Mark eight pairs of a distance, each time the one whose nodes were used least. */
static void mark_some(const struct machine *machine, const struct node_pair *pairs, const long *distance, size_t count,
                      long which, bool *kept) {
    for (size_t turn = 0; turn < PAIRS_A_DISTANCE; turn++) {
        size_t best = count;
        double least = HUGE_VAL;
        for (size_t i = 0; i < count; i++) {
            if (kept[i] || distance[i] != which) continue;
            double used = spread(machine, pairs[i].a) + spread(machine, pairs[i].b) / 16;
            for (size_t j = 0; j < count; j++)
                if (kept[j] && distance[j] == which && pairs[j].a != pairs[j].b)
                    used += 4.0 * ((pairs[j].a == pairs[i].a) + (pairs[j].b == pairs[i].b) +
                                   (pairs[j].a == pairs[i].b) + (pairs[j].b == pairs[i].a));
            if (used >= least) continue;
            least = used;
            best = i;
        }
        if (best == count) return;
        kept[best] = true;
    }
}

enum choice { ALL, SAMPLE, ONE_DISTANCE };

static enum choice chosen(size_t count, size_t all_up_to) {
    if (sample_word == NULL) sample_word = "sample";
    if (strcmp(sample_word, "all") == 0) return ALL;
    if (strcmp(sample_word, "sample") != 0) return ONE_DISTANCE;
    return count <= all_up_to ? ALL : SAMPLE;
}

static long asked_distance(void) {
    char *end;
    long distance = strtol(sample_word, &end, 10);
    if (end == sample_word || *end != '\0' || distance < 0 || distance > FARTHEST)
        fail(EXIT_BAD_INPUT, "--cells takes sample, all or a distance between NUMA nodes, not %s", sample_word);
    return distance;
}

void sample_check(size_t measured) {
    if (measured == 0 && chosen(0, 0) == ONE_DISTANCE)
        fail(EXIT_BAD_INPUT, "--cells %s: no two NUMA nodes are so far apart; see `numactl --hardware`", sample_word);
}

size_t sample_pairs(struct run *run, struct node_pair *pairs, size_t count) {
    enum choice choice = chosen(different_nodes(pairs, count), ALL_UP_TO_NODES);
    long asked = choice == ONE_DISTANCE ? asked_distance() : -1;
    if (choice == ALL) return count;
    long *distance = grow(NULL, count + 1, sizeof *distance);
    bool *kept = grow(NULL, count + 1, sizeof *kept);
    struct text left = {0};
    for (size_t i = 0; i < count; i++) {
        distance[i] = machine_distance(&run->machine, pairs[i].a, pairs[i].b);
        kept[i] = asked >= 0 ? distance[i] == asked : pairs[i].a == pairs[i].b;
    }
    for (size_t i = 0; asked < 0 && i < count; i++) {
        size_t of_it = 0, marked = 0, j = 0;
        while (distance[j] != distance[i]) j++;
        if (j < i || pairs[i].a == pairs[i].b) continue; /* seen before */
        mark_some(&run->machine, pairs, distance, count, distance[i], kept);
        for (size_t k = 0; k < count; k++) {
            of_it += distance[k] == distance[i];
            marked += distance[k] == distance[i] && kept[k];
        }
        if (marked < of_it)
            text_add(&left, "%s%zu of %zu at distance %ld", left.length > 0 ? ", " : "", marked, of_it, distance[i]);
    }
    if (left.length > 0) {
        text_add(&left, " are measured; --cells all measures all of them, --cells DISTANCE those of one distance");
        run_not_measured(run, "pairs of NUMA nodes", left.data);
    }
    size_t number = 0;
    for (size_t i = 0; i < count; i++)
        if (kept[i]) pairs[number++] = pairs[i];
    sample_check(number);
    text_free(&left);
    free(distance);
    free(kept);
    return number;
}

size_t sample_memory(struct run *run, int from, size_t turn, int *nodes, size_t count) {
    enum choice choice = chosen(count, ALL_UP_TO_NODES);
    long asked = choice == ONE_DISTANCE ? asked_distance() : -1;
    if (choice == ALL) return count;
    enum { OWN = -1 };
    long *distance = grow(NULL, count + 1, sizeof *distance);
    size_t number = 0;
    for (size_t i = 0; i < count; i++) {
        distance[i] = machine_distance(&run->machine, from, nodes[i]);
        if (choice == SAMPLE && nodes[i] == from) distance[i] = OWN;
    }
    for (size_t i = 0; i < count; i++) {
        size_t before = 0, of_it = 0;
        for (size_t j = 0; j < count; j++) {
            of_it += distance[j] == distance[i];
            before += distance[j] == distance[i] && j < i;
        }
        bool kept = choice == ONE_DISTANCE ? distance[i] == asked : before == turn % of_it;
        if (kept) nodes[number++] = nodes[i];
    }
    free(distance);
    return number;
}

/* ---- pairs of CPUs ---- */

enum { MOST_CLASSES = 256 };

/* What the two CPUs of a pair share, and how far apart their nodes are. */
struct pair_class {
    enum closeness closeness;
    bool same_die;
    long distance;
    size_t pairs, kept;
};

struct classes {
    struct pair_class class[MOST_CLASSES];
    size_t count;
    unsigned char *of; /* of each pair */
};

static size_t class_of(struct classes *classes, struct pair_class like) {
    size_t i = 0;
    for (; i < classes->count; i++) {
        const struct pair_class *known = &classes->class[i];
        if (known->closeness == like.closeness && known->same_die == like.same_die && known->distance == like.distance)
            return i;
    }
    if (i == MOST_CLASSES) return MOST_CLASSES - 1; /* more than any machine has: the last one stands for the rest */
    classes->class[classes->count++] = like;
    return i;
}

static void classify(const struct run *run, const struct pair *pairs, size_t count, struct classes *classes) {
    const struct selection *selection = &run->selection;
    const struct machine *machine = &run->machine;
    size_t nodes = machine->nodes;
    int *die = grow(NULL, selection->cpus.count, sizeof *die);
    long *distance = grow(NULL, nodes * nodes, sizeof *distance);
    size_t *node = grow(NULL, selection->cpus.count, sizeof *node);
    die_of_cpus(selection, die);
    for (size_t i = 0; i < nodes * nodes; i++)
        distance[i] = machine_distance(machine, machine->node[i / nodes].number, machine->node[i % nodes].number);
    for (size_t i = 0; i < selection->cpus.count; i++) {
        node[i] = 0;
        while (node[i] + 1 < nodes && machine->node[node[i]].number != selection->place[i].node) node[i]++;
    }
    for (size_t i = 0; i < count; i++) {
        size_t a = (size_t)pairs[i].a, b = (size_t)pairs[i].b;
        struct pair_class like = {select_closeness(selection, a, b), die[a] >= 0 && die[a] == die[b],
                                  distance[node[a] * nodes + node[b]], 0, 0};
        classes->of[i] = (unsigned char)class_of(classes, like);
        classes->class[classes->of[i]].pairs++;
    }
    free(die);
    free(distance);
    free(node);
}

/* The pairs of a CPU, as indices into `pairs`. */
static size_t pairs_of(const struct pair *pairs, size_t count, size_t cpu, size_t *own) {
    size_t number = 0;
    for (size_t i = 0; i < count; i++)
        if ((size_t)pairs[i].a == cpu || (size_t)pairs[i].b == cpu) own[number++] = i;
    return number;
}

/* Keep one pair of this CPU in each class that it has pairs of; other CPUs take others in their row of partners. */
static void keep_one_a_class(const struct classes *classes, const size_t *own, size_t number, size_t cpu, bool *kept) {
    size_t of_it[MOST_CLASSES] = {0}, seen[MOST_CLASSES] = {0};
    for (size_t i = 0; i < number; i++) of_it[classes->of[own[i]]]++;
    for (size_t i = 0; i < number; i++) {
        unsigned char class = classes->of[own[i]];
        if (seen[class]++ == (size_t)(golden(cpu + 1) * (double)of_it[class])) kept[own[i]] = true;
    }
}

static void say_what_is_left_out(struct run *run, const struct classes *classes) {
    struct text left = {0};
    for (size_t i = 0; i < classes->count; i++) {
        const struct pair_class *class = &classes->class[i];
        if (class->kept < class->pairs)
            text_add(&left, "%s%zu of %zu (%s%s, distance %ld)", left.length > 0 ? ", " : "", class->kept, class->pairs,
                     closeness_names[class->closeness], class->same_die ? ", same die" : "", class->distance);
    }
    if (left.length > 0) {
        text_add(&left, " are measured; --cells all measures all of them, --cells DISTANCE those of one distance");
        run_not_measured(run, "pairs of CPUs", left.data);
    }
    text_free(&left);
}

size_t sample_cpu_pairs(struct run *run, struct pair *pairs, size_t count) {
    size_t cpus = run->selection.cpus.count, number = 0;
    enum choice choice = chosen(run->chosen.count, ALL_UP_TO_CPUS);
    if (choice == ALL) return count;
    long asked = choice == ONE_DISTANCE ? asked_distance() : -1;
    static struct classes classes;
    bool *kept = grow(NULL, count + 1, sizeof *kept);
    size_t *own = grow(NULL, count + 1, sizeof *own);
    memset(kept, 0, count);
    classes = (struct classes){.of = grow(NULL, count + 1, 1)};
    classify(run, pairs, count, &classes);
    for (size_t cpu = 0; choice == SAMPLE && cpu < cpus; cpu++)
        keep_one_a_class(&classes, own, pairs_of(pairs, count, cpu, own), cpu, kept);
    for (size_t i = 0; i < count; i++) {
        struct pair_class *class = &classes.class[classes.of[i]];
        if (choice == ONE_DISTANCE) kept[i] = class->distance == asked;
        if (!kept[i]) continue;
        class->kept++;
        pairs[number++] = pairs[i];
    }
    say_what_is_left_out(run, &classes);
    sample_check(number);
    free(classes.of);
    free(own);
    free(kept);
    return number;
}
