#include "output.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "fail.h"
#include "options.h"
#include "proc.h"
#include "sample.h"
#include "stats.h"

enum { SCHEMA = 1 };

#if defined(__x86_64__)
#define ATOMICS "lock"
#elif defined(__ARM_FEATURE_ATOMICS)
#define ATOMICS "lse"
#elif defined(__aarch64__)
#define ATOMICS "ll-sc"
#else
#define ATOMICS "unknown"
#endif

unsigned run_set_latency(struct result *result, const double *samples, size_t line_count, size_t batches) {
    struct summary summary = summarize(samples, line_count, batches, NULL);
    summary_set_values(&summary, result->values);
    return summary.slow_share > 0.25 ? FLAG_DISTURBED : 0;
}

void run_add_placement(struct run *run, const char *name, const struct buffer *buffer) {
    text_add(&run->placement, "%s\"%s\":", run->placement.length > 0 ? "," : "", name);
    buffer_describe(buffer, &run->placement);
    run->watched = grow(run->watched, run->watched_count + 1, sizeof *run->watched);
    run->watched[run->watched_count++] = *buffer;
}

static void add_flags(struct text *out, unsigned flags) {
    static const char *const names[] = {"mixed_lines", "disturbed", "moved"};
    const char *separator = "";
    text_add(out, ",\"flags\":[");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if ((flags & 1u << i) == 0) continue;
        text_add(out, "%s\"%s\"", separator, names[i]);
        separator = ",";
    }
    text_add(out, "]");
}

static void host_name(char name[256]) {
    if (gethostname(name, 256) != 0) fail(EXIT_NOT_AS_ASKED, "the host has no name: %s", strerror(errno));
    name[255] = '\0';
    name[strcspn(name, ".")] = '\0';
}

static void boot_id(char id[64]) {
    FILE *file = proc_open("sys/kernel/random/boot_id");
    if (file == NULL || fgets(id, 64, file) == NULL) strcpy(id, "unknown");
    if (file != NULL) fclose(file);
    id[strcspn(id, "\n")] = '\0';
}

/* FNV-1a over the keys of the units, 16 hexadecimal digits. */
static void hash_units(const struct run *run, char hash[17]) {
    uint64_t sum = 0xcbf29ce484222325u;
    for (size_t i = 0; i < run->unit_count; i++)
        for (size_t k = 0; k < MAX_KEYS; k++)
            for (unsigned bits = 0; bits < 64; bits += 8)
                sum = (sum ^ ((uint64_t)run->units[i].key[k] >> bits & 255)) * 0x100000001b3u;
    snprintf(hash, 17, "%016" PRIx64, sum);
}

struct identity output_identity(const struct run *run) {
    struct identity identity = {.job = options.job, .run = options.run};
    const struct setting *const tables[] = {select_settings, common_settings, pair_settings, run->kernel->settings};
    char host[256];
    host_name(host);
    text_add_json(&identity.host, host);
    text_add(&identity.arguments, "[");
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        struct text own = {0};
        settings_json(&own, tables[i]);
        if (own.length > 0) text_add(&identity.arguments, "%s%s", identity.arguments.length > 1 ? "," : "", own.data);
        text_free(&own);
    }
    text_add(&identity.arguments, "]");
    text_add(&identity.cpus, "[");
    cpulist_write(&identity.cpus, &run->cpus, false);
    text_add(&identity.cpus, "]");
    if (select_pairs_named()) hash_units(run, identity.pairs);
    return identity;
}

