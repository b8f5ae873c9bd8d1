#include "records.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checksum.h"
#include "clock.h"
#include "fail.h"

static const double FLUSH_EVERY_S = 1;

void records_open(struct records *records, const char *path) {
    *records = (struct records){.path = path, .flushed_s = clock_monotonic_s()};
    struct stat facts;
    /* no link to nothing is followed, and a device is not even opened: that alone may have an effect */
    if (lstat(path, &facts) == 0 && !S_ISREG(facts.st_mode)) fail(EXIT_BAD_INPUT, "%s is not a regular file", path);
    records->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_APPEND | O_NOFOLLOW | O_NONBLOCK, 0644);
    if (records->fd < 0)
        fail(errno == ENOENT || errno == EISDIR || errno == ENOTDIR ? EXIT_BAD_INPUT : EXIT_NOT_AS_ASKED,
             "%s cannot be written: %s", path, strerror(errno));
    if (fstat(records->fd, &facts) != 0 || !S_ISREG(facts.st_mode))
        fail(EXIT_BAD_INPUT, "%s is not a regular file", path);
    /* in a shared folder somebody may have given the name of a record file to a file of ours */
    if (facts.st_nlink > 1) fail(EXIT_BAD_INPUT, "%s has another name (a hard link); remove it, then run again", path);
    if (flock(records->fd, LOCK_EX | LOCK_NB) != 0)
        fail(EXIT_NOT_AS_ASKED, "%s %s", path,
             errno == EWOULDBLOCK ? "is being written by another process"
                                  : "cannot be locked; it needs a file system with flock");
}

void records_malformed(const struct records *records, size_t line, const char *what) {
    fail(EXIT_BAD_INPUT, "%s, line %zu: %s; move the file away to measure again", records->path, line, what);
}

/* A write that was cut leaves the beginning of an object; anything else was not written by a kernel. */
static bool is_cut_line(const char *line, size_t length) {
    if (line[0] != '{') return false;
    for (size_t i = 0; i < length; i++)
        if (line[i] < ' ' || line[i] > '~') return false;
    return true;
}

/* Count a line by its first member, which is its kind. */
static void count_line(struct records *records, const char *line, size_t length) {
    static const char begin[] = "{\"record\":\"";
    const char *kind = line + sizeof begin - 1;
    size_t letters = 0, k = 0;
    if (length < sizeof begin || memcmp(line, begin, sizeof begin - 1) != 0) return;
    while (kind + letters < line + length && kind[letters] != '"') letters++;
    if (letters >= LONGEST_KIND) return;
    while (k < records->kind_count &&
           (strlen(records->kinds[k].name) != letters || memcmp(records->kinds[k].name, kind, letters) != 0))
        k++;
    if (k == MOST_KINDS) fail(EXIT_NOT_AS_ASKED, "%s has more kinds of lines than a kernel writes", records->path);
    if (k == records->kind_count) {
        memcpy(records->kinds[k].name, kind, letters);
        records->kind_count++;
    }
    records->kinds[k].lines++;
}

/* What is whole lines of the file from now on. */
static void take_lines(struct records *records, const char *lines, size_t length) {
    records->checksum = checksum_add(records->checksum, lines, length);
    for (const char *line = lines; line < lines + length;) {
        const char *end = memchr(line, '\n', (size_t)(lines + length - line));
        if (end == NULL) break;
        count_line(records, line, (size_t)(end - line));
        line = end + 1;
    }
    records->whole += (off_t)length;
}

void records_read(struct records *records, records_take *take, void *argument) {
    int copy = dup(records->fd);
    FILE *file = copy < 0 ? NULL : fdopen(copy, "r");
    if (file == NULL) fail(EXIT_NOT_AS_ASKED, "%s cannot be read: %s", records->path, strerror(errno));
    char *line = NULL;
    size_t capacity = 0, number = 0;
    static struct json_object object;
    for (ssize_t length; (length = getline(&line, &capacity, file)) > 0;) {
        number++;
        if (line[length - 1] != '\n') {
            if (!is_cut_line(line, (size_t)length)) records_malformed(records, number, "not a record");
            note("%s, line %zu: cut in the middle, dropped", records->path, number);
            break;
        }
        if (!json_parse(line, (size_t)length - 1, &object)) records_malformed(records, number, "not a record");
        take(&object, number, argument);
        take_lines(records, line, (size_t)length);
    }
    if (ferror(file) != 0) fail(EXIT_NOT_AS_ASKED, "%s cannot be read: %s", records->path, strerror(errno));
    free(line);
    fclose(file);
    if (ftruncate(records->fd, records->whole) != 0)
        fail(EXIT_NOT_AS_ASKED, "%s cannot be written: %s", records->path, strerror(errno));
}

void records_flush(struct records *records) {
    size_t done = 0;
    while (done < records->pending.length) {
        ssize_t written = write(records->fd, records->pending.data + done, records->pending.length - done);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) {
            int error = errno;
            size_t lines = done; /* keep what is complete */
            while (lines > 0 && records->pending.data[lines - 1] != '\n') lines--;
            bool cut = ftruncate(records->fd, records->whole + (off_t)lines) == 0;
            text_clear(&records->pending);
            fail(EXIT_NOT_AS_ASKED, "%s cannot be written: %s; %s", records->path, strerror(error),
                 cut ? "what was measured before is kept, and the same call continues it"
                     : "its last line may be incomplete");
        }
        done += (size_t)written;
    }
    take_lines(records, records->pending.data, records->pending.length);
    text_clear(&records->pending);
    records->flushed_s = clock_monotonic_s();
}

void records_seal(struct records *records) {
    struct text *pending = &records->pending, open_line = {0};
    size_t begin = pending->length;
    while (begin > 0 && pending->data[begin - 1] != '\n') begin--;
    text_add_bytes(&open_line, pending->data + begin, pending->length - begin);
    pending->length = begin;
    records_flush(records);
    text_add_bytes(pending, open_line.data, open_line.length);
    text_free(&open_line);
    text_add(pending, ",\"lines_by_kind\":{");
    for (size_t k = 0; k < records->kind_count; k++)
        text_add(pending, "%s\"%s\":%zu", k == 0 ? "" : ",", records->kinds[k].name, records->kinds[k].lines);
    text_add(pending, "}");
    uint32_t sum = checksum_add(records->checksum, pending->data, pending->length);
    text_add(pending, ",\"crc32\":%" PRIu32 "}\n", sum);
}

bool records_flush_is_due(const struct records *records) {
    return clock_monotonic_s() - records->flushed_s >= FLUSH_EVERY_S;
}

void records_close(struct records *records) {
    records_flush(records);
    if (fsync(records->fd) != 0 || close(records->fd) != 0)
        fail(EXIT_NOT_AS_ASKED, "%s cannot be written: %s", records->path, strerror(errno));
    text_free(&records->pending);
}
