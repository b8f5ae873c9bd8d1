#include "footprint.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cache.h"
#include "fail.h"
#include "machine.h"
#include "proc.h"
#include "select.h"

enum {
    TIMES = 4,
    UNREPORTED_L3_BYTES = 16 << 20,
    UNREPORTED_SHARED_BYTES = 64 << 20,
};

/* What a CPU allocates in, beside all that have the same `name`: an L3 (by its lowest CPU), or all L3s of a
 * socket (by its number). */
struct caches {
    int name, socket;
    size_t l3_bytes, l2_bytes; /* 0 where none is reported */
};

/* Whether cores allocate in their own L3 alone: AMD's, and Hygon's, which are AMD's too. */
static bool own_l3_alone(void) {
    char vendor[64];
    cpuinfo_first("vendor_id", vendor, sizeof vendor);
    return strcmp(vendor, "AuthenticAMD") == 0 || strcmp(vendor, "HygonGenuine") == 0;
}

static struct caches caches_of(int cpu) {
    struct cpulist sharers = {0};
    cache_sharers(cpu, &sharers);
    int l3 = sharers.cpu[0], socket = select_socket_of(cpu);
    size_t l3_bytes = cache_bytes(cpu, 3);
    cpulist_free(&sharers);
    return (struct caches){l3_bytes > 0 ? l3 : socket, socket, l3_bytes, cache_bytes(cpu, 2)};
}

/* Each CPU that has an L3 allocates in all L3s of its socket; the lowest CPU of an L3 stands for it. */
static void join_sockets(const struct cpulist *cpus, struct caches *caches) {
    size_t *bytes = grow(NULL, cpus->count, sizeof *bytes);
    memset(bytes, 0, cpus->count * sizeof *bytes);
    for (size_t i = 0; i < cpus->count; i++)
        for (size_t j = 0; j < cpus->count; j++)
            if (caches[i].l3_bytes > 0 && caches[j].socket == caches[i].socket && caches[j].name == cpus->cpu[j])
                bytes[i] += caches[j].l3_bytes;
    for (size_t i = 0; i < cpus->count; i++) {
        caches[i].l3_bytes = bytes[i];
        caches[i].name = caches[i].socket;
    }
    free(bytes);
}

/* Of each CPU that is online, in their order; read once. */
static const struct caches *all_caches(const struct cpulist **online) {
    static struct cpulist cpus;
    static struct caches *caches;
    if (caches == NULL) {
        read_sysfs_list(&cpus, "devices/system/cpu/online");
        caches = grow(NULL, cpus.count + 1, sizeof *caches);
        for (size_t i = 0; i < cpus.count; i++) caches[i] = caches_of(cpus.cpu[i]);
        if (!own_l3_alone()) join_sockets(&cpus, caches);
    }
    *online = &cpus;
    return caches;
}

static struct caches find(int cpu) {
    const struct cpulist *online;
    const struct caches *caches = all_caches(&online);
    size_t i = cpulist_index(online, cpu);
    return i < online->count ? caches[i] : (struct caches){-1, -1, 0, 0};
}

/* Of an L3 that so many CPUs share, each of them has at least so many bytes. */
static size_t share_of_l3(size_t bytes, size_t sharers) {
    if (bytes > 0) return (bytes + sharers - 1) / sharers;
    size_t share = UNREPORTED_SHARED_BYTES / sharers;
    return share > UNREPORTED_L3_BYTES ? share : UNREPORTED_L3_BYTES;
}

size_t footprint_of_each(const struct cpulist *cpus) {
    struct caches *own = grow(NULL, cpus->count + 1, sizeof *own);
    size_t most = 0;
    for (size_t i = 0; i < cpus->count; i++) own[i] = find(cpus->cpu[i]);
    for (size_t i = 0; i < cpus->count; i++) {
        size_t sharers = 1;
        for (size_t j = 0; j < cpus->count; j++)
            sharers += j != i && own[j].name == own[i].name && (own[j].l3_bytes > 0) == (own[i].l3_bytes > 0);
        size_t share = share_of_l3(own[i].l3_bytes, sharers);
        if (own[i].l2_bytes > share) share = own[i].l2_bytes;
        if (share > most) most = share;
    }
    free(own);
    return TIMES * most;
}
