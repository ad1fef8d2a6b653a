/* AVX-512 tiles of F32, F16 and BF16 weights (activations ACT_F32): the sixteen striped lanes of an output are one
 * vector (docs/numerics.md, lanes16).
 *
 * Floor: two multiply-adds of sixteen a cycle, 93 thousand million a second on one of two cores of an Intel Xeon (Ice
 * Lake, virtual), where loads of 64 bytes pass at 1.15 a cycle: a step over a panel takes 24 sums of eight weight rows
 * and three activation rows, eleven loads for 24 multiply-adds. Medians in alternation with four by six rows, whose
 * weights were loaded once per use, whose totals went through memory and which asked for lines 12 sixteens ahead: 128
 * activation rows times 256, 512 and 1,024 F16 rows of 4,096 values 77, 79 and 78 % (75, 76, 74); 64 times 24 F16 rows
 * of 16,384 values, still four by six, 58 % (57), 32 times them 52 (51). What keeps it below: widening (with 24 rows a
 * sixth for 32 activation rows), trees at the ends of chunks, lines from the second-level cache.
 *
 * One of two cores of an Intel Xeon (Granite Rapids, virtual; 118 to 124), 128 at a time of 2,048 activation rows, best
 * of six, four times in turn with panels of one step and sums of four rows: 10,240 F16 rows of 320 values 84 (72), 320
 * of 10,240 values 85 to 91 (81 to 90), 512 F32 rows of 2,560 values 81 to 89 (80 to 85).
 *
 * One core of an AMD EPYC (Zen 5, virtual; 117 to 120), with those steps of four by six, medians of 11 rounds: 128
 * activation rows times 256 and 512 F16 rows of 4,096 values 83 %, times 1,024 of them 78 to 83; without asking for
 * lines ahead 76, so there they are asked for. Today's steps have not been measured on it.
 *
 * One activation row: memory. F16 rows of 4,096 values, two threads, GB/s, medians of 15 rounds in turn, twice: nothing
 * asked for 23.7 and 24.6, into the first-level cache 1 KiB ahead 27.3 and 29.6, where plain reading gave 29.1
 * and 30.8. Not tried on other processors, which ask for nothing. */
#ifdef __AVX512VNNI__
#include "quant/quant_avx512.h"
#define DENSE_ROWS 4
#define DENSE_COLS 6
#define STEP_ROWS  8
#define STEP_COLS  3
#define STEP_ASKS  !__builtin_cpu_is("intel")
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

/* Sixteen floats, loaded once, not once per use: loads are what limits a step. */
INLINE __m512 kept(__m512 v)
{
    __asm__("" : "+v"(v));
    return v;
}

/* Sixteen positions of R weight rows and C activation rows; of the fewer ones all vectors wait in registers. */
INLINE void multiply16(enum qtype t, int R, int C, const uint8_t *const *w, const uint8_t *const *x, int at,
                       struct lanes acc[MAX_ROWS][MAX_COLS])
{
    __m512 v[MAX_ROWS], a[MAX_COLS];
    UNROLL for (int r = 0; r < R; r++)
    {
        const uint8_t *const here = w[r] + value_bytes(t) * (size_t)at;
        if (C == 1 && asking() == ASK_BOTH)
            _mm_prefetch((const char *)(const void *)((uintptr_t)here + AHEAD), _MM_HINT_T0);
        if (R <= C) v[r] = kept(widen16(t, here));
    }
    if (R <= C) {
        UNROLL for (int c = 0; c < C; c++)
        {
            a[0] = kept(_mm512_loadu_ps(x[c] + 4 * (size_t)at));
            UNROLL for (int r = 0; r < R; r++) acc[r][c].all = _mm512_fmadd_ps(v[r], a[0], acc[r][c].all);
        }
        return;
    }
    UNROLL for (int c = 0; c < C; c++) a[c] = kept(_mm512_loadu_ps(x[c] + 4 * (size_t)at));
    UNROLL for (int r = 0; r < R; r++)
    {
        v[0] = kept(widen16(t, w[r] + value_bytes(t) * (size_t)at));
        UNROLL for (int c = 0; c < C; c++) acc[r][c].all = _mm512_fmadd_ps(v[0], a[c], acc[r][c].all);
    }
}

