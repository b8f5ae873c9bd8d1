#include "progress.h"

#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "clock.h"

static struct {
    const char *what;
    size_t total, already;
    double start, shown;
    bool terminal, line_open;
} progress;

void progress_start(const char *what, size_t total, size_t already) {
    progress.what = what;
    progress.total = total;
    progress.already = already;
    progress.start = progress.shown = clock_monotonic_s();
    progress.terminal = isatty(STDERR_FILENO) == 1;
    progress.line_open = false;
}

void progress_show(size_t done) {
    double now = clock_monotonic_s();
    if (now - progress.shown < (progress.terminal ? 0.2 : 10) || done <= progress.already) return;
    progress.shown = now;
    double left_s = (now - progress.start) / (double)(done - progress.already) * (double)(progress.total - done);
    fprintf(stderr, "%s%s: %zu of %zu (%.0f%%), %.0f s left%s", progress.terminal ? "\r" : "", progress.what, done,
            progress.total, 100.0 * (double)done / (double)progress.total, left_s, progress.terminal ? "   " : "\n");
    progress.line_open = progress.terminal;
}

void progress_end(void) {
    if (progress.line_open) fputc('\n', stderr);
    progress.line_open = false;
}
