/* AVX-512 tiles of the types with code books but IQ2_XXS for few activation rows (ACT_Q8_K), planar (spec more-quants
 * 8.3). The code books of IQ2_XS, IQ2_S and IQ3 lie in the first-level cache as two planes of bytes. An index is looked
 * up by its lower seven bits in two registers at once (Intel: by six in one); the higher bits choose among the results.
 * A matrix product over bits, or of IQ3_XXS another look-up, makes magnitudes of codes; a test of sign bits says where
 * the activations change sign. IQ1, whose planes would take 32 look-ups for 64 groups, loads its codes one by one.
 *
 * Floor: of 64 indices 2, 4 or 8 look-ups of two cycles per plane on the one pipe for them, and a matrix product or
 * look-up, a test and a product of bytes per 64 weights: of IQ3_XXS 18 cycles for 256 weights, 42 * 10^9 weights per
 * second at 3 GHz. IQ1: 40 loads and 16 stores for 256 weights: 20 cycles with two loads a cycle (Ice Lake). Measured,
 * one thread, one activation row, 10^9 weights per second from the second-level cache, and GB/s from memory (the AVX2
 * kernels): IQ2_XS 25, 6.8 (13, 3.8); IQ2_S 19, 6.0 (15, 4.4); IQ3_XXS 27, 10.3 (9, 3.5); IQ3_S 21, 8.4 (10, 4.2);
 * IQ1_S 19, 3.6 (15, 2.8); IQ1_M 18, 4.0 (14, 2.9) (Intel Xeon, Emerald Rapids, where Q8_0 gets 13.5 GB/s). Before IQ3
 * had six-bit planes, the same on Zen 4, 2 cores: IQ2_XS 31, 6.5 (18, 5.2); IQ2_S 28, 6.4 (19, 6.2); IQ3_XXS 31, 8.3
 * (12, 4.7); IQ3_S 22, 6.7 (13, 5.7). IQ1 with 64 loads and 32 stores in these; in turn with that, on one of two cores
 * of an Intel Xeon (Ice Lake, virtual): IQ1_S 19.3, 3.8 (16.3, 3.1), IQ1_M 18.6, 4.2 (16.1, 3.5). Gathers of IQ1's
 * codes took as long as single loads; indices stored right before they are loaded again, twice as long (Xeon).
 * One of two cores of an AMD EPYC (Zen 5, virtual), 64 rows, in turn with look-ups in single registers, medians of 31:
 * IQ2_XS 49 (44), IQ2_S 34 (31), IQ3_XXS 52 (49), IQ3_S 46 (39). */
#ifdef __AVX512VNNI__
#include "quant/quant_grid_book_avx512.h"
#include "quant/quant_iq1_index_avx512.h"
#include "quant/quant_planar_avx512.h"

enum { BLOCKS = 2 /* that share a vector, or the lanes of sums */ };

/* ---- groups of eight: two blocks of a row, byte g for group g */

struct pair {
    __m512i code[2]; /* two bits per value: values 0..3, values 4..7 */
    __m512i sign;    /* one bit per value */
    __m512i scale;   /* 2s + 1 in 16-bit lanes of 16 values */
};

INLINE __m512i both256(const uint8_t *first, const uint8_t *second)
{
    return join256(load256(first), load256(second));
}

INLINE __m128i both64(const uint8_t *first, const uint8_t *second)
{
    return _mm_unpacklo_epi64(_mm_loadl_epi64((const __m128i *)first), _mm_loadl_epi64((const __m128i *)second));
}

