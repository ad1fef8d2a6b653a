/* What the AVX2 kernel files share. Included by *_avx2.c only.
 *
 * All tiles work on eight weight rows at a time, one float lane per row, so the float chain of each output runs down
 * its own lane. Where fewer rows are left, the last one stands in for the missing ones and its copies are not stored.
 * With few activation rows a block is multiplied as it lies in memory and the lanes of eight rows are summed together
 * at its end. With more, eight rows are unpacked into a slab, four consecutive codes of row 0, of row 1 ... in one
 * vector, which all activation rows then use. */
#ifndef QUANT_QUANT_AVX2_H
#define QUANT_QUANT_AVX2_H
#include <immintrin.h>
#include "quant/quant_bits.h"
#include "quant/quant_walk.h"

quant_tile_fn tile_f32_avx2, tile_f16_avx2, tile_bf16_avx2, tile_q8_0_avx2, tile_q4_0_avx2, tile_mxfp4_avx2,
    tile_q2_k_avx2, tile_q4_k_avx2, tile_q5_k_avx2, tile_q6_k_avx2, tile_iq2_xxs_avx2, tile_q4_1_avx2, tile_q5_0_avx2,
    tile_q5_1_avx2, tile_iq4_nl_avx2, tile_iq4_xs_avx2, tile_q3_k_avx2, tile_tq1_0_avx2, tile_tq2_0_avx2,
    tile_iq2_xs_avx2, tile_iq2_s_avx2, tile_iq3_xxs_avx2, tile_iq3_s_avx2, tile_iq1_s_avx2, tile_iq1_m_avx2,
    tile_nvfp4_avx2, tile_q1_0_avx2, tile_q2_0_avx2, tile_q2_0_128_avx2;

/* Ends an expression: the compiler may not regroup integer sums across it. GCC would make trees of the chains below,
 * whose many intermediate values do not fit the registers. */
#define KEEP(v) __asm__("" : "+x"(v))

/* Sums of eight vectors, one lane each. */
INLINE __m256i lane_sums(const __m256i v[ROWS])
{
    const __m256i a = _mm256_hadd_epi32(_mm256_hadd_epi32(v[0], v[1]), _mm256_hadd_epi32(v[2], v[3]));
    const __m256i b = _mm256_hadd_epi32(_mm256_hadd_epi32(v[4], v[5]), _mm256_hadd_epi32(v[6], v[7]));
    return _mm256_add_epi32(_mm256_permute2x128_si256(a, b, 0x20), _mm256_permute2x128_si256(a, b, 0x31));
}

/* Transposes eight vectors of eight 32-bit values. */
INLINE void transpose8(__m256i v[8])
{
    __m256i a[8], b[8];
    UNROLL for (int i = 0; i < 8; i += 2)
    {
        a[i] = _mm256_unpacklo_epi32(v[i], v[i + 1]);
        a[i + 1] = _mm256_unpackhi_epi32(v[i], v[i + 1]);
    }
    UNROLL for (int i = 0; i < 8; i += 4)
    {
        b[i] = _mm256_unpacklo_epi64(a[i], a[i + 2]);
        b[i + 1] = _mm256_unpackhi_epi64(a[i], a[i + 2]);
        b[i + 2] = _mm256_unpacklo_epi64(a[i + 1], a[i + 3]);
        b[i + 3] = _mm256_unpackhi_epi64(a[i + 1], a[i + 3]);
    }
    UNROLL for (int i = 0; i < 4; i++)
    {
        v[i] = _mm256_permute2x128_si256(b[i], b[i + 4], 0x20);
        v[i + 4] = _mm256_permute2x128_si256(b[i], b[i + 4], 0x31);
    }
}

INLINE __m256i load256(const void *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}

INLINE void store256(void *p, __m256i v)
{
    _mm256_storeu_si256((__m256i *)p, v);
}

/* Four bytes in all lanes. */
INLINE __m256i spread32(const void *p)
{
    return _mm256_set1_epi32((int)load_u32(p));
}

/* The f16 at the same offset of eight rows. */
INLINE __m256 f16_of_rows(const uint8_t *const row[ROWS], size_t at)
{
    const __m128i h =
        _mm_setr_epi16((short)load_u16(row[0] + at), (short)load_u16(row[1] + at), (short)load_u16(row[2] + at),
                       (short)load_u16(row[3] + at), (short)load_u16(row[4] + at), (short)load_u16(row[5] + at),
                       (short)load_u16(row[6] + at), (short)load_u16(row[7] + at));
    return _mm256_cvtph_ps(h);
}

/* Asks for the bytes at the same place of the rows that follow `next` bytes behind these. A tile reads eight streams at
 * once, too many for the processor to foresee alone. */
INLINE void prefetch_rows(const uint8_t *const row[ROWS], size_t at, size_t bytes, size_t next)
{
    for (int r = 0; r < ROWS; r++)
        for (size_t i = 0; i < bytes; i += 64)
            _mm_prefetch((const char *)(const void *)((uintptr_t)row[r] + next + at + i), _MM_HINT_T0);
}

/* Results of the rows of a step. */
INLINE void store_rows(float *out, __m256 v, int step, int n_rows)
{
    const int steps = stream_steps(n_rows, ROWS);
    float lane[ROWS];
    _mm256_storeu_ps(lane, v);
    for (int r = step, i = 0; i < ROWS && r < n_rows; i++, r += steps) out[r] = lane[i];
}

/* Eight weight rows times one activation row, blocks read where they lie; next: from a row to the one of the next step.
 */
typedef __m256 direct_fn(enum qtype t, int k, const uint8_t *const row[ROWS], size_t next, const uint8_t *x);
/* Eight weight rows times n <= COL_CHUNK activation rows, through slabs; fills acc[n][ROWS]. */
typedef void slab_fn(enum qtype t, int k, const uint8_t *const row[ROWS], const uint8_t *x, size_t x_stride, int n,
                     float acc[COL_CHUNK][ROWS]);

/* Walks over a tile. slab is NULL for so few activation rows that unpacking does not pay. */
INLINE void tile_walk(direct_fn *direct, slab_fn *slab, enum qtype t, int k, const void *w, size_t w_stride, int n_rows,
                      const uint8_t *x, size_t x_stride, int n_cols, float *out, size_t out_stride)
{
    const int steps = stream_steps(n_rows, ROWS);
    for (int j = 0; j < steps; j++) {
        const uint8_t *row[ROWS];
        /* Beyond the tile the next one usually follows. */
        const size_t next = w_stride * (size_t)(j + 1 < steps ? 1 : n_rows - j);
        stream_pointers(w, w_stride, j, n_rows, ROWS, row);
        for (int c = 0; c < n_cols; c += COL_CHUNK) {
            const int n = n_cols - c < COL_CHUNK ? n_cols - c : COL_CHUNK;
            const uint8_t *const xc = x + (size_t)c * x_stride;
            _Alignas(32) float acc[COL_CHUNK][ROWS];
            if (slab) slab(t, k, row, xc, x_stride, n, acc);
            for (int i = 0; i < n; i++) {
                const __m256 v = slab ? _mm256_load_ps(acc[i]) : direct(t, k, row, next, xc + (size_t)i * x_stride);
                store_rows(out + (size_t)(c + i) * out_stride, v, j, n_rows);
            }
        }
    }
}

#endif
