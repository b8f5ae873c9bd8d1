/* The checksum of a record file: CRC-32 as zlib and gzip have it, so that zlib.crc32 of Python verifies it. */
#ifndef NODEPRINT_CHECKSUM_H
#define NODEPRINT_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

/* The checksum of what had the checksum `sum` (0 of nothing), followed by `count` bytes. */
uint32_t checksum_add(uint32_t sum, const char *bytes, size_t count);

#endif
