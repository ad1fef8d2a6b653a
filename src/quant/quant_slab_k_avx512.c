/* AVX-512 slab kernels of Q3_K, Q4_K, Q5_K, Q6_K, TQ1_0 and TQ2_0: codes of Q6_K are 32 too high, those of Q3_K 4, of
 * TQ
 * 1. Rows are transposed before they are unpacked (quant_slab_rows_avx512.h). Spec gguf-and-quants 2.6 to 2.8,
 * more-quants 2.6.
 *
 * Floor of 256 values of sixteen rows, two instructions a cycle: of 32 bytes of each row 24 shuffles and 8 blends; of
 * every 64 codes of Q4_K 1.5, TQ2_0 1.75, Q5_K and Q6_K 2.5, Q3_K 2.75, TQ1_0 7; stores of 80 vectors; with scales
 * about 130 cycles for Q4_K. What the rows take from the second-level cache to the first costs as much. Measured, one
 * core of an Intel Xeon (Emerald Rapids), 256 values of 32 rows from the second-level cache, in alternation, two rounds
 * each, and the codes of one row after the other: Q3_K 124 and 160 ns (458, 560), Q4_K 174 and 178 (336, 419), Q5_K 190
 * and 207 (412, 561), Q6_K 268 and 269 (386, 484), TQ1_0 211 and 211 (953, 980), TQ2_0 109 and 110 (271, 317). One of
 * two cores of an Intel Xeon (Ice Lake, virtual), cycles for 64 rows: Q3_K 1,080, Q4_K 940, Q5_K 1,120, Q6_K 1,550. */
#ifdef __AVX512VNNI__
#include "quant/quant_slab256_avx512.h"
#include "quant/quant_slab_rows_avx512.h"

INLINE __m512i low_bits(__m512i v, int n)
{
    return _mm512_and_si512(v, _mm512_set1_epi8((char)((1 << n) - 1)));
}

/* The low n bits of a, and the others of b. */
INLINE __m512i below(int n, __m512i a, __m512i b)
{
    return choose512(_mm512_set1_epi8((char)((1 << n) - 1)), a, b);
}

/* ---- Q4_K, Q5_K */

/* Four bytes per row: scales or minimums of four sub-blocks. Scales of 16 bits: the upper ones of a sum take none. */
INLINE void put_four_scales(__m512i v, int32_t scale[4][SLAB_ROWS])
{
    const __m512i lower = _mm512_set1_epi32(0xffff);
    UNROLL for (unsigned i = 0; i < 4; i++) store512(scale[i], _mm512_and_si512(byte_of_lanes(v, i), lower));
}

INLINE void put_four_mins(__m512i v, int16_t min[2][2 * SLAB_ROWS])
{
    UNROLL for (int i = 0; i < 2; i++) store512(min[i], bytes_of_lanes(v, 2 * i, 2 * i + 1));
}

/* From d, dmin and the twelve bytes of scales and minimums of six bits. */
INLINE void fill_head(const uint8_t *const row[SLAB_ROWS], size_t at, struct part256 *s)
{
    const __m512i six = _mm512_set1_epi8(0x3f), four = _mm512_set1_epi8(0x0f), two = _mm512_set1_epi8(0x30);
    __m512i v[4];
    quads_of_rows(row, at, v);
    const __m512i a = v[1], b = v[2], c = v[3];
    const __m512i scale_high = _mm512_and_si512(_mm512_srli_epi32(a, 2), two);
    const __m512i min_high = _mm512_and_si512(_mm512_srli_epi32(b, 2), two);
    put_four_scales(_mm512_and_si512(a, six), s->scale);
    put_four_scales(_mm512_ternarylogic_epi32(c, four, scale_high, 0xea), s->scale + 4);
    put_four_mins(_mm512_and_si512(b, six), s->min);
    put_four_mins(_mm512_ternarylogic_epi32(_mm512_srli_epi32(c, 4), four, min_high, 0xea), s->min + 2);
    _mm512_store_ps(s->d, f16_of_lanes(v[0]));
    _mm512_store_ps(s->dmin, f16_of_upper(v[0]));
}

