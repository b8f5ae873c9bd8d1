#include "load/exercises.h"

#include <string.h>

#include "load/flops.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#include <sys/auxv.h>
#endif

/* Constants without a pattern: the fraction of the golden ratio, and an odd multiplier of full period (Knuth's MMIX). */
static const uint64_t GOLDEN = 0x9e3779b97f4a7c15, MULTIPLIER = 6364136223846793005;

/* Of all exercises but FMA. */
static void words_start(uint64_t *state) {
    for (size_t i = 0; i < MOST_WORDS; i++) state[i] = (i + 1) * GOLDEN;
}

/* ---- multiplication and addition of integers ---- */

enum { CHAINS_OF_INTEGERS = 4 };

static void integer_turns(uint64_t turns, uint64_t *state) {
    uint64_t a = state[0], b = state[1], c = state[2], d = state[3];
    for (; turns > 0; turns--) {
        a = a * MULTIPLIER + GOLDEN;
        b = b * MULTIPLIER + GOLDEN;
        c = c * MULTIPLIER + GOLDEN;
        d = d * MULTIPLIER + GOLDEN;
    }
    state[0] = a, state[1] = b, state[2] = c, state[3] = d;
}

/* So many turns at once are x * factor + term: each square doubles them. */
struct leap {
    uint64_t factor, term;
};

static struct leap leap_over(uint64_t turns) {
    struct leap all = {1, 0}, square = {MULTIPLIER, GOLDEN};
    for (; turns > 0; turns >>= 1) {
        if (turns & 1) all = (struct leap){all.factor * square.factor, all.term * square.factor + square.term};
        square = (struct leap){square.factor * square.factor, square.term * square.factor + square.term};
    }
    return all;
}

static void integer_reference(uint64_t turns, uint64_t *state) {
    struct leap leap = leap_over(turns);
    for (size_t i = 0; i < CHAINS_OF_INTEGERS; i++) state[i] = state[i] * leap.factor + leap.term;
}

/* ---- loads and stores ---- */

void sweep_start(uint64_t *memory, size_t words) {
    for (size_t i = 0; i < words; i++) memory[i] = (i + 1) * GOLDEN;
}

void sweep_turns(uint64_t turns, uint64_t *memory, size_t words) {
    for (; turns > 0; turns--) {
        for (size_t i = 0; i < words; i++) memory[i] = memory[i] * MULTIPLIER + GOLDEN;
        __asm__ volatile("" ::: "memory"); /* each turn loads and stores */
    }
}

size_t sweep_difference(uint64_t turns, const uint64_t *memory, size_t words, uint64_t *expected) {
    struct leap leap = leap_over(turns);
    for (size_t i = 0; i < words; i++) {
        *expected = (i + 1) * GOLDEN * leap.factor + leap.term;
        if (memory[i] != *expected) return i;
    }
    return words;
}

/* ---- units of vectors: eight vectors, as many as a unit has under way ---- */

enum { VECTORS = 8 };

#define EIGHT(x) x(0) x(1) x(2) x(3) x(4) x(5) x(6) x(7)
#define BEGIN(i) VECTOR x##i = LOADED(&state[(size_t)LANES * (i)]);
#define STEP(i) x##i = NEXT(x##i);
#define END(i) STORED(&state[(size_t)LANES * (i)], x##i);
#define TURNS                                                                                                          \
    EIGHT(BEGIN)                                                                                                       \
    for (; turns > 0; turns--) {                                                                                       \
        EIGHT(STEP)                                                                                                    \
    }                                                                                                                  \
    EIGHT(END)

/* The bytes of each half of 32 bytes, or of 16 bytes, change places; so do the words; then GOLDEN is added to each. */
static const uint8_t PLACES[16] = {11, 4, 14, 1, 8, 15, 2, 13, 7, 0, 10, 5, 12, 3, 9, 6};

static void shuffle_reference_of(uint64_t turns, uint64_t *state, size_t lanes) {
    for (size_t vector = 0; vector < VECTORS; vector++)
        for (uint64_t turn = 0; turn < turns; turn++) {
            uint8_t from[32], to[32];
            uint64_t words[4];
            memcpy(from, state + vector * lanes, 8 * lanes);
            for (size_t i = 0; i < 8 * lanes; i++) to[i] = from[i / 16 * 16 + PLACES[i % 16]];
            memcpy(words, to, 8 * lanes);
            for (size_t i = 0; i < lanes; i++) state[vector * lanes + i] = words[(i + 1) % lanes] + GOLDEN;
        }
}

static uint8_t twice(uint8_t byte) {
    return (uint8_t)((byte << 1) ^ ((byte & 0x80) != 0 ? 0x1b : 0));
}

static uint8_t product(uint8_t a, uint8_t b) {
    uint8_t sum = 0;
    for (; b != 0; b >>= 1, a = twice(a))
        if (b & 1) sum ^= a;
    return sum;
}

