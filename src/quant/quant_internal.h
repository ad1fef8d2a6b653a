/* What the files of this folder share: row decoders, and the activation quantisers and tile kernels of each kernel set.
 */
#ifndef QUANT_QUANT_INTERNAL_H
#define QUANT_QUANT_INTERNAL_H
#include "quant/quant.h"

quant_row_fn quant_decode_f32, quant_decode_f16, quant_decode_bf16, quant_decode_i32, quant_decode_q8_0,
    quant_decode_q8_1, quant_decode_q4_0, quant_decode_q4_1, quant_decode_q5_0, quant_decode_q5_1, quant_decode_iq4_nl,
    quant_decode_mxfp4, quant_decode_nvfp4, quant_decode_q1_0, quant_decode_q2_0, quant_decode_q2_0_128,
    quant_decode_mxfp8, quant_decode_mxfp8_sf, quant_decode_q2_k, quant_decode_q3_k, quant_decode_q4_k,
    quant_decode_q5_k, quant_decode_q6_k, quant_decode_q8_k, quant_decode_iq4_xs, quant_decode_tq1_0,
    quant_decode_tq2_0, quant_decode_iq2_xxs, quant_decode_iq2_xs, quant_decode_iq2_s, quant_decode_iq3_xxs,
    quant_decode_iq3_s, quant_decode_iq1_s, quant_decode_iq1_m;

/* Encoders of whole blocks; x is finite, importance is NULL or one weight per value. */
typedef void quant_encode_fn(const float *x, int64_t n, const float *importance, uint8_t *out);
quant_encode_fn quant_encode_q4_k, quant_encode_q5_k, quant_encode_q2_k, quant_encode_iq2_xxs;

/* Quantises n whole blocks of 32 (Q8_0) or 256 (Q8_K) values: codes q, scales d, Q8_0: offset, Q8_K: bsums. A block
 * whose largest magnitude is so small that its reciprocal scale overflows becomes zero; a block with a NaN or infinity
 * gets d = NaN and q = 0. */
typedef void act_q8_0_fn(const float *x, int64_t n_blocks, int8_t *q, float *d, int32_t *offset);
typedef void act_q8_k_fn(const float *x, int64_t n_blocks, int8_t *q, float *d, int16_t *bsums);
act_q8_0_fn act_q8_0_scalar, act_q8_0_avx2, act_q8_0_avx512, act_q8_0_neon;
act_q8_k_fn act_q8_k_scalar, act_q8_k_avx2, act_q8_k_avx512, act_q8_k_neon;
/* The best set but for AMX, whose vector kernels are those of AVX512, and for which one cannot ask often: a virtual
 * machine's host answers. */
enum quant_isa quant_isa_vectors(void);
/* The quantisers of a kernel set. */
struct quant_act_set {
    act_q8_0_fn *q8_0;
    act_q8_k_fn *q8_k;
};
struct quant_act_set quant_act_set(enum quant_isa isa);

/* Places in tables of types: the numbers of GGUF, then the readings. */
enum { SLOT_Q2_0_128 = QT_Q2_0 + 1, SLOT_MXFP8, SLOT_MXFP8_SF, QUANT_SLOTS };
int quant_slot(uint32_t id); /* negative: no such type */

/* Tile kernels by slot; NULL where the set has none. A set that is not compiled in is an empty table. */
typedef quant_tile_fn *quant_tile_table[QUANT_SLOTS];
extern const quant_tile_table quant_tiles_scalar, quant_tiles_avx2, quant_tiles_avx512, quant_tiles_neon,
    quant_tiles_neon_dotprod, quant_tiles_neon_i8mm;
/* Slab kernels likewise. */
typedef const struct quant_slab *quant_slab_table[QUANT_SLOTS];
extern const quant_slab_table quant_slabs_none, quant_slabs_avx2, quant_slabs_avxvnni, quant_slabs_avx512,
    quant_slabs_amx;
/* Panels of the types with blocks of 32, also with sums times scales, and of those with blocks of 256: with their
 * activation sums in pairs, or with what codes that are `high` too high add to each sub-block's sum, negated. */
typedef void quant_pack_fn(int k, const uint8_t *const *x, int n, int first, int n_blocks, uint8_t *panel);
quant_pack_fn quant_pack_32, quant_pack_32_sums, quant_pack_nvfp4 /* a sum per 16 */, quant_pack_pairs,
    quant_pack_pairs_32 /* sums of 32 */;
quant_pack_fn quant_pack_high_32 /* IQ2_XXS */, quant_pack_iq2_xxs_eighths /* quads of every eighth value */,
    quant_pack_high_16, quant_pack_high_8 /* Q6_K */, quant_pack_q3_k, quant_pack_tq,
    quant_pack_iq2_16 /* IQ2_XS, IQ2_S */, quant_pack_iq3_xxs, quant_pack_iq3_s, quant_pack_iq1_s, quant_pack_iq1_m,
    quant_pack_iq4_xs;
/* Quads of every fourth value. */
quant_pack_fn quant_pack_iq2_16_fourths, quant_pack_iq3_xxs_fourths, quant_pack_iq3_s_fourths, quant_pack_iq1_s_fourths,
    quant_pack_iq1_m_fourths;
/* Panels for tiles of products: rows of 32 codes as they are, also with sums times scales; of 32 and of 64 codes of
 * blocks of 256; of 64 with sums of 32 as BF16 in two parts, in quads of every fourth or every eighth value, with sums
 * of sixteen as bytes. */
quant_pack_fn quant_pack_rows_32, quant_pack_rows_32_sums, quant_pack_rows_steps, quant_pack_rows_256,
    quant_pack_rows_sums_32, quant_pack_rows_fourths, quant_pack_rows_eighths, quant_pack_rows_q2_k;
/* How much too high unsigned codes are. */
enum {
    IQ2_OFFSET = 43,
    IQ3_XXS_OFFSET = 62,
    IQ3_S_OFFSET = 15,
    IQ1_OFFSET = 9,
    Q6_OFFSET = 32,
    Q3_OFFSET = 4,
    NVFP4_OFFSET = 12
};
/* The same in every NEON set. */
quant_tile_fn tile_f32_neon, tile_f16_neon, tile_bf16_neon;

/* Defines a tile kernel that passes its arguments to body, after what. */
#define QUANT_TILE(name, body, what)                                                                                   \
    void name(int k, const void *w, size_t w_stride, int n_rows, const void *x, size_t x_stride, int n_cols,           \
              float *out, size_t out_stride)                                                                           \
    {                                                                                                                  \
        body(what, k, w, w_stride, n_rows, x, x_stride, n_cols, out, out_stride);                                      \
    }

#endif
