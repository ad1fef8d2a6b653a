/* AVX-512 slab kernels of the types with blocks of 32: Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, IQ4_NL, MXFP4 (activations
 * ACT_Q8_0). Slabs hold the codes 128 too high, so that they are unsigned; the activations say what that adds to a
 * block's sum.
 *
 * Floor: per block, 32 rows and a column 16 products and 8 float operations. Where all share two 512-bit units, 0.67 of
 * the int8 peak; where additions and conversions have units of their own (Zen 4, Zen 5), 0.8 (Q4_1, Q5_1 0.73). One of
 * two cores of an Intel Xeon (Ice Lake, virtual), slabs and panels in the first-level cache, share of the peak in
 * alternation with it, medians of 201: Q8_0 0.65, MXFP4 and Q4_0 0.64, Q4_1 0.55 (floor 0.57); of a matrix of 8,192
 * rows of 4,096 values in memory times 528 activations, with all that belongs to it, Q8_0 0.60; unpacking 240 cycles a
 * block of 64 rows, Q4_0 and MXFP4 210. Before slabs had 64 rows, one core of an Intel Xeon (Emerald Rapids, int8 peak
 * 362 thousand million multiply-adds a second, floor 241), 48 and 1,024 activations of 4,096 values, all columns at
 * once, three runs of bench_quant: Q8_0 166 to 177 and 225 to 234; MXFP4 168 and 175, 222 and 238 (and 113, 140 while
 * the clock was low). Zen 4, 3.7 GHz, peak 236, floor 189, panels of four rows: Q8_0 181. One of two cores of an AMD
 * EPYC (Zen 5, virtual), slabs and panels of eight in the caches, share of the peak in alternation with it, medians of
 * 101, all columns at once in brackets: Q8_0 0.76 (0.71), MXFP4 0.75 (0.71), Q4_0 0.73 (0.71), Q4_1 0.68 (0.65). Of 64
 * rows there, in turn with those, three runs: Q8_0 0.74, 0.74 and 0.79 (0.72, 0.73, 0.76), 8,192 rows from memory times
 * 264 activations, with unpacking, 0.68, 0.69 and 0.69 (0.66, 0.66, 0.64).
 *
 * Weights are transposed before they are unpacked (quant_slab_rows_avx512.h). Per block and sixteen rows 12 blends of
 * loads and 8 shuffles for nibbles, 8 look-ups, 4 shifts, and another 19 for scales, two a cycle: 26 cycles; Q8_0 8,
 * 24, 8 and 19. Measured, 256 values of 32 rows from the second-level cache (Xeon), in alternation with codes unpacked
 * row by row and then transposed, while its clock moved: Q8_0 311 to 451 ns (350 to 353), Q4_0 240 to 366 (495 to
 * 637), MXFP4 331 (631), IQ4_NL 334 to 346 (591 to 611), Q5_0 406 to 411 (689 to 756), Q5_1 280 (880).
 *
 * What decides it on Zen 5 are loads, two a cycle and half as many where they cross lines, and that they lie between
 * stores: 32 of sixteen rows' block, 24 by twos. Cycles for a block of 64 rows from the second-level cache, by the
 * clock of products in alternation, medians of 9 or 15, one by one in brackets: Q8_0 142 to 150 (160), Q4_0 and IQ4_NL
 * 101 to 104 (138), MXFP4 107 (127); 36 stores take as many cycles, loads and what transposes them 60 of Q4_0. */
#ifdef __AVX512VNNI__
#include "quant/quant_slab32_avx512.h"
#include "quant/quant_slab_rows_avx512.h"

