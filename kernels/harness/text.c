#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fail.h"

static void reserve(struct text *text, size_t more) {
    if (text->capacity - text->length > more) return;
    text->capacity = (text->length + more + 1) * 2;
    text->data = grow(text->data, text->capacity, 1);
}

void text_add_bytes(struct text *text, const char *bytes, size_t count) {
    reserve(text, count);
    memcpy(text->data + text->length, bytes, count);
    text->length += count;
    text->data[text->length] = '\0';
}

void text_add(struct text *text, const char *format, ...) {
    for (size_t expected = 255;;) { /* most texts are formatted once: a pair has twenty numbers */
        reserve(text, expected);
        va_list values;
        va_start(values, format);
        int length = vsnprintf(text->data + text->length, expected + 1, format, values);
        va_end(values);
        if (length < 0) fail(EXIT_NOT_AS_ASKED, "a text could not be formatted");
        if ((size_t)length <= expected) {
            text->length += (size_t)length;
            return;
        }
        expected = (size_t)length;
    }
}

void text_add_json(struct text *text, const char *string) {
    text_add_bytes(text, "\"", 1);
    for (const char *c = string; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\') text_add_bytes(text, "\\", 1);
        if (*c == '\n')
            text_add_bytes(text, "\\n", 2);
        else
            text_add_bytes(text, (*c < ' ' || *c > '~') ? (*c == '\t' ? " " : "?") : c, 1);
    }
    text_add_bytes(text, "\"", 1);
}

void text_clear(struct text *text) {
    text->length = 0;
    if (text->data != NULL) text->data[0] = '\0';
}

void text_free(struct text *text) {
    free(text->data);
    *text = (struct text){0};
}
