/* Unit tests of kernels/barrier/: the tree, and that nobody leaves a barrier before all have come. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "barrier/meeting.h"
#include "check.h"

enum { MOST_MEMBERS = 200, THREADS = 6, BARRIERS = 50 };

static void test_trees_hold_everybody(void) {
    static struct seat seats[MOST_MEMBERS];
    static struct meeting meeting;
    for (size_t members = 1; members <= MOST_MEMBERS; members++) {
        size_t children = 0, deepest = 0;
        meeting_set(&meeting, KIND_TREE, seats, members);
        for (size_t i = 0; i < members; i++) {
            size_t depth = 0;
            CHECK(seats[i].children <= FAN);
            children += seats[i].children;
            for (size_t at = i; at != 0; at = seats[at].parent) {
                CHECK(seats[at].parent < at);
                depth++;
            }
            if (depth > deepest) deepest = depth;
            for (size_t c = 0; c < seats[i].children; c++) CHECK(seats[seats[i].child[c]].parent == i);
        }
        CHECK(children == members - 1);
        CHECK(deepest <= 5); /* 1 + 4 + 16 + 64 + 256 seats */
    }
}

/* What each member has done; plain, so that the sanitizer of threads sees a barrier that does not order. */
struct member {
    struct meeting *meeting;
    unsigned *done; /* of all members */
    size_t number;
    bool early; /* somebody left a barrier that another had not reached */
};

static void *meet(void *argument) {
    struct member *self = argument;
    for (unsigned barrier = 1; barrier <= BARRIERS; barrier++) {
        self->done[self->number] = barrier;
        meeting_pass(self->meeting, self->number, 2 * barrier - 1);
        for (size_t i = 0; i < THREADS; i++) self->early = self->early || self->done[i] != barrier;
        meeting_pass(self->meeting, self->number, 2 * barrier);
    }
    return NULL;
}

static void test_nobody_leaves_early(enum meeting_kind kind) {
    static struct seat seats[THREADS];
    static struct meeting meeting;
    static unsigned done[THREADS];
    struct member members[THREADS];
    pthread_t threads[THREADS];
    memset(done, 0, sizeof done);
    meeting_set(&meeting, kind, seats, THREADS);
    for (size_t i = 0; i < THREADS; i++) {
        members[i] = (struct member){&meeting, done, i, false};
        CHECK(pthread_create(&threads[i], NULL, meet, &members[i]) == 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
        CHECK(!members[i].early);
    }
}

int main(void) {
    test_trees_hold_everybody();
    test_nobody_leaves_early(KIND_COUNTER);
    test_nobody_leaves_early(KIND_TREE);
    return failures == 0 ? 0 : 1;
}