/* Codes of sixty-four of four bits, of two times 32 of five, `raised` too high: 128 or nothing. */
INLINE __m512i code_table(enum qtype t, uint8_t raised)
{
    const __m128i high = _mm_set1_epi8((char)raised), levels = _mm_loadu_si128((const __m128i *)iq4_levels);
    const __m128i doubled = _mm_setr_epi8(0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12);
    const __m128i n = _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i five =
        _mm512_setr_epi64(0, 0, 0x1010101010101010, 0x1010101010101010, 0, 0, 0x1010101010101010, 0x1010101010101010);
    if (t == QT_IQ4_NL) return _mm512_broadcast_i32x4(_mm_xor_si128(levels, high));
    if (t == QT_MXFP4) return _mm512_broadcast_i32x4(_mm_xor_si128(doubled, high));
    if (t == QT_Q4_0) return _mm512_broadcast_i32x4(_mm_xor_si128(_mm_sub_epi8(n, _mm_set1_epi8(8)), high));
    const __m512i n5 = _mm512_or_si512(_mm512_broadcast_i32x4(n), five);
    if (t == QT_Q5_0) return _mm512_xor_si512(_mm512_sub_epi8(n5, _mm512_set1_epi8(16)), _mm512_broadcast_i32x4(high));
    if (t == QT_Q5_1) return _mm512_or_si512(n5, _mm512_broadcast_i32x4(high));
    return _mm512_broadcast_i32x4(_mm_or_si128(n, high));
}

/* high: the fifth bits of 32 values. */
INLINE void fill_fives(const uint8_t *const row[SLAB_ROWS], size_t at, __m512i high, __m512i table, uint8_t code[8][64])
{
    const __m512i low = _mm512_set1_epi8(15);
    __m512i v[4];
    quads_of_rows(row, at, v);
    UNROLL for (int i = 0; i < 8; i++)
    {
        const __m512i nibble = i < 4 ? v[i] : _mm512_srli_epi16(v[i - 4], 4);
        store512(code[i], look_up64(table, choose512(low, nibble, bytes_from(high, 4 * i - 4, 1))));
    }
}

INLINE void fill_eights(const uint8_t *const row[SLAB_ROWS], size_t at, __m512i raised, uint8_t code[8][64])
{
    __m512i v[8];
    octets_of_rows(row, at, v);
    UNROLL for (int i = 0; i < 8; i++) store512(code[i], _mm512_xor_si512(v[i], raised));
}

/* Scales by exponent bytes. */
INLINE __m512 mxfp4_scales(__m512i v)
{
    const __m512i e = _mm512_and_si512(v, _mm512_set1_epi32(255)), one = _mm512_set1_epi32(1);
    const __m512i normal = _mm512_slli_epi32(_mm512_sub_epi32(e, one), 23);
    const __m512i subnormal = _mm512_sllv_epi32(_mm512_set1_epi32(0x00200000), e);
    return _mm512_castsi512_ps(_mm512_mask_mov_epi32(subnormal, _mm512_cmpgt_epi32_mask(e, one), normal));
}

/* One block of sixteen rows. */
INLINE void fill_part(enum qtype t, __m512i table, __m512i raised, const uint8_t *const row[SLAB_ROWS], size_t at,
                      struct part32 *s)
{
    __m512i head[4]; /* what blocks begin with */
    quads_of_rows(row, at, head);
    if (t == QT_Q8_0)
        fill_eights(row, at + Q8_0_QS, raised, s->code);
    else if (t == QT_Q5_0)
        fill_fives(row, at + Q5_0_QS,
                   choose512(_mm512_set1_epi32(0xffff), _mm512_srli_epi32(head[0], 16), _mm512_slli_epi32(head[1], 16)),
                   table, s->code);
    else if (t == QT_Q5_1)
        fill_fives(row, at + Q5_1_QS, head[1], table, s->code);
    else
        nibbles_of_rows(row, at + nibbles_at(t, 0), table, s->code);
    _mm512_store_ps(s->d, t == QT_MXFP4 ? mxfp4_scales(head[0]) : f16_of_lanes(head[0]));
    if (has_min(t)) _mm512_store_ps(s->min, f16_of_upper(head[0]));
}

/* ---- Two blocks of sixteen rows at a time, of 17, 18 or 34 bytes, which take fewer loads than twice one. Those of the
 * next two lie between stores. */

INLINE bool fills_two(enum qtype t)
{
    return t == QT_Q8_0 || t == QT_Q4_0 || t == QT_IQ4_NL || t == QT_MXFP4;
}

/* Of Q8_0 the first 36 bytes of two blocks, the last four in quad[0]; of nibbles the first four in quad[0] and the last
 * 32, of which the second half are the second block's codes. */
struct two_blocks {
    __m512i quad[4], octet[8];
};

