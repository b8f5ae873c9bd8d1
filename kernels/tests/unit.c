/* Unit tests of what is pure in the harness. Each prints nothing when it holds. */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/census.h"
#include "harness/clock.h"
#include "harness/cpulist.h"
#include "harness/fail.h"
#include "harness/json.h"
#include "harness/machine.h"
#include "harness/sampling.h"
#include "harness/schedule.h"
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

/* Up to nine passes every pair of passes counts once; beyond, neighbours; either way the SD of what was drawn is found. */
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
    double line_effect[TEST_LINES], values[TEST_LINES * TEST_BATCHES];
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
            spread_add(&sums, &set, values, TEST_LINES, TEST_BATCHES, 100);
        }
        spread_close_set(&sums, &set);
    }
    struct spread spread = spread_of(&sums, TEST_BATCHES);
    CHECK(fabs(spread.line - 0.03) < 0.002);
    CHECK(fabs(spread.line_pair - 0.02) < 0.001);
    CHECK(fabs(spread.revisit - 0.01) < 0.001);
    struct spread_sums nothing = {0};
    spread_add(&nothing, &set, values, TEST_LINES, TEST_BATCHES, 100); /* a pair alone cannot tell lines from pairs */
    spread_close_set(&nothing, &set);
    spread = spread_of(&nothing, TEST_BATCHES);
    CHECK(isnan(spread.line) && isnan(spread.line_pair) && isfinite(spread.revisit));
    free(set.sum);
    free(set.squares);
}

static void test_census(void) {
    /* two CPUs, one generally further away; each is nearer to every second line */
    enum { CPUS = 2, TEST_LINES = 100, HALF = TEST_LINES / 2 };
    double reload[CPUS * TEST_LINES];
    unsigned char stratum[TEST_LINES];
    for (int l = 0; l < TEST_LINES; l++) {
        reload[l] = 100 + (l % 2 == 0 ? 0 : 20);
        reload[TEST_LINES + l] = 200 + (l % 2 == 0 ? 20 : 0);
    }
    CHECK(census_strata(reload, CPUS, TEST_LINES, stratum) == CPUS);
    for (int l = 0; l < TEST_LINES; l++) CHECK(stratum[l] == l % 2);
    for (int l = 0; l < TEST_LINES; l++) reload[l] = l;
    CHECK(census_strata(reload, 1, TEST_LINES, stratum) == 4);
    size_t in[4] = {0};
    for (int l = 0; l < TEST_LINES; l++) in[stratum[l]]++;
    for (int s = 0; s < 4; s++) CHECK(in[s] >= 24 && in[s] <= 26);

    struct home home = {.strata = grow(NULL, POOL_LINES, 1)};
    memset(home.strata, 255, POOL_LINES);
    for (int l = 0; l < TEST_LINES; l++) home.strata[(size_t)l * 7] = (unsigned char)(l < HALF ? 0 : 1);
    struct random random = random_stream(4, 5, 6);
    uint32_t drawn[20];
    size_t low = 0;
    census_draw(&home, &random, drawn, 20);
    for (int i = 0; i < 20; i++) {
        CHECK(drawn[i] % 7 == 0 && drawn[i] / 7 < TEST_LINES);
        low += drawn[i] / 7 < HALF;
        for (int j = 0; j < i; j++) CHECK(drawn[i] != drawn[j]);
    }
    CHECK(low == 10);
    free(home.strata);
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

static void test_midmean(void) {
    double stepped[] = {20, 30, 30, 20, 30, 1e6, 20, 30}; /* 26 in steps of 10, and an interrupt */
    CHECK(fabs(midmean(stepped, 8) - 27.5) < 1e-9);
    CHECK(midmean((double[]){7}, 1) == 7);
    CHECK(midmean((double[]){3, 1, 2}, 3) == 2);
}

static void test_clock_step(void) {
    CHECK(clock_step((const uint64_t[]){26, 52, 26, 26, 104}, 5) == 26);
    CHECK(clock_step((const uint64_t[]){41, 43, 40, 41}, 4) == 1);
    CHECK(clock_step((const uint64_t[]){0, 0, 1, 0, 1}, 5) == 1);
    CHECK(clock_step((const uint64_t[]){0, 63, 0, 62, 0, 125}, 6) == 62); /* a microsecond at 62.5 MHz */
    CHECK(clock_step((const uint64_t[]){0, 0}, 2) == 1);
}

int main(void) {
    test_cpulist();
    test_order_statistics();
    test_interval();
    test_summary();
    test_pass_sd();
    test_spread();
    test_census();
    test_schedule();
    test_json();
    test_text();
    test_wide_affinity();
    test_midmean();
    test_clock_step();
    if (failures == 0) puts("unit: all hold");
    return failures == 0 ? 0 : 1;
}
