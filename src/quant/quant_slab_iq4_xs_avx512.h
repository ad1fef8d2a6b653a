/* Slabs of IQ4_XS, for the kernels of AVX-512 and of tiles. */
#ifndef QUANT_QUANT_SLAB_IQ4_XS_AVX512_H
#define QUANT_QUANT_SLAB_IQ4_XS_AVX512_H
#include "quant/quant_blocks.h"
#include "quant/quant_slab32_avx512.h"

/* One block of sixteen rows. */
struct part_xs {
    uint8_t code[64][64];      /* [group of four][row][4] */
    float scale[8][SLAB_ROWS]; /* of the steps */
    float d[SLAB_ROWS];
};

fill32_fn fill32_iq4_xs;

#endif
