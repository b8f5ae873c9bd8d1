#define _GNU_SOURCE
#include "child.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "fail.h"
#include "run.h"

enum { BIND = 2, INTERLEAVE = 3, NOT_FOUND = 127, LOOK_EVERY_MS = 50, MOST_NODES = 1024 };

static bool take_affinity(const struct cpulist *cpus) {
    int last = 0;
    for (size_t i = 0; i < cpus->count; i++)
        if (cpus->cpu[i] > last) last = cpus->cpu[i];
    cpu_set_t *mask = CPU_ALLOC((size_t)last + 1);
    size_t bytes = CPU_ALLOC_SIZE((size_t)last + 1);
    if (mask == NULL) return false;
    CPU_ZERO_S(bytes, mask);
    for (size_t i = 0; i < cpus->count; i++) CPU_SET_S((size_t)cpus->cpu[i], bytes, mask);
    bool taken = sched_setaffinity(0, bytes, mask) == 0;
    CPU_FREE(mask);
    return taken;
}

static bool take_memory(const int *nodes, size_t count) {
    enum { BITS = sizeof(unsigned long) * CHAR_BIT };
    unsigned long mask[MOST_NODES / BITS] = {0};
    for (size_t i = 0; i < count; i++) mask[(size_t)nodes[i] / BITS] |= 1ul << ((size_t)nodes[i] % BITS);
    return syscall(SYS_set_mempolicy, count == 1 ? BIND : INTERLEAVE, mask, MOST_NODES + 1ul) == 0 || errno == ENOSYS ||
           errno == EPERM; /* then it lies where its CPUs first touch it, and numa_maps says where that is */
}

bool child_may_bind(void) {
    enum { DEFAULT = 0 };
    return syscall(SYS_set_mempolicy, DEFAULT, NULL, 0ul) == 0;
}

static void clean_environment(void) {
    /* LIKWID_IGNORE_CPUSET, which likwid-pin needs, would take likwid-bench beyond the CPUs that it is given */
    static const char *const named[] = {"LD_PRELOAD",   "LIKWID_PIN",   "LIKWID_SILENT",
                                        "LIKWID_DEBUG", "LIKWID_FORCE", "LIKWID_IGNORE_CPUSET"};
    for (size_t i = 0; i < sizeof named / sizeof *named; i++) unsetenv(named[i]);
    setenv("LC_ALL", "C", 1);
    setenv("LIKWID_NO_ACCESS", "1", 1); /* or it ends where bash, `which` or its daemon for counters is missing */
}

_Noreturn static void become(const struct child *child, int output) {
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    clean_environment();
    if (dup2(output, STDOUT_FILENO) < 0 || dup2(output, STDERR_FILENO) < 0) _exit(NOT_FOUND - 1);
    if (child->cpus != NULL && !take_affinity(child->cpus)) {
        dprintf(STDERR_FILENO, "the CPUs cannot be taken: %s\n", strerror(errno));
        _exit(NOT_FOUND - 1);
    }
    if (child->node_count > 0 && !take_memory(child->nodes, child->node_count)) {
        dprintf(STDERR_FILENO, "memory of the NUMA node cannot be bound: %s\n", strerror(errno));
        _exit(NOT_FOUND - 1);
    }
    union { /* execvp's argument is not const, though it changes nothing */
        const char *const *read_only;
        char *const *taken;
    } arguments = {child->arguments};
    execvp(child->arguments[0], arguments.taken);
    _exit(NOT_FOUND);
}

/* "7f.. bind:0 anon=4096 dirty=4096 N0=4096 kernelpagesize_kB=4": pages of the size at its end. */
void child_count_line(char *line, const int *nodes, size_t node_count, size_t *bytes, size_t *placed) {
    const char *size = strstr(line, " kernelpagesize_kB=");
    size_t page = size != NULL ? strtoul(size + strlen(" kernelpagesize_kB="), NULL, 10) << 10 : 0;
    if (strstr(line, " anon=") == NULL) return;
    if (page == 0) page = (size_t)sysconf(_SC_PAGESIZE);
    for (char *rest = line, *word; (word = strtok_r(rest, " \n", &rest)) != NULL;) {
        int node;
        size_t count;
        if (sscanf(word, "N%d=%zu", &node, &count) != 2) continue;
        *bytes += count * page;
        for (size_t i = 0; i < node_count; i++)
            if (nodes[i] == node) *placed += count * page;
    }
}

static void look_at_pages(struct child *child, pid_t pid) {
    char path[64], line[4096];
    size_t bytes = 0, placed = 0;
    snprintf(path, sizeof path, "/proc/%d/numa_maps", (int)pid);
    FILE *maps = fopen(path, "re");
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL)
        child_count_line(line, child->nodes, child->node_count, &bytes, &placed);
    if (maps != NULL) fclose(maps);
    if (bytes <= child->most_bytes) return;
    child->most_bytes = bytes;
    child->placed_bytes = placed;
}

static void listen(struct child *child, int input, pid_t pid) {
    double end = clock_monotonic_s() + child->seconds;
    char heard[4096];
    for (;;) {
        struct pollfd wait = {.fd = input, .events = POLLIN};
        int ready = poll(&wait, 1, LOOK_EVERY_MS);
        if (run_stopping()) child->exit_code = -1;
        if (clock_monotonic_s() > end) child->exit_code = -2;
        if (child->exit_code < 0) {
            kill(pid, SIGKILL);
            return;
        }
        if (ready == 0 && child->node_count > 0) look_at_pages(child, pid);
        if (ready <= 0) continue;
        ssize_t count = read(input, heard, sizeof heard);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return;
        text_add_bytes(&child->said, heard, (size_t)count);
    }
}

void child_run(struct child *child) {
    int ends[2], status;
    child->said = (struct text){0};
    text_add_bytes(&child->said, "", 0);
    child->exit_code = 0;
    child->most_bytes = child->placed_bytes = 0;
    if (pipe(ends) != 0) fail(EXIT_NOT_AS_ASKED, "no pipe: %s", strerror(errno));
    pid_t pid = fork();
    if (pid < 0) fail(EXIT_NOT_AS_ASKED, "no process: %s", strerror(errno));
    if (pid == 0) become(child, ends[1]);
    close(ends[1]);
    listen(child, ends[0], pid);
    close(ends[0]);
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR) fail(EXIT_NOT_AS_ASKED, "waiting for %s failed: %s", child->arguments[0], strerror(errno));
    if (child->exit_code < 0) return;
    child->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
