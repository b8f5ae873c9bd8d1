/* The loops that move memory: a chunk of each of their arrays a call, by vectors of 16, 32 or 64 bytes. */
#ifndef NODEPRINT_STREAMS_H
#define NODEPRINT_STREAMS_H

#include <stdbool.h>
#include <stddef.h>

/* STREAM's names; _mem: stores past the caches (non-temporal), so that nothing is read before it is overwritten; store: what is
 * overwritten comes into the caches first. READn_WRITE1: a line is read and 1 added to each number of it, and n - 1 lines of
 * another array are read. */
enum stream {
    LOAD,
    STORE_MEM,
    COPY,
    COPY_MEM,
    TRIAD,
    TRIAD_MEM,
    STORE,
    READ3_WRITE1,
    READ2_WRITE1,
    READ1_WRITE1,
    STREAMS
};
extern const char *const stream_words[];

enum {
    STREAM_CHUNK_BYTES = 128 << 10, /* of each array */
    TURN_BYTES = 512,               /* of each array: a loop moves whole turns */
    MOST_ARRAYS = 3,
};

/* How many arrays a stream has; the two lines that READ3_WRITE1 reads are of one, which is twice as large and counts as two. */
size_t stream_arrays(enum stream stream);

/* Bytes that count of a slice of all arrays: each once, as STREAM counts; those that are read and written twice. */
size_t stream_counted(enum stream stream, size_t slice_bytes);

/* Move so many bytes of each array that begins at these addresses, multiples of 64; what is stored comes first. `within` is a
 * power of two of bytes less one: after so many the arrays begin again, but not those of READ3_WRITE1. */
typedef void stream_loop(unsigned char *const array[restrict MOST_ARRAYS], size_t bytes, size_t within);

/* That by the vectors which this CPU has. */
stream_loop *stream_loop_of(enum stream stream);
size_t streams_vector_bytes(void);

/* Move the chunk of each array of a slice that begins `at` bytes behind the array's begin. */
void stream_chunk(enum stream stream, unsigned char *slice, size_t slice_bytes, size_t at);

#endif
