/* Large memory with a home and a kind of page, both proved after it was touched. */
#ifndef NODEPRINT_BUFFER_H
#define NODEPRINT_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "machine.h"
#include "text.h"
#include "workers.h"

/* PAGES_HUGE: reserved, of the system's default size; PAGES_GIGANTIC: reserved, of 1 GiB. */
enum page_kind { PAGES_BASE, PAGES_TRANSPARENT, PAGES_HUGE, PAGES_GIGANTIC };

enum { GIGANTIC_BYTES = 1 << 30 };

/* "base", "thp" or "huge"; ends the process with 2 on another word. */
enum page_kind page_kind_of(const char *word);

struct buffer {
    unsigned char *bytes;
    size_t size;
    int home;
    bool bound;
    const char *verified_by; /* as in struct pool */
    const char *pages;       /* read back: "base", "thp", "huge", or "mixed": some of both */
    size_t huge_bytes;       /* bytes in huge pages, of either kind */
    size_t page_bytes;       /* of its pages; where there are some of both those of a base page */
};

/* Map memory of no page yet, aligned, with a page on either side that cannot be touched: two mappings that meet become one in
 * /proc. NULL where it cannot be had. */
unsigned char *buffer_map(size_t size, size_t align);

/* Whether this system gives transparent huge pages of up to 32 MiB: it is asked for one. */
bool buffer_huge_pages_work(void);

/* Of `wanted` bytes what memory of `node` allows with room to spare, for `buffers` such buffers at once, one a node. */
size_t buffer_affordable(const struct machine *machine, int node, size_t wanted, size_t buffers);

/* Bytes of a reserved huge page of the system's default size. */
size_t buffer_reserved_page(void);

/* How many reserved huge pages of `page` bytes are free on `node`. */
unsigned long buffer_reserved_free(const struct machine *machine, int node, size_t page);

/* Ends the process with 3 and the figure where `size` bytes on `home` cannot be had. */
void buffer_require_room(const struct machine *machine, int home, size_t size);

/* Map, bind, touch and verify. Ends the process with 3 and the figure when it cannot be had. Transparent huge pages are
 * a wish: `pages` says what came of it. */
struct buffer buffer_create(const struct machine *machine, struct workers *workers, int home, size_t size,
                            enum page_kind pages);

/* The same, not bound: it lies where worker `toucher`, the first to touch it, has its home. */
struct buffer buffer_first_touched(const struct machine *machine, struct workers *workers, size_t toucher, size_t size,
                                   enum page_kind pages);

/* Give a bound buffer's pages back and touch it anew, in pages of the other kind; for a change to transparent huge pages
 * it was created with them. Ends the process with 3 as buffer_create. */
void buffer_change_pages(struct buffer *buffer, const struct machine *machine, struct workers *workers,
                         enum page_kind pages);

void buffer_free(struct buffer *buffer);

/* {"bytes":..,"bound":..,"verified_by":"..","pages":"..","huge_bytes":..} */
void buffer_describe(const struct buffer *buffer, struct text *out);

#endif
