/* Lines in a known coherence state: who prepares them how, and what chasing them costs. */
#ifndef NODEPRINT_SCENE_H
#define NODEPRINT_SCENE_H

#include "coherence/operations.h"

enum { PAGE_LINES = 64 }; /* of 4 KiB */

/* Of a line at its owner.
 *   M  the owner stored                          a load is a transfer of the modified line, which is shared or written back
 *   E  the owner flushed and loaded              a clean line: from the owner's cache or from memory
 *   S  then a sharer loaded                      (with MESIF the sharer, as the last reader, has it in F)
 *   F  the sharer loaded before the owner        the owner answers as forwarder
 *   O  the owner stored, the sharer loaded       the owner keeps the modified line and answers (MOESI)
 *   memory  flushed                              from memory of the home node, whose directory knows no holder */
enum state { STATE_M, STATE_E, STATE_S, STATE_F, STATE_O, STATE_MEMORY, STATE_COUNT };
extern const char *const state_words[];

bool state_is_shared(enum state state);

/* Why this processor has no such state; NULL where it may have. */
const char *no_such_state(enum state state);

/* Where a CPU is, seen from the owner; NO_SHARER: on its core. */
enum sharer { NO_SHARER, IN_L3, ON_DIE, IN_SOCKET, IN_OTHER_SOCKET, SHARER_COUNT };

/* Read the processor's vendor and the dies. Before what is below, and no_such_state. */
void scene_begin(const struct run *run);

enum sharer sharer_at(const struct run *run, size_t i, size_t owner);

/* A CPU at that place, off the requester's core, and but for the owner's L3 off the requester's; the count of CPUs when
 * there is none. */
size_t sharer_of(const struct run *run, size_t requester, size_t owner, enum sharer where);

/* The nearest place that has such a CPU; SHARER_COUNT when there is none. */
enum sharer nearest_sharer(const struct run *run, size_t requester, size_t owner);

/* Say in the header which states this processor does not have, and that nobody can share the lines of the owners in
 * `alone`, which is sorted for that. */
void scene_not_measured(struct run *run, struct cpulist *alone);

struct scene {
    unsigned char *pool;
    uint32_t *line;     /* the lines' places in the pool, in the order of the preparation */
    size_t lines, step; /* each links to the one so many further: 1, or odd where `lines` is a power of two */
    enum state state;
};

typedef _Atomic uintptr_t link_t;

static inline link_t *link_at(const struct scene *scene, size_t i) {
    return (link_t *)(void *)(scene->pool + (size_t)scene->line[i] * LINE_BYTES);
}

/* The parts of the preparation, tasks of the CPU of their name with a scene, in this order; the sharer's where the state is
 * shared. */
void scene_owner_begins(size_t role, void *argument);
void scene_sharer_loads(size_t role, void *argument);
void scene_owner_ends(size_t role, void *argument);

/* A load in each page, far from the line: what is timed is the line and not the translation of its address. */
void scene_translate(const struct scene *scene);

/* Ticks of a load, or of an addition of nothing, of the first `lines` lines, of a link after the other. Ends the process
 * with 3 where all were chased and the last one does not lead to the first. */
double scene_chase(const struct scene *scene, size_t lines, bool store);

/* Ticks that two reads of the clock with nothing between cost: a mean, as the figures of single lines are, because the
 * counter may advance by more at once than a load takes. */
double clock_cost(void);

#endif
