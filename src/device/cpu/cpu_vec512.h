/* Vectors of sixteen floats and sums of products with them, for the AVX-512 kernel set; included by cpu_kernels.inc
 * there. The orders are those of the functions of eight that they stand for.
 *
 * Floor: two multiply-adds of sixteen a cycle on one of two cores of an Intel Xeon (Ice Lake, virtual), 93 thousand
 * million a second, where loads of 64 bytes pass at 1.15 a cycle: 24 sums take eleven (heads times values) and ten
 * (heads times rows) loads a step. 64 heads with 128 and 384 rows of 512 values, medians of 201 rounds in alternation
 * with sixteen sums, which took ten and eight: sums 84 and 82 % (70 and 69), scores 84 and 83 (78 and 80), of which
 * trees take 8. There sixteen values at a time of what is computed value by value, microseconds in a second-level cache
 * and with eight: exponentials of 64 heads times 128 rows 3.4 (6.6), 2,048 values of swiglu 1.2 (2.3), four streams of
 * 4,096 values expanded 4.1 (10.5), summed 0.8 (3.2); a dot of 16,384 values with four chunks at a time 0.8 (1.3).
 *
 * Others, with sixteen sums:
 *
 * Floor: a multiply-add of sixteen a cycle, 59 thousand million a second on one core of an AMD EPYC (Zen 4, 3.7 GHz).
 * There sums of 2,048 tokens of Flash's heads (64 of 512 values) run at 53 (profile of ds4-bench), and so did scores
 * with two heads and eight rows at a time. On one core of an Intel Xeon (Emerald Rapids, virtual; two a cycle, 83 to
 * 89) sums reach 60 to 98 %, as other work on the machine leaves it; in the same runs scores, which end with a tree
 * each, reach 76 to 86 % as much as sums by fours (three runs) and 74 to 81 % by two and eight (nine runs).
 *
 * One core of an AMD EPYC (Zen 5, virtual; two a cycle, 117): 64 heads with 192 and 640 rows of 512 values, medians and
 * best tenths of 21 rounds in alternation: sums 91 and 96, 78 and 89 %; scores 78 and 85, 73 and 80 % (sums that began
 * as an array in memory 70 and 80, 67 and 72; asking for the next rows' lines gained nothing). */
#ifndef CPU_VEC512_H
#define CPU_VEC512_H
#include "device/cpu/cpu_vec.h"

/* Loaded once, not once per use: a cycle has one load of 64 bytes. */
V8_INLINE __m512 v16_load(const float *p)
{
    __m512 v = _mm512_loadu_ps(p);
    __asm__("" : "+v"(v));
    return v;
}

V8_INLINE void v16_store(float *p, __m512 a)
{
    _mm512_storeu_ps(p, a);
}

V8_INLINE void v16_store_past(float *p, __m512 a)
{
    _mm512_stream_ps(p, a);
}

/* The first n (1..16) values; the other lanes are zero. */
V8_INLINE __m512 v16_load_n(const float *p, int n)
{
    return n >= 16 ? _mm512_loadu_ps(p) : _mm512_maskz_loadu_ps((__mmask16)((1 << n) - 1), p);
}

V8_INLINE void v16_store_n(float *p, __m512 a, int n)
{
    if (n >= 16)
        _mm512_storeu_ps(p, a);
    else
        _mm512_mask_storeu_ps(p, (__mmask16)((1 << n) - 1), a);
}

#define v16_set(x)       _mm512_set1_ps(x)
#define v16_fma(a, b, c) _mm512_fmadd_ps(a, b, c)
#define v16_mul(a, b)    _mm512_mul_ps(a, b)
#define v16_sub(a, b)    _mm512_sub_ps(a, b)
#define v16_max(a, b)    _mm512_max_ps(a, b)
#define v16_min(a, b)    _mm512_min_ps(a, b)
#define v16_abs(a)       _mm512_abs_ps(a)
/* x < y ? a : b, and x == y ? a : b. */
#define v16_less(x, y, a, b) _mm512_mask_blend_ps(_mm512_cmp_ps_mask(x, y, _CMP_LT_OQ), b, a)
#define v16_same(x, y, a, b) _mm512_mask_blend_ps(_mm512_cmp_ps_mask(x, y, _CMP_EQ_OQ), b, a)
/* v8_times_power, whose two factors round at most once. */
#define v16_times_power(p, t) _mm512_scalef_ps(p, (t)-v16_set(POWER_MAGIC))

