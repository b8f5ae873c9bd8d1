/* The command line: a table of settings, the harness's and the kernel's own. */
#ifndef NODEPRINT_SETTINGS_H
#define NODEPRINT_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text;

struct setting {
    const char *name;  /* without the two dashes */
    const char *value; /* what its value is called in --help; NULL for a switch */
    const char *help;
    bool shapes;      /* it shapes the measurement: recorded, and a continuation must have the same */
    const char *only; /* the operations that it is for, separated by commas; NULL: all */
    /* one of these is where the value goes */
    bool *on;
    uint64_t *number;
    uint64_t lowest, highest;
    const char **word;
};

/* An entry: how long it takes, in whole seconds of at most an hour. */
#define SETTING_SECONDS(its_number, its_help)                                                                          \
    {                                                                                                                  \
        .name = "seconds", .value = "N", .number = (its_number), .lowest = 1, .highest = 3600, .shapes = true,         \
        .help = (its_help)                                                                                             \
    }

/* Read the arguments into the tables; ends the process with 2 on anything that is in none of them. */
void settings_read(const struct setting *const tables[], size_t count, int argc, char **argv);

/* Ends the process with 2 where a setting that shapes the measurement was given and is for another operation. */
void settings_check(const struct setting *table, const char *operation);

/* Append one line per setting to a help text. Tables end with an entry without name. */
void settings_help(struct text *out, const struct setting *table);

/* Append the settings that shape the measurement as JSON strings: "--passes","3",... defaults included; left out are
 * words that are NULL, numbers below their lowest, and switches that are off. */
void settings_json(struct text *out, const struct setting *table);

#endif
