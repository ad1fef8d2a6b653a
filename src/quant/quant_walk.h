/* What the vector kernel files of every processor share: how a tile finds its rows. */
#ifndef QUANT_QUANT_WALK_H
#define QUANT_QUANT_WALK_H
#include "quant/quant_internal.h"

#define INLINE static inline __attribute__((always_inline, unused))
#ifdef __clang__
#define UNROLL       _Pragma("clang loop unroll(full)")
#define UNROLL_16    _Pragma("clang loop unroll(full)")
#define UNROLL_TWICE _Pragma("clang loop unroll_count(2)")
#else
#define UNROLL       _Pragma("GCC unroll 8")
#define UNROLL_16    _Pragma("GCC unroll 16")
#define UNROLL_TWICE _Pragma("GCC unroll 2")
#endif

enum {
    ROWS = 8,      /* weight rows of a tile step */
    COLS = 4,      /* activation rows that share one pass over a slab */
    COL_CHUNK = 64 /* activation rows per unpacking of a slab */
};

/* n pointers to rows first.. of a matrix; beyond the last row the last one is repeated. */
INLINE void row_pointers(const void *base, size_t stride, int first, int n_rows, int n, const uint8_t **p)
{
    UNROLL for (int i = 0; i < n; i++)
    {
        const int r = first + i < n_rows ? first + i : n_rows - 1;
        p[i] = (const uint8_t *)base + (size_t)r * stride;
    }
}

/* A step over n weight rows takes one from each of n streams. Stream i has the rows i*steps, i*steps + 1 ..., so that
 * it runs on through memory from step to step: streams that end with every row come to half the speed, because the
 * processor foresees only long ones. */
INLINE int stream_steps(int n_rows, int n)
{
    return (n_rows + n - 1) / n;
}

/* The rows of a step; beyond the last row the last one is repeated. */
INLINE void stream_pointers(const void *base, size_t stride, int step, int n_rows, int n, const uint8_t **p)
{
    const int steps = stream_steps(n_rows, n);
    UNROLL for (int i = 0; i < n; i++)
    {
        const int r = step + i * steps < n_rows ? step + i * steps : n_rows - 1;
        p[i] = (const uint8_t *)base + (size_t)r * stride;
    }
}

/* Fields of activation rows of whole blocks, as act_d, act_offset, act_sum and act_bsums give them, without a call. */
INLINE const float *row_d(const uint8_t *x, int k)
{
    return (const float *)(const void *)(x + k);
}

INLINE const int32_t *row_offset(const uint8_t *x, int k)
{
    return (const int32_t *)(const void *)(x + k + k / 32 * 4);
}

INLINE const float *row_sum(const uint8_t *x, int k)
{
    return (const float *)(const void *)(x + k + k / 32 * 8);
}

INLINE const int16_t *row_bsums(const uint8_t *x, int k)
{
    return (const int16_t *)(const void *)(x + k + k / 256 * 4);
}

#endif