#define MATH(op)    v16_##op
#define MATH_FLOATS __m512
#include "device/cpu/cpu_math.inc"

/* Lanes i + (i+8) of four whole chunks, side by side: a chain alone would wait for its own sums. */
V8_INLINE void chunk_lanes_4(const float *a, const float *b, v8f s[4])
{
    __m512 sum[4];
#pragma GCC unroll 4
    for (int c = 0; c < 4; c++) sum[c] = _mm512_setzero_ps();
    for (int i = 0; i < CHUNK; i += 16)
#pragma GCC unroll 4
        for (int c = 0; c < 4; c++)
            sum[c] = _mm512_fmadd_ps(v16_load(a + c * CHUNK + i), _mm512_loadu_ps(b + c * CHUNK + i), sum[c]);
#pragma GCC unroll 4
    for (int c = 0; c < 4; c++)
        s[c] = (v8f)_mm256_add_ps(_mm512_castps512_ps256(sum[c]), _mm512_extractf32x8_ps(sum[c], 1));
}

/* The halves' sums of a, then those of b: i + (i+8). */
V8_INLINE __m512 v16_fold(__m512 a, __m512 b)
{
    return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee));
}

/* Of sums s[r] of four rows: + (i+8), + (i+4) of row r in quarter r. */
V8_INLINE __m512 v16_fold4(__m512 s0, __m512 s1, __m512 s2, __m512 s3)
{
    const __m512 a = v16_fold(s0, s1), b = v16_fold(s2, s3);
    return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
}

/* + (i+2) of two such: two lanes of a, then of b in every quarter. */
V8_INLINE __m512 v16_fold8(__m512 a, __m512 b)
{
    const __m512d x = _mm512_castps_pd(a), y = _mm512_castps_pd(b);
    return _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(x, y)), _mm512_castpd_ps(_mm512_unpackhi_pd(x, y)));
}

/* + (i+1) of two such: a lane for each of four. */
V8_INLINE __m512 v16_fold16(__m512 a, __m512 b)
{
    return _mm512_add_ps(_mm512_shuffle_ps(a, b, 0x88), _mm512_shuffle_ps(a, b, 0xdd));
}

/* One chunk of four rows and n (4 or 6) heads, a multiple of 16 values: lane h of quarter r: the product of row r and
 * head h of the first four; *rest, which n = 4 leaves alone: of the other two, before the last fold. */
V8_INLINE __m512 chunk_4(int n, int at, int end, const float *const row[4], const float *const *q, __m512 *rest)
{
    __m512 s[6][4];
#pragma GCC unroll 8
    for (int h = 0; h < n; h++) s[h][0] = s[h][1] = s[h][2] = s[h][3] = _mm512_setzero_ps();
#pragma GCC unroll 2
    for (int i = at; i < end; i += 16) {
        const __m512 r0 = v16_load(row[0] + i), r1 = v16_load(row[1] + i), r2 = v16_load(row[2] + i),
                     r3 = v16_load(row[3] + i);
#pragma GCC unroll 8
        for (int h = 0; h < n; h++) {
            const __m512 x = v16_load(q[h] + i);
            s[h][0] = _mm512_fmadd_ps(x, r0, s[h][0]);
            s[h][1] = _mm512_fmadd_ps(x, r1, s[h][1]);
            s[h][2] = _mm512_fmadd_ps(x, r2, s[h][2]);
            s[h][3] = _mm512_fmadd_ps(x, r3, s[h][3]);
        }
    }
    __m512 f[6];
#pragma GCC unroll 8
    for (int h = 0; h < n; h++) f[h] = v16_fold4(s[h][0], s[h][1], s[h][2], s[h][3]);
    if (n == 6) *rest = v16_fold8(f[4], f[5]);
    return v16_fold16(v16_fold8(f[0], f[1]), v16_fold8(f[2], f[3]));
}

