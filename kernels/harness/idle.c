#include "idle.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

void idle_hold_off(struct text *out) {
    static const char path[] = "/dev/cpu_dma_latency";
    static const int32_t microseconds = 0;
    int device = open(path, O_WRONLY | O_CLOEXEC); /* what is asked for holds as long as it is open */
    if (device >= 0 && write(device, &microseconds, sizeof microseconds) == (ssize_t)sizeof microseconds) {
        text_add(out, "{\"held_off\":true}");
        return;
    }
    struct text reason = {0};
    text_add(&reason, "%s cannot be written: %s", path, strerror(errno));
    text_add(out, "{\"held_off\":false,\"reason\":");
    text_add_json(out, reason.data);
    text_add(out, "}");
    text_free(&reason);
    if (device >= 0) close(device);
}
