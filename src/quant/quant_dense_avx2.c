/* AVX2 tiles of F32, F16 and BF16 weights (activations ACT_F32): sixteen striped lanes in two vectors per output
 * (docs/numerics.md, lanes16). */
#ifdef __AVX2__
#include "quant/quant_avx2.h"
#include "quant/quant_dense.h"

/* Eight weights as floats. */
INLINE __m256 widen8(enum qtype t, const uint8_t *w)
{
    if (t == QT_F32) return _mm256_loadu_ps((const float *)(const void *)w);
    const __m128i h = _mm_loadu_si128((const __m128i *)w);
    if (t == QT_F16) return _mm256_cvtph_ps(h);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
}

/* Sixteen weights to `to`. */
INLINE void widen_store(enum qtype t, const uint8_t *w, float *to)
{
    _mm256_storeu_ps(to, widen8(t, w));
    _mm256_storeu_ps(to + 8, widen8(t, w + 8 * value_bytes(t)));
}

struct lanes {
    __m256 half[2];
};

INLINE struct lanes lanes_zero(void)
{
    return (struct lanes){{_mm256_setzero_ps(), _mm256_setzero_ps()}};
}

/* Sixteen positions of R weight rows and C activation rows. */
INLINE void multiply16(enum qtype t, int R, int C, const uint8_t *const *w, const uint8_t *const *x, int at,
                       struct lanes acc[MAX_ROWS][MAX_COLS])
{
    UNROLL for (int h = 0; h < 2; h++)
    {
        __m256 v[MAX_ROWS];
        UNROLL for (int r = 0; r < R; r++) v[r] = widen8(t, w[r] + value_bytes(t) * (size_t)(at + 8 * h));
        UNROLL for (int c = 0; c < C; c++)
        {
            const __m256 a = _mm256_loadu_ps((const float *)(const void *)x[c] + at + 8 * h);
            UNROLL for (int r = 0; r < R; r++) acc[r][c].half[h] = _mm256_fmadd_ps(v[r], a, acc[r][c].half[h]);
        }
    }
}

INLINE float lane_tree(struct lanes v)
{
    const __m256 s8 = _mm256_add_ps(v.half[0], v.half[1]);
    const __m128 s4 = _mm_add_ps(_mm256_castps256_ps128(s8), _mm256_extractf128_ps(s8, 1));
    const __m128 s2 = _mm_add_ps(s4, _mm_movehl_ps(s4, s4));
    return _mm_cvtss_f32(_mm_add_ss(s2, _mm_movehdup_ps(s2)));
}

#include "quant/quant_dense.inc"

QUANT_TILE(tile_f32_avx2, tile, QT_F32)
QUANT_TILE(tile_f16_avx2, tile, QT_F16)
QUANT_TILE(tile_bf16_avx2, tile, QT_BF16)
#endif
