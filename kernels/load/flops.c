#include "load/flops.h"

#include <math.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#include <sys/auxv.h>
#endif

/* x * x + TERM is chaotic: all operands of a burst differ (kernels/tests/load.c), all bits of a mantissa change at each step,
 * and an error of one bit grows until it is everywhere, unless the next step rounds it away. Numbers stay between TERM and
 * TERM * TERM + TERM. Compilers must not see the number. */
static const volatile double TERM = -1.9;

void flops_start(const struct flops_kind *kind, double *numbers) {
    for (size_t i = 0; i < kind->chains * kind->lanes; i++)
        numbers[i] = 0.3183098861837907 + 0.000707106781186548 * (double)i;
}

/* A unit that begins an operation each cycle and gives its result four or five cycles later is kept at work by as many
 * chains; two units need eight to ten, and four (Neoverse V) sixteen or more. */
#define TWELVE(x) x(0) x(1) x(2) x(3) x(4) x(5) x(6) x(7) x(8) x(9) x(10) x(11)
#define TWENTY_FOUR(x) TWELVE(x) x(12) x(13) x(14) x(15) x(16) x(17) x(18) x(19) x(20) x(21) x(22) x(23)

#define SIX_PAIRS(x) x(0, 1) x(2, 3) x(4, 5) x(6, 7) x(8, 9) x(10, 11)
#define TWELVE_PAIRS(x) SIX_PAIRS(x) x(12, 13) x(14, 15) x(16, 17) x(18, 19) x(20, 21) x(22, 23)

#if defined(__x86_64__)

/* Without fused operations. */
#define WIDTH(turns) sse2_##turns
#define TARGET
#define VECTOR __m128d
#define LANES 2
#define CHAINS TWELVE
#define COUNT 12
#define PAIRS SIX_PAIRS
#define SIMD(what) _mm_##what
#define STEPPED(a, factor, term) _mm_add_pd(_mm_mul_pd(a, factor), term)
#define ADDED _mm_xor_pd
#include "load/flops_turns.h"

#define WIDTH(turns) avx2_##turns
#define TARGET __attribute__((target("avx2,fma")))
#define VECTOR __m256d
#define LANES 4
#define CHAINS TWELVE
#define COUNT 12
#define PAIRS SIX_PAIRS
#define SIMD(what) _mm256_##what
#define STEPPED _mm256_fmadd_pd
#define ADDED _mm256_xor_pd
#include "load/flops_turns.h"

#define WIDTH(turns) avx512_##turns
#define TARGET __attribute__((target("avx512f")))
#define VECTOR __m512d
#define LANES 8
#define CHAINS TWENTY_FOUR
#define COUNT 24
#define PAIRS TWELVE_PAIRS
#define SIMD(what) _mm512_##what
#define STEPPED _mm512_fmadd_pd
#define ADDED(a, b) _mm512_castsi512_pd(_mm512_xor_si512(_mm512_castpd_si512(a), _mm512_castpd_si512(b)))
#include "load/flops_turns.h"

struct flops_kind flops_widest(void) {
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f"))
        return (struct flops_kind){"avx512",           24, 8, true, 2 * 2 * 24 * 8, avx512_turns, avx512_memory_turns,
                                   avx512_summed_turns};
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return (struct flops_kind){"avx2",           12, 4, true, 2 * 2 * 12 * 4, avx2_turns, avx2_memory_turns,
                                   avx2_summed_turns};
    return (struct flops_kind){"sse2", 12, 2, false, 2 * 2 * 12 * 2, sse2_turns, sse2_memory_turns, sse2_summed_turns};
}

#elif defined(__aarch64__)

/* By instructions: NEON's fused operation adds to its own register, so that a chain is copied beside it, and of SVE
 * compilers know the type only where all of the program is made for it. Register 24 has the term. */
#define SIX_FOURS(x) x(0, 1, 2, 3) x(4, 5, 6, 7) x(8, 9, 10, 11) x(12, 13, 14, 15) x(16, 17, 18, 19) x(20, 21, 22, 23)
#define USED(i) "v" #i,

