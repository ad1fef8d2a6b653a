/* AVX-512 tile of IQ2_XXS (activations ACT_Q8_K), planar: vector p holds value p of each group of eight of two blocks.
 * The code book, two bits per value, lies in registers as two planes of 256 bytes, one with values 0..3 of the entries
 * and one with values 4..7; a matrix product over bits turns a plane into magnitudes, another one makes the parity bits
 * of the signs (spec more-quants 8.3, gguf-and-quants 2.9). */
#ifdef __AVX512VNNI__
#include "quant/quant_iq2_book_avx512.h"

enum { PLANES = 8 };

/* Two blocks of a row: what the groups of eight need, byte g for group g. */
struct pair {
    __m512i code[2]; /* two bits per value: values 0..3, values 4..7 */
    __m512i sign;    /* one bit per value */
    __m512i scale;   /* 2s + 1 per group of 32, in 32-bit lanes */
};

INLINE struct pair pair_load(const struct book *k, const uint8_t *first, const uint8_t *second)
{
    const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i a = load512(first + IQ2_XXS_GROUPS), b = load512(second + IQ2_XXS_GROUPS);
    const __m512i index = _mm512_permutex2var_epi32(a, even, b);
    const __m512i word = _mm512_permutex2var_epi32(a, _mm512_add_epi32(even, _mm512_set1_epi32(1)), b);
    const __m512i seven = _mm512_multishift_epi64_epi8(_mm512_set1_epi64(0x352e2720150e0700), word);
    const __m512i scale = _mm512_slli_epi32(_mm512_srli_epi32(word, 28), 1);
    return (struct pair){
        .code = {look_up(k->plane[0], index), look_up(k->plane[1], index)},
        .sign = _mm512_gf2p8affine_epi64_epi8(seven, _mm512_set1_epi64(SIGN_PARITY), 0),
        .scale = _mm512_or_si512(scale, _mm512_set1_epi32(1)),
    };
}

/* Magnitudes of value p of each group: the code's bits c0, c1 give 8 ^ 17*c0 ^ 35*c1, that is 8, 25, 43. */
INLINE __m512i magnitudes(const struct pair *v, int p)
{
    const uint64_t c0 = 1u << 2 * (p % 4), c1 = 2u << 2 * (p % 4);
    /* byte 7-i of the matrix: the source bits of bit i; 17 has bits 0, 4, and 35 bits 0, 1, 5 */
    const uint64_t matrix = (c0 ^ c1) << 56 | c1 << 48 | c0 << 24 | c1 << 16;
    return _mm512_gf2p8affine_epi64_epi8(v->code[p / 4], _mm512_set1_epi64((long long)matrix), 8);
}

INLINE __mmask64 negative(const struct pair *v, int p)
{
    return _mm512_test_epi8_mask(v->sign, _mm512_set1_epi8((char)(1 << p)));
}

/* Codes of two activation blocks by planes. */
INLINE void planes_of(const uint8_t *first, const uint8_t *second, __m512i plane[PLANES])
{
    /* byte 8*p + g of a vector with eight groups: value p of group g */
    const __m512i by_value =
        _mm512_set_epi8(63, 55, 47, 39, 31, 23, 15, 7, 62, 54, 46, 38, 30, 22, 14, 6, 61, 53, 45, 37, 29, 21, 13, 5, 60,
                        52, 44, 36, 28, 20, 12, 4, 59, 51, 43, 35, 27, 19, 11, 3, 58, 50, 42, 34, 26, 18, 10, 2, 57, 49,
                        41, 33, 25, 17, 9, 1, 56, 48, 40, 32, 24, 16, 8, 0);
    uint64_t q[8][8];
    UNROLL for (int i = 0; i < 8; i++)
        store512(q[i], _mm512_permutexvar_epi8(by_value, load512((i < 4 ? first : second) + 64 * (i % 4))));
    UNROLL for (int p = 0; p < PLANES; p++) plane[p] =
        _mm512_setr_epi64((long long)q[0][p], (long long)q[1][p], (long long)q[2][p], (long long)q[3][p],
                          (long long)q[4][p], (long long)q[5][p], (long long)q[6][p], (long long)q[7][p]);
}

