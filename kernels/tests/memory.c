/* Unit tests of what is pure in the memory kernels. Each prints nothing when it holds. */
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/cycle.h"
#include "harness/headroom.h"
#include "harness/schedule.h"
#include "tests/check.h"

static void test_cycle(void) {
    static const size_t counts[] = {1, 2, 3, 4, 5, 7, 64, 100, 1000, 4096, 65537};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        for (uint64_t seed = 0; seed < 20; seed++) {
            struct random random = random_stream(seed, 1, 2);
            unsigned char *bytes = malloc(counts[i] * ELEMENT_BYTES);
            CHECK(bytes != NULL);
            if (bytes == NULL) return;
            cycle_lay(bytes, counts[i], &random);
            CHECK(cycle_length(bytes, counts[i]) ==
                  counts[i]); /* back at its start after all, so every one was there */
            if (counts[i] % UNROLLED == 0) CHECK(cycle_follow(bytes, counts[i]) == bytes);
            free(bytes);
        }
    }
}

static void test_cycle_is_drawn_by_seed(void) {
    unsigned char a[64 * ELEMENT_BYTES], b[64 * ELEMENT_BYTES];
    for (uint64_t seed = 0; seed < 5; seed++) {
        struct random first = random_stream(seed, 1, 2), same = first, other = random_stream(seed + 1, 1, 2);
        cycle_lay(a, 64, &first);
        const unsigned char *next_a = *(unsigned char **)(void *)a;
        cycle_lay(b, 64, &same);
        CHECK(*(unsigned char **)(void *)b - b == next_a - a);
        cycle_lay(b, 64, &other);
        size_t alike = 0;
        for (size_t i = 0; i < 64; i++)
            alike += *(unsigned char **)(void *)(a + i * ELEMENT_BYTES) - a ==
                     *(unsigned char **)(void *)(b + i * ELEMENT_BYTES) - b;
        CHECK(alike < 32);
    }
}

/* What is no cycle through everything is seen: two small cycles, and an address outside. */
static void test_cycle_length_sees_faults(void) {
    unsigned char bytes[4 * ELEMENT_BYTES];
    static const size_t two_cycles[] = {1, 0, 3, 2}, end = sizeof bytes;
    for (size_t i = 0; i < 4; i++)
        *(void **)(void *)(bytes + i * ELEMENT_BYTES) = bytes + two_cycles[i] * ELEMENT_BYTES;
    CHECK(cycle_length(bytes, 4) == 2 && cycle_holds(bytes, 4));
    *(void **)(void *)bytes = bytes + 8;
    CHECK(cycle_length(bytes, 4) == 0 && !cycle_holds(bytes, 4));
    *(void **)(void *)bytes = bytes + end;
    CHECK(cycle_length(bytes, 4) == 0);
}

/* Also one that makes a chase shorter, and is followed without an end. */
static void test_a_flipped_bit_of_an_address_is_seen(void) {
    static unsigned char bytes[256 * ELEMENT_BYTES];
    struct random random = random_stream(3, 1, 0);
    cycle_lay(bytes, 256, &random);
    CHECK(cycle_holds(bytes, 256));
    for (size_t i = 0; i < 256; i++)
        for (int bit = 0; bit < 64; bit++) {
            uint64_t *address = (uint64_t *)(void *)(bytes + i * ELEMENT_BYTES);
            *address ^= 1ull << bit;
            CHECK(!cycle_holds(bytes, 256));
            *address ^= 1ull << bit;
        }
}

static void put(const char *root, const char *path, const char *content) {
    char name[512];
    snprintf(name, sizeof name, "%s/%s", root, path);
    for (char *slash = strchr(name + strlen(root) + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(name, 0755);
        *slash = '/';
    }
    FILE *file = fopen(name, "w");
    CHECK(file != NULL);
    if (file == NULL) return;
    fputs(content, file);
    fclose(file);
}

static int drop(const char *path, const struct stat *facts, int kind, struct FTW *where) {
    (void)facts;
    (void)kind;
    (void)where;
    return remove(path);
}

static void test_control_groups(void) {
    char root[] = "/tmp/nodeprint-cgroup-XXXXXX";
    CHECK(mkdtemp(root) != NULL);
    CHECK(setenv("NODEPRINT_SYSFS", root, 1) == 0 && setenv("NODEPRINT_PROCFS", root, 1) == 0);
    CHECK(cgroup_left() == UINT64_MAX); /* no control groups at all */

    put(root, "self/cgroup", "0::/job/step\n");
    CHECK(cgroup_left() == UINT64_MAX);
    put(root, "fs/cgroup/job/step/memory.max", "max\n");
    put(root, "fs/cgroup/job/step/memory.current", "500\n");
    CHECK(cgroup_left() == UINT64_MAX);
    put(root, "fs/cgroup/job/memory.max", "1000\n"); /* the parent's limit holds too */
    put(root, "fs/cgroup/job/memory.current", "700\n");
    CHECK(cgroup_left() == 300);
    put(root, "fs/cgroup/job/memory.stat", "anon 100\ninactive_file 150\n");
    CHECK(cgroup_left() == 450);
    put(root, "fs/cgroup/job/step/memory.max", "600\n");
    CHECK(cgroup_left() == 100);
    put(root, "fs/cgroup/job/step/memory.current", "900\n");
    CHECK(cgroup_left() == 0);

    put(root, "fs/cgroup/job/step/memory.current", "200\n");
    put(root, "fs/cgroup/job/step/memory.high", "max\n");
    CHECK(cgroup_left() == 400);
    put(root, "fs/cgroup/job/step/memory.high", "500\n"); /* whoever goes beyond is slowed down without end */
    CHECK(cgroup_left() == 300);

    put(root, "self/cgroup", "5:cpu,memory:/box\n4:pids:/box\n");
    put(root, "fs/cgroup/memory/box/memory.limit_in_bytes", "4096\n");
    put(root, "fs/cgroup/memory/box/memory.usage_in_bytes", "96\n");
    CHECK(cgroup_left() == 4000);
    put(root, "self/cgroup", "5:memory:/host/name/of/it\n"); /* in a container: only the root of the mount is there */
    put(root, "fs/cgroup/memory/memory.limit_in_bytes", "8000\n");
    put(root, "fs/cgroup/memory/memory.usage_in_bytes", "1000\n");
    CHECK(cgroup_left() == 7000);

    CHECK(cgroup_tasks_left() == UINT64_MAX);
    put(root, "self/cgroup", "4:pids:/box\n");
    put(root, "fs/cgroup/pids/box/pids.max", "20\n");
    put(root, "fs/cgroup/pids/box/pids.current", "19\n");
    CHECK(cgroup_tasks_left() == 1);
    put(root, "self/cgroup", "0::/job/step\n");
    put(root, "fs/cgroup/job/pids.max", "12\n");
    put(root, "fs/cgroup/job/pids.current", "12\n");
    CHECK(cgroup_tasks_left() == 0);
    CHECK(unsetenv("NODEPRINT_SYSFS") == 0 && unsetenv("NODEPRINT_PROCFS") == 0);
    CHECK(nftw(root, drop, 8, FTW_DEPTH | FTW_PHYS) == 0);
}

int main(void) {
    test_cycle();
    test_cycle_is_drawn_by_seed();
    test_cycle_length_sees_faults();
    test_a_flipped_bit_of_an_address_is_seen();
    test_control_groups();
    return failures == 0 ? 0 : 1;
}
