/* likwid-bench's output, stored as it came from version 5.2.2 here (tests/data). Prints nothing when all holds. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "harness/fail.h"
#include "harness/likwid.h"
#include "tests/check.h"

static char *stored(const char *name) {
    static char content[1 << 16];
    char path[256];
    snprintf(path, sizeof path, "tests/data/%s", name);
    FILE *file = fopen(path, "r");
    if (file == NULL) fail(EXIT_BAD_INPUT, "%s cannot be read; the tests run in kernels/", path);
    content[fread(content, 1, sizeof content - 1, file)] = '\0';
    fclose(file);
    return content;
}

static void test_rate(void) {
    double rate = 0;
    char *output = stored("likwid-bench-copy_mem_avx.txt"), *line = strstr(output, "MByte/s:");
    if (line == NULL) fail(EXIT_BAD_INPUT, "the stored output has no rate");
    CHECK(likwid_rate(output, &rate));
    CHECK(rate == strtod(line + strlen("MByte/s:"), NULL) * 1e6);
    *line = 'm'; /* without its line there is no rate, whatever else is there */
    CHECK(!likwid_rate(output, &rate));
}

static void test_no_rate(void) {
    static const char *const bad[] = {"",
                                      "MByte/s:",
                                      "MByte/s:\tnan\n",
                                      "MByte/s:\t-1.0\n",
                                      "MByte/s:\t0.00\n",
                                      "MByte/s:\t12x\n",
                                      " MByte/s:\t12\n",
                                      "Time:\t1 sec\nERROR\n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        double rate;
        CHECK(!likwid_rate(bad[i], &rate));
    }
}

static void test_threads(void) {
    struct cpulist cpus;
    likwid_cpus(stored("likwid-bench-copy_mem_avx.txt"), &cpus);
    CHECK(cpus.count == 2 && cpus.cpu[0] == 0 && cpus.cpu[1] == 1); /* and not the line of who allocated */
    cpulist_free(&cpus);
    likwid_cpus("no threads\n", &cpus);
    CHECK(cpus.count == 0);
}

static void test_properties(void) {
    CHECK(likwid_streams(stored("likwid-bench-l.txt")) == 2);
    CHECK(likwid_streams("Name: x\n") == 0);
    const char *list = stored("likwid-bench-a.txt");
    CHECK(likwid_has(list, "load") && likwid_has(list, "triad_mem_avx512"));
    CHECK(!likwid_has(list, "triad_mem") && !likwid_has(list, "loa") && !likwid_has(list, "load_mem_avx"));
}

int main(void) {
    test_rate();
    test_no_rate();
    test_threads();
    test_properties();
    return failures == 0 ? 0 : 1;
}
