/* Random rows in the form of a type, without encoding: random codes under scales that give the values a wanted spread.
 * Same seed, same bytes, in any order and on any number of threads. */
#ifndef SYNTH_BLOCKS_H
#define SYNTH_BLOCKS_H
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"

enum { SYNTH_SUMS = 4 * 255 + 1 };

struct synth_filler {
    uint32_t type;
    int64_t k;                  /* values per row */
    uint64_t seed;              /* of the tensor */
    uint16_t d, dmin;           /* f16 scales of blocks */
    int n_scales, at[2], bytes; /* types without a maker of their own: where the scales lie, and bytes of a block */
    float balance;              /* the second scale in units of the first */
    uint8_t exponent;           /* MXFP4: the scale 2^(exponent - 127), in `doubled` of 65536 blocks twice that */
    uint32_t doubled;
    union {
        float f32[SYNTH_SUMS]; /* value of a sum of four random bytes: nearly a normal distribution */
        uint16_t u16[SYNTH_SUMS];
    } value;
};

/* True if rows of that type can be made. */
bool synth_can_fill(uint32_t type);
/* Rows of k values with the given mean (plain types only) and standard deviation. ERR_ARG for a type without a
 * generator. */
int synth_filler_init(struct synth_filler *f, uint32_t type, int64_t k, float mean, float sigma, uint64_t seed,
                      struct err *e);
void synth_filler_row(const struct synth_filler *f, int64_t row, uint8_t *out);

/* Makes the values of a Q2_K row from `logical`, a multiple of 16, to k zero. */
void synth_pad_q2_k(uint8_t *row, int64_t logical, int64_t k);

/* Next number of a sequence of 64-bit numbers, and a seed made of two. */
uint64_t synth_next(uint64_t *state);
uint64_t synth_seed(uint64_t a, uint64_t b);

#endif
