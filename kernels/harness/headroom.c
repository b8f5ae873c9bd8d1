#include "headroom.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "fail.h"
#include "proc.h"

struct cgroup_files {
    const char *limit, *brake, *usage, *cache; /* the last: its name in memory.stat */
};

/* What a controller limits, by its files in both versions of control groups. */
struct controller {
    const char *name;
    struct cgroup_files version_1, version_2;
};

/* Above memory.high nothing is killed, but who takes memory is made to wait for as long as it takes. */
static const struct controller memory = {
    "memory",
    {"memory.limit_in_bytes", NULL, "memory.usage_in_bytes", "total_inactive_file "},
    {"memory.max", "memory.high", "memory.current", "inactive_file "},
};
static const struct controller tasks = {
    "pids",
    {"pids.max", NULL, "pids.current", NULL},
    {"pids.max", NULL, "pids.current", NULL},
};

/* The number behind `name` in a file (at its beginning where `name` is NULL); UINT64_MAX when there is none ("max"). */
static uint64_t number_in(const char *folder, const char *file, const char *name) {
    char path[PATH_MAX], line[256];
    uint64_t number = UINT64_MAX;
    if (snprintf(path, sizeof path, "%s/%s", folder, file) >= (int)sizeof path) return number;
    FILE *stream = fopen(path, "re");
    while (stream != NULL && number == UINT64_MAX && fgets(line, sizeof line, stream) != NULL) {
        size_t skip = name == NULL ? 0 : strlen(name);
        if (name != NULL && strncmp(line, name, skip) != 0) continue;
        if (sscanf(line + skip, "%" SCNu64, &number) != 1 && name == NULL) break;
    }
    if (stream != NULL) fclose(stream);
    return number;
}

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static uint64_t left_in(const char *folder, const struct cgroup_files *files) {
    uint64_t limit = number_in(folder, files->limit, NULL), usage = number_in(folder, files->usage, NULL);
    if (files->brake != NULL) limit = least(limit, number_in(folder, files->brake, NULL));
    if (limit == UINT64_MAX || usage == UINT64_MAX) return UINT64_MAX;
    uint64_t cache = files->cache != NULL ? number_in(folder, "memory.stat", files->cache) : UINT64_MAX;
    if (cache != UINT64_MAX) usage -= cache < usage ? cache : usage;
    return limit > usage ? limit - usage : 0;
}

/* The group at `path` below `mount` and all above it. In a container the path may be the host's: then the root of the
 * mount is the container's own group. */
static uint64_t left_up_from(const char *root, const char *mount, const char *path, const struct cgroup_files *files) {
    char folder[PATH_MAX];
    uint64_t left = UINT64_MAX;
    if (snprintf(folder, sizeof folder, "%s%s%s", root, mount, path) >= (int)sizeof folder) return left;
    size_t top = strlen(root) + strlen(mount);
    for (;;) {
        left = least(left, left_in(folder, files));
        char *slash = strrchr(folder, '/');
        if (slash == NULL || (size_t)(slash - folder) < top) return left;
        *slash = '\0';
    }
}

static uint64_t left_by(const struct controller *controller) {
    const char *root = sysfs();
    uint64_t left = UINT64_MAX;
    FILE *file = proc_open("self/cgroup");
    char line[PATH_MAX];
    while (file != NULL && fgets(line, sizeof line, file) != NULL) { /* hierarchy:controllers:path */
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':'), *path = controllers == NULL ? NULL : strchr(controllers + 1, ':');
        if (path == NULL) continue;
        *path++ = '\0';
        controllers++;
        if (*controllers == '\0') {
            left = least(left, left_up_from(root, "/fs/cgroup", path, &controller->version_2));
            left = least(left, left_up_from(root, "/fs/cgroup/unified", path, &controller->version_2));
        }
        for (char *rest = controllers, *name; (name = strtok_r(rest, ",", &rest)) != NULL;)
            if (strcmp(name, controller->name) == 0) {
                char mount[64];
                snprintf(mount, sizeof mount, "/fs/cgroup/%s", name);
                left = least(left, left_up_from(root, mount, path, &controller->version_1));
            }
    }
    if (file != NULL) fclose(file);
    return left;
}

uint64_t cgroup_left(void) {
    return left_by(&memory);
}

uint64_t cgroup_tasks_left(void) {
    return left_by(&tasks);
}

/* `column` of /proc/self/statm counts what the limit is on. */
static uint64_t ulimit_left(const struct rlimit *limit, size_t column) {
    unsigned long pages[7] = {0}; /* /proc/self/statm: size resident shared text library data dirty */
    if (limit->rlim_cur == RLIM_INFINITY) return UINT64_MAX;
    FILE *file = proc_open("self/statm");
    if (file != NULL) {
        for (size_t i = 0; i < 7 && fscanf(file, "%lu", &pages[i]) == 1; i++) continue;
        fclose(file);
    }
    uint64_t used = (uint64_t)pages[column] * (uint64_t)sysconf(_SC_PAGESIZE);
    return limit->rlim_cur > used ? limit->rlim_cur - used : 0;
}

struct limit memory_limit_in_all(void) {
    struct rlimit addresses = {.rlim_cur = RLIM_INFINITY}, data = addresses;
    if (getrlimit(RLIMIT_AS, &addresses) != 0 || getrlimit(RLIMIT_DATA, &data) != 0)
        fail(EXIT_NOT_AS_ASKED, "the limits of this process cannot be read: %s", strerror(errno));
    const struct limit limits[] = {
        {cgroup_left(), "left in the control group"},
        {ulimit_left(&addresses, 0), "left by ulimit -v"},
        {ulimit_left(&data, 5), "left by ulimit -d"},
    };
    struct limit tightest = limits[0];
    for (size_t i = 1; i < sizeof limits / sizeof *limits; i++)
        if (limits[i].bytes < tightest.bytes) tightest = limits[i];
    return tightest;
}

static bool has_room_for(size_t stack) {
    void *bytes = mmap(NULL, stack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (bytes != MAP_FAILED) munmap(bytes, stack);
    return bytes != MAP_FAILED;
}

void thread_obstacle(int error, size_t stack, struct text *sentence) {
    struct rlimit own = {.rlim_cur = RLIM_INFINITY};
    bool limited = geteuid() != 0 && getrlimit(RLIMIT_NPROC, &own) == 0 && own.rlim_cur != RLIM_INFINITY;
    if (error == EINVAL)
        text_add(sentence, "The CPU is offline or outside the cpuset; choose others with --cpus.");
    else if (error != EAGAIN && error != ENOMEM)
        text_add(sentence, "Check what restricts the threads of this process.");
    else if (cgroup_tasks_left() == 0)
        text_add(sentence, "The control group is full; raise its pids.max (TasksMax in systemd).");
    else if (!has_room_for(stack))
        text_add(sentence, "No memory is left for its stack; free memory or raise ulimit -v.");
    else if (limited)
        text_add(sentence, "ulimit -u allows this user %llu processes and threads; raise it.",
                 (unsigned long long)own.rlim_cur);
    else
        text_add(sentence, "Raise pids.max of the control group, ulimit -u or kernel.threads-max, or free memory.");
}

struct limit memory_limit(const struct machine *machine, int node) {
    struct limit all = memory_limit_in_all(), own = {machine_free_bytes(machine, node), "free on the NUMA node"};
    return own.bytes <= all.bytes ? own : all;
}
