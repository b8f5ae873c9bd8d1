/* Temperatures, memory errors and throttling as sysfs reports them, where it does. */
#ifndef NODEPRINT_SENSORS_H
#define NODEPRINT_SENSORS_H

#include "machine.h"
#include "text.h"

/* {"temperatures_c":{"k10temp/Tctl":45.2},"edac":{"mc0":{"ce":0,"ue":0}},"throttle_core":{"3":5},
 * "throttle_package":{}}. A part that the system does not report is null; of the throttle counters, those above 0. */
void sensors_read(const struct machine *machine, struct text *out);

#endif
