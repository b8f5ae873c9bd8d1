#include "settings.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "fail.h"
#include "text.h"

static const struct setting *find(const struct setting *const tables[], size_t count, const char *name, size_t length) {
    for (size_t i = 0; i < count; i++)
        for (const struct setting *s = tables[i]; s != NULL && s->name != NULL; s++)
            if (strlen(s->name) == length && memcmp(s->name, name, length) == 0) return s;
    return NULL;
}

static void assign(const struct setting *setting, const char *value) {
    if (*value == '\0') fail(EXIT_BAD_INPUT, "--%s must not be empty", setting->name);
    if (setting->word != NULL) {
        *setting->word = value;
        return;
    }
    uint64_t number = 0;
    bool good = true;
    for (const char *c = value; good && *c != '\0'; c++) {
        good = *c >= '0' && *c <= '9' && number <= (UINT64_MAX - 9) / 10;
        if (good) number = number * 10 + (uint64_t)(*c - '0');
    }
    if (!good || number < setting->lowest || number > setting->highest)
        fail(EXIT_BAD_INPUT, "--%s takes a whole number from %" PRIu64 " to %" PRIu64 ", not %s", setting->name,
             setting->lowest, setting->highest, value);
    *setting->number = number;
}

void settings_read(const struct setting *const tables[], size_t count, int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        const char *argument = argv[i];
        if (strncmp(argument, "--", 2) != 0) fail(EXIT_BAD_INPUT, "%s is not an option; see --help", argument);
        const char *name = argument + 2, *equals = strchr(name, '=');
        size_t length = equals != NULL ? (size_t)(equals - name) : strlen(name);
        const struct setting *setting = find(tables, count, name, length);
        if (setting == NULL) fail(EXIT_BAD_INPUT, "unknown option %s; see --help", argument);
        if (setting->value == NULL) {
            if (equals != NULL) fail(EXIT_BAD_INPUT, "--%s takes no value", setting->name);
            *setting->on = true;
            continue;
        }
        if (equals == NULL && i + 1 == argc)
            fail(EXIT_BAD_INPUT, "--%s needs a value: %s", setting->name, setting->value);
        assign(setting, equals != NULL ? equals + 1 : argv[++i]);
    }
}

void settings_help(struct text *out, const struct setting *table) {
    for (const struct setting *s = table; s != NULL && s->name != NULL; s++) {
        char left[64];
        snprintf(left, sizeof left, "--%s%s%s", s->name, s->value != NULL ? " " : "", s->value != NULL ? s->value : "");
        text_add(out, "  %-18s %s\n", left, s->help);
    }
}

static bool was_given(const struct setting *s) {
    if (s->on != NULL) return *s->on;
    return s->word != NULL ? *s->word != NULL : *s->number >= s->lowest;
}

static bool lists(const char *names, const char *name) {
    size_t length = strlen(name);
    for (const char *at = names; (at = strstr(at, name)) != NULL; at += length)
        if ((at == names || at[-1] == ',') && (at[length] == ',' || at[length] == '\0')) return true;
    return false;
}

void settings_check(const struct setting *table, const char *operation) {
    for (const struct setting *s = table; s != NULL && s->name != NULL; s++)
        if (s->only != NULL && !lists(s->only, operation) && was_given(s))
            fail(EXIT_BAD_INPUT, "--%s is for operation %s, not %s", s->name, s->only, operation);
}

void settings_json(struct text *out, const struct setting *table) {
    for (const struct setting *s = table; s != NULL && s->name != NULL; s++) {
        if (!s->shapes || !was_given(s)) continue;
        text_add(out, "%s\"--%s\"", out->length > 0 ? "," : "", s->name);
        if (s->word != NULL) {
            text_add(out, ",");
            text_add_json(out, *s->word);
        }
        if (s->number != NULL) text_add(out, ",\"%" PRIu64 "\"", *s->number);
    }
}
