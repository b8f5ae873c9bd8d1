#include "streams.h"

#include <stdint.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

const char *const stream_words[] = {"load",  "store_mem",    "copy",         "copy_mem",     "triad", "triad_mem",
                                    "store", "read3_write1", "read2_write1", "read1_write1", NULL};

enum { LINE_BYTES = 64 };
static const double SCALAR = 3.0;

/* Lines are read by instructions that compilers can neither leave out nor turn into a call of memcpy. Of sums of what is
 * read, which they may keep on the stack, a core would wait for its own stores. */
#define INLINE __attribute__((always_inline)) static inline

/* Where a turn begins in an array. Compilers are not to know how, else they calculate it for each line. */
INLINE unsigned char *line_of(unsigned char *array, size_t at) {
    unsigned char *line = array + at;
    __asm__("" : "+r"(line));
    return line;
}

/* ---- vectors of 16 bytes ---- */

typedef double lanes __attribute__((vector_size(16)));

#define TARGET
#define KIND(name) name##_16

struct line_16 {
    lanes a, b, c, d;
};

INLINE struct line_16 ones_16(void) {
    return (struct line_16){{1, 1}, {1, 1}, {1, 1}, {1, 1}};
}

INLINE struct line_16 load_line_16(const unsigned char *bytes) {
    const lanes *at = (const lanes *)(const void *)bytes;
    struct line_16 line;
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
    line = (struct line_16){read[0], read[1], read[2], read[3]};
#endif
    return line;
}

INLINE void store_line_16(unsigned char *bytes, struct line_16 line) {
    lanes *at = (lanes *)(void *)bytes;
    at[0] = line.a;
    at[1] = line.b;
    at[2] = line.c;
    at[3] = line.d;
}

INLINE void store_line_past_caches_16(unsigned char *bytes, struct line_16 line) {
#if defined(__x86_64__)
    lanes *at = (lanes *)(void *)bytes;
    __asm__ volatile("movntpd %4, %0\n\tmovntpd %5, %1\n\tmovntpd %6, %2\n\tmovntpd %7, %3"
                     : "=m"(at[0]), "=m"(at[1]), "=m"(at[2]), "=m"(at[3])
                     : "x"(line.a), "x"(line.b), "x"(line.c), "x"(line.d));
#elif defined(__aarch64__)
    lanes *at = (lanes *)(void *)bytes;
    __asm__ volatile("stnp %q4, %q5, [%8]\n\tstnp %q6, %q7, [%8, #32]"
                     : "=m"(at[0]), "=m"(at[1]), "=m"(at[2]), "=m"(at[3])
                     : "w"(line.a), "w"(line.b), "w"(line.c), "w"(line.d), "r"(at));
#else
    store_line_16(bytes, line);
#endif
}

INLINE struct line_16 triad_line_16(const unsigned char *first, const unsigned char *second) {
    struct line_16 sum = load_line_16(first), scaled = load_line_16(second);
    return (struct line_16){sum.a + SCALAR * scaled.a, sum.b + SCALAR * scaled.b, sum.c + SCALAR * scaled.c,
                            sum.d + SCALAR * scaled.d};
}

INLINE struct line_16 add_lines_16(struct line_16 first, struct line_16 second) {
    return (struct line_16){first.a + second.a, first.b + second.b, first.c + second.c, first.d + second.d};
}

#include "loops.h"

/* ---- vectors of 32 bytes ---- */

#if defined(__x86_64__)

#define TARGET __attribute__((target("avx2,fma")))
#define KIND(name) name##_32

struct line_32 {
    __m256d a, b;
};

TARGET INLINE struct line_32 ones_32(void) {
    return (struct line_32){_mm256_set1_pd(1), _mm256_set1_pd(1)};
}

TARGET INLINE struct line_32 load_line_32(const unsigned char *bytes) {
    const __m256d *at = (const __m256d *)(const void *)bytes;
    struct line_32 line;
    __asm__ volatile("vmovapd %2, %0\n\tvmovapd %3, %1" : "=&x"(line.a), "=&x"(line.b) : "m"(at[0]), "m"(at[1]));
    return line;
}

TARGET INLINE void store_line_32(unsigned char *bytes, struct line_32 line) {
    __m256d *at = (__m256d *)(void *)bytes;
    at[0] = line.a;
    at[1] = line.b;
}

