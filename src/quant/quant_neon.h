/* What the NEON kernel files share. Included by the bodies of *_neon.c only; three sets are compiled from them, for
 * processors with plain NEON, with dot products, and with 8-bit matrix products.
 *
 * All tiles work on eight weight rows at a time, one float lane per row, as the AVX2 ones do. One activation row is
 * multiplied with the blocks as they lie in memory. For more, eight rows are unpacked into a slab, whose vectors hold
 * four codes of four rows, or, for matrix products, eight codes of two rows; sums of activation rows (or of pairs of
 * them) then stay in the lanes of their weight rows. */
#ifndef QUANT_QUANT_NEON_H
#define QUANT_QUANT_NEON_H
#include <arm_neon.h>
#include "quant/quant_bits.h"
#include "quant/quant_traits.h"

/* One float or sum per weight row. */
typedef struct {
    float32x4_t v[2];
} rows_f;
typedef struct {
    int32x4_t v[2];
} rows_i;

#ifdef __ARM_FEATURE_MATMUL_INT8
enum { GROUP = 2, VECS = 4 }; /* activation rows whose sums share vectors, and how many vectors */
#else
enum { GROUP = 1, VECS = 2 };
#endif
enum { GROUPS = COLS / GROUP };
/* Sums of four activation rows. With pairs, lanes of a vector: row 0 column 0, row 0 column 1, row 1 column 0 ... */
typedef struct {
    int32x4_t v[GROUPS][VECS];
} sums;

/* Sixteen products added to four lanes; which lane gets which is left open. Products of -128..127 with -127..127 fit
 * 16 bits in pairs. */
INLINE int32x4_t dot16(int32x4_t acc, int8x16_t a, int8x16_t b)
{
#ifdef __ARM_FEATURE_DOTPROD
    return vdotq_s32(acc, a, b);
#else
    return vpadalq_s16(acc, vmlal_high_s8(vmull_s8(vget_low_s8(a), vget_low_s8(b)), a, b));
#endif
}

#ifndef __ARM_FEATURE_MATMUL_INT8
/* Four codes of each of four rows times four activation codes. */
INLINE int32x4_t dot_rows(int32x4_t acc, int8x16_t w, int8x16_t x)
{
#ifdef __ARM_FEATURE_DOTPROD
    return vdotq_s32(acc, w, x);
#else
    return vpadalq_s16(acc, vpaddq_s16(vmull_s8(vget_low_s8(w), vget_low_s8(x)), vmull_high_s8(w, x)));
#endif
}

INLINE int8x16_t spread32(int8x16_t x, int lane)
{
    const int32x4_t v = vreinterpretq_s32_s8(x);
    return vreinterpretq_s8_s32(lane == 0   ? vdupq_laneq_s32(v, 0)
                                : lane == 1 ? vdupq_laneq_s32(v, 1)
                                : lane == 2 ? vdupq_laneq_s32(v, 2)
                                            : vdupq_laneq_s32(v, 3));
}
#endif

INLINE int8x16_t zip64(int8x16_t a, int8x16_t b, int upper)
{
    const int64x2_t p = vreinterpretq_s64_s8(a), q = vreinterpretq_s64_s8(b);
    return vreinterpretq_s8_s64(upper ? vzip2q_s64(p, q) : vzip1q_s64(p, q));
}

enum { SLAB16 = 16 * ROWS }; /* bytes of sixteen codes of every row in a slab */

