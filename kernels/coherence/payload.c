/* payload: the sender writes n lines, then a flag; the receiver sees the flag, reads each line once and answers in kind.
 * Half the round trip of this symmetric exchange. A line costs the writer an upgrade or a read for ownership, as the
 * other side holds a copy of the last message, and the reader a transfer of the modified line; neighboring lines may
 * overlap and be prefetched, which is what a message wants. */
#include <stdalign.h>
#include <stdlib.h>

#include "coherence/operations.h"
#include "harness/clock.h"
#include "harness/frequency.h"

enum {
    PLACES = 8, /* in the pool */
    BATCHES = 2,
    ROUND_TRIPS = 25,
    LEAD_IN = 1,
    SMALLEST = 64,
    LARGEST = 1 << 20,
    STEP = 4, /* sizes grow fourfold, and the last is 1 MiB */
    FLAG_LINES = 1024,
};

typedef _Atomic uint64_t word_t;

struct parcel {
    unsigned char *pool;
    const uint32_t *line_set;
    size_t lines;
    uint32_t first_round_trips;
    double *values; /* ns a message, BATCHES a place */
    alignas(256) atomic_uint turn;
    size_t place, exchanges; /* 0 exchanges: it is over */
    alignas(256) bool garbled[2][256];
};

/* A half of the pool for each direction: flags in its first lines, messages behind. */
static unsigned char *half(const struct parcel *parcel, size_t side) {
    return parcel->pool + side * (POOL_BYTES / 2);
}

static word_t *flag_of(const struct parcel *parcel, size_t place, size_t side) {
    return (word_t *)(void *)(half(parcel, side) + (size_t)(parcel->line_set[place] % FLAG_LINES) * LINE_BYTES);
}

static unsigned char *message_of(const struct parcel *parcel, size_t place, size_t side) {
    size_t room = POOL_LINES / 2 - FLAG_LINES - parcel->lines;
    return half(parcel, side) + (FLAG_LINES + parcel->line_set[place] % room) * LINE_BYTES;
}

static void send(const struct parcel *parcel, size_t place, size_t side, uint64_t number) {
    unsigned char *message = message_of(parcel, place, side);
    for (size_t i = 0; i < parcel->lines; i++)
        atomic_store_explicit((word_t *)(void *)(message + i * LINE_BYTES), number, memory_order_relaxed);
    atomic_store_explicit(flag_of(parcel, place, side), number, memory_order_release);
}

/* True when all lines hold what was sent. */
static bool receive(const struct parcel *parcel, size_t place, size_t side, uint64_t number) {
    const unsigned char *message = message_of(parcel, place, side);
    uint64_t sum = 0;
    while (atomic_load_explicit(flag_of(parcel, place, side), memory_order_acquire) != number) continue;
    for (size_t i = 0; i < parcel->lines; i++)
        sum += atomic_load_explicit((const word_t *)(const void *)(message + i * LINE_BYTES), memory_order_relaxed);
    return sum == number * parcel->lines;
}

/* Side 0 writes its message, side 1 answers with its own. */
static void respond(struct parcel *parcel) {
    for (unsigned turn = 1;; turn++) {
        while (atomic_load_explicit(&parcel->turn, memory_order_acquire) != turn) relax();
        size_t place = parcel->place,
               exchanges = parcel->exchanges; /* once answered, the other side writes them anew */
        if (exchanges == 0) return;
        for (uint64_t i = 1; i <= exchanges; i++) {
            if (!receive(parcel, place, 0, i)) parcel->garbled[1][0] = true;
            send(parcel, place, 1, i);
        }
    }
}

static void hand_over(struct parcel *parcel, size_t place, size_t exchanges) {
    parcel->place = place;
    parcel->exchanges = exchanges;
    atomic_fetch_add_explicit(&parcel->turn, 1, memory_order_release);
}

static void initiate(struct parcel *parcel) {
    uint32_t round_trips = parcel->first_round_trips;
    for (size_t place = 0; place < PLACES;) {
        double ticks[1 + BATCHES]; /* the first warms up */
        uint64_t number = 0;
        for (size_t side = 0; side < 2; side++)
            atomic_store_explicit(flag_of(parcel, place, side), 0, memory_order_relaxed);
        hand_over(parcel, place, LEAD_IN + (1 + BATCHES) * (size_t)round_trips);
        for (size_t batch = 0; batch < 1 + BATCHES; batch++) {
            for (size_t i = 0; batch == 0 && i < LEAD_IN; i++) {
                send(parcel, place, 0, ++number);
                if (!receive(parcel, place, 1, number)) parcel->garbled[0][0] = true;
            }
            uint64_t start = clock_ticks();
            for (size_t i = 0; i < round_trips; i++) {
                send(parcel, place, 0, ++number);
                if (!receive(parcel, place, 1, number)) parcel->garbled[0][0] = true;
            }
            ticks[batch] = (double)(clock_ticks() - start);
        }
        uint32_t needed = round_trips_needed(round_trips, ticks, 1 + BATCHES);
        if (needed > round_trips) {
            round_trips = needed;
            continue;
        }
        for (size_t batch = 0; batch < BATCHES; batch++)
            parcel->values[place * BATCHES + batch] =
                ticks[1 + batch] * clock_facts.ns_per_tick / (2.0 * (double)round_trips);
        place++;
    }
    hand_over(parcel, 0, 0);
}