INLINE void read_step(enum qtype t, struct ahead *n, int i)
{
    ahead_octet(n, t == QT_Q8_0 ? 0 : t == QT_MXFP4 ? 2 : 4, i);
    if (i % 2) ahead_quad(n, t == QT_Q8_0 ? 32 : 0, i / 2);
}

INLINE void turn_two(const struct ahead *n, struct two_blocks *v)
{
    turn_quads(n->quad, v->quad);
    turn_octets(n->octet, v->octet);
}

/* Four bytes that end `bytes` before those of b, behind those of a. */
INLINE __m512i bytes_before(__m512i a, __m512i b, unsigned bytes)
{
    return _mm512_or_si512(_mm512_srli_epi32(a, 32 - 8 * bytes), _mm512_slli_epi32(b, 8 * bytes));
}

/* Scales from what the first block begins with and what lies before the second one's codes. */
INLINE void put_scales(enum qtype t, __m512i head, __m512i middle, struct part32 *s, struct part32 *s2)
{
    const bool exponents = t == QT_MXFP4;
    _mm512_store_ps(s->d, exponents ? mxfp4_scales(head) : f16_of_lanes(head));
    _mm512_store_ps(s2->d, exponents ? mxfp4_scales(_mm512_srli_epi32(middle, 24)) : f16_of_upper(middle));
}

/* Codes of group i of the 32 of four groups of bytes. */
INLINE __m512i nibble_codes(__m512i table, const __m512i v[4], int i)
{
    return look_up64(table, i < 4 ? v[i] : _mm512_srli_epi16(v[i - 4], 4));
}

INLINE void fill_nibbles2(enum qtype t, __m512i table, const struct two_blocks *v, struct ahead *next, struct part32 *s,
                          struct part32 *s2)
{
    const unsigned before = t == QT_MXFP4 ? 1 : 2;
    __m512i first[4];
    first[0] = bytes_before(t == QT_MXFP4 ? _mm512_slli_epi32(v->quad[0], 16) : v->quad[0], v->octet[0], before);
    UNROLL for (int i = 1; i < 4; i++) first[i] = bytes_before(v->octet[i - 1], v->octet[i], before);
    put_scales(t, v->quad[0], v->octet[3], s, s2);
    UNROLL for (int i = 0; i < 8; i++)
    {
        store512(s->code[i], nibble_codes(table, first, i));
        read_step(t, next, i);
        store512(s2->code[i], nibble_codes(table, v->octet + 4, i));
    }
}

INLINE void fill_bytes2(__m512i raised, const struct two_blocks *v, struct ahead *now, struct ahead *next,
                        struct part32 *s, struct part32 *s2)
{
    __m512i second[8];
    put_scales(QT_Q8_0, v->octet[0], v->quad[0], s, s2);
    UNROLL for (int i = 0; i < 8; i++)
    {
        const __m512i code = bytes_before(v->octet[i], i < 7 ? v->octet[i + 1] : v->quad[0], 2);
        store512(s->code[i], _mm512_xor_si512(code, raised));
        ahead_octet(now, 36, i);
    }
    turn_octets(now->octet, second);
    UNROLL for (int i = 0; i < 8; i++)
    {
        store512(s2->code[i], _mm512_xor_si512(second[i], raised));
        read_step(QT_Q8_0, next, i);
    }
}

INLINE void fill_twos(enum qtype t, const struct filling32 *f)
{
    const __m512i table = code_table(t, f->raised), raised = _mm512_set1_epi8((char)f->raised);
    const size_t from = (size_t)f->first * block_bytes(t);
    struct ahead now = {.row = f->row, .at = from};
    struct two_blocks v;
    UNROLL for (int i = 0; i < 8; i++) read_step(t, &now, i);
    turn_two(&now, &v);
    for (int h = 0; h < f->parts; h++)
        for (int b = 0; b < f->n_blocks; b += 2) {
            struct part32 *const s = part_at(t, f->slab, f->parts * b + h);
            struct part32 *const s2 = part_at(t, f->slab, f->parts * (b + 1) + h);
            struct ahead next = now;
            if (b + 2 < f->n_blocks)
                next.at += 2 * block_bytes(t);
            else if (h + 1 < f->parts) {
                next.row += SLAB_ROWS;
                next.at = from;
            }
            if (t == QT_Q8_0)
                fill_bytes2(raised, &v, &now, &next, s, s2);
            else
                fill_nibbles2(t, table, &v, &next, s, s2);
            turn_two(&next, &v);
            now = next;
        }
}

