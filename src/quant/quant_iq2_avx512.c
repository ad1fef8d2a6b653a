/* AVX-512 tile of IQ2_XXS for few activation rows (ACT_Q8_K), planar: vector p holds value p of each group of eight of
 * two blocks. The code book, two bits per value, lies in registers as two planes of 256 bytes, one with values 0..3 of
 * the entries and one with values 4..7; a matrix product over bits makes the parity bits of the signs. Codes and signs
 * of two values make an index of six bits, by which each of both is looked up, made positive by adding a constant that
 * the sums of the activations take away again (spec more-quants 8.3, gguf-and-quants 2.9).
 *
 * Floor: two and a half instructions for every 64 weights (an index for two values, look-up, dot product), of about 50
 * for 132 bytes. Measured, one thread of an Intel Xeon (2 cores, virtual), in alternation with the kernel before, which
 * made an index for every value (Zen 4, one before that: 13.7 GB/s from the cache, 10.4 from memory): 11.9 GB/s from
 * the cache (10.7), 10.0 and 10.2 from memory (9.5 and 9.2), where plain reading gave 13.7 and 14.5. Four look-ups in
 * 64 entries, merged by masks, in the place of two in 128, took 12.6 from the cache and 10.6 from memory there; on Zen
 * 4 they have not been tried. */
#ifdef __AVX512VNNI__
#include "quant/quant_iq2_book_avx512.h"
#include "quant/quant_iq2_table.h"
#include "quant/quant_planar_avx512.h"

enum { VECTORS = PLANES + 1 /* of a pair of activation blocks: planes, and what makes up for IQ2_OFFSET */ };

/* An index of six bits has codes and signs of two values, for which there is a table each: tables 0 and 1 are for
 * values 0..3, 2 and 3 for 4..7. */
static const _Alignas(64) uint8_t value_table[4][64] = {IQ2_TABLE(0, 4), IQ2_TABLE(2, 5), IQ2_TABLE(2, 0),
                                                        IQ2_TABLE(4, 1)};

/* Matrix over bits that gives seven signs an eighth, their parity, and puts those of values 0..3 into the upper bits.
 */
#define SIGNS 0x1020407f01020408

/* Two blocks of a row: what the groups of eight need, byte g for group g. */
struct pair {
    __m512i code[2]; /* two bits per value: values 0..3, values 4..7 */
    __m512i sign;    /* one bit per value: 4..7, 0..3 */
    __m512i scale;   /* 2s + 1 per group of 32, in 32-bit lanes */
};

INLINE struct pair pair_load(const struct book *k, const uint8_t *first, const uint8_t *second)
{
    const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i a = load512(first + IQ2_XXS_GROUPS), b = load512(second + IQ2_XXS_GROUPS);
    const __m512i index = _mm512_permutex2var_epi32(a, even, b);
    const __m512i word = _mm512_permutex2var_epi32(a, _mm512_add_epi32(even, _mm512_set1_epi32(1)), b);
    const __m512i seven = _mm512_multishift_epi64_epi8(_mm512_set1_epi64(0x352e2720150e0700), word);
    return (struct pair){
        .code = {look_up(k->plane[0], index), look_up(k->plane[1], index)},
        .sign = _mm512_gf2p8affine_epi64_epi8(seven, _mm512_set1_epi64(SIGNS), 0),
        .scale = _mm512_or_si512(_mm512_srli_epi32(word, 27), _mm512_set1_epi32(1)), /* bit 27 is a sign's */
    };
}

/* The code book; codes of values 4..7 from bit 2 on, where their indices have them, the last one in bits 0 and 1. */
INLINE struct book book_of_indices(void)
{
    const __m512i turn =
        _mm512_set1_epi64((long long)(moved(2, 0, 2) | moved(2, 2, 4) | moved(2, 4, 6) | moved(2, 6, 0)));
    struct book k = book_load();
    for (int i = 0; i < 4; i++) k.plane[1][i] = _mm512_gf2p8affine_epi64_epi8(k.plane[1][i], turn, 0);
    return k;
}

/* Indices of values 2i and 2i + 1 of each group. */
INLINE void indices(const struct pair *v, __m512i index[4])
{
    const __m512i low = _mm512_set1_epi8(0x0f), middle = _mm512_set1_epi8(0x3c);
    const __m512i last = _mm512_set1_epi64((long long)(moved(2, 6, 2) | moved(2, 0, 4)));
    const __m512i sign = _mm512_srli_epi16(v->sign, 2); /* of values 2, 3, 6 and 7 */
    index[0] = _mm512_ternarylogic_epi32(low, v->code[0], v->sign, 0xca);
    index[1] = _mm512_ternarylogic_epi32(low, _mm512_srli_epi16(v->code[0], 4), sign, 0xca);
    index[2] = _mm512_ternarylogic_epi32(middle, v->code[1], v->sign, 0xca);
    index[3] = _mm512_ternarylogic_epi32(middle, _mm512_gf2p8affine_epi64_epi8(v->code[1], last, 0), sign, 0xca);
}

/* Products of a pair with its activation planes, in lanes of 32 values. */
INLINE __m512i pair_products(const struct pair *v, const uint8_t *plane)
{
    __m512i index[4], s[2] = {load512(plane + 64 * PLANES), _mm512_setzero_si512()};
    indices(v, index);
    UNROLL for (int p = 0; p < PLANES; p++)
    {
        const __m512i value = _mm512_permutexvar_epi8(index[p / 2], load512(value_table[p / 4 * 2 + p % 2]));
        s[p % 2] = _mm512_dpbusd_epi32(s[p % 2], value, load512(plane + 64 * p));
    }
    return _mm512_mullo_epi32(_mm512_add_epi32(s[0], s[1]), v->scale);
}

