/* Slabs of IQ4_XS, for the kernels of AVX-512 and of tiles. */
#ifndef QUANT_QUANT_SLAB_IQ4_XS_AVX512_H
#define QUANT_QUANT_SLAB_IQ4_XS_AVX512_H
#include "quant/quant_blocks.h"
#include "quant/quant_slab_avx512.h"

/* One block of sixteen rows. */
struct part_xs {
    uint8_t code[64][64];      /* [group of four][row][4] */
    float scale[8][SLAB_ROWS]; /* of the steps */
    float d[SLAB_ROWS];
};

/* What a fill reads and writes: blocks first.. of rows, in parts of sixteen; codes are `raised` too high, 128 or
 * nothing. */
struct filling_xs {
    const uint8_t *const *row;
    int first, n_blocks, parts;
    uint8_t raised;
    struct part_xs *to;
};
void fill_iq4_xs(const struct filling_xs *f);

#endif
