/* The loops of the streams by one kind of vectors; streams.c includes them once for each. KIND(name) is that kind's `name`:
 * `line`, a cache line in registers (in an array compilers would keep it on the stack), and what reads, stores and calculates
 * one. TARGET is the attribute of functions that have its instructions. */

TARGET __attribute__((noinline)) static void KIND(load_chunk)(unsigned char *const array[MOST_ARRAYS]) {
    for (size_t i = 0; i < CHUNK_BYTES; i += LINE_BYTES) KIND(load_line)(&array[0][i]);
}

TARGET __attribute__((noinline)) static void KIND(store_mem_chunk)(unsigned char *const array[MOST_ARRAYS]) {
    unsigned char *to = array[0];
    struct KIND(line) ones = KIND(ones)();
    for (size_t i = 0; i < CHUNK_BYTES; i += LINE_BYTES) KIND(store_line_past_caches)(&to[i], ones);
}

TARGET __attribute__((noinline)) static void KIND(copy_chunk)(unsigned char *const array[MOST_ARRAYS]) {
    unsigned char *to = array[0];
    const unsigned char *from = array[1];
    for (size_t i = 0; i < CHUNK_BYTES; i += LINE_BYTES) KIND(store_line)(&to[i], KIND(load_line)(&from[i]));
}

TARGET __attribute__((noinline)) static void KIND(copy_mem_chunk)(unsigned char *const array[MOST_ARRAYS]) {
    unsigned char *to = array[0];
    const unsigned char *from = array[1];
    for (size_t i = 0; i < CHUNK_BYTES; i += LINE_BYTES)
        KIND(store_line_past_caches)(&to[i], KIND(load_line)(&from[i]));
}

TARGET __attribute__((noinline)) static void KIND(triad_chunk)(unsigned char *const array[MOST_ARRAYS]) {
    unsigned char *to = array[0];
    const unsigned char *first = array[1], *second = array[2];
    for (size_t i = 0; i < CHUNK_BYTES; i += LINE_BYTES)
        KIND(store_line)(&to[i], KIND(triad_line)(&first[i], &second[i]));
}

TARGET __attribute__((noinline)) static void KIND(triad_mem_chunk)(unsigned char *const array[MOST_ARRAYS]) {
    unsigned char *to = array[0];
    const unsigned char *first = array[1], *second = array[2];
    for (size_t i = 0; i < CHUNK_BYTES; i += LINE_BYTES)
        KIND(store_line_past_caches)(&to[i], KIND(triad_line)(&first[i], &second[i]));
}

static stream_loop *const KIND(loops)[STREAMS] = {KIND(load_chunk),     KIND(store_mem_chunk), KIND(copy_chunk),
                                                  KIND(copy_mem_chunk), KIND(triad_chunk),     KIND(triad_mem_chunk)};

#undef KIND
#undef TARGET
