#include "load/flops.h"

#include <math.h>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#include <sys/auxv.h>
#endif

/* A chain is multiplied by FACTOR and by what is nearly -1 / FACTOR in turns, and a term is added each time: it goes around
 * between four numbers of which all bits of the mantissa change at each step, as those of real work do. It neither grows
 * nor becomes denormal, and no step forgets an error of an earlier one. Compilers must not see these numbers. */
static const volatile double FACTOR = -1.2573819660112501, BACK = 0.795303278583091, TERM = 1.6180339887498949,
                             BACK_TERM = 0.5772156649015329;

static double start_of(size_t chain) {
    static const volatile double first = 0.3183098861837907, step = 0.0707106781186548;
    return first + step * (double)chain;
}

/* A unit that begins an operation each cycle and gives its result four or five cycles later is kept at work by as many
 * chains; two units need eight to ten, and four (Neoverse V) sixteen or more. */
#define TWELVE(x) x(0) x(1) x(2) x(3) x(4) x(5) x(6) x(7) x(8) x(9) x(10) x(11)
#define TWENTY_FOUR(x) TWELVE(x) x(12) x(13) x(14) x(15) x(16) x(17) x(18) x(19) x(20) x(21) x(22) x(23)

#if defined(__x86_64__)

/* Without fused operations. */
#define WIDTH(turns) sse2_##turns
#define TARGET
#define VECTOR __m128d
#define LANES 2
#define CHAINS TWELVE
#define SIMD(what) _mm_##what
#define STEPPED(a, factor, term) _mm_add_pd(_mm_mul_pd(a, factor), term)
#include "load/flops_turns.h"

#define WIDTH(turns) avx2_##turns
#define TARGET __attribute__((target("avx2,fma")))
#define VECTOR __m256d
#define LANES 4
#define CHAINS TWELVE
#define SIMD(what) _mm256_##what
#define STEPPED _mm256_fmadd_pd
#include "load/flops_turns.h"

#define WIDTH(turns) avx512_##turns
#define TARGET __attribute__((target("avx512f")))
#define VECTOR __m512d
#define LANES 8
#define CHAINS TWENTY_FOUR
#define SIMD(what) _mm512_##what
#define STEPPED _mm512_fmadd_pd
#include "load/flops_turns.h"

struct flops_kind flops_widest(void) {
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f"))
        return (struct flops_kind){"avx512", 24, 8, true, 2 * 2 * 24 * 8, avx512_turns, avx512_memory_turns};
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return (struct flops_kind){"avx2", 12, 4, true, 2 * 2 * 12 * 4, avx2_turns, avx2_memory_turns};
    return (struct flops_kind){"sse2", 12, 2, false, 2 * 2 * 12 * 2, sse2_turns, sse2_memory_turns};
}

#elif defined(__aarch64__)

/* By instructions: NEON's fused operation adds to its own register, so that a chain is copied beside it, and of SVE
 * compilers know the type only where all of the program is made for it. Registers 24 to 27 have factors and terms. */
static void starts(double *numbers) {
    for (size_t i = 0; i < MOST_CHAINS; i++) numbers[i] = start_of(i);
    numbers[24] = FACTOR;
    numbers[25] = TERM;
    numbers[26] = BACK;
    numbers[27] = BACK_TERM;
}

#define FOUR(x) x(0) x(1) x(2) x(3)
#define SIX_FOURS(x) x(0, 1, 2, 3) x(4, 5, 6, 7) x(8, 9, 10, 11) x(12, 13, 14, 15) x(16, 17, 18, 19) x(20, 21, 22, 23)

#define BEGIN(i) "ld1r {v" #i ".2d}, [%2], #8\n\t"
#define STEP_4(a, b, c, d) /* the sum begins as the term, in one of four registers that take turns */                  \
    "mov v28.16b, v25.16b\n\tmov v29.16b, v25.16b\n\tmov v30.16b, v25.16b\n\tmov v31.16b, v25.16b\n\t"                 \
    "fmla v28.2d, v" #a ".2d, v24.2d\n\tfmla v29.2d, v" #b ".2d, v24.2d\n\t"                                           \
    "fmla v30.2d, v" #c ".2d, v24.2d\n\tfmla v31.2d, v" #d ".2d, v24.2d\n\t"                                           \
    "mov v" #a ".16b, v27.16b\n\tmov v" #b ".16b, v27.16b\n\tmov v" #c ".16b, v27.16b\n\tmov v" #d ".16b, v27.16b\n\t" \
    "fmla v" #a ".2d, v28.2d, v26.2d\n\tfmla v" #b ".2d, v29.2d, v26.2d\n\t"                                           \
    "fmla v" #c ".2d, v30.2d, v26.2d\n\tfmla v" #d ".2d, v31.2d, v26.2d\n\t"
