#include "fail.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static const char *program = "kernel";
static void (*before_exit)(void);

void fail_set_name(const char *name) {
    program = name;
}

void fail_set_hook(void (*hook)(void)) {
    before_exit = hook;
}

static void say(const char *format, va_list values) {
    char sentence[1024];
    if (vsnprintf(sentence, sizeof sentence, format, values) < 0) sentence[0] = '\0';
    for (char *c = sentence; *c != '\0'; c++)
        if ((unsigned char)*c < ' ' || *c == 127) *c = '?'; /* names and file content go to terminals */
    fprintf(stderr, "%s: %s\n", program, sentence);
}

void fail(enum exit_code code, const char *format, ...) {
    va_list values;
    va_start(values, format);
    say(format, values);
    va_end(values);
    void (*hook)(void) = before_exit;
    before_exit = NULL;
    if (hook != NULL) hook();
    fflush(NULL);
    _Exit((int)code); /* workers may still spin: no destructors under them */
}

void note(const char *format, ...) {
    va_list values;
    va_start(values, format);
    say(format, values);
    va_end(values);
}

void *grow(void *block, unsigned long count, unsigned long size) {
    if (size != 0 && count > SIZE_MAX / size) fail(EXIT_NOT_AS_ASKED, "out of memory");
    void *larger = realloc(block, count * size > 0 ? count * size : 1);
    if (larger == NULL) fail(EXIT_NOT_AS_ASKED, "out of memory (%lu bytes asked)", count * size);
    return larger;
}
