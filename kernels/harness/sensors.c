#include "sensors.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_CHIPS = 64, MOST_INPUTS = 64, MOST_CONTROLLERS = 64 };

static void temperatures(struct text *out) {
    const char *separator = "";
    char name[64], label[64], content[64], key[160];
    struct text found = {0};
    for (int chip = 0; chip < MOST_CHIPS; chip++) {
        if (!read_sysfs(name, sizeof name, "class/hwmon/hwmon%d/name", chip)) continue;
        for (int input = 1; input <= MOST_INPUTS; input++) {
            if (!read_sysfs(content, sizeof content, "class/hwmon/hwmon%d/temp%d_input", chip, input)) continue;
            if (read_sysfs(label, sizeof label, "class/hwmon/hwmon%d/temp%d_label", chip, input))
                snprintf(key, sizeof key, "%s%d/%s", name, chip, label);
            else
                snprintf(key, sizeof key, "%s%d/temp%d", name, chip, input);
            text_add(&found, "%s", separator);
            text_add_json(&found, key);
            text_add(&found, ":%.1f", strtod(content, NULL) / 1000);
            separator = ",";
        }
    }
    text_add(out, "\"temperatures_c\":");
    if (found.length > 0)
        text_add(out, "{%s}", found.data);
    else
        text_add(out, "null");
    text_free(&found);
}

static void memory_errors(struct text *out) {
    char corrected[64], uncorrected[64];
    bool any = false;
    text_add(out, ",\"edac\":");
    for (int mc = 0; mc < MOST_CONTROLLERS; mc++) {
        if (!read_sysfs(corrected, sizeof corrected, "devices/system/edac/mc/mc%d/ce_count", mc) ||
            !read_sysfs(uncorrected, sizeof uncorrected, "devices/system/edac/mc/mc%d/ue_count", mc))
            continue;
        text_add(out, "%s\"mc%d\":{\"ce\":%llu,\"ue\":%llu}", any ? "," : "{", mc, strtoull(corrected, NULL, 10),
                 strtoull(uncorrected, NULL, 10));
        any = true;
    }
    text_add(out, any ? "}" : "null");
}

static void throttling(const struct machine *machine, const char *what, struct text *out) {
    const char *separator = "";
    char content[64];
    bool told = false;
    struct text found = {0};
    for (size_t i = 0; i < machine->online.count; i++) {
        int cpu = machine->online.cpu[i];
        if (!read_sysfs(content, sizeof content, "devices/system/cpu/cpu%d/thermal_throttle/%s_throttle_count", cpu,
                        what))
            continue;
        told = true;
        unsigned long long count = strtoull(content, NULL, 10);
        if (count == 0) continue;
        text_add(&found, "%s\"%d\":%llu", separator, cpu, count);
        separator = ",";
    }
    text_add(out, ",\"throttle_%s\":", what);
    if (told)
        text_add(out, "{%s}", found.length > 0 ? found.data : "");
    else
        text_add(out, "null");
    text_free(&found);
}

/* Adds the counter in a file of microjoules below sysfs, where it can be read. */
static void add_counter(struct energy *counters, size_t *count, bool *refused, const char *path, const char *name) {
    char content[64], full[PATH_MAX];
    if (*count == MOST_ENERGY_COUNTERS) return;
    if (!read_sysfs(content, sizeof content, "%s", path)) {
        *refused = *refused ||
                   (snprintf(full, sizeof full, "%s/%s", sysfs(), path) < (int)sizeof full && access(full, F_OK) == 0);
        return;
    }
    struct energy *counter = &counters[(*count)++];
    *counter = (struct energy){.joules = strtod(content, NULL) / 1e6};
    snprintf(counter->name, sizeof counter->name, "%s", name);
}

/* A zone of powercap: a package, or the memory of one. */
static void add_zone(struct energy *counters, size_t *count, bool *refused, const char *zone) {
    char name[48], path[96], label[96], range[64];
    size_t before = *count;
    if (!read_sysfs(name, sizeof name, "class/powercap/%s/name", zone)) return;
    if (strncmp(name, "package", 7) != 0 && strcmp(name, "dram") != 0) return;
    snprintf(path, sizeof path, "class/powercap/%s/energy_uj", zone);
    snprintf(label, sizeof label, "%s/%s", zone, name);
    add_counter(counters, count, refused, path, label);
    if (*count > before && read_sysfs(range, sizeof range, "class/powercap/%s/max_energy_range_uj", zone))
        counters[before].wraps_at = strtod(range, NULL) / 1e6;
}

size_t sensors_energy(struct energy counters[MOST_ENERGY_COUNTERS], bool *refused) {
    enum { MOST_PACKAGES = 16, MOST_SUBZONES = 4 };
    char name[48], label[32], path[96], full[96];
    size_t count = 0;
    *refused = false;
    for (int package = 0; package < MOST_PACKAGES; package++) {
        snprintf(path, sizeof path, "intel-rapl:%d", package); /* AMD's too have this name */
        add_zone(counters, &count, refused, path);
        for (int zone = 0; zone < MOST_SUBZONES; zone++) {
            snprintf(path, sizeof path, "intel-rapl:%d:%d", package, zone);
            add_zone(counters, &count, refused, path);
        }
    }
    for (int chip = 0; chip < MOST_CHIPS; chip++) {
        if (!read_sysfs(name, sizeof name, "class/hwmon/hwmon%d/name", chip)) continue;
        for (int input = 1; input <= MOST_INPUTS; input++) {
            if (!read_sysfs(label, sizeof label, "class/hwmon/hwmon%d/energy%d_label", chip, input)) continue;
            if (strncmp(label, "Esocket", 7) != 0) continue; /* amd_energy has each core, too */
            snprintf(path, sizeof path, "class/hwmon/hwmon%d/energy%d_input", chip, input);
            snprintf(full, sizeof full, "%s%d/%s", name, chip, label);
            add_counter(counters, &count, refused, path, full);
        }
    }
    return count;
}

static void energies(struct text *out) {
    struct energy counters[MOST_ENERGY_COUNTERS];
    bool refused;
    size_t count = sensors_energy(counters, &refused);
    text_add(out, ",\"energy_j\":%s", count == 0 ? "null" : "{");
    for (size_t i = 0; i < count; i++) {
        text_add(out, "%s", i == 0 ? "" : ",");
        text_add_json(out, counters[i].name);
        text_add(out, ":%.6f", counters[i].joules);
    }
    text_add(out, count == 0 ? "" : "}");
}

void sensors_read(const struct machine *machine, struct text *out) {
    text_add(out, "{");
    temperatures(out);
    memory_errors(out);
    throttling(machine, "core", out);
    throttling(machine, "package", out);
    energies(out);
    text_add(out, "}");
}
