/* fence: what a full memory fence costs on each CPU. The example of
 * docs/how-to/add-a-kernel.md. */
#include <stdatomic.h>

#include "harness/clock.h"
#include "harness/run.h"
#include "harness/stats.h"

static const char help[] =
    "USAGE\n"
    "  fence --op cost --cpus cores --out FILE [options]\n"
    "  example: kernels/build/fence --op cost --cpus 0-3 --out here.jsonl\n"
    "\n"
    "REQUIREMENTS\n"
    "  Linux on x86-64 or aarch64. No root.\n"
    "\n"
    "OVERHEAD\n"
    "  One CPU is busy at a time, 1 ms each.\n"
    "\n"
    "WARNING\n"
    "  Nothing is in the store buffer: a fence after stores costs more.\n";

enum { BATCHES = 33, FENCES = 1000 };

/* On the CPU itself: how long a fence takes, a value a batch. */
static void fences(size_t role, void *argument) {
  (void)role;
  double *batch_ns = argument;
  for (size_t i = 0; i < BATCHES; i++) {
    uint64_t begin = clock_ticks();
    for (size_t n = 0; n < FENCES; n++)
      atomic_thread_fence(memory_order_seq_cst);
    batch_ns[i] =
        (double)(clock_ticks() - begin) * clock_facts.ns_per_tick / FENCES;
  }
}

static void plan(struct run *run) {
  for (size_t i = 0; i < run->chosen.count; i++)
    run_add_unit(run, (struct unit){{run->chosen.cpu[i]}});
}

enum { FENCE_NS, FENCE_CI_LOW_NS, FENCE_CI_HIGH_NS };

static const struct field fields[] = {
    [FENCE_NS] = {"fence_ns", NANOSECONDS, DECIMALS, 3},
    [FENCE_CI_LOW_NS] = {"ci_low_ns", NANOSECONDS, DECIMALS, 3},
    [FENCE_CI_HIGH_NS] = {"ci_high_ns", NANOSECONDS, DECIMALS, 3},
};

static unsigned measure(struct run *run, uint32_t pass, const struct unit *unit,
                        struct result *result) {
  (void)pass;
  double batch_ns[BATCHES];
  size_t worker = run_worker(run, unit->key[0]), low, high;
  workers_run(&run->workers, &worker, 1, fences, batch_ns);
  sort_ascending(batch_ns, BATCHES);
  median_interval(BATCHES, 0.95, &low, &high);
  result->values[FENCE_NS] = median_sorted(batch_ns, BATCHES);
  result->values[FENCE_CI_LOW_NS] = batch_ns[low];
  result->values[FENCE_CI_HIGH_NS] = batch_ns[high];
  return 0;
}

static double seconds(const struct run *run, const struct unit *unit,
                      double hop_ns) {
  (void)run;
  (void)unit;
  (void)hop_ns;
  return BATCHES * FENCES * 20e-9;
}

static const struct operation operations[] = {
    {.name = "cost",
     .summary = "fences one after another on each CPU",
     .quantity = "load",
     .unit = "ns",
     .record = "cell",
     FIELDS(fields),
     .keys = {"cpu"},
     .plan = plan,
     .measure = measure,
     .seconds = seconds},
};

KERNEL_MAIN("fence", NULL)
