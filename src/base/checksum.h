/* A 64-bit checksum of bytes that come in pieces: the same value however they are cut. A change within one aligned word
 * of eight bytes is always noticed, any other with a probability of 1 - 2^-64. Against damage; it is no protection
 * against somebody who wants to deceive. */
#ifndef BASE_CHECKSUM_H
#define BASE_CHECKSUM_H
#include <stddef.h>
#include <stdint.h>

struct checksum {          /* zero-initialised = of nothing yet */
    uint64_t h, n;         /* n: bytes so far */
    unsigned char part[8]; /* the n % 8 bytes that are no whole word yet */
};
void checksum_add(struct checksum *c, const void *data, size_t n);
/* The value of all that was added; more may follow. */
uint64_t checksum_value(const struct checksum *c);

#endif