INLINE void fill_blocks(enum qtype t, const struct filling32 *f)
{
    if (fills_two(t) && f->n_blocks % 2 == 0) {
        fill_twos(t, f);
        return;
    }
    const __m512i table = code_table(t, f->raised), raised = _mm512_set1_epi8((char)f->raised);
    for (int h = 0; h < f->parts; h++)
        for (int b = 0; b < f->n_blocks; b++)
            fill_part(t, table, raised, f->row + SLAB_ROWS * h, (size_t)(f->first + b) * block_bytes(t),
                      part_at(t, f->slab, f->parts * b + h));
}

/* dw, da: scales of the blocks; min, sum: the weights' minimums, and da times the sum of the activations' codes. */
INLINE __m512 step512(enum qtype t, __m512 acc, __m512i products, __m512 dw, __m512 da, const float *min, __m512 sum)
{
    const __m512 s = _mm512_cvtepi32_ps(products);
    if (t == QT_Q8_0) return _mm512_add_ps(acc, _mm512_mul_ps(s, _mm512_mul_ps(dw, da)));
    if (t == QT_Q4_0) return _mm512_add_ps(acc, _mm512_mul_ps(_mm512_mul_ps(s, dw), da));
    const __m512 v = _mm512_mul_ps(_mm512_mul_ps(da, dw), s);
    if (!has_min(t)) return _mm512_add_ps(acc, v);
    return _mm512_add_ps(acc, _mm512_add_ps(v, _mm512_mul_ps(_mm512_load_ps(min), sum)));
}

/* Columns [c0, c0 + n) of C. */
INLINE void pass(enum qtype t, int C, int c0, int n, int n_blocks, const uint8_t *slab, const uint8_t *x, float *acc)
{
    struct chains512 k = chains_load(n, acc);
    for (int b = 0; b < n_blocks; b++, x += (has_min(t) ? 44 : 40) * C) {
        const struct part32 *s[PARTS];
        UNROLL for (int h = 0; h < PARTS; h++) s[h] = part_at(t, slab, PARTS * b + h);
        const struct codes512 codes = {{s[0]->code, s[1]->code, s[2]->code, s[3]->code}};
        __m512i sum[PASS][PARTS];
        start512(n, x + 4 * (8 * C + c0), sum);
        groups512(C, c0, n, &codes, x, 0, 8, sum);
        UNROLL for (int c = 0; c < n; c++)
        {
            const __m512 da = spread_float(x + 4 * (9 * C + c0 + c));
            const __m512 total = has_min(t) ? spread_float(x + 4 * (10 * C + c0 + c)) : da;
            UNROLL for (int h = 0; h < PARTS; h++) k.v[c][h] =
                step512(t, k.v[c][h], sum[c][h], _mm512_load_ps(s[h]->d), da, s[h]->min, total);
        }
    }
    chains_store(n, &k, acc);
}

/* Q5_0, IQ4_NL and MXFP4 have the steps of Q8_0, Q5_1 those of Q4_1. */
static QUANT_MULTIPLY(multiply_q8_0, pass, QT_Q8_0) static QUANT_MULTIPLY(multiply_q4_0, pass,
                                                                          QT_Q4_0) static QUANT_MULTIPLY(multiply_q4_1,
                                                                                                         pass, QT_Q4_1)

#define SLAB32(name, type, packing, with_min, multiplication)                                                          \
    void fill32_##name(const struct filling32 *f)                                                                      \
    {                                                                                                                  \
        fill_blocks(type, f);                                                                                          \
    }                                                                                                                  \
    static void name##_fill(const uint8_t *const *row, int first, int n_blocks, uint8_t *slab)                         \
    {                                                                                                                  \
        fill32_##name(&(struct filling32){row, first, n_blocks, PARTS, 128, slab});                                    \
    }                                                                                                                  \
    const struct quant_slab slab_##name##_avx512 = {.block = 32,                                                       \
                                                    .rows = QUANT_SLAB,                                                \
                                                    .panel = PANEL,                                                    \
                                                    .from = SLAB_FROM_32(type),                                        \
                                                    .slab_block = PARTS * PART_BYTES(with_min),                        \
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
