/* The inner loops of the cpu device, one table per kernel set. All sets are compiled from one body (cpu_kernels.inc)
 * and give the same bits; orders of summation: docs/numerics.md. Lengths are values, buffers plain floats. */
#ifndef CPU_KERNELS_H
#define CPU_KERNELS_H
#include <math.h>
#include "device/device.h"

enum { CPU_TILE = 64 };        /* rows of a tile of "stripes" */
enum { CPU_PART = 64 };        /* values of a part of put_rows */
enum { CPU_MAX_STREAMS = 64 }; /* hyper-connection streams that hc_expand can take */

/* 1 / root mean square of a row from the sum of its squares (docs/numerics.md, rms_norm). */
static inline float cpu_rms_factor(float squares, int width, float eps)
{
    return 1.0f / sqrtf(squares / (float)width + eps);
}

/* Visible rows of a query in tiles; rows are decoded and padded with zeros to width (a multiple of 16), or, for
 * index_scores, halves as a store has them. */
struct cpu_scores {
    const float *const *row; /* [n_rows]; NULL: halves */
    const uint8_t *halves;   /* rows halves_stride bytes apart, of at most 1,024; NULL: row */
    size_t halves_stride;
    int n_rows, width;
    const float *q; /* heads, q_stride floats apart, padded like the rows */
    int n_heads;
    size_t q_stride;
};

enum { CPU_DELTA_COLUMNS = 64 }; /* most that a strip of delta_rows holds */

/* Rows of a session, one after the other: the first one's values, and how many floats further the next one's lie. */
struct cpu_delta {
    int rows, width, n;
    size_t stride;
    const float *q, *k; /* [width]; q NULL: no output */
    const float *v;     /* [n] */
    float *out;         /* [n] */
    const float *decay, *beta;
    size_t key_step, v_step, out_step, decay_step, beta_step; /* key_step: of q and k */
    float *strip; /* [width][CPU_DELTA_COLUMNS] of the caller, on a 64-byte border */
};

struct cpu_kernels {
    const char *name;
    float (*dot)(int64_t k, const float *a, const float *b); /* lanes16 */
    void (*exp)(int n, const float *x, float *y);
    void (*sigmoid)(int n, const float *x, float *y);
    void (*rms_norm)(int width, float eps, const float *x, const float *weight, float *y);
    /* turn[4i..]: cos, cos, -sin, sin of pair i (inverse: sin negated by the caller). */
    void (*rotate)(int pairs, const float *turn, float *x);
    /* Pairs i and i + pairs; turn: the cosines, then the sines. */
    void (*rotate_halves)(int pairs, const float *turn, float *x);
    void (*hadamard)(int width, float *x);
    void (*encode)(const struct row_format *f, const float *x, uint8_t *row);
    void (*decode)(const struct row_format *f, const uint8_t *row, float *x);
    /* mid = (silu(min(g, clamp)) * clamp(u)) * weight; clamp: INFINITY = none */
    void (*swiglu)(int n, const float *g, const float *u, float clamp, float weight, float *mid);
    void (*add)(int n, const float *x, float *y);                   /* y += x */
    void (*sum)(int n, const float *x, const float *y, float *out); /* out = y + x; out may be either */
    /* y[r*y_stride + p*CPU_PART + i] = x[(p*rows + r)*CPU_PART + i], of the last part n values. past: the caches. */
    void (*put_rows)(int rows, int parts, int n, const float *x, bool past, float *y, size_t y_stride);
    void (*weighted_sum)(int n_rows, const float *weight, const float *x, int width, float *out);
    void (*hc_expand)(int streams, const float *post, const float *comb, const float *y, float *x, int width);
    /* One compressed row before its norm: softmax over rows per channel. */
    void (*pool_window)(int n_rows, const float *const *kv, const float *const *score, int width, float *out);
    /* out[j] = sum over heads of w[h] * max(0, q_h . row_j) */
    void (*index_scores)(const struct cpu_scores *s, const float *w, float *out);
    /* Places of scores above `least`, ascending, first for score[0]; their number. index: room for n + 1. */
    int (*above)(int n, const float *score, float least, int32_t first, int32_t *index);
    /* z[j*z_stride + h] = (q_h . row_j) * scale; max[h] = max(max[h], z) */
    void (*attention_scores)(const struct cpu_scores *s, float scale, float *z, int z_stride, float *max);
    /* One tile, in place: z = exp(z - max); sum[h] += the tile's sum. */
    void (*attention_exp)(int n_rows, int n_heads, float *z, int z_stride, const float *max, float *sum);
    /* One tile: acc[h][v] += sum over j of z[j][h] * row_j[v], begin: to +0 instead of acc; width a multiple of 16, acc
     * rows width apart. */
    void (*attention_sum)(int n_rows, const float *const *row, int width, int n_heads, const float *z, int z_stride,
                          bool begin, float *acc);
    /* y = x * s */
    void (*scale)(int n, const float *x, float s, float *y);
    void (*silu)(int n, float scale, const float *x, float *y);    /* y = silu(scale * x) */
    void (*gate)(int n, const float *x, const float *g, float *y); /* y = x * sigmoid(g) */
    void (*add_scaled)(int n, const float *x, float s, float *y);  /* y += s * x */
    /* y[c] = sum over taps of weight[c*taps + k] * row[k][c], in order; rows that are NULL are zeros; silu of it. */
    void (*conv)(int n, int taps, const float *const *row, const float *weight, bool silu, float *y);
    /* Rows of a delta rule into n columns of a matrix of `width` rows, stride floats apart. Each: to = decay*from, v' =
     * beta*(v - k.to), to += k v'; out = q.to unless q is NULL; the next goes on from there. from may be to. */
    void (*delta_rows)(const struct cpu_delta *d, const float *from, float *to);
};

extern const struct cpu_kernels cpu_kernels_scalar, cpu_kernels_avx2, cpu_kernels_avx512, cpu_kernels_neon;

#endif
