/* One sentence on stderr, and the exit codes of every kernel. */
#ifndef NODEPRINT_FAIL_H
#define NODEPRINT_FAIL_H

enum exit_code {
    EXIT_DONE = 0,
    EXIT_BAD_INPUT = 2,    /* bad arguments or input */
    EXIT_NOT_AS_ASKED = 3, /* could not measure as asked */
};

/* The name that messages begin with. */
void fail_set_name(const char *name);

/* What must happen before the process ends early (records are flushed); called once at most. */
void fail_set_hook(void (*hook)(void));

_Noreturn void fail(enum exit_code code, const char *format, ...) __attribute__((format(printf, 2, 3)));
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* realloc that ends the process when memory is short; `count` elements of `size` bytes. */
void *grow(void *block, unsigned long count, unsigned long size);

#endif
