/* Vectors of eight floats. With AVX2 an operation is one instruction, without it the compiler splits it; both give the
 * same bits, because every operation is exact IEEE per lane and a fused multiply-add is fused in both. Some operations
 * are written out for NEON, whose vectors have half the width.
 * Only kernel files (cpu_kernels_*.c) include this. */
#ifndef CPU_VEC_H
#define CPU_VEC_H
#include <math.h>
#include <stdint.h>
#include <string.h>
#ifdef __AVX2__
#include <immintrin.h>
#elif defined(CPU_VEC_NEON)
#include <arm_neon.h>
#endif

typedef float v8f __attribute__((vector_size(32)));
typedef int32_t v8i __attribute__((vector_size(32)));
typedef uint8_t v8b __attribute__((vector_size(8)));
typedef uint16_t v8h __attribute__((vector_size(16)));
typedef float v8f_mem __attribute__((vector_size(32), aligned(4), may_alias));
#define V8_INLINE static inline __attribute__((always_inline, unused))

V8_INLINE v8f v8_load(const float *p)
{
    return *(const v8f_mem *)p;
}

V8_INLINE void v8_store(float *p, v8f a)
{
    *(v8f_mem *)p = a;
}

/* Past the caches, to a border of 32 bytes; and what makes such stores visible to other threads. Without AVX2 as
 * v8_store. */
V8_INLINE void v8_store_past(float *p, v8f a)
{
#ifdef __AVX2__
    _mm256_stream_ps(p, (__m256)a);
#else
    v8_store(p, a);
#endif
}

V8_INLINE void v8_past_end(void)
{
#ifdef __AVX2__
    _mm_sfence();
#endif
}

/* The first n (1..8) values; the other lanes are zero. */
V8_INLINE v8f v8_load_n(const float *p, int n)
{
    if (n >= 8) return v8_load(p);
    float t[8] = {0};
    for (int i = 0; i < n; i++) t[i] = p[i];
    return v8_load(t);
}

V8_INLINE void v8_store_n(float *p, v8f a, int n)
{
    if (n >= 8) {
        v8_store(p, a);
        return;
    }
    for (int i = 0; i < n; i++) p[i] = a[i];
}

V8_INLINE v8f v8_set(float x)
{
    return (v8f){x, x, x, x, x, x, x, x};
}

V8_INLINE v8i v8_seti(int32_t x)
{
    return (v8i){x, x, x, x, x, x, x, x};
}

/* Lanes of a where the mask is all ones, of b where it is zero. */
V8_INLINE v8f v8_select(v8i mask, v8f a, v8f b)
{
    return (v8f)((mask & (v8i)a) | (~mask & (v8i)b));
}

/* x < y ? a : b, and x == y ? a : b. */
V8_INLINE v8f v8_less(v8f x, v8f y, v8f a, v8f b)
{
    return v8_select(x < y, a, b);
}

V8_INLINE v8f v8_same(v8f x, v8f y, v8f a, v8f b)
{
    return v8_select(x == y, a, b);
}

/* Added to an integer n below 2^22, it leaves n in the low bits of the sum. */
#define POWER_MAGIC 0x1.8p23f

/* p 2^n, t = n + POWER_MAGIC, n from -126 to 128: in two factors, since 128 has none. */
V8_INLINE v8f v8_times_power(v8f p, v8f t)
{
    const v8i n = (v8i)t - (v8i)v8_set(POWER_MAGIC), n1 = n >> 1, n2 = n - n1;
    return p * (v8f)((n1 + 127) << 23) * (v8f)((n2 + 127) << 23);
}

V8_INLINE v8f v8_abs(v8f a)
{
    return (v8f)((v8i)a & v8_seti(0x7fffffff));
}

/* a > b ? a : b, and a < b ? a : b: b where one is not a number. */
V8_INLINE v8f v8_max(v8f a, v8f b)
{
#ifdef __AVX2__
    return (v8f)_mm256_max_ps((__m256)a, (__m256)b);
#else
    return v8_select(a > b, a, b);
#endif
}

V8_INLINE v8f v8_min(v8f a, v8f b)
{
#ifdef __AVX2__
    return (v8f)_mm256_min_ps((__m256)a, (__m256)b);
#else
    return v8_select(a < b, a, b);
#endif
}

/* Sums that a loop adds to: eight floats that stay in registers. Compilers may keep a vector wider than the processor's
 * in memory. */
#ifdef CPU_VEC_NEON
typedef struct {
    float32x4_t half[2];
} v8r;

V8_INLINE v8r v8r_load(const float *p)
{
    return (v8r){{vld1q_f32(p), vld1q_f32(p + 4)}};
}

V8_INLINE v8r v8r_set(float x)
{
    return (v8r){{vdupq_n_f32(x), vdupq_n_f32(x)}};
}

