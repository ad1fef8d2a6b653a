/* AVX-512 tiles of F32, F16 and BF16 weights (activations ACT_F32): the sixteen striped lanes of an output are one
 * vector (docs/numerics.md, lanes16).
 *
 * Floor: two multiply-adds of sixteen a cycle, 117 to 120 thousand million a second on one core of an AMD EPYC (Zen 5,
 * virtual). Many activation rows reach of that, medians of 11 rounds in alternation with panels of 32 weight rows in
 * the second-level cache that pass by six activation rows: 128 activation rows times 256 and 512 F16 rows of 4,096
 * values 83 % (62), times 1,024 of them 78 to 83 (57 to 60); 64 times 24 F32 rows of 16,384 values 57 to 63 (51 to 57).
 * What keeps it below: trees at the ends of chunks, copying the activations (a line takes 3 to 4 cycles; with 24 rows
 * it would be a fifth), and lines from the second-level cache: without asking for them 12 sixteens ahead 76 %.
 *
 * On an Intel Xeon (Emerald Rapids, virtual; the same floor, 83 to 89) those former panels reached with 1,024 F16 rows
 * of 4,096 values 64 to 73 %; today's have not been measured on it.
 *
 * One activation row: memory. F16 rows of 4,096 values, two threads, GB/s, medians of 15 rounds in turn, twice: nothing
 * asked for 23.7 and 24.6, into the first-level cache 1 KiB ahead 27.3 and 29.6, where plain reading gave 29.1
 * and 30.8. Not tried on other processors, which ask for nothing. */
#ifdef __AVX512VNNI__
#include "quant/quant_avx512.h"
#define DENSE_ROWS 4
#define DENSE_COLS 6
#include "quant/quant_dense.h"

/* Sixteen weights as floats. */
INLINE __m512 widen16(enum qtype t, const uint8_t *w)
{
    if (t == QT_F32) return _mm512_loadu_ps(w);
    const __m256i h = load256(w);
    if (t == QT_F16) return _mm512_cvtph_ps(h);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16));
}

/* Sixteen weights to `to`. */
INLINE void widen_store(enum qtype t, const uint8_t *w, float *to)
{
    _mm512_storeu_ps(to, widen16(t, w));
}

struct lanes {
    __m512 all;
};

INLINE struct lanes lanes_zero(void)
{
    return (struct lanes){_mm512_setzero_ps()};
}

/* Bytes between a line that is asked for and the place of work in its row. */
enum { AHEAD = 1024 };

/* Sixteen positions of R weight rows and C activation rows. */
INLINE void multiply16(enum qtype t, int R, int C, const uint8_t *const *w, const uint8_t *const *x, int at,
                       struct lanes acc[MAX_ROWS][MAX_COLS])
{
    __m512 v[MAX_ROWS];
    UNROLL for (int r = 0; r < R; r++)
    {
        const uint8_t *const here = w[r] + value_bytes(t) * (size_t)at;
        if (C == 1 && asking() == ASK_BOTH)
            _mm_prefetch((const char *)(const void *)((uintptr_t)here + AHEAD), _MM_HINT_T0);
        v[r] = widen16(t, here);
    }
    UNROLL for (int c = 0; c < C; c++)
    {
        const __m512 a = _mm512_loadu_ps(x[c] + 4 * (size_t)at);
        UNROLL for (int r = 0; r < R; r++) acc[r][c].all = _mm512_fmadd_ps(v[r], a, acc[r][c].all);
    }
}

INLINE float lane_tree(struct lanes v)
{
    const __m256 s8 = _mm256_add_ps(_mm512_castps512_ps256(v.all), _mm512_extractf32x8_ps(v.all, 1));
    const __m128 s4 = _mm_add_ps(_mm256_castps256_ps128(s8), _mm256_extractf128_ps(s8, 1));
    const __m128 s2 = _mm_add_ps(s4, _mm_movehl_ps(s4, s4));
    return _mm_cvtss_f32(_mm_add_ss(s2, _mm_movehdup_ps(s2)));
}

/* Four sums at a time: + (i+8) of two vectors, + (i+4) of four, then inside a quarter each. */
#define DENSE_TREES
INLINE void add_trees(int R, int C, struct lanes acc[MAX_ROWS][MAX_COLS], float total[MAX_COLS][MAX_ROWS])
{
    if (R < 4) {
        UNROLL for (int r = 0; r < R; r++) UNROLL for (int c = 0; c < C; c++) total[c][r] += lane_tree(acc[r][c]);
        return;
    }
    UNROLL for (int c = 0; c < C; c++)
    {
        const __m512 a = acc[0][c].all, b = acc[1][c].all, d = acc[2][c].all, e = acc[3][c].all;
        const __m512 p = _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee));
        const __m512 q = _mm512_add_ps(_mm512_shuffle_f32x4(d, e, 0x44), _mm512_shuffle_f32x4(d, e, 0xee));
        const __m512 s4 = _mm512_add_ps(_mm512_shuffle_f32x4(p, q, 0x88), _mm512_shuffle_f32x4(p, q, 0xdd));
        const __m512 s2 = _mm512_add_ps(s4, _mm512_shuffle_ps(s4, s4, 0xee));
        const __m512 s = _mm512_maskz_compress_ps(0x1111, _mm512_add_ps(s2, _mm512_movehdup_ps(s2)));
        _mm_storeu_ps(total[c], _mm_add_ps(_mm_loadu_ps(total[c]), _mm512_castps512_ps128(s)));
    }
}

#include "quant/quant_dense.inc"

QUANT_TILE(tile_f32_avx512, tile, QT_F32)
QUANT_TILE(tile_f16_avx512, tile, QT_F16)
QUANT_TILE(tile_bf16_avx512, tile, QT_BF16)
#endif
