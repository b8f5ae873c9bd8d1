/* A gate that opens when all have arrived: workers begin a timed section together. */
#ifndef NODEPRINT_GATE_H
#define NODEPRINT_GATE_H

#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>

struct gate {
    alignas(256) atomic_size_t arrived;
    size_t expected;
};

static inline void gate_set(struct gate *gate, size_t expected) {
    atomic_store_explicit(&gate->arrived, 0, memory_order_relaxed);
    gate->expected = expected;
}

/* The gate opens again and again: `turn`, from 1, is how often each has come. */
static inline void gate_pass_again(struct gate *gate, size_t turn) {
    enum { PATIENCE = 1 << 16 };
    size_t all = turn * gate->expected;
    atomic_fetch_add_explicit(&gate->arrived, 1, memory_order_acq_rel);
    for (size_t spins = 0; atomic_load_explicit(&gate->arrived, memory_order_acquire) < all; spins++)
        if (spins % PATIENCE == PATIENCE - 1) sched_yield(); /* something else has a CPU that is waited for */
}

static inline void gate_pass(struct gate *gate) {
    gate_pass_again(gate, 1);
}

#endif
