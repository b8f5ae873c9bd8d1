/* wake: how long a thread that sleeps needs until it runs again when another wakes it by a futex, out of an idle state that
 * it has just entered and out of the one that a CPU reaches when it sleeps for long. */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "harness/clock.h"
#include "harness/fail.h"
#include "harness/frequency.h"
#include "harness/offset.h"
#include "harness/run.h"

enum { FUTEX_WAIT, FUTEX_WAKE, FUTEX_PRIVATE = 128 }; /* linux/futex.h is not everywhere (musl) */

static const char help[] =
    "USAGE\n"
    "  wake --op futex --cpus cores --out FILE [options]\n"
    "  example: kernels/build/wake --op futex --cpus 0-3 --out here.jsonl\n"
    "\n"
    "REQUIREMENTS\n"
    "  Linux on x86-64 or aarch64, two CPUs. No root. Idle states are recorded where sysfs has them (cpuidle).\n"
    "\n"
    "OVERHEAD\n"
    "  One CPU is busy at a time and another sleeps, 0.2 s each.\n"
    "\n"
    "WARNING\n"
    "  Whatever else runs on the sleeping CPU keeps it from its idle state. Governors of idle states learn from what "
    "a\n"
    "  CPU did before: each series begins with some that are not counted.\n";

enum {
    FIRST = 8, /* wake-ups that are not counted: the governor `menu` looks at the last eight (Linux, menu.c) */
    COUNTED = 36,
    OF_EACH = 3, /* of so many the lowest counts: what another program delays is left out */
    ROUNDS = FIRST + COUNTED,
    MOST_STATES = 16,
};

enum depth { SHALLOW, DEEP, DEPTHS };
static const char *const depth_words[] = {"shallow", "deep", NULL};
/* How long it sleeps: less than any deep state is worth, and several times the residency that the deepest asks for (0.4 to
 * 0.8 ms in the tables of intel_idle and of EPYC's firmware). */
static const double SLEEP_S[DEPTHS] = {50e-6, 5e-3};

static const char *per_word = "cpu";

static const struct setting settings[] = {
    {.name = "per",
     .value = "WHAT",
     .word = &per_word,
     .shapes = true,
     .help = "wake each cpu (default) or one of each ccx"},
    {0},
};

/* What both sides share is on lines of its own; each writes its times to an array of its own. */
struct nap {
    alignas(256) atomic_uint number; /* of the last wake-up: what the futex sleeps on */
    alignas(256) atomic_uint asleep; /* the wake-up that the sleeper waits for next */
    alignas(256) atomic_bool over;
    alignas(256) uint64_t sent_ns[ROUNDS + 1];
    uint64_t seen_ns[ROUNDS + 1]; /* by the waker's clock: the sleeper was awake */
    alignas(256) uint64_t woken_ns[ROUNDS + 1];
    bool slept[ROUNDS + 1];
    double sleep_s;
};

/* EAGAIN: the wake-up came before the sleep. */
static bool sleep_until_not(const atomic_uint *word, unsigned value) {
    long result = syscall(SYS_futex, word, FUTEX_WAIT | FUTEX_PRIVATE, value, NULL, NULL, 0);
    if (result != 0 && errno != EAGAIN && errno != EINTR)
        fail(EXIT_NOT_AS_ASKED, "a thread cannot sleep on a futex: %s", strerror(errno));
    return result == 0;
}

static void sleep_again_and_again(struct nap *nap) {
    for (unsigned number = 1; number <= ROUNDS; number++) {
        atomic_store_explicit(&nap->asleep, number, memory_order_release);
        bool slept = false;
        while (atomic_load_explicit(&nap->number, memory_order_acquire) != number)
            slept = sleep_until_not(&nap->number, number - 1);
        nap->woken_ns[number] = clock_raw_ns();
        nap->slept[number] = slept;
        if (atomic_load_explicit(&nap->over, memory_order_relaxed)) return;
    }
}

