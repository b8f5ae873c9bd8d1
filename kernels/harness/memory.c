#include "memory.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "fail.h"
#include "proc.h"

enum { FULL_MIB = 160 }; /* the least that an operation needs of a node: a buffer of 64 MiB, and room to spare */

enum { BIND = 2 }; /* MPOL_BIND; linux/mempolicy.h is not everywhere and libnuma is no dependency */

static size_t page_bytes(void) {
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* 0, or the error. mbind counts one bit more than the kernel uses. */
static int bind_to(void *bytes, size_t size, int home) {
    enum { BITS = sizeof(unsigned long) * CHAR_BIT };
    size_t words = (size_t)home / BITS + 1;
    unsigned long *mask = grow(NULL, words, sizeof *mask);
    memset(mask, 0, words * sizeof *mask);
    mask[(size_t)home / BITS] = 1ul << ((size_t)home % BITS);
    long result = syscall(SYS_mbind, bytes, size, BIND, mask, words * BITS + 1, 0u);
    int error = result == 0 ? 0 : errno;
    free(mask);
    return error;
}

static bool may_bind(int node) {
    void *page = mmap(NULL, page_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return true; /* whoever needs memory says so */
    int error = bind_to(page, page_bytes(), node);
    munmap(page, page_bytes());
    return error != EPERM && error != ENOSYS;
}

bool memory_may_bind(const struct machine *machine) {
    return !machine->numa || may_bind(machine->node[0].number);
}

static bool has_allowed_cpu(const struct machine *machine, const struct numa_node *node) {
    for (size_t i = 0; i < node->cpus.count; i++)
        if (cpulist_has(&machine->allowed, node->cpus.cpu[i])) return true;
    return false;
}

static void leave_out(struct numa_node *node, const char *why) {
    node->has_memory = false;
    snprintf(node->left_out, sizeof node->left_out, "%s", why);
}

static int roomiest_node(const struct machine *machine) {
    int roomiest = -1;
    uint64_t most = 0;
    for (size_t n = 0; n < machine->nodes; n++) {
        uint64_t bytes = machine_free_bytes(machine, machine->node[n].number);
        if (!machine->node[n].has_memory || bytes <= most) continue;
        most = bytes;
        roomiest = machine->node[n].number;
    }
    return roomiest;
}

void memory_leave_out(struct machine *machine) {
    struct cpulist allowed;
    bool known = machine->numa && machine_allowed_nodes(&allowed), bindable = true;
    for (size_t n = 0; known && n < machine->nodes; n++)
        if (machine->node[n].has_memory && !cpulist_has(&allowed, machine->node[n].number))
            leave_out(&machine->node[n], "not allowed to this process (Mems_allowed_list)");
    if (known) cpulist_free(&allowed);
    int roomiest = roomiest_node(machine);
    for (size_t n = 0; machine->numa && n < machine->nodes; n++) {
        struct numa_node *node = &machine->node[n];
        uint64_t mib = machine_free_bytes(machine, node->number) >> 20;
        if (!node->has_memory || mib >= FULL_MIB || node->number == roomiest) continue;
        char why[sizeof node->left_out];
        snprintf(why, sizeof why, "full: %llu MiB are free, and %d MiB are needed", (unsigned long long)mib, FULL_MIB);
        leave_out(node, why);
    }
    for (size_t n = 0; n < machine->nodes; n++)
        if (machine->node[n].has_memory) bindable = !machine->numa || may_bind(machine->node[n].number);
    for (size_t n = 0; !bindable && n < machine->nodes; n++)
        if (machine->node[n].has_memory && !has_allowed_cpu(machine, &machine->node[n]))
            leave_out(&machine->node[n],
                      "binding memory is not permitted (mbind), and no CPU of the node can touch it");
}

enum { LOOKS = 50 };

/* Who moves pages needs a moment: Linux says of them until then that they are nowhere. */
static void wait_for_moving(void) {
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
}

/* Pages that are not on `home`, by move_pages; without a target it only asks, and asks again while pages are being moved,
 * with `home` as target it moves them there. -1 where that is not allowed. */
static long elsewhere_by_move_pages(const unsigned char *bytes, size_t size, size_t page, int home, bool put_back) {
    size_t pages = size / page;
    void **address = grow(NULL, pages, sizeof *address);
    int *status = grow(NULL, pages, sizeof *status), *target = grow(NULL, pages, sizeof *target);
    long elsewhere = 0, moving = 0;
    for (size_t i = 0; i < pages; i++) {
        address[i] = (void *)(uintptr_t)(bytes + i * page); /* NOLINT(performance-no-int-to-ptr): takes off const */
        target[i] = home;
    }
    enum { MOVE = 2 }; /* MPOL_MF_MOVE: pages of this process alone */
    for (int look = 0; look == 0 || (moving > 0 && !put_back && look < LOOKS); look++) {
        if (look > 0) wait_for_moving();
        elsewhere = moving = 0;
        if (syscall(SYS_move_pages, 0, pages, address, put_back ? target : NULL, status, put_back ? MOVE : 0) < 0)
            elsewhere = -1;
        for (size_t i = 0; elsewhere >= 0 && i < pages; i++) {
            if (status[i] != home) elsewhere++;
            if (status[i] < 0) moving++;
        }
    }
    free(address);
    free(status);
    free(target);
    return elsewhere;
}

/* The same from /proc/self/numa_maps ("7f.. default anon=4096 N0=4096"); -1 where it has no such mapping. */
static long elsewhere_by_numa_maps(const unsigned char *bytes, size_t size, size_t page, int home) {
    FILE *maps = proc_open("self/numa_maps");
    char line[4096];
    long elsewhere = -1;
    while (maps != NULL && elsewhere < 0 && fgets(line, sizeof line, maps) != NULL) {
        if (strtoull(line, NULL, 16) != (uintptr_t)bytes) continue;
        long home_pages = 0;
        for (char *word = strtok(line, " \n"); word != NULL; word = strtok(NULL, " \n")) {
            int node;
            long pages;
            if (sscanf(word, "N%d=%ld", &node, &pages) == 2 && node == home) home_pages = pages;
        }
        elsewhere = (long)(size / page) - home_pages;
    }
    if (maps != NULL) fclose(maps);
    return elsewhere;
}

static void touch(size_t role, void *argument) {
    (void)role;
    const struct pool *pool = argument;
    memset(pool->bytes, 0, pool->size); /* a write: reading would only map the zero page */
}

unsigned pool_address_bits(const struct pool *pool) {
    unsigned bits = 0;
    while ((size_t)1 << (bits + 1) <= pool->page_bytes) bits++;
    return bits;
}

size_t memory_toucher(const struct machine *machine, const struct workers *workers, int home) {
    for (size_t i = 0; i < workers->count; i++)
        if (machine_node_of(machine, workers->worker[i].cpu) == home) return i;
    return 0;
}

size_t memory_touchers(const struct machine *machine, const struct workers *workers, int home, size_t *members) {
    size_t count = 0;
    for (size_t i = 0; i < workers->count; i++)
        if (machine_node_of(machine, workers->worker[i].cpu) == home) members[count++] = i;
    if (count == 0) members[count++] = 0;
    return count;
}

bool memory_bind(const struct machine *machine, void *bytes, size_t size, int home) {
    int error = machine->numa ? bind_to(bytes, size, home) : ENOSYS;
    if (error != 0 && error != EPERM && error != ENOSYS)
        fail(EXIT_NOT_AS_ASKED, "memory cannot be bound to NUMA node %d (mbind: %s); is it allowed to this process?",
             home, strerror(error));
    return error == 0;
}

size_t memory_elsewhere(const struct machine *machine, const unsigned char *bytes, size_t size, size_t page, int home,
                        const char **verified_by) {
    *verified_by = "move_pages";
    long elsewhere = elsewhere_by_move_pages(bytes, size, page, home, false);
    if (elsewhere < 0) {
        elsewhere = elsewhere_by_numa_maps(bytes, size, page, home);
        *verified_by = "numa_maps";
    }
    if (elsewhere < 0 && machine->nodes == 1) {
        elsewhere = 0;
        *verified_by = "one_node";
    }
    if (elsewhere < 0)
        fail(EXIT_NOT_AS_ASKED,
             "where memory lies cannot be verified: neither move_pages nor /proc/self/numa_maps answers");
    return (size_t)elsewhere;
}

int memory_node_at(const unsigned char *byte, int unknown) {
    void *address = (void *)(uintptr_t)byte; /* NOLINT(performance-no-int-to-ptr): takes off const */
    int node = -1;
    bool answered = syscall(SYS_move_pages, 0, 1ul, &address, NULL, &node, 0) == 0;
    return answered && node >= 0 ? node : unknown;
}

const char *memory_verify(const struct machine *machine, const unsigned char *bytes, size_t size, size_t page, int home,
                          bool bound) {
    const char *verified_by;
    size_t elsewhere = memory_elsewhere(machine, bytes, size, page, home, &verified_by);
    if (elsewhere > 0)
        fail(EXIT_NOT_AS_ASKED, "%zu of %zu pages asked of NUMA node %d are on another node%s", elsewhere, size / page,
             home, bound ? "" : "; mbind is not permitted here, and no worker runs on that node");
    return verified_by;
}

struct pool pool_create(const struct machine *machine, struct workers *workers, int home, size_t size) {
    struct pool pool = {.size = size, .home = home, .page_bytes = page_bytes()};
    uint64_t available = machine_free_bytes(machine, home);
    if (available / 2 < size) /* a bound allocation on a full node ends in an out-of-memory kill */
        fail(EXIT_NOT_AS_ASKED, "NUMA node %d has %llu MiB of free memory, twice the pool of %zu MiB is needed", home,
             (unsigned long long)(available >> 20), size >> 20);
    pool.bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pool.bytes == MAP_FAILED) fail(EXIT_NOT_AS_ASKED, "%zu MiB cannot be mapped: %s", size >> 20, strerror(errno));
    if (madvise(pool.bytes, size, MADV_NOHUGEPAGE) != 0 && errno != EINVAL) /* EINVAL: a kernel without huge pages */
        fail(EXIT_NOT_AS_ASKED, "madvise(MADV_NOHUGEPAGE) failed: %s", strerror(errno));

    pool.bound = memory_bind(machine, pool.bytes, size, home);
    size_t member = memory_toucher(machine, workers, home);
    workers_run(workers, &member, 1, touch, &pool);
    pool.pages = smaps_huge_bytes(pool.bytes) > 0 ? "mixed" : "base";

    pool.verified_by = memory_verify(machine, pool.bytes, size, page_bytes(), home, pool.bound);
    return pool;
}

size_t memory_return_moved(const unsigned char *bytes, size_t size, int home, const char *verified_by, bool sampled) {
    enum { SAMPLED_PAGES = 1024 };
    size_t most = 0, stride = (size / page_bytes() / SAMPLED_PAGES + 1) * page_bytes();
    if (strcmp(verified_by, "move_pages") != 0) return 0;
    if (sampled && elsewhere_by_move_pages(bytes, size, stride, home, false) <= 0) return 0;
    for (int i = 0; i < LOOKS; i++) { /* a page in use is busy for a moment */
        long moved = elsewhere_by_move_pages(bytes, size, page_bytes(), home, false);
        if (moved <= 0) return most;
        if ((size_t)moved > most) most = (size_t)moved;
        elsewhere_by_move_pages(bytes, size, page_bytes(), home, true);
        wait_for_moving();
    }
    fail(EXIT_NOT_AS_ASKED, "%zu pages moved away from NUMA node %d and cannot be put back", most, home);
}
