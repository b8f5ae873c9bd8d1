/* coherence: what it costs to move cache lines between CPUs. The operations are in coherence/. */
#include "coherence/operations.h"

static const char help[] =
    "USAGE\n"
    "  coherence --op NAME --cpus cores --out FILE [options]\n"
    "  example: kernels/build/coherence --op cas --cpus 0-3 --passes 3 --out here.jsonl\n"
    "\n"
    "REQUIREMENTS\n"
    "  Linux on x86-64 or aarch64, two CPUs, 32 MiB of free memory on each home node. No root.\n"
    "\n"
    "OVERHEAD\n"
    "  Two CPUs are busy at a time; about 0.6 ms a pair and pass where a hop takes 150 ns (--plan).\n"
    "\n"
    "WARNING\n"
    "  Measure on an otherwise idle node: other programs change clocks and share links.\n";

int main(int argc, char **argv) {
    const struct operation operations[] = {
        operation_cas,    operation_faa,     operation_flag1,   operation_flag2,
        operation_oneway, operation_payload, operation_contend, operation_contend_pairs,
        operation_state,  operation_place,   operation_stream,  operation_loaded,
    };
    const struct kernel coherence = {
        .name = "coherence",
        .hash = KERNEL_HASH,
        .help = help,
        .settings = coherence_settings,
        .operations = operations,
        .operation_count = sizeof operations / sizeof *operations,
        .workers_wait = true,
    };
    return kernel_main(&coherence, argc, argv);
}