#define END(i) "st1 {v" #i ".2d}, [%1], #16\n\t"
#define USED(i) "v" #i,
static void neon_turns(uint64_t turns, double *ends) {
    double numbers[28];
    const double *at = numbers;
    starts(numbers);
    __asm__ volatile(/* clang-format off */
                     TWENTY_FOUR(BEGIN) BEGIN(24) BEGIN(25) BEGIN(26) BEGIN(27)
                     "1:\n\t"
                     SIX_FOURS(STEP_4)
                     "subs %0, %0, #1\n\t"
                     "b.ne 1b\n\t"
                     TWENTY_FOUR(END) /* clang-format on */
                     : "+r"(turns), "+r"(ends), "+r"(at)
                     :
                     : TWENTY_FOUR(USED) "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31", "cc", "memory");
}
#undef BEGIN
#undef END

#define BEGIN(i) "ld1rd {z" #i ".d}, p0/z, [%2]\n\tadd %2, %2, #8\n\t"
#define STEP(i) "fmad z" #i ".d, p0/m, z24.d, z25.d\n\t"
#define STEP_BACK(i) "fmad z" #i ".d, p0/m, z26.d, z27.d\n\t"
#define END(i) "str z" #i ", [%1, #" #i ", mul vl]\n\t"
static void sve_turns(uint64_t turns, double *ends) {
    double numbers[28];
    const double *at = numbers;
    starts(numbers);
    __asm__ volatile(".arch_extension sve\n\t"
                     "ptrue p0.d\n\t" /* clang-format off */
                     TWENTY_FOUR(BEGIN) BEGIN(24) BEGIN(25) BEGIN(26) BEGIN(27)
                     "1:\n\t"
                     TWENTY_FOUR(STEP)
                     TWENTY_FOUR(STEP_BACK)
                     "subs %0, %0, #1\n\t"
                     "b.ne 1b\n\t"
                     TWENTY_FOUR(END) /* clang-format on */
                     ".arch_extension nosve"
                     : "+r"(turns), "+r"(ends), "+r"(at)
                     :
                     : TWENTY_FOUR(USED) "v24", "v25", "v26", "v27", "p0", "cc", "memory");
}

static uint64_t sve_numbers(void) {
    uint64_t numbers;
    __asm__(".arch_extension sve\n\tcntd %0\n\t.arch_extension nosve" : "=r"(numbers));
    return numbers;
}

struct flops_kind flops_widest(void) {
    if ((getauxval(AT_HWCAP) & HWCAP_SVE) != 0 && sve_numbers() > 2)
        return (struct flops_kind){"sve", 24, sve_numbers(), true, 2 * 2 * 24 * (double)sve_numbers(), sve_turns, NULL};
    return (struct flops_kind){"neon", 24, 2, true, 2 * 2 * 24 * 2, neon_turns, NULL};
}

#else

static void scalar_turns(uint64_t turns, double *ends) {
    volatile double product; /* so that no compiler fuses the two */
    double a[4] = {start_of(0), start_of(1), start_of(2), start_of(3)};
    for (; turns > 0; turns--)
        for (size_t i = 0; i < 4; i++) {
            product = a[i] * FACTOR;
            a[i] = product + TERM;
            product = a[i] * BACK;
            a[i] = product + BACK_TERM;
        }
    for (size_t i = 0; i < 4; i++) ends[i] = a[i];
}

struct flops_kind flops_widest(void) {
    return (struct flops_kind){"scalar", 4, 1, false, 2 * 2 * 4, scalar_turns, NULL};
}

#endif

void flops_memory_set(struct flops_memory *memory) {
    for (size_t i = 0; i < (size_t)TERMS * MEMORY_LANES; i++) {
        memory->terms[i] = TERM;
        memory->back_terms[i] = BACK_TERM;
    }
}

static double step(double number, double factor, double term, bool fused) {
    volatile double product;
    if (fused) return fma(number, factor, term);
    product = number * factor;
    return product + term;
}

void flops_reference(const struct flops_kind *kind, uint64_t turns, double ends[MOST_CHAINS]) {
    const double factor = FACTOR, term = TERM, back = BACK, back_term = BACK_TERM;
    for (size_t chain = 0; chain < kind->chains; chain++) {
        double number = start_of(chain);
        for (uint64_t turn = 0; turn < turns; turn++)
            number = step(step(number, factor, term, kind->fused), back, back_term, kind->fused);
        ends[chain] = number;
    }
}
