/* Idle states of the CPUs, held off while workers wait for one another: one that sleeps deeply answers later. */
#ifndef NODEPRINT_IDLE_H
#define NODEPRINT_IDLE_H

#include "text.h"

/* Ask the system for no idle state that takes longer than 0 us to leave (PM QoS, /dev/cpu_dma_latency), until this process
 * ends. Adds {"held_off":true}, or where that is not allowed {"held_off":false,"reason":".."}. */
void idle_hold_off(struct text *out);

#endif