V8_INLINE v8r v8r_fma(v8r a, v8r b, v8r c)
{
    return (v8r){{vfmaq_f32(c.half[0], a.half[0], b.half[0]), vfmaq_f32(c.half[1], a.half[1], b.half[1])}};
}

#define v8r_fma_at(p, b, c) v8r_fma(v8r_load(p), b, c)

V8_INLINE v8r v8r_of(v8f a)
{
    v8r v;
    memcpy(&v, &a, sizeof v);
    return v;
}

V8_INLINE v8r v8r_add(v8r a, v8r b)
{
    return (v8r){{vaddq_f32(a.half[0], b.half[0]), vaddq_f32(a.half[1], b.half[1])}};
}

V8_INLINE v8r v8r_sub(v8r a, v8r b)
{
    return (v8r){{vsubq_f32(a.half[0], b.half[0]), vsubq_f32(a.half[1], b.half[1])}};
}

V8_INLINE v8r v8r_mul(v8r a, v8r b)
{
    return (v8r){{vmulq_f32(a.half[0], b.half[0]), vmulq_f32(a.half[1], b.half[1])}};
}

V8_INLINE void v8r_store(float *p, v8r a)
{
    vst1q_f32(p, a.half[0]), vst1q_f32(p + 4, a.half[1]);
}

V8_INLINE v8f v8r_value(v8r a)
{
    v8f v;
    memcpy(&v, &a, sizeof v);
    return v;
}

V8_INLINE float32x4_t v8_half(v8f a, int i)
{
    float32x4_t v[2];
    memcpy(v, &a, sizeof a);
    return v[i];
}
#else
typedef v8f v8r;
#define v8r_load(p)         v8_keep(v8_load(p))
#define v8r_of(a)           (a)
#define v8r_set(x)          v8_set(x)
#define v8r_fma(a, b, c)    v8_fma(a, b, c)
#define v8r_fma_at(p, b, c) v8_fma(v8_load(p), b, c) /* p stays in memory, as an operand */
#define v8r_add(a, b)       ((a) + (b))
#define v8r_sub(a, b)       ((a) - (b))
#define v8r_mul(a, b)       ((a) * (b))
#define v8r_store(p, a)     v8_store(p, a)
#define v8r_value(a)        (a)
#endif
#ifdef __AVX2__
#define v8r_store_past(p, a) v8_store_past(p, a)
#else
#define v8r_store_past(p, a) v8r_store(p, a)
#endif

/* a*b + c, rounded once. */
V8_INLINE v8f v8_fma(v8f a, v8f b, v8f c)
{
#ifdef __AVX2__
    return (v8f)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif defined(CPU_VEC_NEON)
    v8r r = {{v8_half(c, 0), v8_half(c, 1)}};
    for (int i = 0; i < 2; i++) r.half[i] = vfmaq_f32(r.half[i], v8_half(a, i), v8_half(b, i));
    return v8r_value(r);
#else
    v8f r;
    for (int i = 0; i < 8; i++) r[i] = fmaf(a[i], b[i], c[i]);
    return r;
#endif
}

/* n (1..8) bytes or 16-bit numbers as integers, the other lanes zero; and integers 0..255 as bytes. */
V8_INLINE v8i v8_from_bytes(const uint8_t *p, int n)
{
    uint8_t t[8] = {0};
    if (n >= 8)
        memcpy(t, p, 8);
    else
        memcpy(t, p, (size_t)n);
#ifdef __AVX2__
    return (v8i)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)t));
#else
    return (v8i){t[0], t[1], t[2], t[3], t[4], t[5], t[6], t[7]};
#endif
}

V8_INLINE v8i v8_from_halves(const uint8_t *p, int n)
{
    uint16_t t[8] = {0};
    if (n >= 8)
        memcpy(t, p, 16);
    else
        memcpy(t, p, 2 * (size_t)n);
#ifdef __AVX2__
    return (v8i)_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)t));
#else
    return (v8i){t[0], t[1], t[2], t[3], t[4], t[5], t[6], t[7]};
#endif
}

/* Floats of halves. */
V8_INLINE v8f v8_half_values(v8i h)
{
    const v8i special = ((h & 0x7c00) == 0x7c00) & 0x7f800000;
    const v8f magnitude = (v8f)((h & 0x7fff) << 13) * v8_set(0x1p112f);
    return (v8f)((v8i)magnitude | special | (h & 0x8000) << 16);
}

/* Eight halves at p as floats. */
V8_INLINE v8f v8_load_halves(const uint8_t *p)
{
#ifdef __F16C__
    return (v8f)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p));
#else
    return v8_half_values(v8_from_halves(p, 8));
#endif
}