/* The substitution of AES (FIPS 197, 5.1.1): the inverse in its field, a^254, and an affine map. */
static void substitution_set(uint8_t substitution[256]) {
    for (unsigned byte = 0; byte < 256; byte++) {
        uint8_t square = (uint8_t)byte, inverse = 1;
        for (int bit = 1; bit < 8; bit++) {
            square = product(square, square);
            inverse = product(inverse, square);
        }
        unsigned wide = inverse | (unsigned)inverse << 8;
        substitution[byte] = (uint8_t)(inverse ^ wide >> 7 ^ wide >> 6 ^ wide >> 5 ^ wide >> 4 ^ 0x63);
    }
}

/* A round of AES with GOLDEN as its key. */
static void aes_reference(uint64_t turns, uint64_t *state) {
    uint8_t substitution[256];
    substitution_set(substitution);
    for (size_t vector = 0; vector < VECTORS; vector++)
        for (uint64_t turn = 0; turn < turns; turn++) {
            uint8_t from[16], rows[16], to[16];
            memcpy(from, state + 2 * vector, sizeof from);
            for (size_t i = 0; i < 16; i++) rows[i] = substitution[from[(i + 4 * (i % 4)) % 16]];
            for (size_t i = 0; i < 16; i++) {
                const uint8_t *column = rows + i / 4 * 4;
                uint8_t next = column[(i + 1) % 4];
                to[i] =
                    (uint8_t)(twice(column[i % 4]) ^ twice(next) ^ next ^ column[(i + 2) % 4] ^ column[(i + 3) % 4]);
            }
            memcpy(state + 2 * vector, to, sizeof to);
            state[2 * vector] ^= GOLDEN;
            state[2 * vector + 1] ^= GOLDEN;
        }
}

/* The lower word times GOLDEN without carries, and the words change places. */
static void carryless_reference(uint64_t turns, uint64_t *state) {
    for (size_t vector = 0; vector < VECTORS; vector++)
        for (uint64_t turn = 0; turn < turns; turn++) {
            uint64_t low = state[2 * vector], high = state[2 * vector + 1], sum[2] = {0};
            for (unsigned bit = 0; bit < 64; bit++)
                if (GOLDEN >> bit & 1) {
                    sum[0] ^= low << bit;
                    sum[1] ^= bit > 0 ? low >> (64 - bit) : 0;
                }
            state[2 * vector] = sum[0] ^ high;
            state[2 * vector + 1] = sum[1] ^ low;
        }
}

/* The halves change places, and the CRC-32C of the word (RFC 3720) goes into the lower one. */
static uint64_t half_turned(uint64_t word) {
    return word << 32 | word >> 32;
}

static void crc_reference(uint64_t turns, uint64_t *state) {
    for (size_t i = 0; i < VECTORS; i++)
        for (uint64_t turn = 0; turn < turns; turn++) {
            uint64_t crc = state[i];
            for (int bit = 0; bit < 64; bit++) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0x82f63b78 : 0);
            state[i] = half_turned(state[i]) ^ crc;
        }
}

#if defined(__x86_64__)

#define SHUFFLE_LANES 4
#define LOADED(at) _mm256_loadu_si256((const __m256i *)(const void *)(at))
#define STORED(at, vector) _mm256_storeu_si256((__m256i *)(void *)(at), vector)
#define VECTOR __m256i
#define LANES SHUFFLE_LANES
#define NEXT(x)                                                                                                        \
    _mm256_add_epi64(_mm256_permute4x64_epi64(_mm256_shuffle_epi8(x, places), 0x39),                                   \
                     _mm256_set1_epi64x((int64_t)GOLDEN))
__attribute__((target("avx2"))) static void shuffle_turns(uint64_t turns, uint64_t *state) {
    const __m256i places = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)PLACES));
    TURNS
}
#undef LOADED
#undef STORED
#undef VECTOR
#undef LANES
#undef NEXT

#define LOADED(at) _mm_loadu_si128((const __m128i *)(const void *)(at))
#define STORED(at, vector) _mm_storeu_si128((__m128i *)(void *)(at), vector)
#define VECTOR __m128i
#define LANES 2
#define NEXT(x) _mm_aesenc_si128(x, golden)
__attribute__((target("aes"))) static void aes_turns(uint64_t turns, uint64_t *state) {
    const __m128i golden = _mm_set1_epi64x((int64_t)GOLDEN);
    TURNS
}
#undef NEXT

#define NEXT(x) _mm_xor_si128(_mm_clmulepi64_si128(x, golden, 0), _mm_shuffle_epi32(x, 0x4e))
__attribute__((target("pclmul"))) static void carryless_turns(uint64_t turns, uint64_t *state) {
    const __m128i golden = _mm_set1_epi64x((int64_t)GOLDEN);
    TURNS
}
#undef LOADED
#undef STORED
#undef VECTOR
#undef LANES
#undef NEXT

#define LOADED(at) *(at)
#define STORED(at, word) *(at) = word
#define VECTOR uint64_t
#define LANES 1
#define NEXT(x) half_turned(x) ^ _mm_crc32_u64(0, x)
__attribute__((target("sse4.2"))) static void crc_turns(uint64_t turns, uint64_t *state) {
    TURNS
}
#undef NEXT

