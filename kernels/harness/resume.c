#include "resume.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fail.h"
#include "figure.h"

struct reading {
    struct former *former;
    struct run *run;
    const struct identity *identity;
};

int resume_compare_units(const void *a, const void *b) {
    const struct unit *x = a, *y = b;
    for (size_t k = 0; k < MAX_KEYS; k++)
        if (x->key[k] != y->key[k]) return x->key[k] < y->key[k] ? -1 : 1;
    return 0;
}

static void require(bool good, const struct reading *reading, size_t line, const char *what) {
    if (!good) records_malformed(&reading->run->records, line, what);
}

static bool same_text(const struct json_object *object, const char *key, const char *text) {
    const struct json_field *field = json_find(object, key);
    return field != NULL && field->value_length == strlen(text) && memcmp(field->value, text, field->value_length) == 0;
}

static void take_header(const struct json_object *object, size_t line, struct reading *reading) {
    struct former *former = reading->former;
    const struct run *run = reading->run;
    const struct identity *identity = reading->identity;
    int64_t segment, job, number, seed;
    require(json_integer(object, "segment", &segment) && segment == former->segments &&
                json_integer(object, "job", &job) && json_integer(object, "run", &number) &&
                json_integer(object, "seed", &seed) && seed >= 0,
            reading, line, "not a header that can follow here");
    const char *differs = NULL;
    if (!json_is(object, "kernel", run->kernel->name) || !json_is(object, "operation", run->operation->name))
        differs = "another kernel or operation";
    else if (!json_is(object, "kernel_hash", run->kernel->hash))
        differs = "another version of this kernel";
    else if (!same_text(object, "arguments", identity->arguments.data))
        differs = "other arguments";
    else if (*identity->pairs != '\0' && !json_is(object, "pairs_hash", identity->pairs))
        differs = "other pairs under the same name of --pairs";
    else if (!same_text(object, "cpus", identity->cpus.data))
        differs = "other CPUs";
    else if (!same_text(object, "host", identity->host.data))
        differs = "another host";
    else if ((uint64_t)job != identity->job || (uint64_t)number != identity->run)
        differs = "another job or run";
    if (differs != NULL)
        fail(EXIT_NOT_AS_ASKED, "%s was measured with %s (line %zu), which cannot be continued; start a new job",
             run->records.path, differs, line);
    former->seed = (uint64_t)seed;
    former->segments++;
}

static bool read_key(const struct operation *operation, size_t k, const struct json_object *object, int64_t *value) {
    const char *const *words = operation->words[k];
    if (words == NULL) return json_integer(object, operation->keys[k], value);
    for (*value = 0; words[*value] != NULL; ++*value)
        if (json_is(object, operation->keys[k], words[*value])) return true;
    return false;
}

static void take_unit(const struct json_object *object, size_t line, struct reading *reading) {
    struct former *former = reading->former;
    const struct run *run = reading->run;
    struct unit unit = {0};
    int64_t pass;
    double value = 0, low, high;
    bool good = json_is(object, "record", run->operation->record) && json_integer(object, "pass", &pass) && pass >= 0 &&
                (uint64_t)pass < run->passes;
    for (size_t k = 0; good && run->operation->keys[k] != NULL; k++)
        good = read_key(run->operation, k, object, &unit.key[k]);
    if (good && run->operation->measure_pairs != NULL)
        good = json_number(object, "latency_ns", &value) && json_number(object, "ci_low_ns", &low) &&
               json_number(object, "ci_high_ns", &high) && value > 0;
    if (good && run->operation->kept != NULL) good = json_number(object, run->operation->kept->name, &value);
    require(good && json_find(object, "flags") != NULL, reading, line, "not a record of this operation");
    const struct unit *found = bsearch(&unit, run->units, run->unit_count, sizeof unit, resume_compare_units);
    require(found != NULL, reading, line, "this was not asked for");
    size_t index = (size_t)(found - run->units), first = (size_t)pass * run->unit_count;
    while (index > 0 && resume_compare_units(&run->units[index - 1], &unit) == 0) index--;
    while (index < run->unit_count && former->done[first + index] != 0) index++; /* a pair may be named repeatedly */
    require(index < run->unit_count && resume_compare_units(&run->units[index], &unit) == 0, reading, line,
            "this is here for the second time");
    former->done[first + index] = 1;
    if (former->value != NULL) former->value[first + index] = value;
    const struct shown shown = figure_fields(run->operation);
    for (size_t f = 0; f < shown.count; f++) {
        bool there = json_number(object, shown.fields[f].name, &value);
        former->figure[(first + index) * shown.count + f] = there ? value : NAN;
    }
    former->done_in_pass[pass]++;
    former->count++;
}

static bool is_companion(const struct json_object *object) {
    static const char *const kinds[] = {"pass",   "sentinel", "second", "again",
                                        "census", "clusters", "offset", "load_second"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (json_is(object, "record", kinds[i])) return true;
    return false;
}

static void take_record(const struct json_object *object, size_t line, void *argument) {
    struct reading *reading = argument;
    struct former *former = reading->former;
    require(!former->complete, reading, line, "there are lines after the trailer");
    if (json_is(object, "record", "header")) {
        take_header(object, line, reading);
        return;
    }
    require(former->segments > 0, reading, line, "a header is expected");
    if (json_is(object, "record", "trailer")) {
        require(former->count == reading->run->unit_count * reading->run->passes, reading, line,
                "a trailer, but not everything is there");
        former->complete = true;
    } else if (!is_companion(object)) {
        take_unit(object, line, reading);
    }
}

void resume_read(struct former *former, struct run *run, const struct identity *identity) {
    size_t count = run->unit_count * run->passes;
    *former = (struct former){.done = grow(NULL, count, 1), .done_in_pass = grow(NULL, run->passes, sizeof(size_t))};
    memset(former->done, 0, count);
    memset(former->done_in_pass, 0, run->passes * sizeof(size_t));
    if (run->operation->measure_pairs != NULL || run->operation->kept != NULL)
        former->value = grow(NULL, count, sizeof *former->value);
    former->figure = grow(NULL, count * figure_fields(run->operation).count, sizeof *former->figure);
    run->kept = former->value;
    struct reading reading = {former, run, identity};
    records_read(&run->records, take_record, &reading);
}
