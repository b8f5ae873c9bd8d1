/* Unit tests of what is pure in the harness. Each prints nothing when it holds. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/census.h"
#include "harness/checksum.h"
#include "harness/clock.h"
#include "harness/clusters.h"
#include "harness/cpulist.h"
#include "harness/fail.h"
#include "harness/fields.h"
#include "harness/frequency.h"
#include "harness/json.h"
#include "harness/machine.h"
#include "harness/offset.h"
#include "harness/sampling.h"
#include "harness/schedule.h"
#include "harness/select.h"
#include "harness/stats.h"
#include "harness/text.h"
#include "tests/check.h"

static bool parses_to(const char *text, const char *numbers) {
    struct cpulist list;
    struct text written = {0};
    const char *why;
    if (!cpulist_parse(text, &list, &why)) return false;
    cpulist_write(&written, &list, false);
    bool same = strcmp(written.data, numbers) == 0;
    cpulist_free(&list);
    text_free(&written);
    return same;
}

static void test_cpulist(void) {
    CHECK(parses_to("0", "0"));
    CHECK(parses_to("0-3,8,10-14:2", "0,1,2,3,8,10,12,14"));
    CHECK(parses_to("5,1", "5,1")); /* the order is the caller's */
    CHECK(parses_to("0-7:3", "0,3,6"));
    static const char *const bad[] = {"",        ",",     "0,",  "0,,1", "3-1", "a",     "0-",
                                      "0-3:0",   "0-3:",  "0 1", "-1",   "1,1", "0-3,2", "99999999999999999999",
                                      "1048576", "0-3;4", "0:2"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct cpulist list;
        const char *why = NULL;
        CHECK(!cpulist_parse(bad[i], &list, &why));
        CHECK(why != NULL && list.cpu == NULL && list.count == 0);
    }
    struct cpulist list;
    struct text written = {0};
    const char *why;
    CHECK(cpulist_parse("7,0-3,5,6", &list, &why));
    cpulist_write(&written, &list, true);
    CHECK(strcmp(written.data, "7,0-3,5-6") == 0);
    cpulist_sort(&list);
    text_clear(&written);
    cpulist_write(&written, &list, true);
    CHECK(strcmp(written.data, "0-3,5-7") == 0);
    CHECK(cpulist_has(&list, 5) && !cpulist_has(&list, 4));
    cpulist_free(&list);
    text_free(&written);
}

static void test_order_statistics(void) {
    double odd[] = {3, 1, 2}, even[] = {4, 1, 3, 2};
    sort_ascending(odd, 3);
    sort_ascending(even, 4);
    CHECK(median_sorted(odd, 3) == 2);
    CHECK(median_sorted(even, 4) == 2.5);
    CHECK(quantile_sorted(even, 4, 0.25) == 1);
    CHECK(quantile_sorted(even, 4, 0.26) == 2);
    CHECK(quantile_sorted(even, 4, 0) == 1);
    CHECK(quantile_sorted(even, 4, 1) == 4);
    CHECK(standard_deviation(odd, 3) == 1);
    CHECK(standard_deviation(odd, 1) == 0);
}

/* The exact coverage of [x(low+1), x(high+1)] by summing binomial probabilities. */
static double coverage(size_t count, size_t low) {
    double probability = pow(0.5, (double)count), outside = 0;
    for (size_t k = 0; k <= low; k++) {
        outside += probability;
        probability *= (double)(count - k) / (double)(k + 1);
    }
    return 1 - 2 * outside;
}

static void test_interval(void) {
    size_t low, high;
    median_interval(32, 0.95, &low, &high); /* ranks 10 and 23 of 32 in every table of the sign test */
    CHECK(low == 9 && high == 22);
    median_interval(6, 0.95, &low, &high);
    CHECK(low == 0 && high == 5);
    median_interval(1, 0.95, &low, &high);
    CHECK(low == 0 && high == 0);
    for (size_t count = 6; count <= 512; count++) {
        median_interval(count, 0.95, &low, &high);
        CHECK(low + high == count - 1);
        CHECK(coverage(count, low) >= 0.95 - 1e-9);
        CHECK(coverage(count, low + 1) < 0.95 + 1e-9 || low + 1 > high);
    }
}

