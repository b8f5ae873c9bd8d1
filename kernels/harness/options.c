#include "options.h"

#include <stdio.h>
#include <string.h>

#include "fail.h"
#include "text.h"

struct options options = {.passes = 3, .seed = UINT64_MAX, .job = 1, .run = 1};

const struct setting common_settings[] = {
    {.name = "op", .value = "NAME", .word = &options.operation, .shapes = true, .help = "the operation (below)"},
    {.name = "out", .value = "FILE", .word = &options.out, .help = "the record file; an incomplete one is continued"},
    {.name = "passes",
     .value = "N",
     .number = &options.passes,
     .lowest = 1,
     .highest = 10000,
     .shapes = true,
     .help = "sweeps over everything, each on lines of its own (default 3)"},
    {.name = "seed",
     .value = "N",
     .number = &options.seed,
     .highest = INT64_MAX,
     .help = "orders and lines are drawn by it (default: random, or the file's)"},
    {.name = "job",
     .value = "J",
     .number = &options.job,
     .lowest = 1,
     .highest = 1000000,
     .help = "recorded (default 1)"},
    {.name = "run",
     .value = "R",
     .number = &options.run,
     .lowest = 1,
     .highest = 1000000,
     .help = "recorded (default 1)"},
    {.name = "plan",
     .on = &options.plan_only,
     .help = "print what would be measured, its time and memory; CPUs need not be here"},
    {.name = "csv", .on = &options.csv, .help = "print the figure of each pair or cell as CSV to standard output"},
    {.name = "help", .on = &options.help_only, .help = "print this"},
    {0},
};

const struct setting pair_settings[] = {
    {.name = "lines",
     .value = "N",
     .number = &options.lines,
     .lowest = 6,
     .highest = MOST_LINES,
     .shapes = true,
     .help = "lines a pass draws, the same for all its pairs (default 32)"},
    {.name = "parallel",
     .value = "K",
     .number = &options.parallel,
     .lowest = 2,
     .highest = MAX_PARALLEL,
     .shapes = true,
     .help = "measure up to K pairs at once, no two in one L3 (a measurement of interference)"},
    {.name = "share-l3",
     .on = &options.share_l3,
     .shapes = true,
     .help = "with --parallel: pairs at once may share an L3"},
    {.name = "detail", .on = &options.detail, .shapes = true, .help = "keep the value of each line"},
    {.name = "census",
     .on = &options.census,
     .shapes = true,
     .help = "record how far lines are from a CPU of each L3 also where there is one L3"},
    {.name = "any-lines",
     .on = &options.any_lines,
     .shapes = true,
     .help = "draw lines from the whole pool, not equally from the clusters that they live in"},
    {.name = "huge-pages",
     .on = &options.huge_pages,
     .shapes = true,
     .help =
         "lines in transparent huge pages, whose offsets are more bits of the physical address, where there are any"},
    {0},
};

void options_print_help(const struct kernel *kernel) {
    struct text text = {0};
    text_add(&text, "%s\nOPTIONS\n", kernel->help);
    settings_help(&text, common_settings);
    settings_help(&text, kernel->settings);
    text_add(&text, "\nWHICH CPUS AND MEMORY\n");
    settings_help(&text, select_settings);
    text_add(&text, "\nPAIRS (operations marked *)\n");
    settings_help(&text, pair_settings);
    text_add(&text, "\nOPERATIONS\n");
    for (size_t i = 0; i < kernel->operation_count; i++)
        text_add(&text, "  %-9s%c %s; quantity %s\n", kernel->operations[i].name,
                 kernel->operations[i].measure_pairs != NULL ? '*' : ' ', kernel->operations[i].summary,
                 kernel->operations[i].quantity);
    text_add(&text, "\nOn a terminal the figure is printed at the end: a matrix of up to 32 CPUs, else by class.\n"
                    "\nEXIT CODES\n"
                    "  0 done, also when FILE was complete before   2 bad arguments or input\n"
                    "  3 could not measure as asked                 128 + signal: stopped; the same call continues "
                    "FILE\n                                               (a second signal stops it at once)\n");
    fputs(text.data, stdout);
    text_free(&text);
}

const struct operation *options_operation(const struct kernel *kernel) {
    struct text known = {0};
    for (size_t i = 0; options.operation != NULL && i < kernel->operation_count; i++)
        if (strcmp(kernel->operations[i].name, options.operation) == 0) return &kernel->operations[i];
    for (size_t i = 0; i < kernel->operation_count; i++)
        text_add(&known, "%s%s", i == 0 ? "" : ", ", kernel->operations[i].name);
    if (options.operation == NULL) fail(EXIT_BAD_INPUT, "--op is missing; known are %s", known.data);
    fail(EXIT_BAD_INPUT, "unknown operation %s; known are %s", options.operation, known.data);
}

size_t options_slots(void) {
    return options.parallel > 0 ? (size_t)options.parallel : 1;
}

void options_check_pairs(const struct operation *operation) {
    struct text given = {0};
    settings_json(&given, pair_settings);
    if (given.length > 0 && operation->measure_pairs == NULL)
        fail(EXIT_BAD_INPUT, "%s is not for operation %s; --help marks those it is for", given.data, operation->name);
    if (options.census && options.any_lines) fail(EXIT_BAD_INPUT, "--census and --any-lines exclude each other");
    if (options.share_l3 && options.parallel == 0) fail(EXIT_BAD_INPUT, "--share-l3 goes with --parallel");
    text_free(&given);
}
