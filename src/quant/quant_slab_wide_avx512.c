/* AVX-512 slab kernels of Q1_0, Q2_0 and Q2_0_128 (activations ACT_Q8_0): blocks of two or four steps of 32 codes,
 * whose scaled sums are added up before the block's own scale. Slabs hold the codes 128 too high; the activations say
 * what that adds to a step's sum. Spec more-quants 2.6.
 *
 * Floor: per step, 32 rows and a column 16 products and 6 float operations share two pipes, and 4 more per block: two
 * thirds of the int8 peak. */
#ifdef __AVX512VNNI__
#include "quant/quant_slab_avx512.h"
#include "quant/quant_slab_rows_avx512.h"
#include "quant/quant_wide_avx512.h"

enum { MOST_STEPS = 4 };

/* One block of sixteen rows. */
struct half_wide {
    float d[SLAB_ROWS];
    uint8_t code[8 * MOST_STEPS][64]; /* [group of four][row][4] */
};

INLINE size_t half_bytes(enum qtype t)
{
    return offsetof(struct half_wide, code) + (size_t)wide_parts(t) * 16 * 64;
}

/* Half h of block b of a slab. */
INLINE struct half_wide *half_at(enum qtype t, const uint8_t *slab, int b, int h)
{
    return (struct half_wide *)(uintptr_t)(slab + (size_t)(HALVES * b + h) * half_bytes(t));
}

INLINE void fill_half(enum qtype t, const uint8_t *const row[SLAB_ROWS], size_t at, struct half_wide *s)
{
    const __m512i up = _mm512_set1_epi8((char)(128 - wide_offset(t)));
    for (int i = 0; i < wide_parts(t); i++) {
        __m512i v[16];
#pragma GCC unroll 16
        for (int r = 0; r < SLAB_ROWS; r++) v[r] = _mm512_add_epi8(wide_codes(t, row[r] + at, i), up);
        transpose16(v);
#pragma GCC unroll 16
        for (int j = 0; j < 16; j++) store512(s->code[16 * i + j], v[j]);
    }
    _mm512_store_ps(s->d, f16_first(row, at));
}

INLINE void fill(enum qtype t, const uint8_t *const row[QUANT_SLAB], int first, int n_blocks, uint8_t *slab)
{
    for (int h = 0; h < HALVES; h++)
        for (int b = 0; b < n_blocks; b++) {
            const size_t at = (size_t)(first + b) * wide_bytes(t);
            fill_half(t, row + SLAB_ROWS * h, at, half_at(t, slab, b, h));
        }
}

/* Step i of a block; the totals of the block's steps so far lie in memory. */
INLINE void step_wide(int C, const struct half_wide *const s[HALVES], int i, const uint8_t *x, float *total)
{
    __m512i sum[PANEL][HALVES];
    UNROLL for (int c = 0; c < C; c++) sum[c][0] = sum[c][1] = spread512(x + 4 * (8 * C + c));
    groups512(C, s[0]->code + 8 * i, s[1]->code + 8 * i, x, 0, 8, sum);
    UNROLL for (int c = 0; c < C; c++)
    {
        const __m512 da = spread_float(x + 4 * (9 * C + c));
        UNROLL for (int h = 0; h < HALVES; h++)
        {
            float *const v = acc_at(total, c, h);
            _mm512_store_ps(v, _mm512_add_ps(_mm512_load_ps(v), _mm512_mul_ps(da, _mm512_cvtepi32_ps(sum[c][h]))));
        }
    }
}

INLINE void columns(enum qtype t, int C, int n_blocks, const uint8_t *slab, const uint8_t *x, float *acc)
{
    _Alignas(64) float total[PANEL * QUANT_SLAB];
    for (int b = 0; b < n_blocks; b++) {
        const struct half_wide *const s[HALVES] = {half_at(t, slab, b, 0), half_at(t, slab, b, 1)};
        acc_start(total, C);
        for (int i = 0; i < 2 * wide_parts(t); i++, x += 40 * C) step_wide(C, s, i, x, total);
        for (int c = 0; c < C; c++) UNROLL for (int h = 0; h < HALVES; h++)
            {
                float *const v = acc_at(acc, c, h);
                const __m512 scaled = _mm512_mul_ps(_mm512_load_ps(s[h]->d), _mm512_load_ps(acc_at(total, c, h)));
                _mm512_store_ps(v, _mm512_add_ps(_mm512_load_ps(v), scaled));
            }
    }
}

#define SLAB_WIDE(name, type)                                                                                          \
    static void name##_fill(const uint8_t *const row[QUANT_SLAB], int first, int n_blocks, uint8_t *slab)              \
    {                                                                                                                  \
        fill(type, row, first, n_blocks, slab);                                                                        \
    }                                                                                                                  \
    static void name##_pack(int k, const uint8_t *const *x, int n, int first, int n_blocks, uint8_t *panel)            \
    {                                                                                                                  \
        const int steps = 2 * wide_parts(type);                                                                        \
        quant_pack_32(k, x, n, steps *first, steps *n_blocks, panel);                                                  \
    }                                                                                                                  \
    static QUANT_MULTIPLY(name##_multiply, columns, type)

#define SLAB_OF(name, parts)                                                                                           \
    {                                                                                                                  \
        .block = 64 * (parts), .panel = PANEL, .from = SLAB_FROM_32(QT_Q1_0),                                          \
        .slab_block = HALVES * (offsetof(struct half_wide, code) + (parts)*16 * 64), .panel_block = 80 * (parts),      \
        .pack = name##_pack, .fill = name##_fill, .multiply = name##_multiply                                          \
    }

SLAB_WIDE(q1_0, QT_Q1_0)
SLAB_WIDE(q2_0, QT_Q2_0)
SLAB_WIDE(q2_0_128, QT_Q2_0_128)
const struct quant_slab slab_q1_0_avx512 = SLAB_OF(q1_0, 2), slab_q2_0_avx512 = SLAB_OF(q2_0, 1),
                        slab_q2_0_128_avx512 = SLAB_OF(q2_0_128, 2);
#endif
