/* AVX-512 slab kernel of IQ4_XS, whose blocks of 256 are eight steps of 32 codes (activations ACT_Q8_K). Slabs hold the
 * codes 128 too high. Spec more-quants 2.2.
 *
 * Floor: per step of 32 codes, 32 rows and a column 16 products and 6 float operations share two pipes: 0.73 of the
 * int8 peak. Measured, one core of an Intel Xeon (Emerald Rapids), 10^9 multiply-adds per second with 4, 12, 48 and
 * 1,024 activation rows: 45, 73, 163, 183. */
#ifdef __AVX512VNNI__
#include "quant/quant_codes32_avx2.h"
#include "quant/quant_slab_avx512.h"

/* One block of sixteen rows. */
struct half_xs {
    uint8_t code[64][64];      /* [group of four][row][4] */
    float scale[8][SLAB_ROWS]; /* of the steps */
    float d[SLAB_ROWS];
};

INLINE void fill_half(const uint8_t *const row[SLAB_ROWS], size_t at, struct half_xs *s)
{
    const __m512i high = _mm512_set1_epi8((char)0x80);
    __m256 lo[8], hi[8];
    UNROLL for (int i = 0; i < 4; i++)
    {
        __m512i v[16];
#pragma GCC unroll 16
        for (int r = 0; r < SLAB_ROWS; r++)
            v[r] = _mm512_xor_si512(
                join256(codes(QT_IQ4_XS, row[r] + at, 2 * i), codes(QT_IQ4_XS, row[r] + at, 2 * i + 1)), high);
        transpose16(v);
#pragma GCC unroll 16
        for (int j = 0; j < 16; j++) store512(s->code[16 * i + j], v[j]);
    }
    iq4_xs_scales(row, at, lo);
    iq4_xs_scales(row + ROWS, at, hi);
    UNROLL for (int i = 0; i < 8; i++)
    {
        _mm256_store_ps(s->scale[i], lo[i]);
        _mm256_store_ps(s->scale[i] + ROWS, hi[i]);
    }
    _mm512_store_ps(s->d, f16_of_slab_rows(row, at));
}

static void fill(const uint8_t *const row[QUANT_SLAB], int first, int n_blocks, uint8_t *slab)
{
    struct half_xs *const s = (struct half_xs *)(void *)slab;
    for (int h = 0; h < HALVES; h++)
        for (int b = 0; b < n_blocks; b++) {
            const size_t at = (size_t)(first + b) * IQ4_XS_BYTES;
            prefetch_slab(row + SLAB_ROWS * h, at + 2 * IQ4_XS_BYTES, IQ4_XS_BYTES);
            fill_half(row + SLAB_ROWS * h, at, s + HALVES * b + h);
        }
}

/* d: the blocks' scales times that of each activation row. */
INLINE void step_xs(int C, const struct half_xs s[HALVES], int i, const uint8_t *x, const __m512 d[PANEL][HALVES],
                    float *acc)
{
    __m512i sum[PANEL][HALVES];
    UNROLL for (int c = 0; c < C; c++) sum[c][0] = sum[c][1] = spread512(x + 4 * ((64 + i) * C + c));
    UNROLL for (int j = 8 * i; j < 8 * i + 8; j++)
    {
        const __m512i w0 = load512(s[0].code[j]), w1 = load512(s[1].code[j]);
        UNROLL for (int c = 0; c < C; c++)
        {
            const __m512i a = spread512(x + 4 * (j * C + c));
            sum[c][0] = _mm512_dpbusd_epi32(sum[c][0], w0, a);
            sum[c][1] = _mm512_dpbusd_epi32(sum[c][1], w1, a);
        }
    }
    UNROLL for (int c = 0; c < C; c++) UNROLL for (int h = 0; h < HALVES; h++)
    {
        float *const v = acc_at(acc, c, h);
        const __m512 scale = _mm512_mul_ps(d[c][h], _mm512_load_ps(s[h].scale[i]));
        _mm512_store_ps(v, _mm512_add_ps(_mm512_load_ps(v), _mm512_mul_ps(scale, _mm512_cvtepi32_ps(sum[c][h]))));
    }
}

INLINE void columns(enum qtype t, int C, int n_blocks, const uint8_t *slab, const uint8_t *x, float *acc)
{
    const struct half_xs *s = (const struct half_xs *)(const void *)slab;
    for (int b = 0; b < n_blocks; b++, s += HALVES, x += 4 * 73 * C) {
        __m512 d[PANEL][HALVES];
        UNROLL for (int c = 0; c < C; c++) UNROLL for (int h = 0; h < HALVES; h++) d[c][h] =
            _mm512_mul_ps(_mm512_load_ps(s[h].d), spread_float(x + 4 * (72 * C + c)));
        for (int i = 0; i < 8; i++) step_xs(C, s, i, x, d, acc);
    }
}

static QUANT_MULTIPLY(multiply, columns, QT_IQ4_XS)

    const struct quant_slab slab_iq4_xs_avx512 = {.block = 256,
                                                  .panel = PANEL,
                                                  .from = 3,
                                                  .slab_block = HALVES * sizeof(struct half_xs),
                                                  .panel_block = 4 * 73,
                                                  .pack = quant_pack_iq4_xs,
                                                  .fill = fill,
                                                  .multiply = multiply};
#endif