/* What makes up for IQ2_OFFSET, lane by lane. */
INLINE void middle_terms(const uint8_t plane[PLANES][64], uint8_t *to)
{
    __m512i sum = _mm512_setzero_si512();
    for (int p = 0; p < PLANES; p++) sum = _mm512_dpbusd_epi32(sum, _mm512_set1_epi8(IQ2_OFFSET), load512(plane[p]));
    store512(to, _mm512_sub_epi32(_mm512_setzero_si512(), sum));
}

INLINE __m256 scales_of_rows(const uint8_t *const row[ROWS], size_t at)
{
    __m256 d, unused;
    f16_pairs_of_rows(row, at, &d, &unused);
    return d;
}

/* n_pairs of blocks of eight weight rows: acc goes on. A pair is made ready while the one before it is multiplied. */
INLINE __m256 rows_pairs(const struct book *book, enum asking ask, int n_pairs, const uint8_t *const row[ROWS],
                         const uint8_t *plane, const float *d, __m256 acc)
{
    struct pair v = pair_load(book, row[0], row[0] + IQ2_XXS_BYTES);
    for (int b = 0; b < n_pairs; b++, plane += VECTORS * 64) {
        const size_t at = (size_t)b * 2 * IQ2_XXS_BYTES, second = at + IQ2_XXS_BYTES;
        __m512i sum[ROWS];
        __m256i s0, s1;
        UNROLL for (int r = 0; r < ROWS; r++)
        {
            const size_t next = r + 1 < ROWS || b + 1 == n_pairs ? at : at + 2 * IQ2_XXS_BYTES;
            const uint8_t *const w = row[(r + 1) % ROWS] + next;
            ask_ahead(ask, w, 0, 2 * IQ2_XXS_BYTES);
            struct pair ahead = pair_load(book, w, w + IQ2_XXS_BYTES);
            KEEP512(ahead.code[0]);
            KEEP512(ahead.code[1]);
            KEEP512(ahead.sign);
            KEEP512(ahead.scale);
            sum[r] = pair_products(&v, plane);
            KEEP512(sum[r]);
            v = ahead;
        }
        half_sums(sum, &s0, &s1);
        acc = step8(acc, s0, scales_of_rows(row, at), d[2 * b]);
        acc = step8(acc, s1, scales_of_rows(row, second), d[2 * b + 1]);
    }
    return acc;
}

/* A last single block. */
INLINE __m256 rows_last(const struct book *book, const uint8_t *const row[ROWS], const uint8_t *plane, float d,
                        __m256 acc)
{
    __m512i sum[ROWS];
    __m256i s0, s1;
    for (int r = 0; r < ROWS; r++) {
        const struct pair v = pair_load(book, row[r], row[r]);
        sum[r] = pair_products(&v, plane);
    }
    half_sums(sum, &s0, &s1);
    return step8(acc, s0, scales_of_rows(row, 0), d);
}

/* Blocks [first, first + n) of all rows times one activation row: out goes on from the blocks before. */
INLINE void piece(const struct book *book, enum asking ask, int k, const uint8_t *w, size_t w_stride, int n_rows,
                  const uint8_t *x, int first, int n, float *out)
{
    _Alignas(64) uint8_t plane[PIECE][VECTORS][64];
    const float *const d = row_d(x, k) + first;
    const uint8_t *const q = x + 256 * (size_t)first;
    const __m256 by = _mm256_set1_ps(first + n == k / 256 ? 0.125f : 1);
    for (int b = 0; b < n; b += 2) {
        planes_of(q + 256 * b, q + 256 * (b + 1 < n ? b + 1 : b), plane[b / 2]);
        middle_terms((const uint8_t(*)[64])plane[b / 2], plane[b / 2][PLANES]);
    }
    for (int j = 0; j < stream_steps(n_rows, ROWS); j++) {
        const uint8_t *row[ROWS], *last[ROWS];
        stream_pointers(w + (size_t)first * IQ2_XXS_BYTES, w_stride, j, n_rows, ROWS, row);
        __m256 acc = first ? load_rows(out, j, n_rows) : _mm256_setzero_ps();
        if (n > 1) acc = rows_pairs(book, ask, n / 2, row, plane[0][0], d, acc);
        if (n % 2) {
            for (int r = 0; r < ROWS; r++) last[r] = row[r] + (size_t)(n - 1) * IQ2_XXS_BYTES;
            acc = rows_last(book, last, plane[n / 2][0], d[n - 1], acc);
        }
        store_rows(out, _mm256_mul_ps(acc, by), j, n_rows);
    }
}

INLINE void tile(enum asking ask, int k, const void *w, size_t w_stride, int n_rows, const void *x, size_t x_stride,
                 int n_cols, float *out, size_t out_stride)
{
    const struct book book = book_of_indices();
    for (int c = 0; c < n_cols; c++)
        for (int first = 0; first < k / 256; first += 2 * PIECE) {
            const int n = k / 256 - first < 2 * PIECE ? k / 256 - first : 2 * PIECE;
            piece(&book, ask, k, w, w_stride, n_rows, (const uint8_t *)x + (size_t)c * x_stride, first, n,
                  out + (size_t)c * out_stride);
        }
}

void tile_iq2_xxs_avx512(int k, const void *w, size_t w_stride, int n_rows, const void *x, size_t x_stride, int n_cols,
                         float *out, size_t out_stride)
{
    if (asking() == ASK_BOTH)
        tile(ASK_BOTH, k, w, w_stride, n_rows, x, x_stride, n_cols, out, out_stride);
    else
        tile(ASK_SECOND, k, w, w_stride, n_rows, x, x_stride, n_cols, out, out_stride);
}
#endif