#define BEGIN(i) "ldr q" #i ", [%1, #16 * " #i "]\n\t"
#define FIRST_4(a, b, c, d) /* the sum begins as the term, in one of four registers that take turns */                 \
    "mov v28.16b, v24.16b\n\tmov v29.16b, v24.16b\n\tmov v30.16b, v24.16b\n\tmov v31.16b, v24.16b\n\t"                 \
    "fmla v28.2d, v" #a ".2d, v" #a ".2d\n\tfmla v29.2d, v" #b ".2d, v" #b ".2d\n\t"                                   \
    "fmla v30.2d, v" #c ".2d, v" #c ".2d\n\tfmla v31.2d, v" #d ".2d, v" #d ".2d\n\t"
#define SECOND_4(a, b, c, d)                                                                                           \
    "mov v" #a ".16b, v24.16b\n\tmov v" #b ".16b, v24.16b\n\tmov v" #c ".16b, v24.16b\n\tmov v" #d ".16b, v24.16b\n\t" \
    "fmla v" #a ".2d, v28.2d, v28.2d\n\tfmla v" #b ".2d, v29.2d, v29.2d\n\t"                                           \
    "fmla v" #c ".2d, v30.2d, v30.2d\n\tfmla v" #d ".2d, v31.2d, v31.2d\n\t"
#define STEP_4(a, b, c, d) FIRST_4(a, b, c, d) SECOND_4(a, b, c, d)
#define END(i) "str q" #i ", [%1, #16 * " #i "]\n\t"
#define ADD_4(a, b, c, d)                                                                                              \
    "eor v25.16b, v25.16b, v" #a ".16b\n\teor v26.16b, v26.16b, v" #b ".16b\n\t"                                       \
    "eor v25.16b, v25.16b, v" #c ".16b\n\teor v26.16b, v26.16b, v" #d ".16b\n\t"
#define STEP_4_SUMMED(a, b, c, d) ADD_4(a, b, c, d) FIRST_4(a, b, c, d) ADD_4(28, 29, 30, 31) SECOND_4(a, b, c, d)
#define NEON(function, numbers_type, STEPS)                                                                            \
    static void function(uint64_t turns, numbers_type *numbers) {                                                      \
        const double term = TERM;                                                                                      \
        if (turns == 0) return;                                                                                        \
        __asm__ volatile("ld1r {v24.2d}, [%2]\n\t" TWENTY_FOUR(BEGIN) STEPS                                            \
                         : "+r"(turns)                                                                                 \
                         : "r"(numbers), "r"(&term)                                                                    \
                         : TWENTY_FOUR(USED) "v24", "v25", "v26", "v28", "v29", "v30", "v31", "cc", "memory");         \
    }
#define LOOP(steps) "1:\n\t" SIX_FOURS(steps) "subs %0, %0, #1\n\tb.ne 1b\n\t" TWENTY_FOUR(END)
NEON(neon_turns, double, LOOP(STEP_4))
NEON(neon_summed_turns, uint64_t,
     "ldr q25, [%1, #16 * 24]\n\tldr q26, [%1, #16 * 25]\n\t" LOOP(
         STEP_4_SUMMED) "str q25, [%1, #16 * 24]\n\tstr q26, [%1, #16 * 25]\n\t")
#undef LOOP
#undef BEGIN
#undef END

#define BEGIN(i) "ldr z" #i ", [%1, #" #i ", mul vl]\n\t"
#define STEP(i) "fmad z" #i ".d, p0/m, z" #i ".d, z24.d\n\t"
#define END(i) "str z" #i ", [%1, #" #i ", mul vl]\n\t"
#define ADD_SUMMED(i, sum) "eor z" #sum ".d, z" #sum ".d, z" #i ".d\n\t"
#define STEP_SUMMED(i, j) ADD_SUMMED(i, 25) ADD_SUMMED(j, 26) STEP(i) STEP(j)
#define SVE(function, numbers_type, STEPS)                                                                             \
    static void function(uint64_t turns, numbers_type *numbers) {                                                      \
        const double term = TERM;                                                                                      \
        if (turns == 0) return;                                                                                        \
        __asm__ volatile(".arch_extension sve\n\tptrue p0.d\n\tld1rd {z24.d}, p0/z, [%2]\n\t" TWENTY_FOUR(BEGIN) STEPS \
                         ".arch_extension nosve"                                                                       \
                         : "+r"(turns)                                                                                 \
                         : "r"(numbers), "r"(&term)                                                                    \
                         : TWENTY_FOUR(USED) "v24", "v25", "v26", "p0", "cc", "memory");                               \
    }
