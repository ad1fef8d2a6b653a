/* Slab kernels by tiles of products of the types with blocks of 32: Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, IQ4_NL, MXFP4
 * (activations ACT_Q8_0). See quant_amx.h.
 *
 * Floor of sixteen rows times sixteen and a block: 64 vector operations and 32 turns of the tile's on two units, 48
 * cycles; loads of four tiles' rows and of 32 vectors, two a cycle, 48; by vectors alone 96. Measured there, slabs and
 * panels in the first-level cache: Q8_0 64 to 68 (AVX-512 101 to 110), MXFP4 62 (98). 16,384 rows of 4,096 values from
 * memory times 16, 24, 48 and 1,056 activations, with unpacking, thousand million multiply-adds a second: Q8_0 138,
 * 176, 269 and 381 (AVX-512 146, 184, 222 and 293), MXFP4 204, 252, 319 and 405 (195, 223, 259 and 295). */
#if defined(__AMX_INT8__) || defined(__AMXINT8__) /* gcc; clang up to 14 */
#include "quant/quant_amx.h"
#include "quant/quant_slab32_avx512.h"

/* dw, da: scales of the blocks; sum: da times the sum of the activations' codes. */
INLINE __m512 step(enum qtype t, __m512 acc, __m512 s, __m512 dw, __m512 da, __m512 min, __m512 sum)
{
    if (t == QT_Q8_0) return _mm512_add_ps(acc, _mm512_mul_ps(s, _mm512_mul_ps(dw, da)));
    if (t == QT_Q4_0) return _mm512_add_ps(acc, _mm512_mul_ps(_mm512_mul_ps(s, dw), da));
    const __m512 v = _mm512_mul_ps(_mm512_mul_ps(da, dw), s);
    if (!has_min(t)) return _mm512_add_ps(acc, v);
    return _mm512_add_ps(acc, _mm512_add_ps(v, _mm512_mul_ps(min, sum)));
}

INLINE void pass(enum qtype t, int R, int n, int n_blocks, const uint8_t *slab, const uint8_t *panel, float *acc)
{
    const size_t block = (has_min(t) ? 40 : 36) * (size_t)n;
    _Alignas(64) tile_sums sums;
    tiles_load(part_at(t, slab, 0)->code[0], panel);
    sums_start();
    for (int h = 0; h < HALF; h++) {
        __m512 k[TILE_ROWS];
        rows_load(R, n, acc + SLAB_ROWS * h, k);
        for (int b = 0; b < n_blocks; b++) {
            const struct part32 *const s = part_at(t, slab, HALF * b + h);
            const uint8_t *const x = panel + block * (size_t)b;
            if (b + 1 < n_blocks)
                tiles_load(part_at(t, slab, HALF * (b + 1) + h)->code[0], x + block);
            else if (h + 1 < HALF)
                tiles_load(part_at(t, slab, h + 1)->code[0], panel);
            _tile_stored(0, sums, 64);
            sums_start();
            _Alignas(64) float rest[2][TILE_ROWS];
            const float *const da = row_floats(n, x + 32 * (size_t)n, rest[0]);
            const float *const sum = has_min(t) ? row_floats(n, x + 36 * (size_t)n, rest[1]) : da;
            const __m512 dw = _mm512_load_ps(s->d), min = has_min(t) ? _mm512_load_ps(s->min) : dw;
            UNROLL_16 for (int r = 0; r < R; r++) k[r] =
                step(t, k[r], sums_row(sums, r), dw, _mm512_set1_ps(da[r]), min, _mm512_set1_ps(sum[r]));
        }
        rows_store(R, n, k, acc + SLAB_ROWS * h);
    }
}

/* Q5_0, IQ4_NL and MXFP4 have the steps of IQ4_NL, Q5_1 those of Q4_1. */
AMX_MULTIPLY(multiply_q8_0, pass, QT_Q8_0)
AMX_MULTIPLY(multiply_q4_0, pass, QT_Q4_0)
AMX_MULTIPLY(multiply_iq4_nl, pass, QT_IQ4_NL)
AMX_MULTIPLY(multiply_q4_1, pass, QT_Q4_1)

#define SLAB32(name, type, packing, with_min, multiplication)                                                          \
    static void name##_fill(const uint8_t *const *row, int first, int n_blocks, uint8_t *slab)                         \
    {                                                                                                                  \
        fill32_##name(&(struct filling32){row, first, n_blocks, HALF, 0, slab});                                       \
    }                                                                                                                  \
    const struct quant_slab slab_##name##_amx = {.block = 32,                                                          \
                                                 .rows = HALF * SLAB_ROWS,                                             \
                                                 .panel = TILE_ROWS,                                                   \
                                                 .from = (type) == QT_Q8_0 ? 28 : 16,                                  \
                                                 .fewer = &slab_##name##_avx512,                                       \
                                                 .slab_block = HALF * PART_BYTES(with_min),                            \
                                                 .panel_block = (with_min) ? 40 : 36,                                  \
                                                 .begin = tiles_begin_32,                                              \
                                                 .end = tiles_end,                                                     \
                                                 .pack = packing,                                                      \
                                                 .fill = name##_fill,                                                  \
                                                 .multiply = multiplication};

SLAB32(q8_0, QT_Q8_0, quant_pack_rows_32, false, multiply_q8_0)
SLAB32(q4_0, QT_Q4_0, quant_pack_rows_32, false, multiply_q4_0)
SLAB32(mxfp4, QT_MXFP4, quant_pack_rows_32, false, multiply_iq4_nl)
SLAB32(q5_0, QT_Q5_0, quant_pack_rows_32, false, multiply_iq4_nl)
SLAB32(iq4_nl, QT_IQ4_NL, quant_pack_rows_32, false, multiply_iq4_nl)
SLAB32(q4_1, QT_Q4_1, quant_pack_rows_32_sums, true, multiply_q4_1)
SLAB32(q5_1, QT_Q5_1, quant_pack_rows_32_sums, true, multiply_q4_1)
#endif
