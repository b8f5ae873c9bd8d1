/* A strict reader of one JSON object: enough to read back the records that the kernels wrote. */
#ifndef NODEPRINT_JSON_H
#define NODEPRINT_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_field {
    const char *key;   /* points into the line, without quotes */
    const char *value; /* points into the line; nested values are kept as text */
    size_t key_length, value_length;
};

struct json_object {
    struct json_field field[64];
    size_t count;
};

/* Parse `line` (`length` bytes, no newline). False when it is not exactly one well-formed object. */
bool json_parse(const char *line, size_t length, struct json_object *object);

/* The field named `key`, or NULL. */
const struct json_field *json_find(const struct json_object *object, const char *key);

/* True when the field exists and is an integer (a finite number, a string equal to `text`). */
bool json_integer(const struct json_object *object, const char *key, int64_t *value);
bool json_number(const struct json_object *object, const char *key, double *value);
bool json_is(const struct json_object *object, const char *key, const char *text);

#endif