/* Four rows and four heads: lane h of quarter r; width a multiple of 16. */
V8_INLINE __m512 dots_4x4(int width, const float *const row[4], const float *const q[4])
{
    __m512 total = _mm512_setzero_ps();
    for (int at = 0; at < width; at += CHUNK)
        total = _mm512_add_ps(total, chunk_4(4, at, min_int(width, at + CHUNK), row, q, NULL));
    return total;
}

/* Four rows and twelve heads, by six that share a pass over the rows: four at a time in dots[0..2]. */
V8_INLINE void dots_4x12(int width, const float *const row[4], const float *const q[12], __m512 dots[3])
{
    const float *const a[6] = {q[0], q[1], q[2], q[3], q[8], q[9]}, *const b[6] = {q[4], q[5],  q[6],
                                                                                   q[7], q[10], q[11]};
    dots[0] = dots[1] = dots[2] = _mm512_setzero_ps();
    for (int at = 0; at < width; at += CHUNK) {
        const int end = min_int(width, at + CHUNK);
        __m512 rest[2];
        dots[0] = _mm512_add_ps(dots[0], chunk_4(6, at, end, row, a, &rest[0]));
        dots[1] = _mm512_add_ps(dots[1], chunk_4(6, at, end, row, b, &rest[1]));
        dots[2] = _mm512_add_ps(dots[2], v16_fold16(rest[0], rest[1]));
    }
}

/* q[i]: quarter i of a, then of b. */
V8_INLINE void v16_quarters(__m512 a, __m512 b, v8f q[4])
{
#define QUARTER(i)                                                                                                     \
    q[i] = (v8f)_mm256_insertf128_ps(_mm256_castps128_ps256(_mm512_extractf32x4_ps(a, i)),                             \
                                     _mm512_extractf32x4_ps(b, i), 1)
    QUARTER(0), QUARTER(1), QUARTER(2), QUARTER(3);
#undef QUARTER
}

/* Eight heads, n (2 or 3) times sixteen values: acc[h][v..] += the tile's sums, begin: to +0; z: weights of the first
 * head. All old sums are read before the first new one is written: heads lie 4 KiB apart by twos, and a load waits for
 * a store whose address ends alike. ask: for the rows' next 48 values, which lie too far apart to be foreseen: 5 % with
 * 640 rows, more than the second-level cache holds. */
V8_INLINE void sum_8(int n, bool ask, int n_rows, const float *const *row, int v, const float *z, int z_stride,
                     bool begin, float *acc, int width)
{
    __m512 a[8][3], x[3];
#pragma GCC unroll 8
    for (int h = 0; h < 8; h++) a[h][0] = a[h][1] = a[h][2] = _mm512_setzero_ps();
    for (int j = 0; j < n_rows; j++, z += z_stride) {
#pragma GCC unroll 3
        for (int i = 0; i < n; i++) x[i] = v16_load(row[j] + v + 16 * i);
#pragma GCC unroll 3
        for (int i = 0; i < 3 * ask; i++) __builtin_prefetch(row[j] + v + 16 * (n + i));
#pragma GCC unroll 8
        for (int h = 0; h < 8; h++) {
            const __m512 w = _mm512_set1_ps(z[h]);
#pragma GCC unroll 3
            for (int i = 0; i < n; i++) a[h][i] = _mm512_fmadd_ps(w, x[i], a[h][i]);
        }
    }
    float *const to = acc + v;
#pragma GCC unroll 8
    for (int h = 0; h < 8; h++)
#pragma GCC unroll 3
        for (int i = 0; i < n; i++)
            a[h][i] =
                _mm512_add_ps(begin ? _mm512_setzero_ps() : v16_load(to + (size_t)h * (size_t)width + 16 * i), a[h][i]);
#pragma GCC unroll 8
    for (int h = 0; h < 8; h++)
#pragma GCC unroll 3
        for (int i = 0; i < n; i++) v16_store(to + (size_t)h * (size_t)width + 16 * i, a[h][i]);
}

#endif
