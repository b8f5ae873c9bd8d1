#include "buffer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fail.h"
#include "headroom.h"
#include "memory.h"
#include "proc.h"

enum {
    SPARE_BYTES = 64 << 20,      /* what is left to everything else */
    MOST_UNUSED_BYTES = 2 << 20, /* that a buffer is rounded up by, unless it is large */
};

enum page_kind page_kind_of(const char *word) {
    static const char *const words[] = {"base", "thp", "huge"};
    for (int i = 0; i < 3; i++)
        if (strcmp(word, words[i]) == 0) return (enum page_kind)i;
    fail(EXIT_BAD_INPUT, "--pages takes base, thp or huge, not %s", word);
}

static size_t base_page(void) {
    return (size_t)sysconf(_SC_PAGESIZE);
}

size_t buffer_reserved_page(void) {
    FILE *file = proc_open("meminfo");
    char line[256];
    unsigned long kib = 0;
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "Hugepagesize: %lu kB", &kib) == 1) break;
    if (file != NULL) fclose(file);
    return kib > 0 ? kib << 10 : (size_t)2 << 20;
}

/* Bytes of the pages that `size` bytes are made of. A transparent huge page has a size of its own (512 MiB with base
 * pages of 64 KiB) and is asked for only where rounding up to it costs little. */
static size_t page_for(enum page_kind pages, size_t size) {
    char content[64];
    if (pages == PAGES_GIGANTIC) return GIGANTIC_BYTES;
    if (pages == PAGES_HUGE) return buffer_reserved_page();
    if (pages == PAGES_BASE || !read_sysfs(content, sizeof content, "kernel/mm/transparent_hugepage/hpage_pmd_size"))
        return base_page();
    size_t huge = strtoul(content, NULL, 10);
    if (huge == 0) return base_page();
    size_t rest = (huge - size % huge) % huge;
    return rest <= MOST_UNUSED_BYTES || rest <= size / 4 ? huge : base_page();
}

static uint64_t usable(uint64_t bytes) {
    return bytes > SPARE_BYTES ? (bytes - SPARE_BYTES) / 4 * 3 : 0;
}

size_t buffer_affordable(const struct machine *machine, int node, size_t wanted, size_t buffers) {
    uint64_t own = usable(machine_free_bytes(machine, node)), all = usable(memory_limit_in_all().bytes) / buffers;
    uint64_t least = own < all ? own : all;
    size_t page = page_for(PAGES_TRANSPARENT, wanted);
    return least >= wanted ? wanted : (size_t)least / page * page;
}

void buffer_require_room(const struct machine *machine, int home, size_t size) {
    struct limit limit = memory_limit(machine, home);
    if (limit.bytes < size || limit.bytes - size < SPARE_BYTES) /* a bound page on a full node ends in an OOM kill */
        fail(EXIT_NOT_AS_ASKED, "%zu MiB on NUMA node %d cannot be had: %" PRIu64 " MiB are %s, and %d stay unused",
             size >> 20, home, limit.bytes >> 20, limit.what, SPARE_BYTES >> 20);
}

unsigned long buffer_reserved_free(const struct machine *machine, int node, size_t page) {
    char content[64];
    bool known =
        machine->numa
            ? read_sysfs(content, sizeof content, "devices/system/node/node%d/hugepages/hugepages-%zukB/free_hugepages",
                         node, page >> 10)
            : read_sysfs(content, sizeof content, "kernel/mm/hugepages/hugepages-%zukB/free_hugepages", page >> 10);
    return known ? strtoul(content, NULL, 10) : 0;
}

static void require_huge_pages(const struct machine *machine, int home, size_t size, size_t page) {
    unsigned long free_pages = buffer_reserved_free(machine, home, page);
    if (free_pages < size / page)
        fail(EXIT_NOT_AS_ASKED,
             "%zu huge pages of %zu KiB are needed on NUMA node %d and %lu are free: reserve them (vm.nr_hugepages), "
             "or use "
             "--pages thp",
             size / page, page >> 10, home, free_pages);
}