/* Puts sixteen codes of every row into a slab. */
INLINE void slab_put(int8_t *to, const int8x16_t v[ROWS])
{
#ifdef __ARM_FEATURE_MATMUL_INT8
    UNROLL for (int j = 0; j < 2; j++) UNROLL for (int p = 0; p < VECS; p++)
        vst1q_s8(to + 16 * (VECS * j + p), zip64(v[2 * p], v[2 * p + 1], j));
#else
    UNROLL for (int h = 0; h < 2; h++)
    {
        int32x4_t a[4];
        UNROLL for (int i = 0; i < 4; i++) a[i] = vreinterpretq_s32_s8(v[4 * h + i]);
        const int8x16_t lo01 = vreinterpretq_s8_s32(vzip1q_s32(a[0], a[1]));
        const int8x16_t hi01 = vreinterpretq_s8_s32(vzip2q_s32(a[0], a[1]));
        const int8x16_t lo23 = vreinterpretq_s8_s32(vzip1q_s32(a[2], a[3]));
        const int8x16_t hi23 = vreinterpretq_s8_s32(vzip2q_s32(a[2], a[3]));
        vst1q_s8(to + 16 * h, zip64(lo01, lo23, 0));
        vst1q_s8(to + 16 * (2 + h), zip64(lo01, lo23, 1));
        vst1q_s8(to + 16 * (4 + h), zip64(hi01, hi23, 0));
        vst1q_s8(to + 16 * (6 + h), zip64(hi01, hi23, 1));
    }
#endif
}

/* A number of every row, laid out like the lanes of sums. */
INLINE void slab_put_row(int32_t to[4 * VECS], int row, int32_t value)
{
#ifdef __ARM_FEATURE_MATMUL_INT8
    to[2 * row] = to[2 * row + 1] = value;
#else
    to[row] = value;
#endif
}

INLINE sums sums_zero(void)
{
    sums s;
    UNROLL for (int g = 0; g < GROUPS; g++) UNROLL for (int i = 0; i < VECS; i++) s.v[g][i] = vdupq_n_s32(0);
    return s;
}

/* Adds sixteen codes of a slab times those at x[c] + at, of the first n groups. */
INLINE void sums_add(sums *s, int n, const int8_t *w, const uint8_t *const x[COLS], size_t at)
{
    UNROLL for (int g = 0; g < n; g++)
    {
#ifdef __ARM_FEATURE_MATMUL_INT8
        const int8x16_t a = vld1q_s8((const int8_t *)x[2 * g] + at), b = vld1q_s8((const int8_t *)x[2 * g + 1] + at);
        UNROLL for (int j = 0; j < 2; j++)
        {
            const int8x16_t pair = zip64(a, b, j);
            UNROLL for (int p = 0; p < VECS; p++) s->v[g][p] =
                vmmlaq_s32(s->v[g][p], vld1q_s8(w + 16 * (VECS * j + p)), pair);
        }
#else
        const int8x16_t a = vld1q_s8((const int8_t *)x[g] + at);
        UNROLL for (int j = 0; j < 4; j++)
        {
            const int8x16_t four = spread32(a, j);
            UNROLL for (int h = 0; h < 2; h++) s->v[g][h] = dot_rows(s->v[g][h], vld1q_s8(w + 16 * (2 * j + h)), four);
        }
#endif
    }
}

/* sum += part * scale, of the first n groups; scale as slab_put_row left it. */
INLINE void sums_scaled(sums *sum, int n, const sums *part, const int32_t scale[4 * VECS])
{
    UNROLL for (int i = 0; i < VECS; i++)
    {
        const int32x4_t v = vld1q_s32(scale + 4 * i);
        UNROLL for (int g = 0; g < n; g++) sum->v[g][i] = vmlaq_s32(sum->v[g][i], part->v[g][i], v);
    }
}

/* Sums of one activation row. */
INLINE rows_i sums_of(const sums *s, int c)
{
#ifdef __ARM_FEATURE_MATMUL_INT8
    const int32x4_t *const v = s->v[c / 2];
    if (c % 2) return (rows_i){{vuzp2q_s32(v[0], v[1]), vuzp2q_s32(v[2], v[3])}};
    return (rows_i){{vuzp1q_s32(v[0], v[1]), vuzp1q_s32(v[2], v[3])}};
#else
    return (rows_i){{s->v[c][0], s->v[c][1]}};
#endif
}

/* Sums of the lanes of eight vectors. */
INLINE rows_i lane_sums(const int32x4_t v[ROWS])
{
    return (rows_i){{vpaddq_s32(vpaddq_s32(v[0], v[1]), vpaddq_s32(v[2], v[3])),
                     vpaddq_s32(vpaddq_s32(v[4], v[5]), vpaddq_s32(v[6], v[7]))}};
}

