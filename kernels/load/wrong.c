#include "load/wrong.h"

#include <inttypes.h>
#include <string.h>

#include "harness/fail.h"

static uint64_t word_of(const void *words, size_t at) {
    uint64_t word;
    memcpy(&word, (const unsigned char *)words + at * sizeof word, sizeof word);
    return word;
}

void wrong_compare(struct wrong *wrong, const void *found, const void *expected, size_t words, size_t lanes) {
    size_t at = 0;
    while (at < words && word_of(found, at) == word_of(expected, at)) at++;
    if (at == words || wrong->bursts++ > 0) return;
    wrong->vector = at / lanes;
    wrong->lane = at % lanes;
    wrong->expected = word_of(expected, at);
    wrong->found = word_of(found, at);
}

uint64_t wrong_add(struct result *result, uint64_t before, int cpu, const struct wrong *wrong) {
    if (before == 0 && wrong->bursts > 0)
        text_add(&result->more,
                 ",\"difference\":{\"cpu\":%d,\"chain\":%zu,\"lane\":%zu,\"expected\":\"%016" PRIx64
                 "\",\"found\":\"%016" PRIx64 "\"}",
                 cpu, wrong->vector, wrong->lane, wrong->expected, wrong->found);
    return before + wrong->bursts;
}

void reference_agreed(struct run *run, void (*calculate)(size_t role, void *copy), const void *start, void *result,
                      size_t bytes) {
    enum { MOST = 3 };
    uint64_t results[MOST][MOST_REFERENCE_BYTES / sizeof(uint64_t)];
    size_t count = run->workers.count < MOST ? run->workers.count : MOST, agreed = 0;
    for (size_t i = 0; i < count; i++) {
        size_t worker = i * (run->workers.count - 1) / (count > 1 ? count - 1 : 1);
        memcpy(results[i], start, bytes);
        workers_run(&run->workers, &worker, 1, calculate, results[i]);
    }
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++)
            if (memcmp(results[i], results[j], bytes) == 0) agreed = i;
    if (count > 1 && agreed == 0)
        fail(EXIT_NOT_AS_ASKED, "%zu CPUs calculate the same by scalar operations, and no two agree", count);
    memcpy(result, results[agreed], bytes);
}
