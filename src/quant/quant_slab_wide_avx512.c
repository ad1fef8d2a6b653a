/* AVX-512 slab kernels of Q1_0, Q2_0 and Q2_0_128 (activations ACT_Q8_0): blocks of two or four steps of 32 codes,
 * whose scaled sums are added up before the block's own scale. Slabs hold the codes 128 too high; the activations say
 * what that adds to a step's sum. Spec more-quants 2.6.
 *
 * Floor: per step, 32 rows and a column 16 products and 6 float operations share two pipes, and 4 more per block: two
 * thirds of the int8 peak. One of two cores of an Intel Xeon (Ice Lake, virtual), slabs and panels in the first-level
 * cache, share of the peak in alternation with it: Q1_0 0.64, Q2_0 0.59. */
#ifdef __AVX512VNNI__
#include "quant/quant_slab_avx512.h"
#include "quant/quant_slab_rows_avx512.h"
#include "quant/quant_wide_avx512.h"

enum { MOST_STEPS = 4 };

/* One block of sixteen rows. */
struct part_wide {
    float d[SLAB_ROWS];
    uint8_t code[8 * MOST_STEPS][64]; /* [group of four][row][4] */
};

INLINE size_t part_bytes(enum qtype t)
{
    return offsetof(struct part_wide, code) + (size_t)wide_parts(t) * 16 * 64;
}

/* Part h of block b of a slab. */
INLINE struct part_wide *part_at(enum qtype t, const uint8_t *slab, int b, int h)
{
    return (struct part_wide *)(uintptr_t)(slab + (size_t)(PARTS * b + h) * part_bytes(t));
}

INLINE void fill_part(enum qtype t, const uint8_t *const row[SLAB_ROWS], size_t at, struct part_wide *s)
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

INLINE void fill(enum qtype t, const uint8_t *const *row, int first, int n_blocks, uint8_t *slab)
{
    for (int h = 0; h < PARTS; h++)
        for (int b = 0; b < n_blocks; b++) {
            const size_t at = (size_t)(first + b) * wide_bytes(t);
            fill_part(t, row + SLAB_ROWS * h, at, part_at(t, slab, b, h));
        }
}

/* Step i of a block. */
INLINE void step_wide(int C, int c0, int n, const struct codes512 *codes, int i, const uint8_t *x,
                      struct chains512 *total)
{
    __m512i sum[PASS][PARTS];
    start512(n, x + 4 * (8 * C + c0), sum);
    groups512(C, c0, n, codes, x - 32 * i * C, 8 * i, 8, sum);
    UNROLL for (int c = 0; c < n; c++)
    {
        const __m512 da = spread_float(x + 4 * (9 * C + c0 + c));
        UNROLL for (int h = 0; h < PARTS; h++) total->v[c][h] =
            _mm512_add_ps(total->v[c][h], _mm512_mul_ps(da, _mm512_cvtepi32_ps(sum[c][h])));
    }
}

/* Columns [c0, c0 + n) of C. Their chains of floats have a step a block: registers are for the totals of its steps. */
INLINE void pass(enum qtype t, int C, int c0, int n, int n_blocks, const uint8_t *slab, const uint8_t *x, float *acc)
{
    for (int b = 0; b < n_blocks; b++) {
        const struct part_wide *s[PARTS];
        UNROLL for (int h = 0; h < PARTS; h++) s[h] = part_at(t, slab, b, h);
        const struct codes512 codes = {{s[0]->code, s[1]->code, s[2]->code, s[3]->code}};
        struct chains512 total;
        UNROLL for (int c = 0; c < n; c++) UNROLL for (int h = 0; h < PARTS; h++) total.v[c][h] = _mm512_setzero_ps();
        for (int i = 0; i < 2 * wide_parts(t); i++, x += 40 * C) step_wide(C, c0, n, &codes, i, x, &total);
        struct chains512 k = chains_load(n, acc);
        UNROLL for (int c = 0; c < n; c++) UNROLL for (int h = 0; h < PARTS; h++) k.v[c][h] =
            _mm512_add_ps(k.v[c][h], _mm512_mul_ps(_mm512_load_ps(s[h]->d), total.v[c][h]));
        chains_store(n, &k, acc);
    }
}

#define SLAB_WIDE(name, type)                                                                                          \
    static void name##_fill(const uint8_t *const *row, int first, int n_blocks, uint8_t *slab)                         \
    {                                                                                                                  \
        fill(type, row, first, n_blocks, slab);                                                                        \
    }                                                                                                                  \
    static void name##_pack(int k, const uint8_t *const *x, int n, int first, int n_blocks, uint8_t *panel)            \
    {                                                                                                                  \
        const int steps = 2 * wide_parts(type);                                                                        \
        quant_pack_32(k, x, n, steps *first, steps *n_blocks, panel);                                                  \
    }                                                                                                                  \
    static QUANT_MULTIPLY(name##_multiply, pass, type)

#define SLAB_OF(name, parts)                                                                                           \
    {                                                                                                                  \
        .block = 64 * (parts), .rows = QUANT_SLAB, .panel = PANEL, .from = SLAB_FROM_32(QT_Q1_0),                      \
        .slab_block = PARTS * (offsetof(struct part_wide, code) + (parts)*16 * 64), .panel_block = 80 * (parts),       \
        .pack = name##_pack, .fill = name##_fill, .multiply = name##_multiply                                          \
    }

SLAB_WIDE(q1_0, QT_Q1_0)
SLAB_WIDE(q2_0, QT_Q2_0)
SLAB_WIDE(q2_0_128, QT_Q2_0_128)
const struct quant_slab slab_q1_0_avx512 = SLAB_OF(q1_0, 2), slab_q2_0_avx512 = SLAB_OF(q2_0, 1),
                        slab_q2_0_128_avx512 = SLAB_OF(q2_0_128, 2);
#endif
