/* A string that grows, and JSON strings in it. */
#ifndef NODEPRINT_TEXT_H
#define NODEPRINT_TEXT_H

#include <stddef.h>

struct text {
    char *data; /* always ends with a zero byte once anything was added */
    size_t length, capacity;
};

void text_add(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_add_bytes(struct text *text, const char *bytes, size_t count);

/* Append `string` quoted and escaped; newlines stay, a tab becomes a blank, other bytes that are not printable ASCII become '?'. */
void text_add_json(struct text *text, const char *string);
void text_clear(struct text *text);
void text_free(struct text *text);

#endif