V8_INLINE void v8_to_bytes(uint8_t *p, v8i a, int n)
{
    uint8_t t[8];
#ifdef __AVX2__
    const __m128i h = _mm_packus_epi32(_mm256_castsi256_si128((__m256i)a), _mm256_extracti128_si256((__m256i)a, 1));
    _mm_storel_epi64((__m128i *)(void *)t, _mm_packus_epi16(h, h));
#else
    for (int i = 0; i < 8; i++) t[i] = (uint8_t)a[i];
#endif
    if (n >= 8)
        memcpy(p, t, 8);
    else
        memcpy(p, t, (size_t)n);
}

#define v8_shuffle(a, ...) __builtin_shufflevector(a, a, __VA_ARGS__)

/* Keeps a loaded vector in a register: the compiler would load it once per use, and loads are what limits the loop. */
V8_INLINE v8f v8_keep(v8f a)
{
#ifdef __AVX2__
    __asm__("" : "+x"(a));
#endif
    return a;
}

/* Sum of eight lanes by the tree i + (i+4), + (i+2), + (i+1). */
V8_INLINE float v8_sum(v8f a)
{
    const v8f t = a + v8_shuffle(a, 4, 5, 6, 7, 4, 5, 6, 7);
    const v8f u = t + v8_shuffle(t, 2, 3, 2, 3, 2, 3, 2, 3);
    return u[0] + u[1];
}

/* The first step of that tree for two vectors: a's four sums, then b's. */
V8_INLINE v8f v8_fold(v8f a, v8f b)
{
    return __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11) +
           __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
}

/* The others, of s[i] = v8_fold(a[i], a[i+4]); lane i of the result: v8_sum(a[i]). */
V8_INLINE v8f v8_sum8_folded(const v8f s[4])
{
    const v8f p = __builtin_shufflevector(s[0], s[2], 0, 1, 8, 9, 4, 5, 12, 13) +
                  __builtin_shufflevector(s[0], s[2], 2, 3, 10, 11, 6, 7, 14, 15);
    const v8f q = __builtin_shufflevector(s[1], s[3], 0, 1, 8, 9, 4, 5, 12, 13) +
                  __builtin_shufflevector(s[1], s[3], 2, 3, 10, 11, 6, 7, 14, 15);
    /* p: two sums each of a0 a2 | a4 a6; q: of a1 a3 | a5 a7 */
    return __builtin_shufflevector(p, q, 0, 8, 2, 10, 4, 12, 6, 14) +
           __builtin_shufflevector(p, q, 1, 9, 3, 11, 5, 13, 7, 15);
}

/* Lane i of the result: v8_sum(s[i]). */
V8_INLINE v8f v8_sum8(const v8f s[8])
{
#ifdef __AVX2__
    v8f q[4], p[2];
    for (int i = 0; i < 4; i++) /* + (i+4): the halves of s[i] and s[i+4] side by side */
        q[i] = (v8f)_mm256_permute2f128_ps((__m256)s[i], (__m256)s[i + 4], 0x20) +
               (v8f)_mm256_permute2f128_ps((__m256)s[i], (__m256)s[i + 4], 0x31);
    for (int i = 0; i < 2; i++) /* + (i+2): two pairs of q[i] and q[i+2] */
        p[i] = (v8f)_mm256_shuffle_ps((__m256)q[i], (__m256)q[i + 2], 0x44) +
               (v8f)_mm256_shuffle_ps((__m256)q[i], (__m256)q[i + 2], 0xee);
    /* p[0]: lanes of s0 s0 s2 s2 | s4 s4 s6 s6; p[1]: s1 s1 s3 s3 | s5 s5 s7 s7 */
    const v8f even = (v8f)_mm256_shuffle_ps((__m256)p[0], (__m256)p[1], 0x88);
    const v8f odd = (v8f)_mm256_shuffle_ps((__m256)p[0], (__m256)p[1], 0xdd);
    return v8_shuffle(even + odd, 0, 2, 1, 3, 4, 6, 5, 7);
#elif defined(CPU_VEC_NEON)
    v8r r;
    for (int h = 0; h < 2; h++) {
        float32x4_t u[2];
        for (int i = 0; i < 2; i++) { /* + (i+4), then + (i+2) of two vectors side by side */
            const v8f a = s[4 * h + 2 * i], b = s[4 * h + 2 * i + 1];
            const float64x2_t p = vreinterpretq_f64_f32(vaddq_f32(v8_half(a, 0), v8_half(a, 1)));
            const float64x2_t q = vreinterpretq_f64_f32(vaddq_f32(v8_half(b, 0), v8_half(b, 1)));
            u[i] = vaddq_f32(vreinterpretq_f32_f64(vzip1q_f64(p, q)), vreinterpretq_f32_f64(vzip2q_f64(p, q)));
        }
        r.half[h] = vpaddq_f32(u[0], u[1]);
    }
    return v8r_value(r);
#else
    v8f r;
    for (int i = 0; i < 8; i++) r[i] = v8_sum(s[i]);
    return r;
#endif
}

#endif
