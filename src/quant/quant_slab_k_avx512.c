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
 * two cores of an Intel Xeon (Ice Lake, virtual), cycles for 64 rows: Q3_K 1,080, Q4_K 940, Q5_K 1,120, Q6_K 1,550.
 * One of two cores of an AMD EPYC (Zen 5, virtual), medians of 15, before rows were read between the stores of those
 * before them in brackets: Q3_K 630 to 680 (750), Q4_K 520 (540), Q5_K 660 (670), Q6_K 900 (970 to 1,000); between
 * products with 48 columns 880 to 930 (1,000 to 1,070), 730 (770), 1,030 (1,110), 1,270 (1,440). There, 320 stores of
 * 512 bits take a cycle each, and half of the loads two, as they cross lines: of Q6_K 400 cycles. */
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

/* Indices of byte i of every lane, for its second byte. */
INLINE __m512i upper_byte(int i)
{
    const __m128i lanes = _mm_setr_epi32(0, 0x0400, 0x0800, 0x0c00);
    return _mm512_broadcast_i32x4(_mm_add_epi32(_mm_set1_epi32((int)0x80800080u | i << 8), lanes));
}

/* Four bytes per row: scales or minimums of four sub-blocks. Scales of 16 bits: the upper ones of a sum take none. */
INLINE void put_four_scales(__m512i v, int32_t scale[4][SLAB_ROWS])
{
    UNROLL for (int i = 0; i < 4; i++) store512(scale[i], _mm512_srai_epi16(_mm512_shuffle_epi8(v, upper_byte(i)), 8));
}

INLINE void put_four_mins(__m512i v, int16_t min[2][2 * SLAB_ROWS])
{
    UNROLL for (int i = 0; i < 2; i++) store512(min[i], bytes_of_lanes(v, 2 * i, 2 * i + 1));
}

