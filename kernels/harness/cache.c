#include "cache.h"

#include <stdlib.h>
#include <string.h>

#include "machine.h"

enum { MOST_CACHES = 16 };

/* Index of the data or unified cache of `level`, -1 where there is none. */
static int index_of(int cpu, int level) {
    char content[64];
    for (int i = 0; i < MOST_CACHES; i++) {
        if (!read_sysfs(content, sizeof content, "devices/system/cpu/cpu%d/cache/index%d/level", cpu, i)) return -1;
        if (atoi(content) != level) continue;
        if (read_sysfs(content, sizeof content, "devices/system/cpu/cpu%d/cache/index%d/type", cpu, i) &&
            strcmp(content, "Instruction") != 0)
            return i;
    }
    return -1;
}

size_t cache_bytes(int cpu, int level) {
    char content[64], *unit;
    int index = index_of(cpu, level);
    if (index < 0 || !read_sysfs(content, sizeof content, "devices/system/cpu/cpu%d/cache/index%d/size", cpu, index))
        return 0;
    size_t number = strtoul(content, &unit, 10);
    return *unit == 'M' ? number << 20 : *unit == 'K' ? number << 10 : number;
}

size_t cache_largest(const struct cpulist *cpus, int level) {
    size_t largest = 0;
    for (size_t i = 0; i < cpus->count; i++) {
        size_t bytes = cache_bytes(cpus->cpu[i], level);
        if (bytes > largest) largest = bytes;
    }
    return largest;
}

void cache_sharers_of(int cpu, int level, struct cpulist *sharers) {
    int index = index_of(cpu, level);
    if (index < 0 || !read_sysfs_list(sharers, "devices/system/cpu/cpu%d/cache/index%d/shared_cpu_list", cpu, index) ||
        sharers->count == 0)
        cpulist_add(sharers, cpu);
}

void cache_sharers(int cpu, struct cpulist *sharers) {
    int last = 1;
    for (int level = 2; level <= 4; level++)
        if (index_of(cpu, level) >= 0) last = level;
    cache_sharers_of(cpu, last, sharers);
}

size_t power_of_two_within(size_t bytes) {
    size_t power = 1;
    while (power <= bytes / 2) power *= 2;
    return bytes == 0 ? 0 : power;
}
