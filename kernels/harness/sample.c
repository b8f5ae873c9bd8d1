#include "sample.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fail.h"

enum { ALL_UP_TO_NODES = 8, PAIRS_A_DISTANCE = 8 };

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

/* A low-discrepancy order (multiples of the golden ratio): the first few of any row of nodes are spread over it. */
static double spread(const struct machine *machine, int node) {
    size_t index = 0;
    while (index + 1 < machine->nodes && machine->node[index].number != node) index++;
    double whole;
    return modf((double)index * 0.6180339887498949, &whole);
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

static enum choice chosen(size_t nodes) {
    if (sample_word == NULL) sample_word = "sample";
    if (strcmp(sample_word, "all") == 0) return ALL;
    if (strcmp(sample_word, "sample") != 0) return ONE_DISTANCE;
    return nodes <= ALL_UP_TO_NODES ? ALL : SAMPLE;
}

static long asked_distance(void) {
    char *end;
    long distance = strtol(sample_word, &end, 10);
    if (end == sample_word || *end != '\0' || distance < 0 || distance > FARTHEST)
        fail(EXIT_BAD_INPUT, "--cells takes sample, all or a distance between NUMA nodes, not %s", sample_word);
    return distance;
}

void sample_check(size_t measured) {
    if (measured == 0 && chosen(0) == ONE_DISTANCE)
        fail(EXIT_BAD_INPUT, "--cells %s: no two NUMA nodes are so far apart; see `numactl --hardware`", sample_word);
}

size_t sample_pairs(struct run *run, struct node_pair *pairs, size_t count) {
    enum choice choice = chosen(different_nodes(pairs, count));
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
    enum choice choice = chosen(count);
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
