/* AVX2 tiles of F32, F16 and BF16 weights (activations ACT_F32): sixteen striped lanes in two vectors per output
 * (docs/numerics.md, lanes16).
 *
 * Floor: two multiply-adds of eight a cycle, 54 thousand million a second on one of two cores of an Intel Xeon (Ice
 * Lake, virtual), where loads of 32 bytes pass at 1.7 a cycle: a step over a panel takes twelve sums of four weight
 * rows and three activation rows, seven loads for twelve multiply-adds, and so has a pass for each half of the lanes.
 * Medians in alternation with two by three rows, which took all lanes at once by ten loads and three that asked for
 * lines (these cost 4 %): 128 activation rows times 256 and 1,024 F16 rows of 4,096 values 87 and 86 % (65 and 64), 64
 * times 254 of them 85 (64), 128 times 24 rows of 16,384 values 71 (64), times 32 of 4,096 76 (68). */
#ifdef __AVX2__
#include "quant/quant_avx2.h"
#define DENSE_ROWS 2
#define DENSE_COLS 3
#define STEP_ROWS  4
#define STEP_COLS  3
#define STEP_ASKS  !__builtin_cpu_is("intel")
#define FEW_STEP   4
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

/* The halves' sums of a, then those of b: i + (i+4) of i + (i+8). */
INLINE __m256 fold(struct lanes a, struct lanes b)
{
    const __m256 s = _mm256_add_ps(a.half[0], a.half[1]), t = _mm256_add_ps(b.half[0], b.half[1]);
    return _mm256_add_ps(_mm256_permute2f128_ps(s, t, 0x20), _mm256_permute2f128_ps(s, t, 0x31));
}

/* The sums of four weight rows. */
INLINE __m128 trees4(int c, struct lanes acc[MAX_ROWS][MAX_COLS])
{
    const __m256 a = fold(acc[0][c], acc[1][c]), b = fold(acc[2][c], acc[3][c]);
    const __m256 s2 = _mm256_add_ps(_mm256_shuffle_ps(a, b, 0x44), _mm256_shuffle_ps(a, b, 0xee));
    const __m256 s1 = _mm256_add_ps(s2, _mm256_movehdup_ps(s2)); /* rows 0 and 2, then 1 and 3, in every second lane */
    return _mm_blend_ps(_mm256_castps256_ps128(s1), _mm_moveldup_ps(_mm256_extractf128_ps(s1, 1)), 0xa);
}

#define DENSE_PANEL
/* Of four weight rows. All old totals are read before the first new one is written: rows may lie 4 KiB apart, and a
 * load waits for a store whose address ends alike. */
INLINE void totals_add(int R, int C, struct lanes acc[MAX_ROWS][MAX_COLS], const struct totals *t)
{
    const __m128i some = _mm_cmpgt_epi32(_mm_set1_epi32(t->rows), _mm_setr_epi32(0, 1, 2, 3));
    __m128 total[MAX_COLS];
    UNROLL for (int c = 0; c < C; c++) total[c] =
        t->begin ? _mm_setzero_ps() : _mm_maskload_ps(t->out + (size_t)c * t->stride, some);
    UNROLL for (int c = 0; c < C; c++)
    {
        float *const to = t->out + (size_t)c * t->stride;
        total[c] = _mm_add_ps(total[c], trees4(c, acc));
        if (t->rows >= 4)
            _mm_storeu_ps(to, total[c]);
        else
            _mm_maskstore_ps(to, some, total[c]);
    }
}

/* Eight floats, loaded once, not once per use. */
INLINE __m256 kept(const float *p)
{
    __m256 v = _mm256_loadu_ps(p);
    __asm__("" : "+x"(v));
    return v;
}

/* Half h of sums of n values. ask: for lines of rows in a panel too, or else of the weights. */
INLINE void panel_half(int h, int R, int C, int n, const float *w, const float *const *rows, int step, bool ask,
                       struct lanes acc[MAX_ROWS][MAX_COLS])
{
    const int xs = ask && step != LANES ? C : 0, ws = ask && step == LANES ? R : 0;
    __m256 sum[MAX_ROWS][MAX_COLS], x[MAX_COLS];
    UNROLL for (int r = 0; r < R; r++) UNROLL for (int c = 0; c < C; c++) sum[r][c] = _mm256_setzero_ps();
    for (int i = 0, at = 0; i < n; i += LANES, at += step, w += R * LANES) {
        UNROLL for (int c = 0; c < xs; c++) __builtin_prefetch(rows[c] + at + PANEL_AHEAD * C * LANES, 0, 3);
        UNROLL for (int r = 0; r < ws; r++) __builtin_prefetch(w + r * LANES + PANEL_AHEAD * R * LANES, 0, 3);
        UNROLL for (int c = 0; c < C; c++) x[c] = kept(rows[c] + at + 8 * h);
        UNROLL for (int r = 0; r < R; r++)
        {
            const __m256 a = kept(w + r * LANES + 8 * h);
            UNROLL for (int c = 0; c < C; c++) sum[r][c] = _mm256_fmadd_ps(a, x[c], sum[r][c]);
        }
    }
    UNROLL for (int r = 0; r < R; r++) UNROLL for (int c = 0; c < C; c++) acc[r][c].half[h] = sum[r][c];
}

/* Sums of lanes 0 to 7 come first, and wait in memory: those of all sixteen would not fit the registers. */
INLINE void panel_multiply(int R, int C, int n, const float *w, const float *const *rows, int step, bool ask,
                           struct lanes acc[MAX_ROWS][MAX_COLS])
{
    panel_half(0, R, C, n, w, rows, step, ask, acc);
    __asm__("" : : "r"(acc) : "memory");
    panel_half(1, R, C, n, w, rows, step, false, acc);
}

#include "quant/quant_dense.inc"

QUANT_TILE(tile_f32_avx2, tile, QT_F32)
QUANT_TILE(tile_f16_avx2, tile, QT_F16)
QUANT_TILE(tile_bf16_avx2, tile, QT_BF16)
#endif
