/* Barriers: by a counter that all add to, and by a tree of flags, each written by one core and read by a few. */
#ifndef NODEPRINT_MEETING_H
#define NODEPRINT_MEETING_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>

enum { FAN = 4 }; /* whom a core of the tree waits for, and whom it releases (Mellor-Crummey and Scott 1991) */

enum meeting_kind { KIND_COUNTER, KIND_TREE, KINDS };

/* A core's place in the tree. Each flag is alone on its pair of lines: no store takes away what somebody else reads. */
struct seat {
    alignas(256) atomic_uint arrived; /* the last barrier that all of its part have reached */
    alignas(256) atomic_uint released;
    alignas(256) size_t parent;
    size_t child[FAN], children;
};

struct meeting {
    alignas(256) atomic_uint count;
    alignas(256) atomic_uint opened; /* the last barrier that all have reached */
    alignas(256) enum meeting_kind kind;
    struct seat *seats; /* of each member */
    size_t members;
};

/* Arrange the seats as a tree, member 0 at its root; whoever sits side by side is in one part of it as far as can be. */
void meeting_set(struct meeting *meeting, enum meeting_kind kind, struct seat *seats, size_t members);

/* Return when all members have called this with `number`, which counts from 1 on. What a member did before, all see. */
void meeting_pass(struct meeting *meeting, size_t member, unsigned number);

#endif
