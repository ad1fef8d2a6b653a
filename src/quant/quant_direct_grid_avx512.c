/* AVX-512 tiles of IQ2_XS, IQ2_S, IQ3_XXS and IQ3_S for few activation rows (ACT_Q8_K), planar (spec more-quants 8.3).
 * The code books lie in the first-level cache as planes of bytes: byte i of the packed codes (two bits per value:
 * planes of values 0..3 and 4..7), of IQ3 value i. An index is looked up by its lower seven bits in two registers at
 * once; the higher bits choose among the results. A matrix product over bits makes magnitudes of codes, a test of sign
 * bits says where the activations change sign. IQ1_S and IQ1_M stay with table loads: 32 look-ups for 64 groups gained
 * nothing from memory.
 *
 * Floor: the look-ups of 64 groups (2, 4 or 8 per plane, two or four planes) and, per 64 weights, a matrix product (not
 * IQ3), a test and a product of bytes, on the two pipes that can do them: of IQ3_XXS 16 for 256 weights, 120 * 10^9
 * weights per second at 3.7 GHz. Measured, one thread, one activation row, 10^9 weights per second from the
 * second-level cache (the AVX2 kernels): IQ2_XS 31 (18), IQ2_S 28 (19), IQ3_XXS 31 (12), IQ3_S 22 (13); GB/s from
 * memory 6.5 (5.2), 6.4 (6.2), 8.3 (4.7), 6.7 (5.7) (Zen 4, 2 cores). */
#ifdef __AVX512VNNI__
#include "quant/quant_k_avx2.h"
#include "quant/quant_planar_avx512.h"

enum { MOST_ENTRIES = 1024, BLOCKS = 2 /* that share a vector, or the lanes of sums */ };

/* A code book by planes. */
struct book {
    _Alignas(64) uint8_t plane[4][MOST_ENTRIES];
};

INLINE int entries(enum qtype t)
{
    return t == QT_IQ3_XXS ? 256 : t == QT_IQ2_S ? 1024 : 512;
}

INLINE bool is_iq3(enum qtype t)
{
    return t == QT_IQ3_XXS || t == QT_IQ3_S;
}

INLINE void book_fill(enum qtype t, struct book *k)
{
    const uint16_t *const codes = t == QT_IQ2_XS ? iq2xs_codes : iq2s_codes;
    const uint32_t *const grid = t == QT_IQ3_XXS ? iq3xxs_grid : iq3s_grid;
    for (int i = 0; i < entries(t); i += 16) {
        const __m512i v = is_iq3(t) ? load512(grid + i) : _mm512_cvtepu16_epi32(load256(codes + i));
        for (int p = 0; p < (is_iq3(t) ? 4 : 2); p++)
            _mm_store_si128((__m128i *)(k->plane[p] + i), _mm512_cvtepi32_epi8(_mm512_srli_epi32(v, 8 * (unsigned)p)));
    }
}

/* Bits 8 and 9 of 64 indices. */
struct high {
    __mmask64 bit[2];
};

INLINE __m512i look_up256(const uint8_t *plane, __m512i index)
{
    const __m512i lo = _mm512_permutex2var_epi8(load512(plane), index, load512(plane + 64));
    const __m512i hi = _mm512_permutex2var_epi8(load512(plane + 128), index, load512(plane + 192));
    return _mm512_mask_blend_epi8(_mm512_movepi8_mask(index), lo, hi);
}

INLINE __m512i look_up512(const uint8_t *plane, __m512i index, const struct high *h)
{
    return _mm512_mask_blend_epi8(h->bit[0], look_up256(plane, index), look_up256(plane + 256, index));
}

INLINE __m512i look_up(enum qtype t, const uint8_t *plane, __m512i index, const struct high *h)
{
    if (entries(t) == 256) return look_up256(plane, index);
    if (entries(t) == 512) return look_up512(plane, index, h);
    return _mm512_mask_blend_epi8(h->bit[1], look_up512(plane, index, h), look_up512(plane + 512, index, h));
}

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

INLINE __m512i odd_scales512(const uint8_t *first, const uint8_t *second)
{
    return join256(odd_scales16(first), odd_scales16(second));
}

