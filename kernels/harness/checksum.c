#include "checksum.h"

#include <stdbool.h>

/* IEEE 802.3, the lowest bit first. */
static const uint32_t POLYNOMIAL = 0xedb88320u;

/* What each byte does to a sum. */
static const uint32_t *byte_sums(void) {
    static uint32_t sums[256];
    static bool filled;
    for (uint32_t byte = 0; !filled && byte < 256; byte++) {
        uint32_t sum = byte;
        for (int bit = 0; bit < 8; bit++) sum = sum >> 1 ^ ((sum & 1) != 0 ? POLYNOMIAL : 0);
        sums[byte] = sum;
    }
    filled = true;
    return sums;
}

uint32_t checksum_add(uint32_t sum, const char *bytes, size_t count) {
    const uint32_t *sums = byte_sums();
    sum = ~sum;
    for (size_t i = 0; i < count; i++) sum = sums[(sum ^ (unsigned char)bytes[i]) & 255] ^ sum >> 8;
    return ~sum;
}