static bool has_shuffle(void) {
    return __builtin_cpu_supports("avx2");
}

static bool has_aes(void) {
    return __builtin_cpu_supports("aes");
}

static bool has_carryless(void) {
    return __builtin_cpu_supports("pclmul");
}

static bool has_crc(void) {
    return __builtin_cpu_supports("sse4.2");
}

#elif defined(__aarch64__)

#define SHUFFLE_LANES 2
#define LOADED(at) vld1q_u64(at)
#define STORED(at, vector) vst1q_u64(at, vector)
#define VECTOR uint64x2_t
#define LANES 2
#define NEXT(x) shuffled(x, places, golden)
static inline uint64x2_t shuffled(uint64x2_t x, uint8x16_t places, uint64x2_t golden) {
    uint64x2_t bytes = vreinterpretq_u64_u8(vqtbl1q_u8(vreinterpretq_u8_u64(x), places));
    return vaddq_u64(vextq_u64(bytes, bytes, 1), golden);
}

static void shuffle_turns(uint64_t turns, uint64_t *state) {
    const uint8x16_t places = vld1q_u8(PLACES);
    const uint64x2_t golden = vdupq_n_u64(GOLDEN);
    TURNS
}
#undef NEXT

/* By instructions, as compilers know them only where all of the program is made for them. */
#define NEXT(x) aes_round(x, golden)
static inline uint64x2_t aes_round(uint64x2_t x, uint64x2_t golden) {
    __asm__(".arch_extension crypto\n\t"
            "aese %0.16b, %1.16b\n\taesmc %0.16b, %0.16b\n\t"
            ".arch_extension nocrypto"
            : "+w"(x)
            : "w"(vdupq_n_u64(0)));
    return veorq_u64(x, golden);
}

static void aes_turns(uint64_t turns, uint64_t *state) {
    const uint64x2_t golden = vdupq_n_u64(GOLDEN);
    TURNS
}
#undef NEXT

#define NEXT(x) carryless_product(x, golden)
static inline uint64x2_t carryless_product(uint64x2_t x, uint64x2_t golden) {
    uint64x2_t product_of;
    __asm__(".arch_extension crypto\n\tpmull %0.1q, %1.1d, %2.1d\n\t.arch_extension nocrypto"
            : "=w"(product_of)
            : "w"(x), "w"(golden));
    return veorq_u64(product_of, vextq_u64(x, x, 1));
}

static void carryless_turns(uint64_t turns, uint64_t *state) {
    const uint64x2_t golden = vdupq_n_u64(GOLDEN);
    TURNS
}
#undef LOADED
#undef STORED
#undef VECTOR
#undef LANES
#undef NEXT

#define LOADED(at) *(at)
#define STORED(at, word) *(at) = word
#define VECTOR uint64_t
#define LANES 1
#define NEXT(x) half_turned(x) ^ crc_of(x)
static inline uint64_t crc_of(uint64_t word) {
    uint32_t crc;
    __asm__(".arch_extension crc\n\tcrc32cx %w0, wzr, %1\n\t.arch_extension nocrc" : "=r"(crc) : "r"(word));
    return crc;
}

static void crc_turns(uint64_t turns, uint64_t *state) {
    TURNS
}
#undef NEXT

static bool has_shuffle(void) {
    return true;
}

static bool has_aes(void) {
    return (getauxval(AT_HWCAP) & HWCAP_AES) != 0;
}

static bool has_carryless(void) {
    return (getauxval(AT_HWCAP) & HWCAP_PMULL) != 0;
}

static bool has_crc(void) {
    return (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0;
}

#endif

#if defined(__x86_64__) || defined(__aarch64__)
static void shuffle_reference(uint64_t turns, uint64_t *state) {
    shuffle_reference_of(turns, state, SHUFFLE_LANES);
}
#endif

void exercises_of_this_cpu(struct exercise exercises[EXERCISES]) {
    const struct flops_kind kind = flops_widest();
    memset(exercises, 0, EXERCISES * sizeof *exercises);
    exercises[FMA] = (struct exercise){kind.chains + SUMS, kind.lanes, flops_start_summed, kind.summed_turns,
                                       flops_summed_reference};
    exercises[INTEGER] = (struct exercise){CHAINS_OF_INTEGERS, 1, words_start, integer_turns, integer_reference};
#if defined(__x86_64__) || defined(__aarch64__)
    if (has_shuffle())
        exercises[SHUFFLE] = (struct exercise){VECTORS, SHUFFLE_LANES, words_start, shuffle_turns, shuffle_reference};
    if (has_aes()) exercises[AES] = (struct exercise){VECTORS, 2, words_start, aes_turns, aes_reference};
    if (has_carryless())
        exercises[CARRYLESS] = (struct exercise){VECTORS, 2, words_start, carryless_turns, carryless_reference};
    if (has_crc()) exercises[CRC] = (struct exercise){VECTORS, 1, words_start, crc_turns, crc_reference};
#endif
}