#define LOOP(steps) "1:\n\t" steps steps "subs %0, %0, #1\n\tb.ne 1b\n\t" TWENTY_FOUR(END)
SVE(sve_turns, double, LOOP(TWENTY_FOUR(STEP)))
SVE(sve_summed_turns, uint64_t,
    "ldr z25, [%1, #24, mul vl]\n\tldr z26, [%1, #25, mul vl]\n\t" LOOP(
        TWELVE_PAIRS(STEP_SUMMED)) "str z25, [%1, #24, mul vl]\n\tstr z26, [%1, #25, mul vl]\n\t")

static uint64_t sve_numbers(void) {
    uint64_t numbers;
    __asm__(".arch_extension sve\n\tcntd %0\n\t.arch_extension nosve" : "=r"(numbers));
    return numbers;
}

struct flops_kind flops_widest(void) {
    if ((getauxval(AT_HWCAP) & HWCAP_SVE) != 0 && sve_numbers() > 2)
        return (struct flops_kind){"sve",     24,   sve_numbers(),   true, 2 * 2 * 24 * (double)sve_numbers(),
                                   sve_turns, NULL, sve_summed_turns};
    return (struct flops_kind){"neon", 24, 2, true, 2 * 2 * 24 * 2, neon_turns, NULL, neon_summed_turns};
}

#else

static void scalar_turns(uint64_t turns, double *numbers) {
    volatile double product; /* so that no compiler fuses the two */
    for (turns *= 2; turns > 0; turns--)
        for (size_t i = 0; i < 4; i++) {
            product = numbers[i] * numbers[i];
            numbers[i] = product + TERM;
        }
}

static void scalar_summed_turns(uint64_t turns, uint64_t *state) {
    flops_summed_reference(turns, state);
}

struct flops_kind flops_widest(void) {
    return (struct flops_kind){"scalar", 4, 1, false, 2 * 2 * 4, scalar_turns, NULL, scalar_summed_turns};
}

#endif

static double next(double number, double term, bool fused) {
    volatile double product; /* so that no compiler fuses the two */
    if (fused) return fma(number, number, term);
    product = number * number;
    return product + term;
}

void flops_memory_set(struct flops_memory *memory) {
    for (size_t i = 0; i < (size_t)TERMS * MEMORY_LANES; i++) memory->terms[i] = TERM;
}

void flops_reference(const struct flops_kind *kind, uint64_t steps, double *numbers) {
    const double term = TERM;
    for (size_t i = 0; i < kind->chains * kind->lanes; i++)
        for (uint64_t step = 0; step < steps; step++) numbers[i] = next(numbers[i], term, kind->fused);
}

void flops_start_summed(uint64_t *state) {
    const struct flops_kind kind = flops_widest();
    double numbers[MOST_NUMBERS];
    flops_start(&kind, numbers);
    memcpy(state, numbers, kind.chains * kind.lanes * sizeof *state);
    memset(state + kind.chains * kind.lanes, 0, SUMS * kind.lanes * sizeof *state);
}

void flops_summed_reference(uint64_t turns, uint64_t *state) {
    const struct flops_kind kind = flops_widest();
    const double term = TERM;
    for (size_t i = 0; i < kind.chains * kind.lanes; i++) {
        uint64_t *sum = &state[(kind.chains + i / kind.lanes % SUMS) * kind.lanes + i % kind.lanes];
        double number;
        memcpy(&number, &state[i], sizeof number);
        for (uint64_t step = 0; step < 2 * turns; step++) {
            *sum ^= state[i];
            number = next(number, term, kind.fused);
            memcpy(&state[i], &number, sizeof number);
        }
    }
}
