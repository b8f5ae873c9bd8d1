/* The loops of the streams by one kind of vectors; streams.c includes them once for each. KIND(name) is that kind's `name`:
 * `line`, a cache line in registers (in an array compilers would keep it on the stack), and what reads, stores and calculates
 * one. TARGET is the attribute of functions that have its instructions.
 *
 * A turn MOVEs eight lines: from the L1 two vectors come in a cycle, and counting must not take longer.
 * `to`, `from`, `first` and `second` are where these are in the arrays. */
#ifndef TURN
#define TURN(MOVE) MOVE(0) MOVE(64) MOVE(128) MOVE(192) MOVE(256) MOVE(320) MOVE(384) MOVE(448)
#define CHUNK(stream, ARRAYS, MOVE)                                                                                    \
    TARGET __attribute__((noinline)) static void KIND(stream##_chunk)(                                                 \
        unsigned char *const array[restrict MOST_ARRAYS], size_t bytes, size_t within) {                               \
        for (size_t done = 0; done < bytes; done += TURN_BYTES) {                                                      \
            ARRAYS                                                                                                     \
            TURN(MOVE)                                                                                                 \
        }                                                                                                              \
    }

#define ARRAY(number) line_of(array[number], done &within)
#define READ const unsigned char *from = ARRAY(0);
#define STORED unsigned char *to = ARRAY(0);
#define COPIED STORED const unsigned char *from = ARRAY(1);
#define ADDED STORED const unsigned char *first = ARRAY(1), *second = ARRAY(2);
#define READ_TWICE STORED const unsigned char *from = line_of(array[1], 2 * done);

#define MOVE_LOAD(i) KIND(load_line)(from + (i));
#define MOVE_STORE(i) KIND(store_line)(to + (i), KIND(ones)());
#define MOVE_STORE_MEM(i) KIND(store_line_past_caches)(to + (i), KIND(ones)());
#define MOVE_COPY(i) KIND(store_line)(to + (i), KIND(load_line)(from + (i)));
#define MOVE_COPY_MEM(i) KIND(store_line_past_caches)(to + (i), KIND(load_line)(from + (i)));
#define MOVE_TRIAD(i) KIND(store_line)(to + (i), KIND(triad_line)(first + (i), second + (i)));
#define MOVE_TRIAD_MEM(i) KIND(store_line_past_caches)(to + (i), KIND(triad_line)(first + (i), second + (i)));
#define MOVE_READ1_WRITE1(i) KIND(store_line)(to + (i), KIND(add_lines)(KIND(load_line)(to + (i)), KIND(ones)()));
#define MOVE_READ2_WRITE1(i) MOVE_LOAD(i) MOVE_READ1_WRITE1(i)
#define MOVE_READ3_WRITE1(i) MOVE_LOAD(2 * (size_t)(i)) MOVE_LOAD(2 * (size_t)(i) + 64) MOVE_READ1_WRITE1(i)
#endif

CHUNK(load, READ, MOVE_LOAD)
CHUNK(store, STORED, MOVE_STORE)
CHUNK(store_mem, STORED, MOVE_STORE_MEM)
CHUNK(copy, COPIED, MOVE_COPY)
CHUNK(copy_mem, COPIED, MOVE_COPY_MEM)
CHUNK(triad, ADDED, MOVE_TRIAD)
CHUNK(triad_mem, ADDED, MOVE_TRIAD_MEM)
CHUNK(read1_write1, STORED, MOVE_READ1_WRITE1)
CHUNK(read2_write1, COPIED, MOVE_READ2_WRITE1)
CHUNK(read3_write1, READ_TWICE, MOVE_READ3_WRITE1)

static stream_loop *const KIND(loops)[STREAMS] = {[LOAD] = KIND(load_chunk),
                                                  [STORE_MEM] = KIND(store_mem_chunk),
                                                  [COPY] = KIND(copy_chunk),
                                                  [COPY_MEM] = KIND(copy_mem_chunk),
                                                  [TRIAD] = KIND(triad_chunk),
                                                  [TRIAD_MEM] = KIND(triad_mem_chunk),
                                                  [STORE] = KIND(store_chunk),
                                                  [READ1_WRITE1] = KIND(read1_write1_chunk),
                                                  [READ2_WRITE1] = KIND(read2_write1_chunk),
                                                  [READ3_WRITE1] = KIND(read3_write1_chunk)};

#undef KIND
#undef TARGET
