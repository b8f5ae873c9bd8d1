/* A machine of two NUMA nodes on one that has one: LD_PRELOAD for bench/faults.py. No page can lie on a node that is not
 * there, so the answers of the system are made up. mbind always succeeds, and move_pages says of a page the node that its
 * memory was bound to last. ELSEWHERE says what is wrong with the first page of each buffer: "placed" (it never was on
 * its node), "moved" (it is not from the second question on, until it is put back), "stuck" (and cannot be put back). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

enum { MOST = 4096, BITS = sizeof(unsigned long) * CHAR_BIT };

static struct {
    uintptr_t begin, end;
    int node, questions, put_back;
} bound[MOST];
static size_t count;

static long bind(uintptr_t begin, uintptr_t size, const unsigned long *mask) {
    int node = 0;
    while ((mask[node / BITS] >> (node % BITS) & 1) == 0) node++;
    size_t i = 0;
    while (i < count && bound[i].begin != begin) i++;
    if (i == MOST) abort();
    if (i == count) count++;
    bound[i].begin = begin;
    bound[i].end = begin + size;
    bound[i].node = node;
    bound[i].questions = bound[i].put_back = 0;
    return 0;
}

static long where(size_t pages, const uintptr_t *address, const int *target, int *status) {
    const char *fault = getenv("ELSEWHERE");
    size_t i = 0;
    while (i < count && (address[0] < bound[i].begin || address[0] >= bound[i].end)) i++;
    for (size_t p = 0; p < pages; p++) status[p] = i < count ? bound[i].node : 0;
    if (i == count || fault == NULL) return 0;
    if (target != NULL) bound[i].put_back = 1;
    int from_the_first_on = strcmp(fault, "placed") == 0, stays = strcmp(fault, "moved") != 0;
    bound[i].questions++;
    if ((from_the_first_on || bound[i].questions > 1) && (stays || !bound[i].put_back)) status[0] = !bound[i].node;
    return 0;
}

long syscall(long number, ...) {
    static long (*real)(long, ...);
    va_list list;
    long a[6];
    va_start(list, number);
    for (int i = 0; i < 6; i++) a[i] = va_arg(list, long);
    va_end(list);
    if (number == SYS_mbind) return bind((uintptr_t)a[0], (uintptr_t)a[1], (const unsigned long *)a[3]);
    if (number == SYS_move_pages) return where((size_t)a[1], (const uintptr_t *)a[2], (const int *)a[3], (int *)a[4]);
    if (real == NULL) *(void **)&real = dlsym(RTLD_NEXT, "syscall");
    return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
