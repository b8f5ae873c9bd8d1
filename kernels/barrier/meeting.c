#include "barrier/meeting.h"

#include <sched.h>
#include <string.h>

enum { PATIENCE = 1 << 16 }; /* looks at a flag before the CPU is offered to whoever else needs it */

static void await(const atomic_uint *flag, unsigned number) {
    for (size_t looks = 0; atomic_load_explicit(flag, memory_order_acquire) != number; looks++)
        if (looks % PATIENCE == PATIENCE - 1) sched_yield();
}

static void pass_counter(struct meeting *meeting, unsigned number) {
    if (atomic_fetch_add_explicit(&meeting->count, 1, memory_order_acq_rel) + 1 < meeting->members) {
        await(&meeting->opened, number);
        return;
    }
    atomic_store_explicit(&meeting->count, 0, memory_order_relaxed); /* whoever sees that it opened sees this */
    atomic_store_explicit(&meeting->opened, number, memory_order_release);
}

static void pass_tree(struct meeting *meeting, size_t member, unsigned number) {
    struct seat *seat = &meeting->seats[member];
    for (size_t i = 0; i < seat->children; i++) await(&meeting->seats[seat->child[i]].arrived, number);
    if (member != 0) {
        atomic_store_explicit(&seat->arrived, number, memory_order_release);
        await(&meeting->seats[seat->parent].released, number);
    }
    atomic_store_explicit(&seat->released, number, memory_order_release);
}

void meeting_pass(struct meeting *meeting, size_t member, unsigned number) {
    if (meeting->kind == KIND_COUNTER)
        pass_counter(meeting, number);
    else
        pass_tree(meeting, member, number);
}

/* Who follows a seat in its range is cut into up to FAN ranges, whose first seats are its children. */
static size_t parent_of(size_t member, size_t members) {
    size_t from = 0, to = members, parent = 0;
    while (from != member) {
        size_t rest = to - from - 1;
        parent = from++;
        for (size_t parts = FAN; parts > 0; parts--) {
            size_t length = (rest + parts - 1) / parts;
            to = from + length;
            if (member < to) break;
            from = to;
            rest -= length;
        }
    }
    return parent;
}

void meeting_set(struct meeting *meeting, enum meeting_kind kind, struct seat *seats, size_t members) {
    atomic_store_explicit(&meeting->count, 0, memory_order_relaxed);
    atomic_store_explicit(&meeting->opened, 0, memory_order_relaxed);
    meeting->kind = kind;
    meeting->seats = seats;
    meeting->members = members;
    memset(seats, 0, members * sizeof *seats);
    for (size_t i = 1; i < members; i++) {
        seats[i].parent = parent_of(i, members);
        struct seat *parent = &seats[seats[i].parent];
        parent->child[parent->children++] = i;
    }
}