INLINE rows_f rows_zero(void)
{
    return (rows_f){{vdupq_n_f32(0), vdupq_n_f32(0)}};
}

INLINE rows_f rows_load(const float *p)
{
    return (rows_f){{vld1q_f32(p), vld1q_f32(p + 4)}};
}

INLINE void rows_store(float *p, rows_f a)
{
    vst1q_f32(p, a.v[0]);
    vst1q_f32(p + 4, a.v[1]);
}

INLINE rows_f f16_to_rows(const uint16_t h[ROWS])
{
    const uint16x8_t v = vld1q_u16(h);
    return (rows_f){
        {vcvt_f32_f16(vreinterpret_f16_u16(vget_low_u16(v))), vcvt_f32_f16(vreinterpret_f16_u16(vget_high_u16(v)))}};
}

/* The f16 at the same offset of eight rows. */
INLINE rows_f f16_of_rows(const uint8_t *const row[ROWS], size_t at)
{
    uint16_t h[ROWS];
    UNROLL for (int r = 0; r < ROWS; r++) h[r] = load_u16(row[r] + at);
    return f16_to_rows(h);
}

/* Scales d of the blocks of eight rows. */
INLINE rows_f d_of_rows(enum qtype t, const uint8_t *const row[ROWS], size_t at)
{
    uint16_t h[ROWS];
    UNROLL for (int r = 0; r < ROWS; r++) h[r] = block_d(t, row[r] + at);
    return f16_to_rows(h);
}

/* Sixteen bytes shifted right. */
INLINE uint8x16_t shift_right(uint8x16_t v, int n)
{
    return vshlq_u8(v, vdupq_n_s8((int8_t)-n));
}

/* Asks for the bytes that the next eight rows have at the same place. */
INLINE void prefetch_rows(const uint8_t *const row[ROWS], size_t at, size_t bytes, size_t w_stride)
{
    for (int r = 0; r < ROWS; r++)
        for (size_t i = 0; i < bytes; i += 64)
            __builtin_prefetch((const void *)((uintptr_t)row[r] + ROWS * w_stride + at + i));
}

/* Eight weight rows times one activation row, blocks read where they lie. */
typedef rows_f direct_fn(enum qtype t, int k, const uint8_t *const row[ROWS], size_t w_stride, const uint8_t *x);
/* Eight weight rows times n <= COL_CHUNK activation rows, through slabs; fills acc[n][ROWS]. */
typedef void slab_fn(enum qtype t, int k, const uint8_t *const row[ROWS], const uint8_t *x, size_t x_stride, int n,
                     float acc[COL_CHUNK][ROWS]);

/* Walks over a tile; one activation row alone goes the direct way. */
INLINE void tile_walk(direct_fn *direct, slab_fn *slab, enum qtype t, int k, const void *w, size_t w_stride, int n_rows,
                      const uint8_t *x, size_t x_stride, int n_cols, float *out, size_t out_stride)
{
    for (int r = 0; r < n_rows; r += ROWS) {
        const uint8_t *row[ROWS];
        const size_t bytes = (size_t)(n_rows - r < ROWS ? n_rows - r : ROWS) * sizeof *out;
        row_pointers(w, w_stride, r, n_rows, ROWS, row);
        for (int c = 0; c < n_cols; c += COL_CHUNK) {
            const int n = n_cols - c < COL_CHUNK ? n_cols - c : COL_CHUNK;
            const uint8_t *const xc = x + (size_t)c * x_stride;
            float acc[COL_CHUNK][ROWS];
            if (n_cols > 1)
                slab(t, k, row, xc, x_stride, n, acc);
            else
                rows_store(acc[0], direct(t, k, row, w_stride, xc));
            for (int i = 0; i < n; i++) memcpy(out + (size_t)(c + i) * out_stride + r, acc[i], bytes);
        }
    }
}

#endif
