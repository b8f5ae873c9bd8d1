/* How far and how long still, on stderr. */
#ifndef NODEPRINT_PROGRESS_H
#define NODEPRINT_PROGRESS_H

#include <stddef.h>

/* `total` units, of which `already` are done by a former call. */
void progress_start(const char *what, size_t total, size_t already);

/* On a terminal one line that is rewritten five times a second, otherwise a line every ten seconds. */
void progress_show(size_t done);

/* End the rewritten line. */
void progress_end(void);

#endif