/* From d, dmin and the twelve bytes of scales and minimums of six bits. */
INLINE void put_head(const __m512i v[4], struct part256 *s)
{
    const __m512i six = _mm512_set1_epi8(0x3f), four = _mm512_set1_epi8(0x0f), two = _mm512_set1_epi8(0x30);
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

/* Codes of lower and of upper nibbles; of Q5_K bits 2 * group and 2 * group + 1 of `high` are their fifth ones. */
INLINE void put_nibbles(enum qtype t, __m512i v, __m512i high, int group, uint8_t *first, uint8_t *second)
{
    const __m512i upper = _mm512_srli_epi16(v, 4);
    if (t == QT_Q4_K) {
        store512(first, low_bits(v, 4));
        store512(second, low_bits(upper, 4));
    } else {
        store512(first, below(4, v, bits_moved(high, 1, 2 * group, 4)));
        store512(second, below(4, upper, bits_moved(high, 1, 2 * group + 1, 4)));
    }
}

INLINE void fill_q45_k(enum qtype t, const struct filling *f)
{
    struct part256 *s = f->to;
    const size_t qs = t == QT_Q4_K ? Q4_K_QS : Q5_K_QS;
    struct ahead now = rows_ahead(t, f, 0);
    __m512i v[8], head[4], high[8] = {0};
    octets_of_rows(now.row, now.at + qs, v);
    if (t == QT_Q5_K) octets_of_rows(now.row, now.at + Q5_K_QH, high);
    for (int i = 1; i <= f->parts * f->n_blocks; i++, s++) {
        struct ahead next = rows_ahead(t, f, i), more = next;
        UNROLL for (int g = 0; g < 4; g++)
        {
            struct ahead *const n = g < 3 ? &now : &next;
            UNROLL for (int j = 0; j < 8; j++)
            {
                put_nibbles(t, v[j], high[j], g, s->code[16 * g + j], s->code[16 * g + 8 + j]);
                ahead_octet(n, qs + 32 * (size_t)((g + 1) % 4), j);
                if (g == 0 && j < 4) ahead_quad(&now, 0, j);
                if (t == QT_Q5_K && g == 3) ahead_octet(&more, Q5_K_QH, j);
            }
            turn_octets(n->octet, v);
            if (g) continue;
            turn_quads(now.quad, head);
            put_head(head, s);
        }
        if (t == QT_Q5_K) turn_octets(more.octet, high);
        now = next;
    }
}

/* ---- Q6_K, Q3_K */

INLINE void fill_q6_k(const struct filling *f)
{
    struct part256 *s = f->to;
    struct ahead now = rows_ahead(QT_Q6_K, f, 0);
    __m512i v[8], high[8], quad[4];
    octets_of_rows(now.row, now.at, v);
    octets_of_rows(now.row, now.at + Q6_K_QH, high);
    for (int i = 1; i <= f->parts * f->n_blocks; i++, s++) {
        struct ahead next = rows_ahead(QT_Q6_K, f, i);
        UNROLL for (int g = 0; g < 4; g++)
        {
            struct ahead *const n = g < 3 ? &now : &next, more = *n;
            uint8_t(*const code)[64] = s->code + 32 * (g / 2) + 8 * (g % 2);
            UNROLL for (int j = 0; j < 8; j++)
            {
                const __m512i upper = _mm512_srli_epi16(v[j], 4);
                store512(code[j], below(4, v[j], bits_moved(high[j], 2, 2 * (g % 2), 4)));
                store512(code[16 + j], below(4, upper, bits_moved(high[j], 2, 2 * (g % 2) + 4, 4)));
                ahead_octet(n, 32 * (size_t)((g + 1) % 4), j);
                if (g % 2)
                    ahead_octet(&more, Q6_K_QH + 32 * (size_t)((g + 1) / 2 % 2), j);
                else if (j < 4)
                    ahead_quad(&now, g ? Q6_K_BYTES - 16 : Q6_K_SCALES, j);
            }
            turn_octets(n->octet, v);
            if (g % 2) {
                turn_octets(more.octet, high);
                continue;
            }
            turn_quads(now.quad, quad);
            if (g)
                _mm512_store_ps(s->d, f16_of_upper(quad[3]));
            else
                UNROLL for (int j = 0; j < 4; j++) put_four_scales(quad[j], s->scale + 4 * j);
        }
        now = next;
    }
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

INLINE void fill_q3_k(const struct filling *f)
{
    struct part256 *s = f->to;
    struct ahead now = rows_ahead(QT_Q3_K, f, 0);
    __m512i v[8], high[8], last[4];
    octets_of_rows(now.row, now.at + Q3_K_QS, v);
    octets_of_rows(now.row, now.at + Q3_K_HIGH, high);
    for (int i = 1; i <= f->parts * f->n_blocks; i++, s++) {
        struct ahead next = rows_ahead(QT_Q3_K, f, i), more = next;
        UNROLL for (int h = 0; h < 2; h++)
        {
            struct ahead *const n = h ? &next : &now;
            UNROLL for (int j = 0; j < 8; j++)
            {
                UNROLL for (unsigned p = 0; p < 4; p++)
                    store512(s->code[32 * h + 8 * (int)p + j],
                             below(2, _mm512_srli_epi16(v[j], 2 * p), bits_moved(high[j], 1, 4 * h + (int)p, 2)));
                ahead_octet(n, Q3_K_QS + 32 * (size_t)(1 - h), j);
                if (h)
                    ahead_octet(&more, Q3_K_HIGH, j);
                else if (j < 4)
                    ahead_quad(&now, Q3_K_SCALES - 4, j);
            }
            turn_octets(n->octet, v);
        }
        turn_octets(more.octet, high);
        turn_quads(now.quad, last);
        fill_scales_q3_k(last[1], last[2], last[3], s->scale);
        _mm512_store_ps(s->d, f16_last(now.row, now.at + Q3_K_BYTES));
        now = next;
    }
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
    if (t == QT_TQ1_0)
        fill_tq1_0(row, at, s);
    else
        fill_tq2_0(row, at, s);
}

INLINE void fill_blocks(enum qtype t, const struct filling *f)
{
    switch (t) {
    case QT_Q3_K:
        fill_q3_k(f);
        return;
    case QT_Q4_K:
    case QT_Q5_K:
        fill_q45_k(t, f);
        return;
    case QT_Q6_K:
        fill_q6_k(f);
        return;
    default:
        fill256(fill_part, t, NULL, f);
    }
}

SLAB256(q4_k, QT_Q4_K, quant_pack_pairs_32, 4)
SLAB256(q5_k, QT_Q5_K, quant_pack_pairs_32, 4)
SLAB256(q6_k, QT_Q6_K, quant_pack_high_8, 32)
SLAB256(q3_k, QT_Q3_K, quant_pack_q3_k, 16)
SLAB256(tq1_0, QT_TQ1_0, quant_pack_tq, 8)
SLAB256(tq2_0, QT_TQ2_0, quant_pack_tq, 8)
#endif