unsigned char *buffer_map(size_t size, size_t align) {
    size_t page = base_page(), total = size + align + 2 * page;
    unsigned char *outer = mmap(NULL, total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (outer == MAP_FAILED) return NULL;
    uintptr_t first = ((uintptr_t)outer + page + align - 1) / align * align;
    unsigned char *inner = outer + (first - (uintptr_t)outer);
    munmap(outer, (size_t)(inner - outer) - page);
    unsigned char *end = inner + size + page;
    munmap(end, (size_t)(outer + total - end));
    return mprotect(inner, size, PROT_READ | PROT_WRITE) == 0 ? inner : NULL;
}

bool buffer_huge_pages_work(void) {
    enum { MOST_BYTES = 32 << 20 };
    char content[64];
    if (!read_sysfs(content, sizeof content, "kernel/mm/transparent_hugepage/hpage_pmd_size")) return false;
    size_t size = strtoul(content, NULL, 10);
    if (size == 0 || size > MOST_BYTES) return false;
    unsigned char *bytes = buffer_map(size, size);
    if (bytes == NULL) return false;
    bool work = madvise(bytes, size, MADV_HUGEPAGE) == 0;
    memset(bytes, 1, size);
    work = work && smaps_huge_bytes(bytes) == size;
    munmap(bytes, size);
    return work;
}

static bool is_reserved(enum page_kind pages) {
    return pages == PAGES_HUGE || pages == PAGES_GIGANTIC;
}

/* Memory that some workers touch at once, each a part of whole pages. */
struct touching {
    const struct buffer *buffer;
    size_t part_bytes;
};

static void touch(size_t role, void *argument) {
    const struct touching *touching = argument;
    size_t at = role * touching->part_bytes, size = touching->buffer->size;
    if (at >= size) return;
    size_t bytes = size - at < touching->part_bytes ? size - at : touching->part_bytes;
    memset(touching->buffer->bytes + at, 0, bytes); /* a write: reading would only map the zero page */
}

/* Let these workers touch all of a buffer that has no pages yet, and read back what it got. */
static void fill(struct buffer *buffer, struct workers *workers, const size_t *touchers, size_t count,
                 enum page_kind pages) {
    size_t page = page_for(pages, buffer->size), all = (buffer->size + page - 1) / page;
    struct touching touching = {buffer, (all + count - 1) / count * page};
    if (!is_reserved(pages) &&
        madvise(buffer->bytes, buffer->size, pages == PAGES_BASE ? MADV_NOHUGEPAGE : MADV_HUGEPAGE) != 0 &&
        errno != EINVAL) /* EINVAL: a kernel without huge pages */
        fail(EXIT_NOT_AS_ASKED, "madvise failed: %s", strerror(errno));
    workers_run(workers, touchers, count, touch, &touching);
    buffer->huge_bytes = smaps_huge_bytes(buffer->bytes);
    bool huge = buffer->huge_bytes >= buffer->size;
    buffer->page_bytes = huge ? page : base_page();
    buffer->pages = !huge ? (buffer->huge_bytes > 0 ? "mixed" : "base") : is_reserved(pages) ? "huge" : "thp";
}

static void verify(struct buffer *buffer, const struct machine *machine) {
    buffer->verified_by =
        memory_verify(machine, buffer->bytes, buffer->size, buffer->page_bytes, buffer->home, buffer->bound);
}

static struct buffer create(const struct machine *machine, struct workers *workers, int home, size_t size,
                            enum page_kind pages, bool bind, const size_t *touchers, size_t toucher_count) {
    size_t page = page_for(pages, size);
    struct buffer buffer = {.size = (size + page - 1) / page * page, .home = home};
    if (is_reserved(pages)) {
        int size_flag = pages == PAGES_GIGANTIC ? 30 << MAP_HUGE_SHIFT : 0; /* log2 of its bytes */
        require_huge_pages(machine, home, buffer.size, page);
        buffer.bytes = mmap(NULL, buffer.size, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | size_flag, -1, 0);
        if (buffer.bytes == MAP_FAILED) buffer.bytes = NULL;
    } else {
        buffer_require_room(machine, home, buffer.size);
        buffer.bytes = buffer_map(buffer.size, page);
    }
    if (buffer.bytes == NULL)
        fail(EXIT_NOT_AS_ASKED, "%zu MiB cannot be mapped: %s", buffer.size >> 20, strerror(errno));
    buffer.bound = bind && memory_bind(machine, buffer.bytes, buffer.size, home);
    fill(&buffer, workers, touchers, toucher_count, pages);
    return buffer;
}

struct buffer buffer_create(const struct machine *machine, struct workers *workers, int home, size_t size,
                            enum page_kind pages) {
    size_t *touchers = grow(NULL, workers->count, sizeof *touchers);
    size_t count = memory_touchers(machine, workers, home, touchers);
    struct buffer buffer = create(machine, workers, home, size, pages, true, touchers, count);
    verify(&buffer, machine);
    free(touchers);
    return buffer;
}

void buffer_change_pages(struct buffer *buffer, const struct machine *machine, struct workers *workers,
                         enum page_kind pages) {
    size_t *touchers = grow(NULL, workers->count, sizeof *touchers);
    size_t count = memory_touchers(machine, workers, buffer->home, touchers);
    if (madvise(buffer->bytes, buffer->size, MADV_DONTNEED) != 0)
        fail(EXIT_NOT_AS_ASKED, "pages cannot be given back (madvise: %s)", strerror(errno));
    fill(buffer, workers, touchers, count, pages);
    verify(buffer, machine);
    free(touchers);
}

struct buffer buffer_first_touched(const struct machine *machine, struct workers *workers, size_t toucher, size_t size,
                                   enum page_kind pages) {
    int home = machine_home_of(machine, workers->worker[toucher].cpu), cpu = workers->worker[toucher].cpu;
    struct buffer buffer = create(machine, workers, home, size, pages, false, &toucher, 1);
    /* of nodes that are equally near to one without memory Linux takes any */
    if (home != machine_node_of(machine, cpu)) buffer.home = home = memory_node_at(buffer.bytes, home);
    size_t elsewhere = memory_elsewhere(machine, buffer.bytes, buffer.size, base_page(), home, &buffer.verified_by);
    if (elsewhere > 0 && pages == PAGES_TRANSPARENT) { /* Linux may prefer a huge page of another node to its own's base
                                                        * pages */
        note("huge pages that CPU %d asked for came from another NUMA node than its own (%d): it has base pages", cpu,
             home);
        buffer_free(&buffer);
        buffer = create(machine, workers, home, size, PAGES_BASE, false, &toucher, 1);
        elsewhere = memory_elsewhere(machine, buffer.bytes, buffer.size, base_page(), home, &buffer.verified_by);
    }
    if (elsewhere > 0)
        fail(EXIT_NOT_AS_ASKED,
             "%zu of %zu pages that CPU %d touched first are on another NUMA node than its own (%d), which has too "
             "little free memory",
             elsewhere, buffer.size / base_page(), cpu, home);
    /* where it was touched it stays: automatic NUMA balancing, which moves memory to whoever reads it, passes over bound
     * memory; the header goes on saying that first touch placed it */
    memory_bind(machine, buffer.bytes, buffer.size, home);
    return buffer;
}

void buffer_free(struct buffer *buffer) {
    if (buffer->bytes != NULL) munmap(buffer->bytes, buffer->size);
    *buffer = (struct buffer){0};
}

void buffer_describe(const struct buffer *buffer, struct text *out) {
    text_add(out, "{\"bytes\":%zu,\"home\":%d,\"bound\":%s,\"verified_by\":\"%s\",\"pages\":\"%s\",\"huge_bytes\":%zu}",
             buffer->size, buffer->home, buffer->bound ? "true" : "false", buffer->verified_by, buffer->pages,
             buffer->huge_bytes);
}
