/* The loops that move memory: a chunk of each of their arrays a call, by vectors of 16, 32 or 64 bytes. */
#ifndef NODEPRINT_STREAMS_H
#define NODEPRINT_STREAMS_H

#include <stdbool.h>
#include <stddef.h>

/* STREAM's names; _mem: stores past the caches (non-temporal), so that nothing is read before it is overwritten; store: what is
 * overwritten comes into the caches first. */
enum stream { LOAD, STORE_MEM, COPY, COPY_MEM, TRIAD, TRIAD_MEM, STORE, STREAMS };
extern const char *const stream_words[];

enum {
    CHUNK_BYTES = 128 << 10, /* of each array */
    TURN_BYTES = 512,        /* of each array: a loop moves whole turns */
    MOST_ARRAYS = 3,
};

/* How many arrays a stream has; each of their bytes is counted once, as STREAM counts. */
size_t stream_arrays(enum stream stream);

/* Move so many bytes of each array that begins at these addresses, multiples of 64; what is stored comes first. `within` is a
 * power of two of bytes less one: after so many the arrays begin again. */
typedef void stream_loop(unsigned char *const array[restrict MOST_ARRAYS], size_t bytes, size_t within);

/* That by the vectors which this CPU has. */
stream_loop *stream_loop_of(enum stream stream);
size_t streams_vector_bytes(void);

#endif