/* Numbers of every second byte of 128. */
INLINE __m512i every_second(int first)
{
    const __m512i even =
        _mm512_set_epi8(126, 124, 122, 120, 118, 116, 114, 112, 110, 108, 106, 104, 102, 100, 98, 96, 94, 92, 90, 88,
                        86, 84, 82, 80, 78, 76, 74, 72, 70, 68, 66, 64, 62, 60, 58, 56, 54, 52, 50, 48, 46, 44, 42, 40,
                        38, 36, 34, 32, 30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
    return _mm512_add_epi8(even, _mm512_set1_epi8((char)first));
}

/* 2s + 1 of the eight nibble pairs of two blocks, in 16-bit lanes. */
INLINE __m512i odd_scales512(const uint8_t *first, const uint8_t *second)
{
    const __m512i b = _mm512_cvtepu8_epi32(both64(first, second)), low = _mm512_set1_epi32(0x1e);
    /* low ? b << 1 : b << 13, and then & 0x1e001e | 0x10001 */
    const __m512i both = _mm512_ternarylogic_epi32(low, _mm512_slli_epi32(b, 1), _mm512_slli_epi32(b, 13), 0xca);
    return _mm512_ternarylogic_epi32(both, _mm512_set1_epi32(0x1e001e), _mm512_set1_epi32(0x10001), 0xea);
}

INLINE struct pair pair_iq2_xs(const struct book *k, const uint8_t *first, const uint8_t *second)
{
    const __m512i a = load512(first + IQ2_XS_CODES), b = load512(second + IQ2_XS_CODES);
    const __m512i low = _mm512_permutex2var_epi8(a, every_second(0), b);
    const __m512i top = _mm512_permutex2var_epi8(a, every_second(1), b);
    const struct high h = {{_mm512_test_epi8_mask(top, _mm512_set1_epi8(1))}};
    return (struct pair){
        .code = {look_up(QT_IQ2_XS, k, 0, low, &h), look_up(QT_IQ2_XS, k, 1, low, &h)},
        .sign = _mm512_gf2p8affine_epi64_epi8(top, _mm512_set1_epi64(0x02040810204080fe), 0),
        .scale = odd_scales512(first + IQ2_XS_SCALES, second + IQ2_XS_SCALES),
    };
}

INLINE struct pair pair_iq2_s(const struct book *k, const uint8_t *first, const uint8_t *second)
{
    const __m512i low = both256(first + IQ2_S_LOW, second + IQ2_S_LOW);
    const __m512i q = _mm512_cvtepu8_epi32(both64(first + IQ2_S_HIGH, second + IQ2_S_HIGH));
    const __m512i bits = _mm512_multishift_epi64_epi8(_mm512_set1_epi64(0x2624222006040200), q);
    const struct high h = {
        {_mm512_test_epi8_mask(bits, _mm512_set1_epi8(1)), _mm512_test_epi8_mask(bits, _mm512_set1_epi8(2))}};
    return (struct pair){
        .code = {look_up(QT_IQ2_S, k, 0, low, &h), look_up(QT_IQ2_S, k, 1, low, &h)},
        .sign = both256(first + IQ2_S_SIGNS, second + IQ2_S_SIGNS),
        .scale = odd_scales512(first + IQ2_S_SCALES, second + IQ2_S_SCALES),
    };
}

INLINE struct pair pair_load(enum qtype t, const struct book *k, const uint8_t *first, const uint8_t *second)
{
    return t == QT_IQ2_XS ? pair_iq2_xs(k, first, second) : pair_iq2_s(k, first, second);
}

/* Magnitudes of value p of each group: the code's bits c0, c1 give 8 ^ 17*c0 ^ 35*c1, that is 8, 25, 43. */
INLINE __m512i magnitudes(const struct pair *v, int p)
{
    const uint64_t c0 = 1u << 2 * (p % 4), c1 = 2u << 2 * (p % 4);
    /* byte 7-i of the matrix: the source bits of bit i; 17 has bits 0, 4, and 35 bits 0, 1, 5 */
    const uint64_t matrix = (c0 ^ c1) << 56 | c1 << 48 | c0 << 24 | c1 << 16;
    return _mm512_gf2p8affine_epi64_epi8(v->code[p / 4], _mm512_set1_epi64((long long)matrix), 8);
}

/* Products with the activation planes of a pair, in lanes of 32 values. */
INLINE __m512i pair_products(const struct pair *v, const uint8_t *plane)
{
    __m512i s = _mm512_setzero_si512();
    UNROLL for (int p = 0; p < PLANES; p += 2)
    {
        __m512i two[2];
        UNROLL for (int i = 0; i < 2; i++)
        {
            const __mmask64 minus = _mm512_test_epi8_mask(v->sign, _mm512_set1_epi8((char)(1 << (p + i))));
            const __m512i q = load512(plane + 64 * (p + i));
            const __m512i signed_q = _mm512_mask_sub_epi8(q, minus, _mm512_setzero_si512(), q);
            two[i] = _mm512_maddubs_epi16(magnitudes(v, p + i), signed_q);
        }
        s = _mm512_dpwssd_epi32(s, _mm512_add_epi16(two[0], two[1]), v->scale);
    }
    return s;
}

/* ---- groups of four: one block of a row, byte i for group i */

/* Magnitudes of value p of each group by the three-bit codes of two values: 4, 12, 20 .. 52, 62; 1, 3, 5 .. 15. */
INLINE __m512i magnitudes_iq3(enum qtype t, __m512i code, int p)
{
    const uint64_t c = 1u << 3 * (p % 2);
    if (t == QT_IQ3_S) /* 2c + 1 */
        return _mm512_gf2p8affine_epi64_epi8(code, _mm512_set1_epi64((long long)(c << 48 | c << 41 | c << 34)), 1);
    const __m512i by_low = _mm512_set1_epi64(0x3e342c241c140c04);
    const __m512i by_high =
        _mm512_set_epi64(0x3e3e3e3e3e3e3e3e, 0x3434343434343434, 0x2c2c2c2c2c2c2c2c, 0x2424242424242424,
                         0x1c1c1c1c1c1c1c1c, 0x1414141414141414, 0x0c0c0c0c0c0c0c0c, 0x0404040404040404);
    return _mm512_permutexvar_epi8(code, p % 2 ? by_high : by_low);
}

/* Sign bytes, one per two groups. */
INLINE __m256i signs_iq3(enum qtype t, const uint8_t *b)
{
    if (t == QT_IQ3_S) return load256(b + IQ3_S_SIGNS);
    const __m256i seven =
        _mm256_multishift_epi64_epi8(_mm256_set1_epi64x(0x352e2720150e0700), load256(b + IQ3_XXS_WORDS));
    return _mm256_gf2p8affine_epi64_epi8(seven, _mm256_set1_epi64x(0x010204081020407f), 0);
}

/* 2s + 1 per 16 values: s is the upper nibble of a word, or one of eight nibbles. */
INLINE __m512i scales_iq3(enum qtype t, const uint8_t *b)
{
    const __m512i twice = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    const __m512i nibble = _mm512_setr_epi32(31, 31, 3, 3, 7, 7, 11, 11, 15, 15, 19, 19, 23, 23, 27, 27);
    const __m512i bits1 =
        t == QT_IQ3_S ? _mm512_rorv_epi32(_mm512_set1_epi32((int)load_u32(b + IQ3_S_SCALES)), nibble)
                      : _mm512_srli_epi32(
                            _mm512_permutexvar_epi32(twice, _mm512_castsi256_si512(load256(b + IQ3_XXS_WORDS))), 27);
    return _mm512_ternarylogic_epi32(bits1, _mm512_set1_epi32(0x1e), _mm512_set1_epi32(1), 0xea);
}

INLINE __m512i block_iq3(enum qtype t, const struct book *k, const uint8_t *b, const uint8_t *plane)
{
    const __m512i low = load512(b + (t == QT_IQ3_XXS ? IQ3_XXS_INDEX : IQ3_S_LOW));
    const __m512i each =
        _mm512_setr_epi64(0x0303020201010000, 0x0707060605050404, 0x0b0b0a0a09090808, 0x0f0f0e0e0d0d0c0c,
                          0x1313121211111010, 0x1717161615151414, 0x1b1b1a1a19191818, 0x1f1f1e1e1d1d1c1c);
    const __m512i sign = _mm512_permutexvar_epi8(each, _mm512_castsi256_si512(signs_iq3(t, b)));
    struct high h = {{0}};
    __m512i code[2], s = _mm512_setzero_si512();
    if (t == QT_IQ3_S) memcpy(&h.bit[0], b + IQ3_S_HIGH, 8);
    UNROLL for (int i = 0; i < 2; i++) code[i] = look_up(t, k, i, low, &h);
    UNROLL for (int p = 0; p < 4; p++)
    {
        const __m512i bit = _mm512_set1_epi16((short)(1 << p | 0x1000 << p)), q = load512(plane + 64 * p);
        const __m512i signed_q = _mm512_mask_sub_epi8(q, _mm512_test_epi8_mask(sign, bit), _mm512_setzero_si512(), q);
        s = _mm512_dpbusd_epi32(s, magnitudes_iq3(t, code[p / 2], p), signed_q);
    }
    return _mm512_mullo_epi32(s, scales_iq3(t, b));
}

/* Planes of one block by four. */
INLINE void planes4_of(const uint8_t *q, uint8_t *plane)
{
    for (int p = 0; p < 4; p++) {
        __m128i part[4];
        UNROLL for (int i = 0; i < 4; i++) part[i] =
            _mm512_cvtepi32_epi8(_mm512_srli_epi32(load512(q + 64 * i), 8 * (unsigned)p));
        UNROLL for (int i = 0; i < 4; i++) _mm_store_si128((__m128i *)(plane + 64 * p + 16 * i), part[i]);
    }
}

/* ---- IQ1: one block of a row, by table loads
 *
 * 16-bit codes of groups of eight, two bits per value, are copied one by one, a block ahead of the products: a load of
 * many stores waits until they have left the store buffer. Bits 2i.. of the bytes are values i and 4 + i of the groups,
 * so that the planes of four serve here too. */

/* Activations of a block: planes of four, and in 32-bit lanes of 16 values -7 and -9 times their sum (IQ1_M: -7 times,
 * and the negative sums of 8 in 16-bit lanes): what makes values from g + 1 in eighths. */
struct acts {
    uint8_t plane[4][64], high[64], low[64];
};

INLINE void acts_of(enum qtype t, const uint8_t *q, const int16_t *bsums, struct acts *a)
{
    const __m512i sum = _mm512_cvtepi16_epi32(load256(bsums)), ones = _mm512_set1_epi8(1);
    __m512i of8 = _mm512_setzero_si512();
    planes4_of(q, a->plane[0]);
    for (int i = 0; i < 4; i++) of8 = _mm512_sub_epi16(of8, _mm512_maddubs_epi16(ones, load512(a->plane[i])));
    store512(a->high, _mm512_mullo_epi32(sum, _mm512_set1_epi32(-7)));
    store512(a->low, t == QT_IQ1_M ? of8 : _mm512_mullo_epi32(sum, _mm512_set1_epi32(-9)));
}

INLINE void copy_codes(const uint16_t index[IQ1_GROUPS], uint32_t code[IQ1_GROUPS / 2])
{
#pragma GCC unroll 16
    for (int i = 0; i < IQ1_GROUPS / 2; i += 2) four_codes(index + 2 * i, code + i);
}

/* Products of a block in lanes of 16 values, in eighths. */
INLINE __m512i block_iq1(enum qtype t, const uint8_t *b, const uint32_t code[IQ1_GROUPS / 2], const struct acts *a)
{
    const __m512i c = load512(code), bits = iq1_bits(t, b), high = load512(a->high), low = load512(a->low);
    __m512i s, bits1; /* twice the scales, and other bits */
    if (t == QT_IQ1_S) {
        const __m512i twice = _mm512_shuffle_epi32(bits, 0xa0);
        s = _mm512_mask_mov_epi32(high, _mm512_test_epi32_mask(twice, _mm512_set1_epi32(0x8000)), low);
        bits1 = _mm512_srli_epi32(twice, 11);
    } else {
        const __m512i words = _mm512_set_epi32((int)0x80800706, (int)0x80800706, (int)0x80800706, (int)0x80800706,
                                               (int)0x80800504, (int)0x80800504, (int)0x80800504, (int)0x80800504,
                                               (int)0x80800302, (int)0x80800302, (int)0x80800302, (int)0x80800302,
                                               (int)0x80800100, (int)0x80800100, (int)0x80800100, (int)0x80800100);
        const __m512i by = _mm512_broadcast_i32x4(_mm_setr_epi32(31, 2, 5, 8));
        const __m512i minus = _mm512_multishift_epi64_epi8(_mm512_set1_epi64(0x0026002200060002), bits);
        uint64_t scales;
        memcpy(&scales, b + IQ1_M_SCALES, sizeof scales);
        s = _mm512_dpwssd_epi32(high, _mm512_and_si512(minus, _mm512_set1_epi16(2)), low);
        bits1 = _mm512_rorv_epi32(_mm512_shuffle_epi8(_mm512_set1_epi64((long long)scales), words), by);
    }
    UNROLL for (int i = 0; i < 4; i++)
    {
        const __m512i eights = _mm512_set1_epi64((long long)moved(2, 2 * i, 3));
        s = _mm512_dpbusd_epi32(s, _mm512_gf2p8affine_epi64_epi8(c, eights, 0), load512(a->plane[i]));
    }
    return _mm512_mullo_epi32(s, _mm512_ternarylogic_epi32(bits1, _mm512_set1_epi32(14), _mm512_set1_epi32(1), 0xea));
}

/* d of IQ1_M of eight rows: the upper four bits of four words. */
INLINE __m256 iq1_m_d_of_rows(const uint8_t *const row[ROWS], size_t at)
{
    _Alignas(16) uint16_t d[ROWS];
    UNROLL for (int r = 0; r < ROWS; r++)
    {
        uint64_t v;
        memcpy(&v, row[r] + at + IQ1_M_SCALES, sizeof v);
        d[r] = (uint16_t)((v >> 12 & 0x000f000f000f000f) * 0x0001001001001000 >> 48);
    }
    return _mm256_cvtph_ps(_mm_load_si128((const __m128i *)d));
}

INLINE __m256 rows_iq1(enum qtype t, enum asking ask, int n, const uint8_t *const row[ROWS], const struct acts *a,
                       const float *d, __m256 acc)
{
    _Alignas(64) uint16_t index[2][ROWS][IQ1_GROUPS];
    _Alignas(64) uint32_t code[2][ROWS][IQ1_GROUPS / 2];
    const size_t bytes = block_bytes(t);
    for (int r = 0; r < ROWS; r++) put_indices(t, row[r], index[0][r]);
    for (int r = 0; r < ROWS; r++) put_indices(t, row[r] + (n > 1 ? bytes : 0), index[1][r]);
    __asm__ volatile("" : "+m"(index));
    for (int r = 0; r < ROWS; r++) copy_codes(index[0][r], code[0][r]);
    for (int b = 0; b < n; b++) {
        const size_t at = (size_t)b * bytes, later = b + 2 < n ? at + 2 * bytes : at;
        __m512i sum[ROWS];
        __m256i s0, s1;
        UNROLL for (int r = 0; r < ROWS; r++)
        {
            ask_ahead(ask, row[r], at, bytes);
            put_indices(t, row[r] + later, index[b % 2][r]);
            copy_codes(index[(b + 1) % 2][r], code[(b + 1) % 2][r]);
            sum[r] = block_iq1(t, row[r] + at, code[b % 2][r], a + b);
            KEEP512(sum[r]);
        }
        half_sums(sum, &s0, &s1);
        const __m256 dw = t == QT_IQ1_M ? iq1_m_d_of_rows(row, at) : f16_of_rows(row, at);
        acc = step(t, acc, _mm256_add_epi32(s0, s1), s0, dw, dw, _mm256_set1_ps(d[b]), 0);
    }
    return acc;
}

/* ---- tiles */

enum { PAIR_BYTES = 2 * sizeof(struct acts) /* most */ };

/* Bytes of the activations of two blocks. */
INLINE size_t pair_bytes(enum qtype t)
{
    return is_iq1(t) ? 2 * sizeof(struct acts) : 64 * PLANES;
}

/* Activation planes of blocks b and, if it exists, b + 1. */
INLINE void prepare_pair(enum qtype t, const uint8_t *x, int k, int b, bool two, uint8_t *to)
{
    const uint8_t *const q = x + 256 * (size_t)b, *const next = two ? q + 256 : q;
    if (is_iq1(t)) {
        struct acts *const a = (struct acts *)(void *)to;
        acts_of(t, q, row_bsums(x, k) + 16 * b, a);
        acts_of(t, next, row_bsums(x, k) + 16 * (two ? b + 1 : b), a + 1);
        return;
    }
    if (is_iq3(t)) {
        planes4_of(q, to);
        planes4_of(next, to + 256);
        return;
    }
    planes_of(q, next, (uint8_t(*)[64])to);
}

INLINE __m512i two_blocks(enum qtype t, const struct book *k, const uint8_t *first, const uint8_t *second,
                          const uint8_t *plane)
{
    if (!is_iq3(t)) {
        const struct pair v = pair_load(t, k, first, second);
        return pair_products(&v, plane);
    }
    const __m512i a = block_iq3(t, k, first, plane), b = block_iq3(t, k, second, plane + 256);
    const __m512i lo = _mm512_shuffle_i64x2(a, b, 0x44), hi = _mm512_shuffle_i64x2(a, b, 0xee);
    return _mm512_add_epi32(lo, hi);
}

/* Blocks [0, n) of eight weight rows: acc goes on. */
INLINE __m256 rows_blocks(enum qtype t, enum asking ask, const struct book *k, int n, const uint8_t *const row[ROWS],
                          const uint8_t *plane, const float *d, __m256 acc)
{
    for (int b = 0; b < n; b += BLOCKS, plane += pair_bytes(t)) {
        const size_t at = (size_t)b * block_bytes(t), second = b + 1 < n ? at + block_bytes(t) : at;
        __m512i sum[ROWS];
        __m256i s0, s1;
        UNROLL for (int r = 0; r < ROWS; r++)
        {
            ask_ahead(ask, row[r], at, 2 * block_bytes(t));
            sum[r] = two_blocks(t, k, row[r] + at, row[r] + second, plane);
            KEEP512(sum[r]);
        }
        half_sums(sum, &s0, &s1);
        acc = step8(acc, s0, f16_of_rows(row, at), d[b]);
        if (second > at) acc = step8(acc, s1, f16_of_rows(row, second), d[b + 1]);
    }
    return acc;
}

/* Blocks [first, first + n) of all rows times one activation row: out goes on from the blocks before. */
INLINE void piece(enum qtype t, enum asking ask, const struct book *book, int k, const uint8_t *w, size_t w_stride,
                  int n_rows, const uint8_t *x, int first, int n, float *out)
{
    _Alignas(64) uint8_t plane[PIECE * PAIR_BYTES];
    const __m256 by = _mm256_set1_ps(first + n == k / 256 ? last_factor(t) : 1);
    for (int b = 0; b < n; b += BLOCKS)
        prepare_pair(t, x, k, first + b, b + 1 < n, plane + (size_t)(b / BLOCKS) * pair_bytes(t));
    for (int j = 0; j < stream_steps(n_rows, ROWS); j++) {
        const uint8_t *row[ROWS];
        stream_pointers(w + (size_t)first * block_bytes(t), w_stride, j, n_rows, ROWS, row);
        const __m256 start = first ? load_rows(out, j, n_rows) : _mm256_setzero_ps();
        const float *const d = row_d(x, k) + first;
        const __m256 acc = is_iq1(t) ? rows_iq1(t, ask, n, row, (const struct acts *)(const void *)plane, d, start)
                                     : rows_blocks(t, ask, book, n, row, plane, d, start);
        store_rows(out, _mm256_mul_ps(acc, by), j, n_rows);
    }
}

INLINE void tile(enum qtype t, enum asking ask, bool two, int k, const void *w, size_t w_stride, int n_rows,
                 const void *x, size_t x_stride, int n_cols, float *out, size_t out_stride)
{
    const struct book book = book_of(t, two);
    for (int c = 0; c < n_cols; c++)
        for (int first = 0; first < k / 256; first += BLOCKS * PIECE) {
            const int n = k / 256 - first < BLOCKS * PIECE ? k / 256 - first : BLOCKS * PIECE;
            piece(t, ask, &book, k, w, w_stride, n_rows, (const uint8_t *)x + (size_t)c * x_stride, first, n,
                  out + (size_t)c * out_stride);
        }
}

/* Whoever asks for the second level alone is AMD and looks up two. Every activation row unpacks anew: with more than
 * `most` of them the slabs of the AVX2 kernels are faster. */
#define TILE(name, type, most)                                                                                         \
    void tile_##name##_avx512(int k, const void *w, size_t w_stride, int n_rows, const void *x, size_t x_stride,       \
                              int n_cols, float *out, size_t out_stride)                                               \
    {                                                                                                                  \
        if (n_cols > (most))                                                                                           \
            tile_##name##_avx2(k, w, w_stride, n_rows, x, x_stride, n_cols, out, out_stride);                          \
        else if (asking() == ASK_SECOND)                                                                               \
            tile(type, ASK_SECOND, true, k, w, w_stride, n_rows, x, x_stride, n_cols, out, out_stride);                \
        else if (!is_iq1(type) && looks_up_two())                                                                      \
            tile(type, ASK_BOTH, true, k, w, w_stride, n_rows, x, x_stride, n_cols, out, out_stride);                  \
        else                                                                                                           \
            tile(type, ASK_BOTH, false, k, w, w_stride, n_rows, x, x_stride, n_cols, out, out_stride);                 \
    }

TILE(iq2_xs, QT_IQ2_XS, 3)
TILE(iq2_s, QT_IQ2_S, 3)
TILE(iq3_xxs, QT_IQ3_XXS, 4)
TILE(iq3_s, QT_IQ3_S, 2)
TILE(iq1_s, QT_IQ1_S, 3)
TILE(iq1_m, QT_IQ1_M, 3)
#endif
