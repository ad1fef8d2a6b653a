/* Tiles of the types that are multiplied as decoded floats: lanes16 (docs/numerics.md) on what the row decoder gives.
 */
#ifndef QUANT_QUANT_DECODED_H
#define QUANT_QUANT_DECODED_H
#include "quant/quant_internal.h"

/* A tile that decodes rows with decode and multiplies them with a set's tile of F32 weights; activations ACT_F32. */
struct quant_decoded {
    quant_row_fn *decode;
    quant_tile_fn *tile_f32;
    int block;
    size_t block_bytes;
};
void quant_tile_decoded(struct quant_decoded what, int k, const void *w, size_t w_stride, int n_rows, const void *x,
                        size_t x_stride, int n_cols, float *out, size_t out_stride);

#define QUANT_TILE_DECODED(name, decode, tile_f32, block, block_bytes)                                                 \
    QUANT_TILE(name, quant_tile_decoded, ((struct quant_decoded){decode, tile_f32, block, block_bytes}))

#endif
