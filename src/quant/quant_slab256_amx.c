/* Slab kernels by tiles of products of the types with blocks of 256 and scales for 16 or 32 values (activations
 * ACT_Q8_K): Q3_K, Q4_K, Q5_K, Q6_K, TQ, IQ2, IQ3 and IQ1. Codes are multiplied by their scales when they are unpacked:
 * that fits 16 bits, of which the lower byte has no sign and the upper one has, so that a block of sixteen rows times
 * sixteen is four products of tiles each. See quant_amx.h.
 *
 * Floor of that: eight products of tiles 130 cycles, as they take turns with 100 vector operations and 32 rows that
 * are stored 145, 18 for 32 codes; with minimums, one product, 16 rows and 60 operations more, 21. With random codes,
 * however, eight products take as long as 184 cycles of other work: the processor slows down. Measured so, slabs and
 * panels in the first-level cache, in turn with a version that did all products before the rows, and minimums by
 * vectors: IQ2_XXS and IQ3_XXS 36.3 (38.8), Q6_K 32.2 (34.0), Q4_K and Q5_K 42.3 (47.5); AVX-512 94, 91, 112 to 123,
 * 97, 103. Unpacking 256 values of 64 rows 1,860 (Q4_K) to 3,560 cycles (IQ1_M), of which 1,150 to 1,650 are for the
 * products. That version, 16,384 rows of 4,096 values from memory times 16, 24, 48 and 1,056 activations, with
 * unpacking, thousand million multiply-adds a second: IQ2_XXS 242, 287, 460 and 639 (AVX-512 212, 241, 298 and 284),
 * Q4_K 226, 258, 423 and 572 (182, 224, 237 and 292), Q6_K 175, 220, 369 and 608 (156, 166, 211 and 244), IQ1_M 194,
 * 238, 367 and 555 (174, 207, 227 and 305). */
#if defined(__AMX_INT8__) || defined(__AMXINT8__) /* gcc; clang up to 14 */
#include "quant/quant_amx.h"
#include "quant/quant_slab256_avx512.h"

/* One block of sixteen rows. */
struct tile256 {
    struct {
        uint8_t low[64], high[64]; /* of codes times scales: [row][4] */
    } group[64];                   /* of four values */
    float d[SLAB_ROWS];
    float dmin[SLAB_ROWS];
    uint32_t min[16][SLAB_ROWS]; /* only of types with a minimum: four pairs of them as BF16, four times, of which
                                    activations have zeros for two */
};

/* Bytes of a block per activation row: codes, sums, scale. */
#define COLUMN(with_min) (256 + ((with_min) ? 64 : 0) + 4)
INLINE size_t column(enum qtype t)
{
    return COLUMN(has_min(t));
}

/* ---- unpacking */

/* Scales below zero: their codes have no sign until then. */
INLINE bool signed_scales(enum qtype t)
{
    return t == QT_Q3_K || t == QT_Q6_K;
}

/* The scale of a row's codes as factors of the even ones of them, of the odd ones, and times code_offset. */
struct factors {
    __m512i even, odd, middle;
};

INLINE struct factors factors_of(enum qtype t, const struct part256 *s, int i)
{
    const __m512i v = float_scales(t) ? _mm512_cvtps_epi32(_mm512_load_ps(s->float_scale[i])) : load512(s->scale[i]);
    const __m512i low = _mm512_and_si512(v, _mm512_set1_epi32(0xff)), high = _mm512_slli_epi32(v, 16);
    const __m512i both = _mm512_ternarylogic_epi32(low, high, _mm512_set1_epi32(0xff0000), 0xf8);
    struct factors f = {.even = both, .odd = _mm512_slli_epi16(both, 8), .middle = both};
    if (signed_scales(t)) f.middle = _mm512_maddubs_epi16(_mm512_set1_epi16((short)code_offset(t)), both);
    return f;
}

/* Codes, code_offset too high, times scales. Of 512 bits one unit shifts and the other one shuffles: both do one. */
INLINE void put_products(enum qtype t, __m512i code, const struct factors *f, uint8_t *low, uint8_t *high)
{
    const __m512i first = _mm512_set1_epi16(0xff);
    const __m512i up = _mm512_broadcast_i32x4(_mm_setr_epi8(-1, 0, -1, 2, -1, 4, -1, 6, -1, 8, -1, 10, -1, 12, -1, 14));
    __m512i even, odd;
    if (signed_scales(t)) {
        even = _mm512_sub_epi16(_mm512_maddubs_epi16(code, f->even), f->middle);
        odd = _mm512_sub_epi16(_mm512_maddubs_epi16(code, f->odd), f->middle);
    } else {
        if (code_offset(t)) code = _mm512_sub_epi8(code, _mm512_set1_epi8((char)code_offset(t)));
        even = _mm512_maddubs_epi16(f->even, code);
        odd = _mm512_maddubs_epi16(f->odd, code);
    }
    store512(low, choose512(first, even, _mm512_shuffle_epi8(odd, up)));
    store512(high, choose512(first, _mm512_srli_epi16(even, 8), odd));
}

