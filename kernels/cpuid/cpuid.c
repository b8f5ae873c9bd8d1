/* cpuid: what each processor says of its place on the chip, in the format of hwloc-gather-cpuid. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/cpulist.h"
#include "harness/fail.h"
#include "harness/machine.h"

static const char help[] =
    "USAGE\n"
    "  cpuid DIR      store what CPUID says of topology and caches, a file for each CPU that this process may use\n"
    "  example: kernels/build/cpuid /tmp/cpuid && nodeprint topology --cpuid /tmp/cpuid\n"
    "\n"
    "REQUIREMENTS\n"
    "  Linux on x86. No root.\n"
    "\n"
    "OVERHEAD\n"
    "  A millisecond on each CPU.\n"
    "\n"
    "WARNING\n"
    "  A virtual machine answers what its hypervisor makes up.\n";

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>

enum { EAX, EBX, ECX, EDX, REGISTERS };
enum { USES_EAX = 1, USES_ECX = 4, MOST_SUBLEAVES = 32 };

/* NOLINTNEXTLINE(readability-non-const-parameter): the macro writes it */
static void ask(unsigned leaf, unsigned subleaf, unsigned answer[REGISTERS]) {
    __cpuid_count(leaf, subleaf, answer[EAX], answer[EBX], answer[ECX], answer[EDX]);
}

static void store(FILE *file, unsigned leaf) {
    unsigned answer[REGISTERS];
    ask(leaf, 0, answer);
    fprintf(file, "%x %x 0 0 0 => %x %x %x %x\n", (unsigned)USES_EAX, leaf, answer[EAX], answer[EBX], answer[ECX],
            answer[EDX]);
}

/* All sub-leaves of `leaf` with the first that says "no more": a register without any of the bits in `more`. */
static void store_subleaves(FILE *file, unsigned leaf, int reg, unsigned more) {
    for (unsigned subleaf = 0; subleaf < MOST_SUBLEAVES; subleaf++) {
        unsigned answer[REGISTERS];
        ask(leaf, subleaf, answer);
        fprintf(file, "%x %x 0 %x 0 => %x %x %x %x\n", (unsigned)(USES_EAX | USES_ECX), leaf, subleaf, answer[EAX],
                answer[EBX], answer[ECX], answer[EDX]);
        if ((answer[reg] & more) == 0) break;
    }
}

static const unsigned CACHE_TYPE = 0x1f, LEVEL_TYPE = 0xff00;

static void store_all(FILE *file) {
    unsigned answer[REGISTERS];
    ask(0, 0, answer);
    unsigned highest = answer[EAX];
    fprintf(file, "# mask e[abcd]x => e[abcd]x\n");
    store(file, 0);
    store(file, 1);
    if (highest >= 4) store_subleaves(file, 4, EAX, CACHE_TYPE);
    if (highest >= 0xb) store_subleaves(file, 0xb, ECX, LEVEL_TYPE);
    if (highest >= 0x1a) store_subleaves(file, 0x1a, EAX, 0); /* the kind of a hybrid's core */
    if (highest >= 0x1f) store_subleaves(file, 0x1f, ECX, LEVEL_TYPE);

    ask(0x80000000, 0, answer);
    highest = answer[EAX];
    if (highest < 0x80000000) return;
    for (unsigned leaf = 0x80000000; leaf <= 0x80000008 && leaf <= highest; leaf++) store(file, leaf);
    ask(0x80000001, 0, answer);
    static const unsigned TOPOLOGY_EXTENSIONS = 1U << 22;
    if ((answer[ECX] & TOPOLOGY_EXTENSIONS) == 0) return;
    if (highest >= 0x8000001d) store_subleaves(file, 0x8000001d, EAX, CACHE_TYPE);
    if (highest >= 0x8000001e) store(file, 0x8000001e);
    if (highest >= 0x80000026) store_subleaves(file, 0x80000026, ECX, LEVEL_TYPE);
}

static void move_to(int cpu) {
    size_t count = (size_t)cpu + 1;
    cpu_set_t *mask = CPU_ALLOC(count);
    if (mask == NULL) fail(EXIT_NOT_AS_ASKED, "out of memory");
    CPU_ZERO_S(CPU_ALLOC_SIZE(count), mask);
    CPU_SET_S((size_t)cpu, CPU_ALLOC_SIZE(count), mask);
    if (sched_setaffinity(0, CPU_ALLOC_SIZE(count), mask) != 0)
        fail(EXIT_NOT_AS_ASKED, "cannot run on CPU %d (%s)", cpu, strerror(errno));
    CPU_FREE(mask);
}

static FILE *create(const char *folder, const char *name) {
    char path[4096];
    int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (length < 0 || (size_t)length >= sizeof path) fail(EXIT_BAD_INPUT, "the folder's name is too long");
    /* no link is followed, and no pipe or device is opened in earnest: only a file of the dump is overwritten */
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    struct stat facts;
    if (fd < 0 || fstat(fd, &facts) != 0) fail(EXIT_BAD_INPUT, "%s: cannot be written (%s)", path, strerror(errno));
    if (!S_ISREG(facts.st_mode)) fail(EXIT_BAD_INPUT, "%s is not a regular file", path);
    FILE *file = ftruncate(fd, 0) == 0 ? fdopen(fd, "w") : NULL;
    if (file == NULL) fail(EXIT_BAD_INPUT, "%s: cannot be written (%s)", path, strerror(errno));
    return file;
}

static void close_written(FILE *file, const char *folder) {
    int broken = ferror(file);
    if (fclose(file) != 0 || broken != 0) fail(EXIT_BAD_INPUT, "%s: cannot be written (%s)", folder, strerror(errno));
}

static void dump(const char *folder) {
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        fail(EXIT_BAD_INPUT, "%s: cannot be made (%s)", folder, strerror(errno));
    struct cpulist allowed;
    if (!machine_affinity(sched_getaffinity, &allowed))
        fail(EXIT_NOT_AS_ASKED, "the CPUs allowed to this process cannot be read (sched_getaffinity: %s)",
             strerror(errno));
    for (size_t i = 0; i < allowed.count; i++) {
        char name[32];
        snprintf(name, sizeof name, "pu%d", allowed.cpu[i]);
        FILE *file = create(folder, name);
        move_to(allowed.cpu[i]);
        store_all(file);
        close_written(file, folder);
    }
    FILE *info = create(folder, "hwloc-cpuid-info");
    fputs("Architecture: x86\n", info);
    close_written(info, folder);
    cpulist_free(&allowed);
}
#else
static _Noreturn void dump(const char *folder) {
    fail(EXIT_NOT_AS_ASKED, "%s is not written: only x86 has CPUID", folder);
}
#endif

int main(int argc, char **argv) {
    fail_set_name("cpuid");
    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        fputs(help, stdout);
        return EXIT_DONE;
    }
    if (argc != 2 || argv[1][0] == '-' || argv[1][0] == '\0')
        fail(EXIT_BAD_INPUT, "give one folder, as in `cpuid DIR` (see cpuid --help)");
    dump(argv[1]);
    return EXIT_DONE;
}
