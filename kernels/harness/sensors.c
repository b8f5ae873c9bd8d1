#include "sensors.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

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

void sensors_read(const struct machine *machine, struct text *out) {
    text_add(out, "{");
    temperatures(out);
    memory_errors(out);
    throttling(machine, "core", out);
    throttling(machine, "package", out);
    text_add(out, "}");
}