TARGET INLINE void store_line_past_caches_32(unsigned char *bytes, struct line_32 line) {
    __m256d *at = (__m256d *)(void *)bytes;
    __asm__ volatile("vmovntpd %2, %0\n\tvmovntpd %3, %1" : "=m"(at[0]), "=m"(at[1]) : "x"(line.a), "x"(line.b));
}

TARGET INLINE struct line_32 triad_line_32(const unsigned char *first, const unsigned char *second) {
    struct line_32 sum = load_line_32(first), scaled = load_line_32(second);
    __m256d scalar = _mm256_set1_pd(SCALAR);
    return (struct line_32){_mm256_fmadd_pd(scaled.a, scalar, sum.a), _mm256_fmadd_pd(scaled.b, scalar, sum.b)};
}

TARGET INLINE struct line_32 add_lines_32(struct line_32 first, struct line_32 second) {
    return (struct line_32){_mm256_add_pd(first.a, second.a), _mm256_add_pd(first.b, second.b)};
}

#include "loops.h"

/* ---- vectors of 64 bytes ---- */

#define TARGET __attribute__((target("avx512f")))
#define KIND(name) name##_64

struct line_64 {
    __m512d a;
};

TARGET INLINE struct line_64 ones_64(void) {
    return (struct line_64){_mm512_set1_pd(1)};
}

TARGET INLINE struct line_64 load_line_64(const unsigned char *bytes) {
    struct line_64 line;
    __asm__ volatile("vmovapd %1, %0" : "=v"(line.a) : "m"(*(const __m512d *)(const void *)bytes));
    return line;
}

TARGET INLINE void store_line_64(unsigned char *bytes, struct line_64 line) {
    __m512d *at = (__m512d *)(void *)bytes;
    *at = line.a;
}

TARGET INLINE void store_line_past_caches_64(unsigned char *bytes, struct line_64 line) {
    __m512d *at = (__m512d *)(void *)bytes;
    __asm__ volatile("vmovntpd %1, %0" : "=m"(*at) : "v"(line.a));
}

TARGET INLINE struct line_64 triad_line_64(const unsigned char *first, const unsigned char *second) {
    struct line_64 sum = load_line_64(first), scaled = load_line_64(second);
    return (struct line_64){_mm512_fmadd_pd(scaled.a, _mm512_set1_pd(SCALAR), sum.a)};
}

TARGET INLINE struct line_64 add_lines_64(struct line_64 first, struct line_64 second) {
    return (struct line_64){_mm512_add_pd(first.a, second.a)};
}

#include "loops.h"

#endif

/* ---- */

size_t streams_vector_bytes(void) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f")) return 64;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return 32;
#endif
    return 16;
}

size_t stream_arrays(enum stream stream) {
    static const size_t arrays[STREAMS] = {
        [LOAD] = 1,      [STORE_MEM] = 1, [COPY] = 2,         [COPY_MEM] = 2,     [TRIAD] = 3,
        [TRIAD_MEM] = 3, [STORE] = 1,     [READ3_WRITE1] = 3, [READ2_WRITE1] = 2, [READ1_WRITE1] = 1};
    return arrays[stream];
}

size_t stream_counted(enum stream stream, size_t slice_bytes) {
    return slice_bytes + (stream >= READ3_WRITE1 ? slice_bytes / stream_arrays(stream) : 0);
}

stream_loop *stream_loop_of(enum stream stream) {
#if defined(__x86_64__)
    size_t bytes = streams_vector_bytes();
    if (bytes == 64) return loops_64[stream];
    if (bytes == 32) return loops_32[stream];
#endif
    return loops_16[stream];
}

void stream_chunk(enum stream stream, unsigned char *slice, size_t slice_bytes, size_t at) {
    size_t arrays = stream_arrays(stream), array_bytes = slice_bytes / arrays;
    unsigned char *array[MOST_ARRAYS] = {NULL};
    for (size_t i = 0; i < arrays; i++) array[i] = slice + i * array_bytes + at;
    if (stream == READ3_WRITE1) array[1] += at; /* of which a chunk is twice as large */
    stream_loop_of(stream)(array, STREAM_CHUNK_BYTES, SIZE_MAX);
}