static void test_summary(void) {
    /* three lines of two batches; the lowest of each are 10, 20, 30; three batches are above twice p25 */
    const double values[] = {10, 11, 90, 20, 30, 30};
    double lowest[3];
    struct summary summary = summarize(values, 3, 2, lowest);
    CHECK(summary.latency == 20 && summary.ci_low == 10 && summary.ci_high == 30);
    CHECK(summary.min == 10 && summary.p25 == 11 && summary.median == 25 && summary.p99 == 90);
    CHECK(summary.line_sd == 10 && lowest[0] == 10 && lowest[1] == 20 && lowest[2] == 30);
    CHECK(fabs(summary.slow_share - 3.0 / 6) < 1e-12);
    CHECK(summary_half_width(&summary) == 0.5);
}

static bool writes(enum notation notation, int digits, double value, const char *expected) {
    struct text out = {0};
    field_write(&(struct field){"x", NUMBER, notation, digits}, value, &out);
    bool same = strcmp(out.data, expected) == 0;
    text_free(&out);
    return same;
}

static void test_fields(void) {
    CHECK(writes(DECIMALS, 0, 9007199254740991.0, "9007199254740991")); /* sizes and counts stay whole */
    CHECK(writes(DECIMALS, 3, -0.12345, "-0.123"));
    CHECK(writes(SIGNIFICANT, 4, 1234567, "1.235e+06") && writes(SIGNIFICANT, 6, 1234567, "1.23457e+06"));
    CHECK(writes(PLAIN, 5, 0.12345, "0.123") && writes(PLAIN, 5, 45.12345, "45.123"));
    CHECK(writes(PLAIN, 5, 145.12345, "145.12") && writes(PLAIN, 4, 1234567, "1234567"));

    static const struct field fields[] = {{"rate_bytes_per_s", BYTES_PER_S, SIGNIFICANT, 6},
                                          {"waker", CPU_NUMBER, DECIMALS, 0},
                                          {"share", NUMBER, DECIMALS, 2}};
    struct text header = {0}, record = {0};
    fields_describe(fields, 3, &header);
    CHECK(strcmp(header.data, "\"rate_bytes_per_s\":\"B/s\",\"share\":\"1\"") == 0);
    fields_write(fields, 3, (const double[]){2.5e9, 7, 0.5}, &record);
    CHECK(strcmp(record.data, ",\"rate_bytes_per_s\":2.5e+09,\"waker\":7,\"share\":0.50") == 0);
    text_clear(&record);
    fields_write(fields, 3, (const double[]){NAN, INFINITY, 0}, &record); /* neither is JSON */
    CHECK(strcmp(record.data, ",\"share\":0.00") == 0);
    CHECK(strcmp(field_readable(&fields[0]).unit, "GB/s") == 0 && field_readable(&fields[0]).scale == 1e-9);
    CHECK(strcmp(field_readable(&fields[2]).unit, "share") == 0 && field_readable(&fields[2]).scale == 1);
    text_free(&header);
    text_free(&record);
}

/* Up to nine passes every pair of passes counts once; beyond, neighbors; either way the SD of what was drawn is found. */
static void test_pass_sd(void) {
    enum { UNITS = 10, FEW = 3 };
    static const size_t many_passes = 10000;
    double few[FEW * UNITS];
    for (size_t unit = 0; unit < UNITS; unit++) { /* differences 1, 2 and 3: the middle one is 2 */
        few[unit] = 100;
        few[UNITS + unit] = 101;
        few[(size_t)2 * UNITS + unit] = 103;
    }
    CHECK(fabs(robust_pass_sd(few, UNITS, FEW) - 1.4826 * 2) < 1e-12);
    CHECK(robust_pass_sd(few, 6, FEW) == 0); /* 18 differences are too few to tell */
    CHECK(robust_pass_sd(few, sizeof few / sizeof *few, 1) == 0);
    /* differences 1, 2, 9, 10, 11 and 12; were those of opposite passes (1 and 2) met twice the middle one would be 9 */
    static const double of_four[] = {0, 10, 1, 12};
    double four[4 * UNITS];
    for (size_t i = 0; i < sizeof four / sizeof *four; i++) four[i] = of_four[i / UNITS];
    CHECK(fabs(robust_pass_sd(four, UNITS, 4) - 1.4826 * 10) < 1e-12);
    struct random random = random_stream(5, 6, 7);
    double *many = grow(NULL, many_passes * 2, sizeof *many);
    for (size_t i = 0; i < many_passes * 2; i++) { /* a sum of twelve has the SD 1 */
        many[i] = -6;
        for (int k = 0; k < 12; k++) many[i] += (double)random_below(&random, 1 << 20) / (1 << 20);
    }
    double sd = robust_pass_sd(many, 2, many_passes); /* a difference's median is 0.6745 x sqrt(2) SD */
    CHECK(sd > 1.36 && sd < 1.47);
    free(many);
}