/* Pairs of small numbers as BF16, the upper half of a float. */
INLINE __m512i bf16_pairs(__m512i v)
{
    const __m512i first = _mm512_castps_si512(_mm512_cvtepi32_ps(_mm512_and_si512(v, _mm512_set1_epi32(0xffff))));
    const __m512i second = _mm512_castps_si512(_mm512_cvtepi32_ps(_mm512_srli_epi32(v, 16)));
    return _mm512_or_si512(_mm512_srli_epi32(first, 16), second);
}

INLINE void multiply_codes(enum qtype t, const struct part256 *s, struct tile256 *to)
{
    const int each = sub_block(t) / 4;
    for (int i = 0; i < 64 / each; i++) {
        const struct factors f = factors_of(t, s, i);
        UNROLL for (int j = each * i; j < each * (i + 1); j++)
            put_products(t, load512(s->code[j]), &f, to->group[j].low, to->group[j].high);
    }
    _mm512_store_ps(to->d, _mm512_load_ps(s->d));
    if (!has_min(t)) return;
    _mm512_store_ps(to->dmin, _mm512_load_ps(s->dmin));
    UNROLL for (int i = 0; i < 4; i++)
    {
        const __m512i v = bf16_pairs(load512(s->min[i]));
        UNROLL for (int j = 0; j < 4; j++) store512(to->min[i + 4 * j], v);
    }
}

INLINE void fill(enum qtype t, fill256_fn *part, const uint8_t *const *row, int first, int n_blocks, uint8_t *slab)
{
    struct tile256 *to = (struct tile256 *)(void *)slab;
    _Alignas(64) struct part256 s;
    for (int b = first; b < first + n_blocks; b++)
        for (int h = 0; h < HALF; h++) {
            part(&(struct filling){row + SLAB_ROWS * h, b, 1, 1, &s});
            multiply_codes(t, &s, to++);
        }
}

/* ---- products */

/* Sums of upper bytes are in tiles 0 and 2, of lower ones in 1 and 3, of minimums in 6 and 7. */
#define START(upper, lower)                                                                                            \
    do {                                                                                                               \
        _tile_loadd(upper, tile_zeros, 0);                                                                             \
        _tile_loadd(lower, tile_zeros, 0);                                                                             \
    } while (0)

/* Minimums of six bits, and sums of 32 activations as BF16 in two parts: all products and sums are whole numbers below
 * 2^24, which a float has exactly. */
#define MINS(to, n, s, x)                                                                                              \
    do {                                                                                                               \
        _tile_loadd(to, tile_zeros, 0);                                                                                \
        _tile_loadd(CODES, (x) + 256 * (size_t)(n), 64);                                                               \
        _tile_loadd(WEIGHTS, (s)->min, 64);                                                                            \
        _tile_dpbf16ps(to, CODES, WEIGHTS);                                                                            \
    } while (0)

INLINE void start(enum qtype t, bool odd, int n, const struct tile256 *s, const uint8_t *x)
{
    if (has_min(t) && odd) MINS(7, n, s, x);
    if (has_min(t) && !odd) MINS(6, n, s, x);
    if (odd)
        START(2, 3);
    else
        START(0, 1);
    _tile_loadd(CODES, x, 64);
}

#define QUARTER(upper, lower, i, s)                                                                                    \
    do {                                                                                                               \
        _tile_loadd(WEIGHTS, (s)->group[16 * (i)].high, sizeof(s)->group[0]);                                          \
        _tile_dpbssd(upper, CODES, WEIGHTS);                                                                           \
        _tile_loadd(WEIGHTS, (s)->group[16 * (i)].low, sizeof(s)->group[0]);                                           \
        _tile_dpbsud(lower, CODES, WEIGHTS);                                                                           \
    } while (0)

INLINE void quarter(bool odd, int i, int n, const struct tile256 *s, const uint8_t *x)
{
    if (odd)
        QUARTER(2, 3, i, s);
    else
        QUARTER(0, 1, i, s);
    if (i < 3) _tile_loadd(CODES, x + 64 * (size_t)(n * (i + 1)), 64);
}

INLINE void store_mins(enum qtype t, bool odd, tile_sums to[3])
{
    if (!has_min(t)) return;
    if (odd)
        _tile_stored(7, to[2], 64);
    else
        _tile_stored(6, to[2], 64);
}

