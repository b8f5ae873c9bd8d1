/* CHECK(condition): counts and names what does not hold. */
#ifndef NODEPRINT_CHECK_H
#define NODEPRINT_CHECK_H

#include <stdbool.h>
#include <stdio.h>

static int failures;

#define CHECK(condition) check((condition), #condition, __FILE__, __LINE__)

static void check(bool holds, const char *condition, const char *file, int line) {
    if (holds) return;
    fprintf(stderr, "%s:%d: %s does not hold\n", file, line, condition);
    failures++;
}

#endif