static void wake_again_and_again(struct nap *nap) {
    for (unsigned number = 1; number <= ROUNDS; number++) {
        while (atomic_load_explicit(&nap->asleep, memory_order_acquire) != number) continue;
        nap->seen_ns[number - 1] = clock_raw_ns();
        work_for(nap->sleep_s * 1e9);
        bool over = run_stopping();
        atomic_store_explicit(&nap->over, over, memory_order_relaxed); /* seen with the number */
        nap->sent_ns[number] = clock_raw_ns();
        atomic_store_explicit(&nap->number, number, memory_order_release);
        if (syscall(SYS_futex, &nap->number, FUTEX_WAKE | FUTEX_PRIVATE, 1, NULL, NULL, 0) < 0)
            fail(EXIT_NOT_AS_ASKED, "a thread cannot be woken by a futex: %s", strerror(errno));
        if (over) return;
    }
}

static void take_part(size_t role, void *argument) {
    if (role == 0)
        sleep_again_and_again(argument);
    else
        wake_again_and_again(argument);
}

/* ---- who wakes whom ---- */

static size_t chosen_at(const struct run *run, int64_t cpu) {
    size_t i = 0;
    while (run->chosen.cpu[i] != cpu) i++;
    return i;
}

/* The next core of the same L3, else of the same NUMA node, else any: so the cores of equal places have equal ways. */
static size_t waker_of(const struct run *run, size_t sleeper) {
    const struct cpu_place *place = run->selection.place;
    size_t count = run->chosen.count, best = sleeper;
    int most_shared = -1;
    for (size_t step = 1; step < count; step++) {
        size_t i = (sleeper + step) % count;
        int shared = place[i].l3 == place[sleeper].l3 ? 2 : place[i].node == place[sleeper].node ? 1 : 0;
        if (shared <= most_shared) continue;
        most_shared = shared;
        best = i;
    }
    return best;
}

static void plan(struct run *run) {
    const struct cpu_place *place = run->selection.place;
    if (strcmp(per_word, "cpu") != 0 && strcmp(per_word, "ccx") != 0)
        fail(EXIT_BAD_INPUT, "--per takes cpu or ccx, not %s", per_word);
    if (run->chosen.count < 2) {
        run->not_applicable = "only one core takes part: there is no other to wake it";
        return;
    }
    for (size_t i = 0; i < run->chosen.count; i++) {
        bool first = true;
        for (size_t j = 0; j < i; j++) first = first && place[j].l3 != place[i].l3;
        for (int64_t depth = 0; (first || per_word[1] == 'p') && depth < DEPTHS; depth++)
            run_add_unit(run, (struct unit){{run->chosen.cpu[i], depth}});
    }
}

/* ---- idle states ---- */

/* How often `cpu` has entered each; returns how many there are. */
static size_t entries(int cpu, unsigned long long *counts) {
    char content[64];
    size_t states = 0;
    while (states < MOST_STATES &&
           read_sysfs(content, sizeof content, "devices/system/cpu/cpu%d/cpuidle/state%zu/usage", cpu, states))
        counts[states++] = strtoull(content, NULL, 10);
    return states;
}

static void facts(struct run *run, bool end, struct text *members) {
    char name[64], latency[64];
    if (end) return;
    text_add(members, ",\"idle_states\":[");
    for (size_t i = 0; i < MOST_STATES; i++) {
        int cpu = run->chosen.cpu[0];
        if (!read_sysfs(name, sizeof name, "devices/system/cpu/cpu%d/cpuidle/state%zu/name", cpu, i) ||
            !read_sysfs(latency, sizeof latency, "devices/system/cpu/cpu%d/cpuidle/state%zu/latency", cpu, i))
            break;
        text_add(members, "%s{\"name\":", i == 0 ? "" : ",");
        text_add_json(members, name);
        text_add(members, ",\"exit_latency_ns\":%llu}", strtoull(latency, NULL, 10) * 1000);
    }
    text_add(members, "]");
}

