#include "coherence/scene.h"

#include <string.h>

#include "harness/cache.h"
#include "harness/clock.h"
#include "harness/die.h"
#include "harness/fail.h"
#include "harness/proc.h"

const char *const state_words[] = {"M", "E", "S", "F", "O", "memory", NULL};

enum { CLOCK_READS = 100 };

static char vendor[64]; /* empty where the system does not report it */
static int *die;        /* of each CPU of the selection */

bool state_is_shared(enum state state) {
    return state == STATE_S || state == STATE_F || state == STATE_O;
}

const char *no_such_state(enum state state) {
    if (state == STATE_O && strcmp(vendor, "GenuineIntel") == 0) return "not on this CPU: Intel has MESIF";
    if (state == STATE_F && strcmp(vendor, "AuthenticAMD") == 0) return "not on this CPU: AMD has MOESI";
    if ((state == STATE_O || state == STATE_F) && vendor[0] == '\0') return "not known on this CPU";
    return NULL;
}

/* ---- who shares ---- */

void scene_begin(const struct run *run) {
    cpuinfo_first("vendor_id", vendor, sizeof vendor);
    die = grow(NULL, run->cpus.count, sizeof *die);
    die_of_cpus(&run->selection, die);
}

enum sharer sharer_at(const struct run *run, size_t i, size_t owner) {
    enum closeness closeness = select_closeness(&run->selection, i, owner);
    if (closeness == SAME_CORE) return NO_SHARER;
    if (closeness == SAME_L3) return IN_L3;
    if (die[i] >= 0 && die[i] == die[owner]) return ON_DIE;
    return closeness == OTHER_SOCKET ? IN_OTHER_SOCKET : IN_SOCKET;
}

size_t sharer_of(const struct run *run, size_t requester, size_t owner, enum sharer where) {
    for (size_t i = 0; i < run->cpus.count; i++) {
        enum closeness near = select_closeness(&run->selection, i, requester);
        if (sharer_at(run, i, owner) == where && near != SAME_CORE && (where == IN_L3 || near != SAME_L3)) return i;
    }
    return run->cpus.count;
}

enum sharer nearest_sharer(const struct run *run, size_t requester, size_t owner) {
    int where = IN_L3;
    while (where < SHARER_COUNT && sharer_of(run, requester, owner, (enum sharer)where) == run->cpus.count) where++;
    return (enum sharer)where;
}

void scene_not_measured(struct run *run, struct cpulist *alone) {
    struct text lacking = {0};
    cpulist_sort(alone);
    text_add(&lacking, "not measurable here: needs a third core among --cpus, in the owner's L3 or off the other "
                       "CPU's; without one: ");
    cpulist_write(&lacking, alone, true);
    for (int state = 0; state < STATE_COUNT; state++) {
        if (no_such_state((enum state)state) != NULL)
            run_not_measured(run, state_words[state], no_such_state((enum state)state));
        else if (state_is_shared((enum state)state) && alone->count > 0)
            run_not_measured(run, state_words[state], lacking.data);
    }
    text_free(&lacking);
}

/* ---- preparing ---- */

static void store_all(const struct scene *scene) {
    size_t next = scene->step % scene->lines;
    for (size_t i = 0; i < scene->lines; i++, next = next + 1 < scene->lines ? next + 1 : 0)
        atomic_store_explicit(link_at(scene, i), (uintptr_t)link_at(scene, next), memory_order_release);
}

static void flush_lines(const struct scene *scene) {
    for (size_t i = 0; i < scene->lines; i++) cache_flush((const void *)link_at(scene, i));
    cache_fence();
}

static void load_all(const struct scene *scene) {
    for (size_t i = 0; i < scene->lines; i++) (void)atomic_load_explicit(link_at(scene, i), memory_order_acquire);
    cache_fence();
}

void scene_owner_begins(size_t role, void *argument) {
    const struct scene *scene = argument;
    (void)role;
    store_all(scene);
    if (scene->state == STATE_M || scene->state == STATE_O) return;
    flush_lines(scene);
    if (scene->state == STATE_E || scene->state == STATE_S) load_all(scene);
}

void scene_sharer_loads(size_t role, void *argument) {
    const struct scene *scene = argument;
    (void)role;
    load_all(scene);
}

void scene_owner_ends(size_t role, void *argument) {
    const struct scene *scene = argument;
    (void)role;
    if (scene->state == STATE_F) load_all(scene);
}

/* ---- timing ---- */

void scene_translate(const struct scene *scene) {
    for (size_t i = 0; i < scene->lines; i++)
        (void)*(volatile unsigned char *)(scene->pool + (size_t)(scene->line[i] ^ (PAGE_LINES / 2)) * LINE_BYTES);
}

double scene_chase(const struct scene *scene, size_t lines, bool store) {
    link_t *at = link_at(scene, 0);
    uint64_t start = clock_ticks();
    for (size_t i = 0; i < lines; i++) {
        uintptr_t next = store ? atomic_fetch_add_explicit(at, unknown_zero(), memory_order_acq_rel)
                               : atomic_load_explicit(at, memory_order_relaxed);
        at = (link_t *)next; /* NOLINT(performance-no-int-to-ptr): a link is an address */
    }
    uint64_t end = clock_ticks();
    if (at != link_at(scene, lines * scene->step % scene->lines))
        fail(EXIT_NOT_AS_ASKED, "the chase did not come back to its start: the lines were changed");
    return (double)(end - start) / (double)lines;
}

double clock_cost(void) {
    uint64_t sum = 0;
    for (int i = 0; i < CLOCK_READS; i++) {
        uint64_t start = clock_ticks();
        sum += clock_ticks() - start;
    }
    return (double)sum / CLOCK_READS;
}
