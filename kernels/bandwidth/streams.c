#include "bandwidth/streams.h"

const char *const stream_words[] = {"load", "store_mem", "copy", "copy_mem", "triad", "triad_mem", NULL};

typedef double lanes __attribute__((vector_size(16)));
enum { LANES_A_CHUNK = CHUNK_BYTES / sizeof(lanes), LANES_A_LINE = 4 };

static const double SCALAR = 3.0;

/* A cache line in registers. In an array compilers would keep it on the stack. */
struct line {
    lanes a, b, c, d;
};

/* By instructions that compilers can neither leave out nor turn into a call of memcpy. Of sums of what is read, which
 * they may keep on the stack, a core would wait for its own stores. */
static inline struct line load_line(const lanes *at) {
    struct line line;
#if defined(__x86_64__)
    __asm__ volatile("movapd %4, %0\n\tmovapd %5, %1\n\tmovapd %6, %2\n\tmovapd %7, %3"
                     : "=&x"(line.a), "=&x"(line.b), "=&x"(line.c), "=&x"(line.d)
                     : "m"(at[0]), "m"(at[1]), "m"(at[2]), "m"(at[3]));
#elif defined(__aarch64__)
    __asm__ volatile("ldp %q0, %q1, [%4]\n\tldp %q2, %q3, [%4, #32]"
                     : "=&w"(line.a), "=&w"(line.b), "=&w"(line.c), "=&w"(line.d)
                     : "r"(at), "m"(at[0]), "m"(at[1]), "m"(at[2]), "m"(at[3]));
#else
    const volatile lanes *read = at;
    line = (struct line){read[0], read[1], read[2], read[3]};
#endif
    return line;
}

static inline void store_line(lanes *at, struct line line) {
    at[0] = line.a;
    at[1] = line.b;
    at[2] = line.c;
    at[3] = line.d;
}

static inline void store_line_past_caches(lanes *at, struct line line) {
#if defined(__x86_64__)
    __asm__ volatile("movntpd %4, %0\n\tmovntpd %5, %1\n\tmovntpd %6, %2\n\tmovntpd %7, %3"
                     : "=m"(at[0]), "=m"(at[1]), "=m"(at[2]), "=m"(at[3])
                     : "x"(line.a), "x"(line.b), "x"(line.c), "x"(line.d));
#elif defined(__aarch64__)
    __asm__ volatile("stnp %q4, %q5, [%8]\n\tstnp %q6, %q7, [%8, #32]"
                     : "=m"(at[0]), "=m"(at[1]), "=m"(at[2]), "=m"(at[3])
                     : "w"(line.a), "w"(line.b), "w"(line.c), "w"(line.d), "r"(at));
#else
    store_line(at, line);
#endif
}

static inline struct line triad_line(const lanes *first, const lanes *second) {
    struct line sum = load_line(first), scaled = load_line(second);
    return (struct line){sum.a + SCALAR * scaled.a, sum.b + SCALAR * scaled.b, sum.c + SCALAR * scaled.c,
                         sum.d + SCALAR * scaled.d};
}

__attribute__((noinline)) static void load_chunk(const lanes *from) {
    for (size_t i = 0; i < LANES_A_CHUNK; i += LANES_A_LINE) load_line(&from[i]);
}

__attribute__((noinline)) static void store_mem_chunk(lanes *to) {
    const struct line ones = {{1, 1}, {1, 1}, {1, 1}, {1, 1}};
    for (size_t i = 0; i < LANES_A_CHUNK; i += LANES_A_LINE) store_line_past_caches(&to[i], ones);
}

__attribute__((noinline)) static void copy_chunk(lanes *to, const lanes *from) {
    for (size_t i = 0; i < LANES_A_CHUNK; i += LANES_A_LINE) store_line(&to[i], load_line(&from[i]));
}

__attribute__((noinline)) static void copy_mem_chunk(lanes *to, const lanes *from) {
    for (size_t i = 0; i < LANES_A_CHUNK; i += LANES_A_LINE) store_line_past_caches(&to[i], load_line(&from[i]));
}

__attribute__((noinline)) static void triad_chunk(lanes *to, const lanes *first, const lanes *second) {
    for (size_t i = 0; i < LANES_A_CHUNK; i += LANES_A_LINE) store_line(&to[i], triad_line(&first[i], &second[i]));
}

__attribute__((noinline)) static void triad_mem_chunk(lanes *to, const lanes *first, const lanes *second) {
    for (size_t i = 0; i < LANES_A_CHUNK; i += LANES_A_LINE)
        store_line_past_caches(&to[i], triad_line(&first[i], &second[i]));
}

size_t stream_arrays(enum stream stream) {
    return stream <= STORE_MEM ? 1 : stream <= COPY_MEM ? 2 : 3;
}

void stream_chunk(enum stream stream, unsigned char *const array[MOST_ARRAYS]) {
    lanes *at[MOST_ARRAYS];
    for (size_t i = 0; i < stream_arrays(stream); i++) at[i] = (lanes *)(void *)array[i];
    switch (stream) {
    case LOAD:
        load_chunk(at[0]);
        break;
    case STORE_MEM:
        store_mem_chunk(at[0]);
        break;
    case COPY:
        copy_chunk(at[0], at[1]);
        break;
    case COPY_MEM:
        copy_mem_chunk(at[0], at[1]);
        break;
    case TRIAD:
        triad_chunk(at[0], at[1], at[2]);
        break;
    case TRIAD_MEM:
        triad_mem_chunk(at[0], at[1], at[2]);
        break;
    case STREAMS:
        break;
    }
}
