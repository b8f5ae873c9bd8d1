#include "json.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DEEPEST = 16, LONGEST_NUMBER = 40 };

struct cursor {
    const char *at, *end;
};

static bool value(struct cursor *c, int depth);

static void blanks(struct cursor *c) {
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\t')) c->at++;
}

static bool symbol(struct cursor *c, char wanted) {
    blanks(c);
    if (c->at >= c->end || *c->at != wanted) return false;
    c->at++;
    return true;
}

static bool string(struct cursor *c) {
    if (!symbol(c, '"')) return false;
    while (c->at < c->end) {
        unsigned char byte = (unsigned char)*c->at++;
        if (byte == '"') return true;
        if (byte < ' ') return false;
        if (byte != '\\') continue;
        if (c->at >= c->end) return false;
        char escaped = *c->at++;
        if (escaped == '\0' || strchr("\"\\/bfnrtu", escaped) == NULL) return false;
        if (escaped != 'u') continue;
        for (int i = 0; i < 4; i++, c->at++)
            if (c->at >= c->end || strchr("0123456789abcdefABCDEF", *c->at) == NULL || *c->at == '\0') return false;
    }
    return false;
}

static size_t digits(struct cursor *c) {
    const char *start = c->at;
    while (c->at < c->end && *c->at >= '0' && *c->at <= '9') c->at++;
    return (size_t)(c->at - start);
}

static bool number(struct cursor *c) {
    if (c->at < c->end && *c->at == '-') c->at++;
    bool zero = c->at < c->end && *c->at == '0';
    size_t whole = digits(c);
    if (whole == 0 || (zero && whole > 1)) return false;
    if (c->at < c->end && *c->at == '.') {
        c->at++;
        if (digits(c) == 0) return false;
    }
    if (c->at < c->end && (*c->at == 'e' || *c->at == 'E')) {
        c->at++;
        if (c->at < c->end && (*c->at == '+' || *c->at == '-')) c->at++;
        if (digits(c) == 0) return false;
    }
    return true;
}

static bool word(struct cursor *c, const char *wanted) {
    size_t length = strlen(wanted);
    if ((size_t)(c->end - c->at) < length || memcmp(c->at, wanted, length) != 0) return false;
    c->at += length;
    return true;
}

/* What stands between brackets: `opening` decides whether members have keys; `fields` is filled at the top. */
static bool members(struct cursor *c, char opening, int depth, struct json_object *fields) {
    char closing = opening == '{' ? '}' : ']';
    if (depth > DEEPEST || !symbol(c, opening)) return false;
    if (symbol(c, closing)) return true;
    do {
        struct json_field field = {0};
        if (opening == '{') {
            blanks(c);
            field.key = c->at + 1;
            if (!string(c)) return false;
            field.key_length = (size_t)(c->at - field.key) - 1;
            if (!symbol(c, ':')) return false;
        }
        blanks(c);
        field.value = c->at;
        if (!value(c, depth + 1)) return false;
        field.value_length = (size_t)(c->at - field.value);
        if (fields == NULL) continue;
        if (fields->count == sizeof fields->field / sizeof fields->field[0]) return false;
        fields->field[fields->count++] = field;
    } while (symbol(c, ','));
    return symbol(c, closing);
}

static bool value(struct cursor *c, int depth) {
    blanks(c);
    if (c->at >= c->end) return false;
    switch (*c->at) {
    case '{':
    case '[':
        return members(c, *c->at, depth, NULL);
    case '"':
        return string(c);
    case 't':
        return word(c, "true");
    case 'f':
        return word(c, "false");
    case 'n':
        return word(c, "null");
    default:
        return number(c);
    }
}

bool json_parse(const char *line, size_t length, struct json_object *object) {
    struct cursor c = {line, line + length};
    object->count = 0;
    if (!members(&c, '{', 0, object)) return false;
    blanks(&c);
    return c.at == c.end;
}

const struct json_field *json_find(const struct json_object *object, const char *key) {
    size_t length = strlen(key);
    for (size_t i = 0; i < object->count; i++)
        if (object->field[i].key_length == length && memcmp(object->field[i].key, key, length) == 0)
            return &object->field[i];
    return NULL;
}

/* The field's text as a C string, when it is a number. */
static bool number_text(const struct json_object *object, const char *key, char text[LONGEST_NUMBER]) {
    const struct json_field *field = json_find(object, key);
    if (field == NULL || field->value_length >= LONGEST_NUMBER) return false;
    if (*field->value != '-' && (*field->value < '0' || *field->value > '9')) return false;
    memcpy(text, field->value, field->value_length);
    text[field->value_length] = '\0';
    return true;
}

bool json_integer(const struct json_object *object, const char *key, int64_t *value_out) {
    char text[LONGEST_NUMBER], *end;
    if (!number_text(object, key, text)) return false;
    errno = 0;
    long long parsed = strtoll(text, &end, 10);
    if (errno != 0 || *end != '\0') return false;
    *value_out = parsed;
    return true;
}

bool json_number(const struct json_object *object, const char *key, double *value_out) {
    char text[LONGEST_NUMBER], *end;
    if (!number_text(object, key, text)) return false;
    *value_out = strtod(text, &end);
    return *end == '\0' && isfinite(*value_out);
}

bool json_is(const struct json_object *object, const char *key, const char *text) {
    const struct json_field *field = json_find(object, key);
    size_t length = strlen(text);
    return field != NULL && field->value_length == length + 2 && *field->value == '"' &&
           memcmp(field->value + 1, text, length) == 0;
}