void output_header(struct run *run, const struct identity *identity, struct text *out) {
    char boot[64], now[32];
    time_t seconds = time(NULL);
    struct tm utc;
    boot_id(boot);
    if (gmtime_r(&seconds, &utc) == NULL || strftime(now, sizeof now, "%Y-%m-%dT%H:%M:%SZ", &utc) == 0)
        strcpy(now, "unknown");
    text_add(out, "{\"record\":\"header\",\"schema\":%d,\"segment\":%u,\"kernel\":\"%s\",\"operation\":\"%s\"", SCHEMA,
             run->segment, run->kernel->name, run->operation->name);
    text_add(out, ",\"quantity\":\"%s\",\"unit\":\"%s\",\"host\":%s,\"boot_id\":", run->operation->quantity,
             run->operation->unit, identity->host.data);
    text_add_json(out, boot);
    text_add(out, ",\"job\":%" PRIu64 ",\"run\":%" PRIu64 ",\"seed\":%" PRIu64 ",\"start_time\":\"%s\"", options.job,
             options.run, run->seed, now);
    text_add(out, ",\"arguments\":%s,\"kernel_hash\":\"%s\",\"compiler\":", identity->arguments.data,
             run->kernel->hash);
    text_add_json(out, COMPILER);
    if (*identity->pairs != '\0') text_add(out, ",\"pairs_hash\":\"%s\"", identity->pairs);
    text_add(out,
             ",\"atomics\":\"" ATOMICS
             "\",\"clock\":{\"source\":\"%s\",\"hz\":%.1f,\"step_ns\":%.3f,\"calibrated_on\":%d}",
             clock_facts.source, clock_facts.hz, clock_facts.step_ticks * clock_facts.ns_per_tick, clock_facts.cpu);
    text_add(out, ",\"cpus\":%s", identity->cpus.data);
    if (strcmp(run->operation->record, "cell") == 0) {
        text_add(out, ",\"cells\":{\"dims\":[");
        for (size_t k = 0; run->operation->keys[k] != NULL; k++)
            text_add(out, "%s\"%s\"", k == 0 ? "" : ",", run->operation->keys[k]);
        text_add(out, "],\"values\":{");
        fields_describe(run->operation->fields, run->operation->field_count, out);
        text_add(out, "}}");
    } else {
        text_add(out, ",\"home\":");
        text_add_json(out, select_home_policy());
    }
    if (run->not_applicable != NULL) {
        text_add(out, ",\"applicable\":false,\"reason\":");
        text_add_json(out, run->not_applicable);
    }
    text_add(out, ",\"passes\":%" PRIu64, run->passes);
    if (run->lines > 0)
        text_add(out, ",\"lines\":%zu,\"batches\":%zu,\"round_trips\":%zu", run->lines, run->batches, run->round_trips);
    if (run->operation->measure_pairs != NULL) text_add(out, ",\"parallel\":%zu", options_slots());
    text_add(out, ",\"pinned_by\":\"%s\",\"not_measured\":{%s},\"placement\":{", run->workers.pinned_by,
             run->not_measured.length > 0 ? run->not_measured.data : "");
    for (size_t i = 0; i < run->home_count; i++) {
        const struct pool *pool = &run->homes[i].pool;
        text_add(out, "%s\"%d\":{\"bytes\":%zu,\"bound\":%s,\"verified_by\":\"%s\",\"pages\":\"%s\"}",
                 i == 0 ? "" : ",", pool->home, pool->size, pool->bound ? "true" : "false", pool->verified_by,
                 pool->pages);
    }
    if (run->placement.length > 0) text_add(out, "%s%s", run->home_count > 0 ? "," : "", run->placement.data);
    text_add(out, "}");
    if (run->ramp.settled_hz > 0)
        text_add(out, ",\"ramp_up\":{\"first_hz\":%.4g,\"settled_hz\":%.4g,\"after_us\":%.1f,\"waited_us\":%.1f}",
                 run->ramp.first_hz, run->ramp.settled_hz, run->ramp.after_ns / 1e3, run->ramp_ns / 1e3);
    if (run->idle_states.length > 0) text_add(out, ",\"cpu_dma_latency\":%s", run->idle_states.data);
    if (run->begins.length > 0) text_add(out, "%s", run->begins.data);
    if (run->operation->facts != NULL && run->not_applicable == NULL) run->operation->facts(run, false, out);
    text_add(out, "}\n");
}

void output_unit(const struct run *run, const char *record, uint32_t pass, const struct unit *unit,
                 const struct result *result, struct text *out) {
    text_add(out, "{\"record\":\"%s\"", record);
    for (size_t k = 0; run->operation->keys[k] != NULL; k++) {
        const char *const *words = run->operation->words[k];
        if (words != NULL)
            text_add(out, ",\"%s\":\"%s\"", run->operation->keys[k], words[unit->key[k]]);
        else
            text_add(out, ",\"%s\":%" PRId64, run->operation->keys[k], unit->key[k]);
    }
    text_add(out, ",\"pass\":%" PRIu32, pass);
    fields_write(run->operation->fields, run->operation->field_count, result->values, out);
    if (result->more.length > 0) text_add_bytes(out, result->more.data, result->more.length);
    add_flags(out, result->flags);
    text_add(out, "}\n");
}

static void add_share(struct text *out, const char *name, double share) {
    if (isfinite(share)) text_add(out, ",\"%s\":%.5f", name, share);
}

void output_trailer(const struct sweep *sweep) {
    struct run *run = sweep->run;
    struct text *out = &run->records.pending;
    struct machine_counts counts = machine_counts(&run->cpus);
    long voluntary = 0, involuntary = 0;
    double task_s = 0, lost_s = 0;
    for (size_t i = 0; i < run->workers.count; i++) {
        voluntary += run->workers.worker[i].voluntary;
        involuntary += run->workers.worker[i].involuntary;
        task_s += run->workers.worker[i].task_s;
        lost_s += run->workers.worker[i].lost_s;
    }
    if (run->operation->finish != NULL && run->not_applicable == NULL) run->operation->finish(run, out);
    text_add(out,
             "{\"record\":\"trailer\",\"elapsed_s\":%.6f,\"busy_s\":%.6f,\"prepare_busy_s\":%.6f,\"%ss\":%zu,"
             "\"voluntary_switches\":%ld,"
             "\"involuntary_switches\":%ld,\"steal_s\":%.2f,\"moved_pages\":%zu",
             sweep->elapsed_s, sweep->busy_s, sweep->prepare_busy_s, run->operation->record, sweep->former->count,
             voluntary, involuntary,
             (double)(counts.steal_ticks - sweep->first_counts.steal_ticks) / (double)sysconf(_SC_CLK_TCK),
             sweep->moved_pages);
    add_share(out, "lost_share", lost_s / task_s);
    if (run->operation->measure_pairs != NULL) {
        struct spread spread = spread_of(&run->spread, run->batches);
        text_add(out, ",\"again\":%zu", sweep->looked_again);
        add_share(out, "line_sd_share", spread.line);
        add_share(out, "line_pair_sd_share", spread.line_pair);
        add_share(out, "revisit_sd_share", spread.revisit);
        if (options.parallel > 1 && sweep->parallel_calls > 0)
            text_add(out, ",\"mean_parallel\":%.2f", (double)sweep->parallel_units / (double)sweep->parallel_calls);
    }
    if (run->operation->facts != NULL && run->not_applicable == NULL) run->operation->facts(run, true, out);
    text_add(out, ",\"complete\":true");
    records_seal(&run->records);
}
