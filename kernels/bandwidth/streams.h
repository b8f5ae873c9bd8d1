/* The loops that move memory: a chunk of each of their arrays a call, by vectors of 16 or 32 bytes. */
#ifndef NODEPRINT_STREAMS_H
#define NODEPRINT_STREAMS_H

#include <stdbool.h>
#include <stddef.h>

/* STREAM's names; _mem: stores past the caches (non-temporal), so that nothing is read before it is overwritten. */
enum stream { LOAD, STORE_MEM, COPY, COPY_MEM, TRIAD, TRIAD_MEM, STREAMS };
extern const char *const stream_words[];

enum {
    CHUNK_BYTES = 128 << 10, /* of each array */
    MOST_ARRAYS = 3,
};

/* How many arrays a stream has; each of their bytes is counted once, as STREAM counts. */
size_t stream_arrays(enum stream stream);

/* Move the chunks that begin at these addresses, multiples of 64 of `array[0]` and on; what is stored comes first. */
typedef void stream_loop(unsigned char *const array[MOST_ARRAYS]);

/* That by the vectors which this CPU has. */
stream_loop *stream_loop_of(enum stream stream);
size_t streams_vector_bytes(void);

#endif
