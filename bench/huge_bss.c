/* Linked with a program that has its arrays in static memory: they come in transparent huge pages. */
#define _GNU_SOURCE
#include <stdint.h>
#include <sys/mman.h>

extern char __bss_start[], _end[];

__attribute__((constructor)) static void ask_for_huge_pages(void) {
    uintptr_t page = 2 << 20, from = ((uintptr_t)__bss_start + page - 1) / page * page;
    if (from < (uintptr_t)_end) madvise((void *)from, (uintptr_t)_end - from, MADV_HUGEPAGE);
}