INLINE float lane_tree(struct lanes v)
{
    const __m256 s8 = _mm256_add_ps(_mm512_castps512_ps256(v.all), _mm512_extractf32x8_ps(v.all, 1));
    const __m128 s4 = _mm_add_ps(_mm256_castps256_ps128(s8), _mm256_extractf128_ps(s8, 1));
    const __m128 s2 = _mm_add_ps(s4, _mm_movehl_ps(s4, s4));
    return _mm_cvtss_f32(_mm_add_ss(s2, _mm_movehdup_ps(s2)));
}

/* The halves' sums of a, then those of b: i + (i+8). */
INLINE __m512 fold(struct lanes a, struct lanes b)
{
    return _mm512_add_ps(_mm512_shuffle_f32x4(a.all, b.all, 0x44), _mm512_shuffle_f32x4(a.all, b.all, 0xee));
}

/* Quarter i: + (i+4) of row r + i, for one activation row. */
INLINE __m512 fold4(int r, int c, struct lanes acc[MAX_ROWS][MAX_COLS])
{
    const __m512 a = fold(acc[r][c], acc[r + 1][c]), b = fold(acc[r + 2][c], acc[r + 3][c]);
    return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
}

/* The sums of four weight rows. */
INLINE __m128 trees4(int c, struct lanes acc[MAX_ROWS][MAX_COLS])
{
    const __m512 s4 = fold4(0, c, acc), s2 = _mm512_add_ps(s4, _mm512_shuffle_ps(s4, s4, 0xee));
    return _mm512_castps512_ps128(_mm512_maskz_compress_ps(0x1111, _mm512_add_ps(s2, _mm512_movehdup_ps(s2))));
}

/* The sums of eight. */
INLINE __m256 trees8(int c, struct lanes acc[MAX_ROWS][MAX_COLS])
{
    const __m512i evens = _mm512_setr_epi32(0, 4, 8, 12, 2, 6, 10, 14, 0, 0, 0, 0, 0, 0, 0, 0);
    const __m512 a = fold4(0, c, acc), b = fold4(4, c, acc);
    const __m512 s2 = _mm512_add_ps(_mm512_shuffle_ps(a, b, 0x44), _mm512_shuffle_ps(a, b, 0xee));
    return _mm512_castps512_ps256(_mm512_permutexvar_ps(evens, _mm512_add_ps(s2, _mm512_movehdup_ps(s2))));
}

#define DENSE_TREES
INLINE void add_trees(int R, int C, struct lanes acc[MAX_ROWS][MAX_COLS], float total[MAX_COLS][MAX_ROWS])
{
    UNROLL for (int c = 0; c < C; c++)
    {
        if (R == 4)
            _mm_storeu_ps(total[c], _mm_add_ps(_mm_loadu_ps(total[c]), trees4(c, acc)));
        else
            UNROLL for (int r = 0; r < R; r++) total[c][r] += lane_tree(acc[r][c]);
    }
}

/* Without a detour through memory: a load of what two stores have written waits for both. */
INLINE void totals_add(int R, int C, struct lanes acc[MAX_ROWS][MAX_COLS], const struct totals *t)
{
    const __mmask8 some = (__mmask8)(t->rows < R ? (1 << t->rows) - 1 : 0xff);
    UNROLL for (int c = 0; c < C; c++)
    {
        float *const to = t->out + (size_t)c * t->stride;
        if (R == 8) {
            const __m256 old = t->begin ? _mm256_setzero_ps() : _mm256_maskz_loadu_ps(some, to);
            _mm256_mask_storeu_ps(to, some, _mm256_add_ps(old, trees8(c, acc)));
        } else {
            const __m128 old = t->begin ? _mm_setzero_ps() : _mm_maskz_loadu_ps(some, to);
            _mm_mask_storeu_ps(to, some, _mm_add_ps(old, trees4(c, acc)));
        }
    }
}

#include "quant/quant_dense.inc"

QUANT_TILE(tile_f32_avx512, tile, QT_F32)
QUANT_TILE(tile_f16_avx512, tile, QT_F16)
QUANT_TILE(tile_bf16_avx512, tile, QT_BF16)
#endif