INLINE void fill_q4_k(const uint8_t *const row[SLAB_ROWS], size_t at, struct part256 *s)
{
    fill_head(row, at, s);
    UNROLL for (int i = 0; i < 4; i++)
    {
        __m512i v[8];
        octets_of_rows(row, at + Q4_K_QS + 32 * (size_t)i, v);
        UNROLL for (int j = 0; j < 8; j++)
        {
            store512(s->code[16 * i + j], low_bits(v[j], 4));
            store512(s->code[16 * i + 8 + j], low_bits(_mm512_srli_epi16(v[j], 4), 4));
        }
    }
}

INLINE void fill_q5_k(const uint8_t *const row[SLAB_ROWS], size_t at, struct part256 *s)
{
    __m512i high[8];
    fill_head(row, at, s);
    octets_of_rows(row, at + Q5_K_QH, high);
    UNROLL for (int i = 0; i < 4; i++)
    {
        __m512i v[8];
        octets_of_rows(row, at + Q5_K_QS + 32 * (size_t)i, v);
        UNROLL for (int j = 0; j < 8; j++)
        {
            store512(s->code[16 * i + j], below(4, v[j], bits_moved(high[j], 1, 2 * i, 4)));
            store512(s->code[16 * i + 8 + j],
                     below(4, _mm512_srli_epi16(v[j], 4), bits_moved(high[j], 1, 2 * i + 1, 4)));
        }
    }
}

/* ---- Q6_K, Q3_K */

INLINE void fill_q6_k(const uint8_t *const row[SLAB_ROWS], size_t at, struct part256 *s)
{
    UNROLL for (int h = 0; h < 2; h++)
    {
        __m512i low[2][8], high[8];
        UNROLL for (int i = 0; i < 2; i++) octets_of_rows(row, at + 64 * (size_t)h + 32 * (size_t)i, low[i]);
        octets_of_rows(row, at + Q6_K_QH + 32 * (size_t)h, high);
        UNROLL for (int j = 0; j < 8; j++) UNROLL for (int p = 0; p < 4; p++)
        {
            const __m512i v = p < 2 ? low[p][j] : _mm512_srli_epi16(low[p - 2][j], 4);
            store512(s->code[32 * h + 8 * p + j], below(4, v, bits_moved(high[j], 2, 2 * p, 4)));
        }
    }
    __m512i scale[4];
    quads_of_rows(row, at + Q6_K_SCALES, scale);
    UNROLL for (int i = 0; i < 4; i++) put_four_scales(scale[i], s->scale + 4 * i);
    _mm512_store_ps(s->d, f16_last(row, at + Q6_K_BYTES));
}

/* Sixteen scales of six bits, 32 too high, in twelve bytes. */
INLINE void fill_scales_q3_k(__m512i a, __m512i b, __m512i c, int32_t scale[16][SLAB_ROWS])
{
    const __m512i four = _mm512_set1_epi8(0x0f), two = _mm512_set1_epi8(0x30), middle = _mm512_set1_epi8(32);
    const __m512i high[4] = {_mm512_slli_epi32(c, 4), _mm512_slli_epi32(c, 2), c, _mm512_srli_epi32(c, 2)};
    UNROLL for (int i = 0; i < 4; i++)
    {
        const __m512i both = i % 2 ? b : a, low = i < 2 ? both : _mm512_srli_epi32(both, 4);
        const __m512i v = _mm512_ternarylogic_epi32(high[i], two, _mm512_and_si512(low, four), 0xea);
        put_four_scales(_mm512_sub_epi8(v, middle), scale + 4 * i);
    }
}

INLINE void fill_q3_k(const uint8_t *const row[SLAB_ROWS], size_t at, struct part256 *s)
{
    __m512i high[8], last[4];
    octets_of_rows(row, at + Q3_K_HIGH, high);
    UNROLL for (int h = 0; h < 2; h++)
    {
        __m512i v[8];
        octets_of_rows(row, at + Q3_K_QS + 32 * (size_t)h, v);
        UNROLL for (int j = 0; j < 8; j++) UNROLL for (unsigned p = 0; p < 4; p++)
            store512(s->code[32 * h + 8 * (int)p + j],
                     below(2, _mm512_srli_epi16(v[j], 2 * p), bits_moved(high[j], 1, 4 * h + (int)p, 2)));
    }
    quads_of_rows(row, at + Q3_K_SCALES - 4, last);
    fill_scales_q3_k(last[1], last[2], last[3], s->scale);
    _mm512_store_ps(s->d, f16_last(row, at + Q3_K_BYTES));
}

