#define _GNU_SOURCE
#include "load/flops.h"

#include <stddef.h>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#include <sys/auxv.h>
#endif

/* Every chain goes to and fro between a start of its own and TERM less that: its bits change at each step, as those of
 * real work do, and no number ever becomes denormal or infinite. Compilers must not see that it is multiplied by -1. */
static const double TERM = 1.7, START = 0.1;
static const volatile double MINUS_ONE = -1.0;

/* A unit that begins an operation each cycle and gives its result four or five cycles later is kept at work by as many
 * chains; two units need eight to ten, and four (Neoverse V) sixteen or more. */
#define TWELVE(x) x(0) x(1) x(2) x(3) x(4) x(5) x(6) x(7) x(8) x(9) x(10) x(11)
#define TWENTY_FOUR(x) TWELVE(x) x(12) x(13) x(14) x(15) x(16) x(17) x(18) x(19) x(20) x(21) x(22) x(23)

#if defined(__x86_64__)

#define BEGIN(i) __m128d a##i = _mm_set1_pd(START * ((i) + 1));
#define STEP(i) a##i = _mm_add_pd(_mm_mul_pd(a##i, factor), term);
#define ADD(i) sum = _mm_add_pd(sum, a##i);
static double sse2_turns(uint64_t turns) {
    const __m128d factor = _mm_set1_pd(MINUS_ONE), term = _mm_set1_pd(TERM);
    TWELVE(BEGIN)
    for (; turns > 0; turns--) {
        TWELVE(STEP)
    }
    __m128d sum = _mm_setzero_pd();
    TWELVE(ADD)
    return sum[0] + sum[1];
}
#undef BEGIN
#undef STEP
#undef ADD

#define BEGIN(i) __m256d a##i = _mm256_set1_pd(START * ((i) + 1));
#define STEP(i) a##i = _mm256_fmadd_pd(a##i, factor, term);
#define ADD(i) sum = _mm256_add_pd(sum, a##i);
__attribute__((target("avx2,fma"))) static double avx2_turns(uint64_t turns) {
    const __m256d factor = _mm256_set1_pd(MINUS_ONE), term = _mm256_set1_pd(TERM);
    TWELVE(BEGIN)
    for (; turns > 0; turns--) {
        TWELVE(STEP)
    }
    __m256d sum = _mm256_setzero_pd();
    TWELVE(ADD)
    return sum[0] + sum[1] + sum[2] + sum[3];
}
#undef BEGIN
#undef STEP
#undef ADD

#define BEGIN(i) __m512d a##i = _mm512_set1_pd(START * ((i) + 1));
#define STEP(i) a##i = _mm512_fmadd_pd(a##i, factor, term);
#define ADD(i) sum = _mm512_add_pd(sum, a##i);
__attribute__((target("avx512f"))) static double avx512_turns(uint64_t turns) {
    const __m512d factor = _mm512_set1_pd(MINUS_ONE), term = _mm512_set1_pd(TERM);
    TWENTY_FOUR(BEGIN)
    for (; turns > 0; turns--) {
        TWENTY_FOUR(STEP)
    }
    __m512d sum = _mm512_setzero_pd();
    TWENTY_FOUR(ADD)
    return _mm512_reduce_add_pd(sum);
}
#undef BEGIN
#undef STEP
#undef ADD

struct flops_kind flops_widest(void) {
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f")) return (struct flops_kind){"avx512", 24 * 8 * 2, avx512_turns};
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return (struct flops_kind){"avx2", 12 * 4 * 2, avx2_turns};
    return (struct flops_kind){"sse2", 12 * 2 * 2, sse2_turns};
}

#elif defined(__aarch64__)

/* NEON's fused operation adds to its own register: each chain goes to and fro by an addition and a subtraction. */
#define BEGIN(i) float64x2_t a##i = vdupq_n_f64(START * ((i) + 1));
#define STEP(i)                                                                                                        \
    a##i = vfmaq_f64(a##i, factor, term);                                                                              \
    __asm__("" : "+w"(a##i)); /* or the two would be seen to cancel */
#define BACK(i)                                                                                                        \
    a##i = vfmsq_f64(a##i, factor, term);                                                                              \
    __asm__("" : "+w"(a##i));
#define ADD(i) sum = vaddq_f64(sum, a##i);
static double neon_turns(uint64_t turns) {
    const float64x2_t factor = vdupq_n_f64(MINUS_ONE), term = vdupq_n_f64(TERM);
    TWENTY_FOUR(BEGIN)
    for (; turns > 0; turns--) {
        TWENTY_FOUR(STEP)
        TWENTY_FOUR(BACK)
    }
    float64x2_t sum = vdupq_n_f64(0);
    TWENTY_FOUR(ADD)
    return vaddvq_f64(sum);
}
#undef BEGIN
#undef STEP
#undef BACK
#undef ADD

/* By instructions, as compilers know the type only where all of the program is made for SVE. */
#define BEGIN(i) "mov z" #i ".d, %d2\n\t"
#define STEP(i) "fmad z" #i ".d, p0/m, z24.d, z25.d\n\t"
#define ADD(i) "fadd z26.d, z26.d, z" #i ".d\n\t"
#define USED(i) "v" #i,
static double sve_turns(uint64_t turns) {
    double sum, start = START, factor = MINUS_ONE, term = TERM;
    __asm__ volatile(".arch_extension sve\n\t"
                     "ptrue p0.d\n\t"
                     "mov z24.d, %d3\n\t"
                     "mov z25.d, %d4\n\t" /* clang-format off */
                     TWENTY_FOUR(BEGIN)
                     "1:\n\t"
                     TWENTY_FOUR(STEP)
                     "subs %1, %1, #1\n\t"
                     "b.ne 1b\n\t"
                     "dup z26.d, #0\n\t"
                     TWENTY_FOUR(ADD)
                     "faddv %d0, p0, z26.d\n\t" /* clang-format on */
                                                                    ".arch_extension nosve"
                     : "=w"(sum), "+r"(turns)
                     : "w"(start), "w"(factor), "w"(term)
                     : TWENTY_FOUR(USED) "v24", "v25", "v26", "p0", "cc");
    return sum;
}

static uint64_t sve_numbers(void) {
    uint64_t numbers;
    __asm__(".arch_extension sve\n\tcntd %0\n\t.arch_extension nosve" : "=r"(numbers));
    return numbers;
}

struct flops_kind flops_widest(void) {
    if ((getauxval(AT_HWCAP) & HWCAP_SVE) != 0 && sve_numbers() > 2)
        return (struct flops_kind){"sve", 24 * 2 * (double)sve_numbers(), sve_turns};
    return (struct flops_kind){"neon", 2 * 24 * 2 * 2, neon_turns};
}

#else

static double scalar_turns(uint64_t turns) {
    double a = START, b = 2 * START, c = 3 * START, d = 4 * START, factor = MINUS_ONE;
    for (; turns > 0; turns--) {
        a = a * factor + TERM;
        b = b * factor + TERM;
        c = c * factor + TERM;
        d = d * factor + TERM;
    }
    return a + b + c + d;
}

struct flops_kind flops_widest(void) {
    return (struct flops_kind){"scalar", 4 * 2, scalar_turns};
}

#endif
