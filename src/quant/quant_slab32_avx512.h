/* Slabs of the types with blocks of 32, for the kernels of AVX-512 and of tiles. */
#ifndef QUANT_QUANT_SLAB32_AVX512_H
#define QUANT_QUANT_SLAB32_AVX512_H
#include "quant/quant_slab_avx512.h"
#include "quant/quant_traits.h"

struct part32 {
    uint8_t code[8][64]; /* [group of four][row][4] */
    float d[SLAB_ROWS];
    float min[SLAB_ROWS]; /* only of types with a minimum */
};
#define PART_BYTES(has_min) (offsetof(struct part32, min) + ((has_min) ? sizeof(float) * SLAB_ROWS : 0))

/* Part i of a slab. */
INLINE struct part32 *part_at(enum qtype t, const uint8_t *slab, int i)
{
    return (struct part32 *)(uintptr_t)(slab + (size_t)i * PART_BYTES(has_min(t)));
}

/* What a fill reads and writes: blocks first.. of rows, in parts of sixteen; codes are `raised` too high, 128 or
 * nothing. */
struct filling32 {
    const uint8_t *const *row;
    int first, n_blocks, parts;
    uint8_t raised;
    uint8_t *slab;
};
typedef void fill32_fn(const struct filling32 *f);
fill32_fn fill32_q8_0, fill32_q4_0, fill32_q4_1, fill32_q5_0, fill32_q5_1, fill32_iq4_nl, fill32_mxfp4;

#endif