INLINE struct pair pair_iq2_xs(const struct book *k, const uint8_t *first, const uint8_t *second)
{
    const __m512i a = load512(first + IQ2_XS_CODES), b = load512(second + IQ2_XS_CODES);
    const __m512i low = join256(_mm512_cvtepi16_epi8(a), _mm512_cvtepi16_epi8(b));
    const __m512i top =
        join256(_mm512_cvtepi16_epi8(_mm512_srli_epi16(a, 8)), _mm512_cvtepi16_epi8(_mm512_srli_epi16(b, 8)));
    const struct high h = {{_mm512_test_epi8_mask(top, _mm512_set1_epi8(1))}};
    return (struct pair){
        .code = {look_up(QT_IQ2_XS, k->plane[0], low, &h), look_up(QT_IQ2_XS, k->plane[1], low, &h)},
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
        .code = {look_up(QT_IQ2_S, k->plane[0], low, &h), look_up(QT_IQ2_S, k->plane[1], low, &h)},
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

INLINE __m512i block_iq3(enum qtype t, const struct book *k, const uint8_t *b, const uint8_t *plane)
{
    const __m512i low = load512(b + (t == QT_IQ3_XXS ? IQ3_XXS_INDEX : IQ3_S_LOW));
    const __m512i twice = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    struct high h = {{0}};
    __m256i sign, scale;
    if (t == QT_IQ3_XXS) {
        const __m256i word = load256(b + IQ3_XXS_WORDS);
        const __m256i seven = _mm256_multishift_epi64_epi8(_mm256_set1_epi64x(0x352e2720150e0700), word);
        sign = _mm256_gf2p8affine_epi64_epi8(seven, _mm256_set1_epi64x(0x010204081020407f), 0);
        scale = _mm256_or_si256(_mm256_slli_epi32(_mm256_srli_epi32(word, 28), 1), _mm256_set1_epi32(1));
    } else {
        uint64_t bits;
        memcpy(&bits, b + IQ3_S_HIGH, sizeof bits);
        h.bit[0] = bits;
        sign = load256(b + IQ3_S_SIGNS);
        scale = _mm256_cvtepu8_epi32(odd_scales(_mm_cvtsi32_si128((int)load_u32(b + IQ3_S_SCALES))));
    }
    const __m512i wide = _mm512_cvtepu8_epi16(sign), signs = _mm512_or_si512(wide, _mm512_slli_epi16(wide, 8));
    __m512i s = _mm512_setzero_si512();
    UNROLL for (int p = 0; p < 4; p++)
    {
        const __m512i bit = _mm512_set1_epi16((short)(1 << p | 0x1000 << p)), q = load512(plane + 64 * p);
        const __m512i signed_q = _mm512_mask_sub_epi8(q, _mm512_test_epi8_mask(signs, bit), _mm512_setzero_si512(), q);
        s = _mm512_dpbusd_epi32(s, look_up(t, k->plane[p], low, &h), signed_q);
    }
    return _mm512_mullo_epi32(s, _mm512_permutexvar_epi32(twice, _mm512_castsi256_si512(scale)));
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

/* ---- tiles */

enum { PAIR_BYTES = 64 * PLANES };

/* Activation planes of blocks b and, if it exists, b + 1. */
INLINE void prepare_pair(enum qtype t, const uint8_t *x, int b, bool two, uint8_t *to)
{
    const uint8_t *const q = x + 256 * (size_t)b, *const next = two ? q + 256 : q;
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
INLINE __m256 rows_blocks(enum qtype t, const struct book *k, int n, const uint8_t *const row[ROWS],
                          const uint8_t *plane, const float *d, __m256 acc)
{
    for (int b = 0; b < n; b += BLOCKS, plane += PAIR_BYTES) {
        const size_t at = (size_t)b * block_bytes(t), second = b + 1 < n ? at + block_bytes(t) : at;
        __m512i sum[ROWS];
        __m256i s0, s1;
        UNROLL for (int r = 0; r < ROWS; r++)
        {
            ask_ahead(row[r], at, 2 * block_bytes(t));
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
INLINE void piece(enum qtype t, const struct book *book, int k, const uint8_t *w, size_t w_stride, int n_rows,
                  const uint8_t *x, int first, int n, float *out)
{
    _Alignas(64) uint8_t plane[PIECE][PAIR_BYTES];
    const __m256 by = _mm256_set1_ps(first + n == k / 256 ? last_factor(t) : 1);
    for (int b = 0; b < n; b += BLOCKS) prepare_pair(t, x, first + b, b + 1 < n, plane[b / BLOCKS]);
    for (int j = 0; j < stream_steps(n_rows, ROWS); j++) {
        const uint8_t *row[ROWS];
        stream_pointers(w + (size_t)first * block_bytes(t), w_stride, j, n_rows, ROWS, row);
        const __m256 acc = first ? load_rows(out, j, n_rows) : _mm256_setzero_ps();
        store_rows(out, _mm256_mul_ps(rows_blocks(t, book, n, row, plane[0], row_d(x, k) + first, acc), by), j, n_rows);
    }
}

INLINE void tile(enum qtype t, int k, const void *w, size_t w_stride, int n_rows, const void *x, size_t x_stride,
                 int n_cols, float *out, size_t out_stride)
{
    struct book book;
    book_fill(t, &book);
    for (int c = 0; c < n_cols; c++)
        for (int first = 0; first < k / 256; first += BLOCKS * PIECE) {
            const int n = k / 256 - first < BLOCKS * PIECE ? k / 256 - first : BLOCKS * PIECE;
            piece(t, &book, k, w, w_stride, n_rows, (const uint8_t *)x + (size_t)c * x_stride, first, n,
                  out + (size_t)c * out_stride);
        }
}

/* Every activation row unpacks anew: with more than `most` of them the slabs of the AVX2 kernels are faster. */
#define TILE(name, type, most)                                                                                         \
    void tile_##name##_avx512(int k, const void *w, size_t w_stride, int n_rows, const void *x, size_t x_stride,       \
                              int n_cols, float *out, size_t out_stride)                                               \
    {                                                                                                                  \
        if (n_cols > (most))                                                                                           \
            tile_##name##_avx2(k, w, w_stride, n_rows, x, x_stride, n_cols, out, out_stride);                          \
        else                                                                                                           \
            tile(type, k, w, w_stride, n_rows, x, x_stride, n_cols, out, out_stride);                                  \
    }

TILE(iq2_xs, QT_IQ2_XS, 3)
TILE(iq2_s, QT_IQ2_S, 3)
TILE(iq3_xxs, QT_IQ3_XXS, 4)
TILE(iq3_s, QT_IQ3_S, 2)
#endif