/* Values made with known effects give these effects back: of lines 3 %, of line x pair 2 %, of the revisit 1 %. */
static void test_spread(void) {
    enum { PAIRS = 400, TEST_LINES = 32, TEST_BATCHES = 2, SETS = 20 };
    struct random random = random_stream(1, 2, 3);
    struct spread_sums sums = {0};
    struct line_sums set = {0};
    double line_effect[TEST_LINES], values[TEST_LINES * TEST_BATCHES], center[TEST_LINES];
    for (int l = 0; l < TEST_LINES; l++) center[l] = 100;
    for (int s = 0; s < SETS; s++) {
        /* +-x with equal probability has the standard deviation x */
        for (int l = 0; l < TEST_LINES; l++) line_effect[l] = (random_next(&random) & 1) != 0 ? 0.03 : -0.03;
        for (int p = 0; p < PAIRS; p++) {
            for (int l = 0; l < TEST_LINES; l++) {
                double own = (random_next(&random) & 1) != 0 ? 0.02 : -0.02;
                for (int b = 0; b < TEST_BATCHES; b++)
                    values[(size_t)(l * TEST_BATCHES + b)] =
                        100 * (1 + line_effect[l] + own + ((random_next(&random) & 1) != 0 ? 0.01 : -0.01));
            }
            spread_add(&sums, &set, values, TEST_LINES, TEST_BATCHES, center);
        }
        spread_close_set(&sums, &set);
    }
    struct spread spread = spread_of(&sums, TEST_BATCHES);
    CHECK(fabs(spread.line - 0.03) < 0.002);
    CHECK(fabs(spread.line_pair - 0.02) < 0.001);
    CHECK(fabs(spread.revisit - 0.01) < 0.001);
    struct spread_sums nothing = {0};
    spread_add(&nothing, &set, values, TEST_LINES, TEST_BATCHES,
               center); /* a pair alone cannot tell lines from pairs */
    spread_close_set(&nothing, &set);
    spread = spread_of(&nothing, TEST_BATCHES);
    CHECK(isnan(spread.line) && isnan(spread.line_pair) && isfinite(spread.revisit));
    free(set.sum);
    free(set.squares);
}

/* ---- clusters of lines ---- */

/* Standard normal from three uniforms' worth of sums: close enough, and the same everywhere. */
static double normal(struct random *random) {
    double sum = -6;
    for (int i = 0; i < 12; i++) sum += (double)(random_next(random) >> 11) * 0x1p-53;
    return sum;
}

/* Lines in `quadrants` of a ring of four, CPUs in all of it: `spacing` ns a step, `noise` of each half, `line` ns that a
 * line is further from all CPUs alike, `own` ns that stay with each CPU and line. */
struct ring {
    size_t cpus, lines, quadrants;
    double spacing, noise, line, own;
};

static void draw_ring(const struct ring *ring, uint64_t seed, double *halves[2], unsigned char *quadrant) {
    struct random random = random_stream(seed, 1, 2);
    double *of_line = grow(NULL, ring->lines, sizeof *of_line);
    for (size_t l = 0; l < ring->lines; l++) {
        /* unequal shares: 1/2, 1/4, 1/8, 1/8 */
        uint64_t draw = random_below(&random, 8);
        quadrant[l] = (unsigned char)((draw < 4 ? 0u : draw < 6 ? 1u : draw < 7 ? 2u : 3u) % ring->quadrants);
        of_line[l] = ring->line * normal(&random);
    }
    for (size_t c = 0; c < ring->cpus; c++)
        for (size_t l = 0; l < ring->lines; l++) {
            int apart = abs((int)(c % 4) - quadrant[l]);
            double truth = 100 + ring->spacing * (apart == 3 ? 1 : apart) + of_line[l] + ring->own * normal(&random);
            for (size_t half = 0; half < 2; half++)
                halves[half][c * ring->lines + l] = truth + ring->noise * normal(&random);
        }
    free(of_line);
}