static void prepare(struct run *run) {
    static const double most_ns = 500; /* a shallow sleep is left in a microsecond and more */
    offset_check(run, clock_raw_ns, 1, most_ns);
    unsigned long long counts[MOST_STATES];
    if (entries(run->chosen.cpu[0], counts) == 0)
        run_not_measured(run, "idle states", "the system reports none (cpuidle): a hypervisor's, or switched off");
}

/* ---- */

enum { WAKER = LATENCY_FIELDS, SLEPT, IDLE_STATE };

static const struct field fields[] = {
    FIELDS_OF_LATENCY, [WAKER] = {"waker", CPU_NUMBER, DECIMALS, 0}, [SLEPT] = {"slept", NUMBER, DECIMALS, 0},
    [IDLE_STATE] = {"idle_state", NUMBER, DECIMALS, 0}};

static unsigned measure(struct run *run, uint32_t pass, const struct unit *unit, struct result *result) {
    (void)pass;
    static struct nap nap;
    unsigned long long before[MOST_STATES], after[MOST_STATES];
    double values[COUNTED];
    size_t sleeper = chosen_at(run, unit->key[0]), both[2] = {sleeper, waker_of(run, sleeper)}, counted = 0;
    atomic_store_explicit(&nap.number, 0, memory_order_relaxed);
    atomic_store_explicit(&nap.asleep, 0, memory_order_relaxed);
    atomic_store_explicit(&nap.over, false, memory_order_relaxed);
    nap.sleep_s = SLEEP_S[unit->key[1]];
    size_t states = entries((int)unit->key[0], before);
    run->workers.worker[both[0]].sleeps = true;
    run->workers.worker[both[1]].sleeps = false;
    workers_run(&run->workers, both, 2, take_part, &nap);
    if (run_stopping()) return UNIT_STOPPED;
    size_t states_after = entries((int)unit->key[0], after), state = 0, apart = 0;
    for (unsigned number = FIRST + 1; number <= ROUNDS; number++) { /* woken from a sleep, not on the way to it */
        if (!nap.slept[number]) continue;
        int64_t took_ns = (int64_t)(nap.woken_ns[number] - nap.sent_ns[number]);
        /* it woke before it was woken, or after it was seen awake: the clocks of both have come apart */
        if (took_ns <= 0 || (number < ROUNDS && (int64_t)(nap.seen_ns[number] - nap.woken_ns[number]) < 0))
            apart++;
        else
            values[counted++] = (double)took_ns;
    }
    result->values[WAKER] = run->chosen.cpu[both[1]];
    result->values[SLEPT] = (double)counted;
    for (size_t i = 1; i < states && states == states_after; i++)
        if (after[i] - before[i] > after[state] - before[state]) state = i;
    if (states > 0 && states == states_after) result->values[IDLE_STATE] = (double)state;
    unsigned flags = apart > 0 ? FLAG_DISTURBED : 0;
    return counted >= OF_EACH ? flags | run_set_latency(result, values, counted / OF_EACH, OF_EACH) : FLAG_DISTURBED;
}

static double plan_seconds(const struct run *run, const struct unit *unit, double hop_ns) {
    (void)run;
    (void)hop_ns;
    return ROUNDS * (SLEEP_S[unit->key[1]] + 50e-6) + 1e-3;
}

static const struct operation operations[] = {
    {.name = "futex",
     .summary = "each CPU woken by its neighbor after 50 us and after 5 ms of sleep",
     .quantity = "wake-up",
     .unit = "ns",
     .record = "cell",
     FIELDS(fields),
     .keys = {"cpu", "depth"},
     .words = {NULL, depth_words},
     .plan = plan,
     .prepare = prepare,
     .facts = facts,
     .measure = measure,
     .seconds = plan_seconds},
};

KERNEL_MAIN("wake", settings)