/* ---- TQ2_0, TQ1_0: no scales but d */

INLINE void put_ones(struct part256 *s)
{
    UNROLL for (int i = 0; i < 8; i++) _mm512_store_ps(s->float_scale[i], _mm512_set1_ps(1));
}

INLINE void fill_tq2_0(const uint8_t *const row[SLAB_ROWS], size_t at, struct part256 *s)
{
    UNROLL for (int h = 0; h < 2; h++)
    {
        __m512i v[8];
        octets_of_rows(row, at + 32 * (size_t)h, v);
        UNROLL for (int j = 0; j < 8; j++) UNROLL for (unsigned p = 0; p < 4; p++)
            store512(s->code[32 * h + 8 * (int)p + j], low_bits(_mm512_srli_epi16(v[j], 2 * p), 2));
    }
    put_ones(s);
    _mm512_store_ps(s->d, f16_last(row, at + TQ2_0_BYTES));
}

/* n digits of base 3 of bytes, the first one the most significant, `apart` vectors apart. */
INLINE void put_digits(__m512i v, int n, int apart, uint8_t (*code)[64])
{
    const __m512i one = _mm512_set1_epi8(1);
    UNROLL for (int i = 0; i < n; i++)
    {
        /* 3 * v / 256 */
        const __m512i first = _mm512_min_epu8(_mm512_subs_epu8(v, _mm512_set1_epi8(85)), one);
        const __m512i second = _mm512_min_epu8(_mm512_subs_epu8(v, _mm512_set1_epi8((char)170)), one);
        store512(code[i * apart], _mm512_add_epi8(first, second));
        v = _mm512_add_epi8(_mm512_add_epi8(v, v), v);
    }
}

INLINE void fill_tq1_0(const uint8_t *const row[SLAB_ROWS], size_t at, struct part256 *s)
{
    __m512i v[8], w[4], last[4];
    octets_of_rows(row, at, v);
    UNROLL for (int j = 0; j < 8; j++) put_digits(v[j], 5, 8, s->code + j);
    quads_of_rows(row, at + 32, w);
    UNROLL for (int j = 0; j < 4; j++) put_digits(w[j], 5, 4, s->code + 40 + j);
    quads_of_rows(row, at + TQ1_0_HIGH - 12, last);
    put_digits(last[3], 4, 1, s->code + 60);
    put_ones(s);
    _mm512_store_ps(s->d, f16_last(row, at + TQ1_0_BYTES));
}

INLINE void fill_part(enum qtype t, const void *book, const uint8_t *const row[SLAB_ROWS], size_t at, struct part256 *s)
{
    (void)book;
    switch (t) {
    case QT_Q3_K:
        fill_q3_k(row, at, s);
        return;
    case QT_Q4_K:
        fill_q4_k(row, at, s);
        return;
    case QT_Q5_K:
        fill_q5_k(row, at, s);
        return;
    case QT_Q6_K:
        fill_q6_k(row, at, s);
        return;
    case QT_TQ1_0:
        fill_tq1_0(row, at, s);
        return;
    default:
        fill_tq2_0(row, at, s);
    }
}

INLINE void fill_blocks(enum qtype t, const uint8_t *const row[QUANT_SLAB], int first, int n_blocks, uint8_t *slab)
{
    fill256(fill_part, t, NULL, row, first, n_blocks, slab);
}

SLAB256(q4_k, QT_Q4_K, quant_pack_pairs_32, 4)
SLAB256(q5_k, QT_Q5_K, quant_pack_pairs_32, 4)
SLAB256(q6_k, QT_Q6_K, quant_pack_high_8, 32)
SLAB256(q3_k, QT_Q3_K, quant_pack_q3_k, 16)
SLAB256(tq1_0, QT_TQ1_0, quant_pack_tq, 8)
SLAB256(tq2_0, QT_TQ2_0, quant_pack_tq, 8)
#endif
