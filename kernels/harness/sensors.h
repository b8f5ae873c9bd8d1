/* Temperatures, memory errors, throttling and energy as sysfs reports them, where it does. */
#ifndef NODEPRINT_SENSORS_H
#define NODEPRINT_SENSORS_H

#include "machine.h"
#include "text.h"

enum { MOST_ENERGY_COUNTERS = 64 };

/* Energy that a part of the machine has used since its counter was last 0. */
struct energy {
    char name[96];           /* "intel-rapl:0/package-0", "amd_energy1/Esocket0" */
    double joules, wraps_at; /* it begins again at 0 from there on; 0: not known to */
};

/* Counters of packages and memory in powercap, and of sockets in hwmon. `refused` gets whether some are there that this
 * user may not read (most systems keep them to root since 2020). */
size_t sensors_energy(struct energy counters[MOST_ENERGY_COUNTERS], bool *refused);

/* {"temperatures_c":{"k10temp/Tctl":45.2},"edac":{"mc0":{"ce":0,"ue":0}},"throttle_core":{"3":5},
 * "throttle_package":{},"energy_j":{"intel-rapl:0/package-0":1234.5}}. A part that the system does not report, or not to
 * this user, is null; of the throttle counters, those above 0. */
void sensors_read(const struct machine *machine, struct text *out);

#endif