static void carry(size_t role, void *argument) {
    core_hz(1, 8e3);
    if (role == 0)
        initiate(argument);
    else
        respond(argument);
}

/* Fewer round trips the longer the message, down to one. */
static uint32_t round_trips_of(int64_t size) {
    uint32_t lines = (uint32_t)size / LINE_BYTES;
    return lines >= ROUND_TRIPS ? 1 : ROUND_TRIPS / lines;
}

enum { MESSAGE_BYTES_PER_S = LATENCY_FIELDS };

static const struct field fields[] = {
    FIELDS_OF_LATENCY, [MESSAGE_BYTES_PER_S] = {"bytes_per_s", BYTES_PER_S, DECIMALS, 0}};

static unsigned measure(struct run *run, uint32_t pass, const struct unit *unit, struct result *result) {
    (void)pass;
    static struct parcel parcel;
    double values[PLACES * BATCHES];
    const struct home *home = run_home(run, (int)unit->key[2]);
    const size_t pair[2] = {run_worker(run, unit->key[0]), run_worker(run, unit->key[1])};
    parcel.pool = home->pool.bytes;
    parcel.line_set = home->line_set;
    parcel.lines = (size_t)unit->key[3] / LINE_BYTES;
    parcel.first_round_trips = round_trips_of(unit->key[3]);
    parcel.values = values;
    parcel.garbled[0][0] = parcel.garbled[1][0] = false;
    atomic_store_explicit(&parcel.turn, 0, memory_order_relaxed);
    workers_run(&run->workers, pair, 2, carry, &parcel);
    if (parcel.garbled[0][0] || parcel.garbled[1][0])
        fail(EXIT_NOT_AS_ASKED,
             "a message between CPU %d and CPU %d arrived changed: this machine's memory is not coherent",
             (int)unit->key[0], (int)unit->key[1]);
    struct summary summary = summarize(values, PLACES, BATCHES, NULL);
    summary_set_values(&summary, result->values);
    result->values[MESSAGE_BYTES_PER_S] = (double)unit->key[3] / summary.latency * 1e9;
    return summary.slow_share > 0.25 ? FLAG_DISTURBED : 0;
}

static void plan(struct run *run) {
    int *homes = grow(NULL, run->machine.nodes, sizeof *homes);
    run->lines = PLACES;
    run->batches = BATCHES;
    run->round_trips = 1;
    select_require_pairs(&run->selection);
    for (size_t i = 0; i < run->selection.pair_count; i++) {
        if (!run_pair_stands(run, i)) continue;
        struct pair pair = run->selection.pairs[i];
        size_t count = select_homes(&run->selection, &run->machine, (size_t)pair.a, (size_t)pair.b, homes);
        for (size_t h = 0; h < count; h++)
            for (int64_t size = SMALLEST; size <= LARGEST;
                 size = size * STEP > LARGEST && size < LARGEST ? LARGEST : size * STEP)
                run_add_unit(run, (struct unit){{run->cpus.cpu[pair.a], run->cpus.cpu[pair.b], homes[h], size}});
    }
    free(homes);
}

/* A message costs two hops for the flag. Each of its lines is taken away from the receiver and fetched, two hops again, with
 * 16 lines under way at once: so many misses a core has at a time (10 to 16 on Intel, 22 and 24 on Zen 2 to 4). */
static double seconds(const struct run *run, const struct unit *unit, double hop_ns) {
    (void)run;
    static const double at_once = 16;
    double lines = (double)unit->key[3] / LINE_BYTES, message_ns = 2 * hop_ns * (1 + lines / at_once);
    return PLACES * (LEAD_IN + (1 + BATCHES) * round_trips_of(unit->key[3])) * 2 * message_ns / 1e9 + 40e-6;
}

const struct operation operation_payload = {
    .name = "payload",
    .summary = "messages of 64 B to 1 MiB; one pair for each closeness, or --pairs",
    .quantity = "transfer",
    .unit = "ns",
    .record = "cell",
    FIELDS(fields),
    .keys = {"a", "b", "home", "size_bytes"},
    .plan = plan,
    .measure = measure,
    .seconds = seconds,
};