/* Sums over the eight lanes of the first and of the second half of eight vectors. */
INLINE void half_sums(const __m512i v[ROWS], __m256i *first, __m256i *second)
{
    __m512i a[4], b[2];
    UNROLL for (int i = 0; i < 4; i++) a[i] =
        _mm512_add_epi32(_mm512_unpacklo_epi32(v[2 * i], v[2 * i + 1]), _mm512_unpackhi_epi32(v[2 * i], v[2 * i + 1]));
    UNROLL for (int i = 0; i < 2; i++) b[i] =
        _mm512_add_epi32(_mm512_unpacklo_epi64(a[2 * i], a[2 * i + 1]), _mm512_unpackhi_epi64(a[2 * i], a[2 * i + 1]));
    const __m512i s = _mm512_add_epi32(_mm512_shuffle_i32x4(b[0], b[1], 0x88), _mm512_shuffle_i32x4(b[0], b[1], 0xdd));
    const __m512i sorted = _mm512_shuffle_i32x4(s, s, 0xd8);
    *first = _mm512_castsi512_si256(sorted);
    *second = _mm512_extracti64x4_epi64(sorted, 1);
}

INLINE __m256 step8(__m256 acc, __m256i sum, __m256 d, float yd)
{
    return _mm256_add_ps(acc, _mm256_mul_ps(_mm256_mul_ps(d, _mm256_set1_ps(yd)), _mm256_cvtepi32_ps(sum)));
}

/* Eight weight rows times one activation row. */
INLINE __m256 rows_direct(enum qtype t, int k, const uint8_t *const row[ROWS], size_t next, const uint8_t *x)
{
    const struct book book = book_load();
    const float *const d = row_d(x, k);
    __m256 acc = _mm256_setzero_ps();
    for (int b = 0; b < k / 256; b += 2) {
        const size_t at = (size_t)b * IQ2_XXS_BYTES, second = b + 1 < k / 256 ? at + IQ2_XXS_BYTES : at;
        __m512i plane[PLANES], sum[ROWS];
        prefetch_rows(row, at, second - at + IQ2_XXS_BYTES, next);
        planes_of(x + 256 * b, x + 256 * (second > at ? b + 1 : b), plane);
        UNROLL for (int r = 0; r < ROWS; r++)
        {
            const struct pair v = pair_load(&book, row[r] + at, row[r] + second);
            __m512i s = _mm512_setzero_si512();
            UNROLL for (int p = 0; p < PLANES; p++)
            {
                const __m512i q = _mm512_mask_sub_epi8(plane[p], negative(&v, p), _mm512_setzero_si512(), plane[p]);
                s = _mm512_dpbusd_epi32(s, magnitudes(&v, p), q);
            }
            sum[r] = _mm512_mullo_epi32(s, v.scale);
        }
        __m256i s0, s1;
        half_sums(sum, &s0, &s1);
        acc = step8(acc, s0, f16_of_rows(row, at), d[b]);
        if (second > at) acc = step8(acc, s1, f16_of_rows(row, second), d[b + 1]);
    }
    return _mm256_mul_ps(acc, _mm256_set1_ps(0.125f));
}

INLINE void tile(enum qtype t, int k, const void *w, size_t w_stride, int n_rows, const void *x, size_t x_stride,
                 int n_cols, float *out, size_t out_stride)
{
    tile_walk(rows_direct, NULL, t, k, w, w_stride, n_rows, x, x_stride, n_cols, out, out_stride);
}

QUANT_TILE(tile_iq2_xxs_avx512, tile, QT_IQ2_XXS)
#endif
