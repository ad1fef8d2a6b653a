/* AVX-512 slab kernels of the types with blocks of 32: Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, IQ4_NL, MXFP4 (activations
 * ACT_Q8_0). Slabs hold the codes 128 too high, so that they are unsigned; the activations say what that adds to a
 * block's sum.
 *
 * Floor: per block, 32 rows and a column 16 products and 8 float operations. Where all share two 512-bit units, 0.67 of
 * the int8 peak; on Zen 4, half of the float operations have units of their own, 0.8. One core of an Intel Xeon
 * (Emerald Rapids, int8 peak 362 thousand million multiply-adds a second, floor 241), 48 and 1,024 activations of 4,096
 * values, three runs of bench_quant: Q8_0 166 to 177 and 225 to 234; MXFP4 168 and 175, 222 and 238 (and 113, 140 while
 * the clock was low). Zen 4, 3.7 GHz, peak 236, floor 189, panels of four rows: Q8_0 181. */
#ifdef __AVX512VNNI__
#include "quant/quant_codes32_avx2.h"
#include "quant/quant_slab_avx512.h"

struct half32 {
    uint8_t code[8][64]; /* [group of four][row][4] */
    float d[SLAB_ROWS];
    float min[SLAB_ROWS]; /* only of types with a minimum */
};
#define HALF_BYTES(has_min) (offsetof(struct half32, min) + ((has_min) ? sizeof(float) * SLAB_ROWS : 0))

/* Half i of a slab. */
INLINE struct half32 *half_at(enum qtype t, const uint8_t *slab, int i)
{
    return (struct half32 *)(uintptr_t)(slab + (size_t)i * HALF_BYTES(has_min(t)));
}

/* Two blocks of sixteen rows; to: two slab blocks. */
INLINE void fill_pair(enum qtype t, const uint8_t *const *row, int b, size_t at, size_t second,
                      struct half32 *const to[2])
{
    const __m512i high = _mm512_set1_epi8((char)0x80);
    __m512i v[16];
#pragma GCC unroll 16
    for (int r = 0; r < SLAB_ROWS; r++)
        v[r] = _mm512_xor_si512(join256(codes(t, row[r] + at, b), codes(t, row[r] + second, b + 1)), high);
    transpose16(v);
#pragma GCC unroll 16
    for (int j = 0; j < 16; j++) store512(to[j / 8]->code[j % 8], v[j]);
    for (int i = 0; i < 2; i++) {
        _mm256_store_ps(to[i]->d, scales(t, row, i ? second : at));
        _mm256_store_ps(to[i]->d + ROWS, scales(t, row + ROWS, i ? second : at));
        if (has_min(t)) _mm512_store_ps(to[i]->min, f16_of_slab_rows(row, (i ? second : at) + Q4_1_M));
    }
}

INLINE void fill(enum qtype t, const uint8_t *const row[QUANT_SLAB], int first, int n_blocks, uint8_t *slab)
{
    for (int h = 0; h < HALVES; h++)
        for (int b = 0; b < n_blocks; b += 2) {
            const size_t at = (size_t)(first + b) * block_bytes(t);
            const bool one = b + 1 == n_blocks;
            struct half32 *const to[2] = {half_at(t, slab, HALVES * b + h),
                                          half_at(t, slab, HALVES * (one ? b : b + 1) + h)};
            prefetch_slab(row + SLAB_ROWS * h, at + 8 * block_bytes(t), 2 * block_bytes(t));
            fill_pair(t, row + SLAB_ROWS * h, first + b, at, one ? at : at + block_bytes(t), to);
        }
}

/* da, sum: scale of an activation block, and times the sum of its codes. */
INLINE __m512 step512(enum qtype t, __m512 acc, __m512i products, const struct half32 *w, __m512 da, __m512 sum)
{
    const __m512 s = _mm512_cvtepi32_ps(products), dw = _mm512_load_ps(w->d);
    if (t == QT_Q8_0) return _mm512_add_ps(acc, _mm512_mul_ps(s, _mm512_mul_ps(dw, da)));
    if (t == QT_Q4_0) return _mm512_add_ps(acc, _mm512_mul_ps(_mm512_mul_ps(s, dw), da));
    const __m512 v = _mm512_mul_ps(_mm512_mul_ps(da, dw), s);
    if (!has_min(t)) return _mm512_add_ps(acc, v);
    return _mm512_add_ps(acc, _mm512_add_ps(v, _mm512_mul_ps(_mm512_load_ps(w->min), sum)));
}

INLINE void columns(enum qtype t, int C, int n_blocks, const uint8_t *slab, const uint8_t *x, float *acc)
{
    for (int b = 0; b < n_blocks; b++, x += (has_min(t) ? 44 : 40) * C) {
        const struct half32 *const s[HALVES] = {half_at(t, slab, HALVES * b), half_at(t, slab, HALVES * b + 1)};
        __m512i sum[PANEL][HALVES];
        UNROLL for (int c = 0; c < C; c++) sum[c][0] = sum[c][1] = spread512(x + 4 * (8 * C + c));
        groups512(C, s[0]->code, s[1]->code, x, 0, 8, sum);
        UNROLL for (int c = 0; c < C; c++)
        {
            const __m512 da = spread_float(x + 4 * (9 * C + c));
            UNROLL for (int h = 0; h < HALVES; h++)
            {
                float *const v = acc_at(acc, c, h);
                _mm512_store_ps(v, step512(t, _mm512_load_ps(v), sum[c][h], s[h], da,
                                           has_min(t) ? spread_float(x + 4 * (10 * C + c)) : da));
            }
        }
    }
}

/* Q5_0, IQ4_NL and MXFP4 have the steps of Q8_0, Q5_1 those of Q4_1. */
static QUANT_MULTIPLY(multiply_q8_0, columns,
                      QT_Q8_0) static QUANT_MULTIPLY(multiply_q4_0, columns,
                                                     QT_Q4_0) static QUANT_MULTIPLY(multiply_q4_1, columns, QT_Q4_1)

#define SLAB32(name, type, packing, with_min, multiplication)                                                          \
    static void name##_fill(const uint8_t *const row[QUANT_SLAB], int first, int n_blocks, uint8_t *slab)              \
    {                                                                                                                  \
        fill(type, row, first, n_blocks, slab);                                                                        \
    }                                                                                                                  \
    const struct quant_slab slab_##name##_avx512 = {.block = 32,                                                       \
                                                    .panel = PANEL,                                                    \
                                                    .from = SLAB_FROM_32,                                              \
                                                    .slab_block = HALVES * HALF_BYTES(with_min),                       \
                                                    .panel_block = (with_min) ? 44 : 40,                               \
                                                    .pack = packing,                                                   \
                                                    .fill = name##_fill,                                               \
                                                    .multiply = multiplication};

    SLAB32(q8_0, QT_Q8_0, quant_pack_32, false, multiply_q8_0)
        SLAB32(q4_0, QT_Q4_0, quant_pack_32, false, multiply_q4_0)
            SLAB32(mxfp4, QT_MXFP4, quant_pack_32, false, multiply_q8_0)
                SLAB32(q5_0, QT_Q5_0, quant_pack_32, false, multiply_q8_0)
                    SLAB32(iq4_nl, QT_IQ4_NL, quant_pack_32, false, multiply_q8_0)
                        SLAB32(q4_1, QT_Q4_1, quant_pack_32_sums, true, multiply_q4_1)
                            SLAB32(q5_1, QT_Q5_1, quant_pack_32_sums, true, multiply_q4_1)
#endif