/* The number of clusters found, 0 where a line in a hundred is not with those of its quadrant. */
static size_t clusters_of(const struct ring *ring, uint64_t seed, struct clustering *found) {
    double *halves[2] = {grow(NULL, ring->cpus * ring->lines, sizeof(double)),
                         grow(NULL, ring->cpus * ring->lines, sizeof(double))};
    unsigned char *quadrant = grow(NULL, ring->lines, 1), *cluster = grow(NULL, ring->lines, 1);
    size_t in[MOST_CLUSTERS][4] = {{0}}, strays = 0;
    draw_ring(ring, seed, halves, quadrant);
    *found = cluster_lines(halves[0], halves[1], ring->cpus, ring->lines, cluster);
    for (size_t l = 0; l < ring->lines; l++) in[cluster[l]][quadrant[l]]++;
    for (size_t c = 0; c < found->count; c++) {
        size_t most = 0, all = 0;
        for (size_t q = 0; q < 4; q++) {
            all += in[c][q];
            if (in[c][q] > most) most = in[c][q];
        }
        strays += all - most;
    }
    for (int half = 0; half < 2; half++) free(halves[half]);
    free(quadrant);
    free(cluster);
    return found->count > 1 && strays * 100 > ring->lines ? 0 : found->count;
}

static void test_clusters(void) {
    static const struct {
        struct ring ring;
        size_t clusters;
    } cases[] = {
        {{32, 512, 4, 5, 2, 2, 1}, 4},  /* Rome by its CCXs */
        {{8, 512, 4, 10, 3, 2, 1}, 4},  /* Milan, one socket */
        {{32, 512, 4, 5, 4, 10, 1}, 4}, /* lines that differ by more than quadrants do, for all CPUs alike */
        {{32, 512, 2, 7, 2, 2, 1}, 2},  /* memory in two quadrants only */
        {{24, 2000, 3, 7, 2, 2, 1}, 3}, /* more lines than are merged */
        {{32, 512, 4, 0, 2, 2, 1}, 1},  /* nothing separates */
        {{2, 512, 4, 0, 0.1, 5, 5}, 1}, /* the same, with next to no noise and two CPUs */
        {{2, 512, 1, 0, 0, 0, 0}, 1},   /* all distances are equal */
        {{1, 512, 4, 10, 1, 1, 1}, 1},  /* one CPU cannot tell near from far */
        {{32, 10, 4, 10, 1, 1, 1}, 1},  /* too few lines */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (uint64_t seed = 1; seed <= 5; seed++) {
            struct clustering found;
            size_t clusters = clusters_of(&cases[i].ring, seed, &found);
            CHECK(clusters == cases[i].clusters);
            if (clusters != cases[i].clusters) fprintf(stderr, "  case %zu, seed %d: %zu\n", i, (int)seed, clusters);
            CHECK(found.agreement > 0.9 && found.agreement <= 1);
            CHECK((found.count == 1) == (found.separation < 3.5));
        }
}

static void test_census_draw(void) {
    enum { LIVE = 100, SMALL = 10, DRAWN = 64 };
    struct home home = {.clusters = 3, .cluster = grow(NULL, POOL_LINES, 1)};
    memset(home.cluster, 255, POOL_LINES);
    for (int l = 0; l < LIVE; l++) home.cluster[(size_t)l * 7] = (unsigned char)(l < SMALL ? 2 : l % 2);
    struct random random = random_stream(4, 5, 6);
    uint32_t drawn[DRAWN];
    size_t in[3] = {0};
    census_draw(&home, &random, drawn, DRAWN);
    for (int i = 0; i < DRAWN; i++) {
        CHECK(drawn[i] % 7 == 0 && drawn[i] / 7 < LIVE);
        in[home.cluster[drawn[i]]]++;
        for (int j = 0; j < i; j++) CHECK(drawn[i] != drawn[j]);
        if (i == 14) CHECK(in[0] == 5 && in[1] == 5 && in[2] == 5); /* by turns */
    }
    CHECK(in[2] == SMALL && in[0] == 27 && in[1] == 27); /* a cluster without lines left is passed over */
    free(home.cluster);
}

static void test_summary_of_clusters(void) {
    /* near lines at 10, far ones at 30: the mean of the clusters' medians, however many lines are where */
    double values[] = {10, 30, 11, 31, 9, 29, 10, 10}, lowest[8], medians[3];
    unsigned char cluster[] = {0, 1, 0, 1, 0, 1, 0, 0};
    struct summary summary = summarize_clusters(values, 8, 1, cluster, 3, lowest, medians);
    CHECK(summary.latency == 20 && medians[0] == 10 && medians[1] == 30 && isnan(medians[2]));
    CHECK(fabs(summary.ci_high - 20 - sqrt(2) / 2) < 1e-12 && fabs(20 - summary.ci_low - sqrt(2) / 2) < 1e-12);
    struct summary one = summarize_clusters(values, 8, 1, (unsigned char[8]){0}, 1, NULL, NULL);
    struct summary plain = summarize(values, 8, 1, NULL);
    CHECK(one.latency == plain.latency && one.ci_low == plain.ci_low && one.ci_high == plain.ci_high);
    CHECK(plain.latency == 10.5 && plain.ci_low == 9 && plain.ci_high == 31);
}

static void test_schedule(void) {
    enum { COUNT = 500, LIMIT = 600 };
    uint32_t order[COUNT], again[COUNT], drawn[COUNT];
    bool seen[LIMIT] = {false};
    struct random random = random_stream(7, 1, 2);
    shuffled(&random, order, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        CHECK(order[i] < COUNT && !seen[order[i]]);
        seen[order[i]] = true;
    }
    random = random_stream(7, 1, 2);
    shuffled(&random, again, COUNT);
    CHECK(memcmp(order, again, sizeof order) == 0);
    random = random_stream(7, 1, 3);
    shuffled(&random, again, COUNT);
    CHECK(memcmp(order, again, sizeof order) != 0);
    memset(seen, 0, sizeof seen);
    draw_without_replacement(&random, drawn, COUNT, LIMIT);
    for (size_t i = 0; i < COUNT; i++) {
        CHECK(drawn[i] < LIMIT && !seen[drawn[i]]);
        seen[drawn[i]] = true;
    }
    draw_without_replacement(&random, drawn, COUNT, COUNT); /* all there are */
    size_t low = 0;
    for (size_t i = 0; i < 30000; i++) low += random_below(&random, 3) == 0;
    CHECK(low > 9500 && low < 10500); /* 6 standard deviations */
}

static bool is_object(const char *text) {
    static struct json_object object;
    return json_parse(text, strlen(text), &object);
}

static void test_json(void) {
    static const char *const good[] = {"{}", "{\"a\":1}",
                                       "{ \"a\" : [1, 2.5e-3, {\"b\":null}], \"c\":\"\\u00e4\\\"\" }"};
    static const char *const bad[] = {"",
                                      "{",
                                      "{\"a\":1",
                                      "[]",
                                      "{\"a\":01}",
                                      "{\"a\":nan}",
                                      "{\"a\":1}x",
                                      "{a:1}",
                                      "{\"a\":1,}",
                                      "{\"a\":\"\t\"}",
                                      "{\"a\":\"\\x\"}",
                                      "{\"a\":-}",
                                      "{\"a\":1.}",
                                      "{\"a\":1e}",
                                      "{\"a\":tru}",
                                      "{\"a\":\"\\u12g4\"}",
                                      "{\"a\"}"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) CHECK(is_object(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) CHECK(!is_object(bad[i]));
    struct text deep = {0};
    text_add(&deep, "{\"a\":");
    for (int i = 0; i < 100000; i++) text_add_bytes(&deep, "[", 1);
    CHECK(!is_object(deep.data)); /* no stack is that deep */
    text_free(&deep);
    CHECK(!json_parse("{\"a\":1\0}", 8, &(struct json_object){.count = 0}));

    static struct json_object object;
    const char *line = "{\"record\":\"pair\",\"a\":12,\"x\":-2.5,\"ab\":[\"a\",7],\"huge\":99999999999999999999}";
    int64_t integer;
    double number;
    CHECK(json_parse(line, strlen(line), &object));
    CHECK(json_integer(&object, "a", &integer) && integer == 12);
    CHECK(!json_integer(&object, "x", &integer) && !json_integer(&object, "record", &integer));
    CHECK(!json_integer(&object, "huge", &integer) && !json_integer(&object, "none", &integer));
    CHECK(json_number(&object, "x", &number) && number == -2.5);
    CHECK(json_is(&object, "record", "pair") && !json_is(&object, "record", "pai") && !json_is(&object, "a", "12"));
}

static void test_text(void) {
    struct text text = {0};
    text_add_json(&text, "a\"b\\c\n\t\x80");
    CHECK(strcmp(text.data, "\"a\\\"b\\\\c\\n ?\"") == 0);
    text_free(&text);
}

/* A machine of 3,000 CPUs of which every third is allowed: its kernel wants masks of 4,096 bits or more. */
static int wide_machine(pid_t pid, size_t bytes, cpu_set_t *mask) {
    (void)pid;
    if (bytes * 8 < 3000) {
        errno = EINVAL;
        return -1;
    }
    for (size_t cpu = 0; cpu < 3000; cpu += 3) CPU_SET_S(cpu, bytes, mask);
    return 0;
}

static int endless_machine(pid_t pid, size_t bytes, cpu_set_t *mask) {
    (void)pid, (void)bytes, (void)mask;
    errno = EINVAL;
    return -1;
}

static void test_wide_affinity(void) {
    struct cpulist allowed;
    CHECK(machine_affinity(wide_machine, &allowed));
    CHECK(allowed.count == 1000 && allowed.cpu[999] == 2997);
    cpulist_free(&allowed);
    CHECK(!machine_affinity(endless_machine, &allowed) && errno == EINVAL);
}

/* ---- homes ---- */

/* Two sockets of two NUMA nodes, a CPU each, beside a node of memory alone: the node at the same place is far. */
static void test_homes_near_and_far(void) {
    enum { NODES = 5, CPUS = 4 };
    static const int sockets[CPUS] = {0, 0, 1, 1}, far[CPUS] = {2, 3, 0, 1};
    char folder[] = "/tmp/nodeprint-unit-XXXXXX", path[128], home[] = "--home", word[] = "sockets";
    char *words[] = {home, home, word};
    /* As in a kernel they live as long as the process. */
    static struct numa_node nodes[NODES];
    static struct machine machine = {.node = nodes, .nodes = NODES, .numa = true};
    static struct selection selection;
    CHECK(mkdtemp(folder) != NULL && setenv("NODEPRINT_SYSFS", folder, 1) == 0);
    for (int n = 0; n < NODES; n++) nodes[n] = (struct numa_node){.number = n, .has_memory = true};
    for (int cpu = 0; cpu < CPUS; cpu++) {
        snprintf(path, sizeof path, "mkdir -p %s/devices/system/cpu/cpu%d/topology", folder, cpu);
        CHECK(system(path) == 0); /* NOLINT(concurrency-mt-unsafe,cert-env33-c): a folder of this test */
        snprintf(path, sizeof path, "%s/devices/system/cpu/cpu%d/topology/physical_package_id", folder, cpu);
        FILE *file = fopen(path, "we");
        CHECK(file != NULL && fprintf(file, "%d\n", sockets[cpu]) > 0 && fclose(file) == 0);
        cpulist_add(&nodes[cpu].cpus, cpu);
        cpulist_add(&machine.online, cpu);
        cpulist_add(&machine.allowed, cpu);
    }
    settings_read((const struct setting *const[]){select_settings}, 1, 3, words);
    select_cpus(&selection, &machine, false);
    CHECK(strcmp(select_home_policy(), "sockets") == 0);
    for (size_t cpu = 0; cpu < CPUS; cpu++) {
        int homes[NODES];
        CHECK(select_homes(&selection, &machine, cpu, 0, homes) == 2 && homes[0] == (int)cpu && homes[1] == far[cpu]);
    }
    CHECK(select_passes(3) == 2 && select_lines(32, 3) == 24 && select_passes(4) == 2 && select_lines(32, 4) == 32);
    snprintf(path, sizeof path, "rm -r %s", folder);
    CHECK(system(path) == 0 && unsetenv("NODEPRINT_SYSFS") == 0); /* NOLINT(concurrency-mt-unsafe,cert-env33-c) */
}

/* The sum of all CPUs comes first in /proc/stat, and early after boot it reads like a CPU's number. */
static void test_counts_of_cpus(void) {
    char folder[] = "/tmp/nodeprint-unit-XXXXXX", path[64];
    struct cpulist cpus = {0};
    CHECK(mkdtemp(folder) != NULL && setenv("NODEPRINT_PROCFS", folder, 1) == 0);
    snprintf(path, sizeof path, "%s/stat", folder);
    FILE *file = fopen(path, "we");
    CHECK(file != NULL);
    fputs("cpu  3 0 0 0 0 0 0 900 0 0\ncpu1 1 0 0 0 0 0 0 400 0 0\ncpu3 2 0 0 0 0 0 0 500 0 0\nintr 77 1 2\n", file);
    CHECK(fclose(file) == 0);
    cpulist_add(&cpus, 3);
    struct machine_counts counts = machine_counts(&cpus);
    CHECK(counts.steal_ticks == 500 && counts.interrupts == 77);
    cpulist_free(&cpus);
    CHECK(unlink(path) == 0 && rmdir(folder) == 0 && unsetenv("NODEPRINT_PROCFS") == 0);
}

static void test_lower_mean(void) {
    double stepped[] = {20, 30, 30, 20, 30, 1e6, 20, 30}; /* 26 in steps of 10, and an interrupt */
    CHECK(fabs(lower_mean(stepped, 8) - 25) < 1e-9);
    CHECK(lower_mean((double[]){7}, 1) == 7);
    CHECK(lower_mean((double[]){3, 1, 2}, 3) == 2);
}

static void test_correlation(void) {
    CHECK(fabs(correlation((double[]){1, 2, 3}, (double[]){2, 4, 6}, 3) - 1) < 1e-12);
    CHECK(fabs(correlation((double[]){1, 2, 3}, (double[]){3, 0, 3}, 3)) < 1e-12);
    CHECK(isnan(correlation((double[]){1, 1, 1}, (double[]){3, 0, 3}, 3)));
}

static void test_clock_step(void) {
    CHECK(clock_step((const uint64_t[]){26, 52, 26, 26, 104}, 5) == 26);
    CHECK(clock_step((const uint64_t[]){41, 43, 40, 41}, 4) == 1);
    CHECK(clock_step((const uint64_t[]){0, 0, 1, 0, 1}, 5) == 1);
    CHECK(fabs(clock_step((const uint64_t[]){0, 63, 0, 62, 0, 125}, 6) - 62.5) < 0.1); /* a microsecond at 62.5 MHz */
    CHECK(clock_step((const uint64_t[]){0, 0}, 2) == 1);
}

/* A counter that advances by so many ticks at once, read every 30 to 100 ticks; one read in a hundred is interrupted. */
static double masked_by;

static uint64_t masked_ticks(void) {
    static struct random random = {.state = 1};
    static double now;
    now += 30 + (double)random_below(&random, 7000) / 100 + (random_below(&random, 100) == 0 ? 4321 : 0);
    return (uint64_t)(floor(now / masked_by) * masked_by);
}

/* Zen's counters advance every 10 ns by 20 to 35 ticks, which is a whole number on some parts alone; others by anything. */
static void test_step_of_a_masked_counter(void) {
    enum { READS = 2000 };
    static const double others[] = {1, 2, 24.45, 26.46, 40.69, 52.08, 62.5, 100, 250};
    static uint64_t advances[READS];
    for (int halves = 40; halves <= 70; halves++) {
        masked_by = halves / 2.0;
        clock_advances(masked_ticks, advances, READS);
        CHECK(fabs(clock_step(advances, READS) - masked_by) < 0.05);
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        masked_by = others[i];
        clock_advances(masked_ticks, advances, READS);
        CHECK(fabs(clock_step(advances, READS) - masked_by) < 0.05);
    }
}

/* A clock that waits for `wait_ns` and then rises from `low` to `high` in eight steps over `rise_ns`. */
struct governor {
    double wait_ns, rise_ns, low, high;
};

static double hz_at(const struct governor *governor, double ns) {
    double risen = governor->rise_ns > 0 ? (ns - governor->wait_ns) / governor->rise_ns : ns >= governor->wait_ns;
    double steps = floor(8 * fmax(0, fmin(1, risen))) / 8;
    return governor->low + steps * (governor->high - governor->low);
}

/* When `cycles` that begin at `ns` are over. */
static double after_cycles(const struct governor *governor, double ns, double cycles) {
    static const double slice_ns = 50;
    while (cycles > 0) {
        cycles -= slice_ns * hz_at(governor, ns) / 1e9;
        ns += slice_ns;
    }
    return ns;
}

/* What core_hz sees of it in window after window: as many additions as it finds to be worth a probe of 12 us. */
static struct ramp ramp_under(const struct governor *governor) {
    enum { WINDOWS = 120 };
    double hz[WINDOWS], end_ns[WINDOWS], now = 0;
    for (size_t i = 0; i < WINDOWS; i++) {
        double turns = 16, start;
        do {
            start = now;
            now = after_cycles(governor, now, turns * ADDITIONS_A_TURN);
            turns *= 2;
        } while (now - start < 3e3);
        start = now;
        now = after_cycles(governor, now, 2 * turns * ADDITIONS_A_TURN);
        hz[i] = 2 * turns * ADDITIONS_A_TURN * 1e9 / (now - start);
        end_ns[i] = now;
    }
    return ramp_of(hz, end_ns, WINDOWS);
}

static void test_ramp(void) {
    enum { WINDOWS = 120 };
    static const struct governor rising[] = {
        {200e3, 0, 0.8e9, 3.4e9}, {1e6, 0, 1.5e9, 3.4e9}, {0, 1.2e6, 1.2e9, 3.7e9}, {400e3, 500e3, 2.0e9, 2.6e9}};
    for (size_t i = 0; i < sizeof rising / sizeof *rising; i++) {
        struct ramp ramp = ramp_under(&rising[i]);
        CHECK(fabs(ramp.settled_hz / rising[i].high - 1) < 0.02);
        CHECK(fabs(ramp.after_ns - rising[i].wait_ns - rising[i].rise_ns) < 60e3); /* two windows */
        CHECK(ramp_wait_ns(&ramp) == ramp.after_ns);
    }
    /* fixed; by less than 3 %; later than is looked */
    static const struct governor none[] = {{0, 0, 3e9, 3e9}, {1e6, 0, 2.95e9, 3e9}, {20e6, 0, 1.5e9, 3e9}};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        struct ramp ramp = ramp_under(&none[i]);
        CHECK(ramp.after_ns == 0 && ramp_wait_ns(&ramp) == 0);
    }
    CHECK(ramp_wait_ns(&(struct ramp){.after_ns = 99e3}) == 0 && ramp_wait_ns(&(struct ramp){.after_ns = 9e6}) == 2e6);

    /* interrupted later on, and at the beginning */
    double hz[WINDOWS], end_ns[WINDOWS];
    for (size_t i = 0; i < WINDOWS; i++) {
        hz[i] = i % 7 == 3 ? 1e9 : 3.4e9;
        end_ns[i] = 25e3 * (double)(i + 1);
    }
    CHECK(ramp_of(hz, end_ns, WINDOWS).after_ns == 0);
    hz[0] = 1e9;
    CHECK(ramp_of(hz, end_ns, WINDOWS).after_ns == 25e3);
}

/* Known values of CRC-32 (RFC 1952; "123456789" is the check value that catalogs of CRCs have). */
static void test_checksum(void) {
    CHECK(checksum_add(0, "", 0) == 0);
    CHECK(checksum_add(0, "a", 1) == 0xe8b7be43u);
    CHECK(checksum_add(0, "123456789", 9) == 0xcbf43926u);
    CHECK(checksum_add(checksum_add(0, "1234", 4), "56789", 5) == 0xcbf43926u); /* a file that is continued */
    CHECK(checksum_add(0, "\0\377", 2) == 0x6cdbfd72u);
}

static void test_offset(void) {
    struct offset offset = offset_of(1000, 2100, 1200, 0.5); /* halfway is 1100, and the other clock says 2100 */
    CHECK(offset.ns == 500 && offset.error_ns == 50);
    offset = offset_of(1000, 100, 1200, 1);
    CHECK(offset.ns == -1000 && offset.error_ns == 100);
}

int main(void) {
    test_checksum();
    test_offset();
    test_cpulist();
    test_order_statistics();
    test_interval();
    test_summary();
    test_fields();
    test_pass_sd();
    test_spread();
    test_clusters();
    test_census_draw();
    test_summary_of_clusters();
    test_schedule();
    test_json();
    test_text();
    test_wide_affinity();
    test_counts_of_cpus();
    test_homes_near_and_far();
    test_lower_mean();
    test_correlation();
    test_clock_step();
    test_ramp();
    test_step_of_a_masked_counter();
    if (failures == 0) puts("unit: all hold");
    return failures == 0 ? 0 : 1;
}