INLINE __m512 total(const tile_sums high, const tile_sums low, int r)
{
    const __m512i upper = _mm512_slli_epi32(_mm512_load_si512(high[r]), 8);
    return _mm512_cvtepi32_ps(_mm512_add_epi32(upper, _mm512_load_si512(low[r])));
}

/* acc += d*yd*v - dmin*yd*min, of activation rows r0..r0+3 */
INLINE void four(enum qtype t, const struct scaling *s, int r0, int n, float *acc)
{
    __m512 k[4];
    acc += QUANT_SLAB * r0;
    rows_load(4, n - r0, acc, k);
    UNROLL for (int i = 0; i < 4; i++)
    {
        const __m512 y = _mm512_set1_ps(s->yd[r0 + i]);
        __m512 v = total(s->sum[0], s->sum[1], r0 + i);
        if (block_factor(t) != 1) v = _mm512_mul_ps(v, _mm512_set1_ps(block_factor(t)));
        v = _mm512_mul_ps(_mm512_mul_ps(s->d, y), v);
        if (has_min(t))
            v = _mm512_sub_ps(v, _mm512_mul_ps(_mm512_mul_ps(s->dmin, y), _mm512_load_ps(s->sum[2][r0 + i])));
        k[i] = stays(_mm512_add_ps(k[i], v));
    }
    rows_store(4, n - r0, k, acc);
}

AMX_PASS(tile256, group)

/* Each class by one of its types. */
AMX_MULTIPLY(multiply_min, pass, QT_Q4_K)
AMX_MULTIPLY(multiply_whole, pass, QT_Q6_K)
AMX_MULTIPLY(multiply_eighths, pass, QT_IQ1_S)

#define SLAB(name, type, packing, with_min, multiplication)                                                            \
    static void name##_fill(const uint8_t *const *row, int first, int n_blocks, uint8_t *slab)                         \
    {                                                                                                                  \
        fill(type, fill256_##name, row, first, n_blocks, slab);                                                        \
    }                                                                                                                  \
    static void name##_multiply(int n_blocks, const uint8_t *slab, const uint8_t *panel, int n, int piece, float *acc) \
    {                                                                                                                  \
        multiplication(n_blocks, slab, panel, n, piece, acc);                                                          \
        if (last_factor(type) != 1 && (piece & SLAB_LAST)) acc_scale(acc, HALF, n, last_factor(type));                 \
    }                                                                                                                  \
    const struct quant_slab slab_##name##_amx = {.block = 256,                                                         \
                                                 .rows = HALF * SLAB_ROWS,                                             \
                                                 .panel = TILE_ROWS,                                                   \
                                                 .from = 16,                                                           \
                                                 .fewer = &slab_##name##_avx512,                                       \
                                                 .slab_block = HALF * sizeof(struct tile256),                          \
                                                 .panel_block = COLUMN(with_min),                                      \
                                                 .begin = tiles_begin_64,                                              \
                                                 .end = tiles_end,                                                     \
                                                 .pack = packing,                                                      \
                                                 .fill = name##_fill,                                                  \
                                                 .multiply = name##_multiply};

SLAB(q3_k, QT_Q3_K, quant_pack_rows_256, false, multiply_whole)
SLAB(q4_k, QT_Q4_K, quant_pack_rows_sums_32, true, multiply_min)
SLAB(q5_k, QT_Q5_K, quant_pack_rows_sums_32, true, multiply_min)
SLAB(q6_k, QT_Q6_K, quant_pack_rows_256, false, multiply_whole)
SLAB(tq1_0, QT_TQ1_0, quant_pack_rows_256, false, multiply_whole)
SLAB(tq2_0, QT_TQ2_0, quant_pack_rows_256, false, multiply_whole)
SLAB(iq2_xxs, QT_IQ2_XXS, quant_pack_rows_eighths, false, multiply_whole)
SLAB(iq2_xs, QT_IQ2_XS, quant_pack_rows_fourths, false, multiply_whole)
SLAB(iq2_s, QT_IQ2_S, quant_pack_rows_fourths, false, multiply_whole)
SLAB(iq3_xxs, QT_IQ3_XXS, quant_pack_rows_fourths, false, multiply_whole)
SLAB(iq3_s, QT_IQ3_S, quant_pack_rows_fourths, false, multiply_whole)
SLAB(iq1_s, QT_IQ1_S, quant_pack_rows_fourths, false, multiply_eighths)
SLAB(iq1_m, QT_IQ1_M, quant_pack_rows_fourths, false, multiply_eighths)
#endif
