/* What the AVX-512 kernel files share. Included by *_avx512.c only. */
#ifndef QUANT_QUANT_AVX512_H
#define QUANT_QUANT_AVX512_H
#include "quant/quant_avx2.h"

quant_tile_fn tile_f32_avx512, tile_f16_avx512, tile_bf16_avx512, tile_q8_0_avx512, tile_q4_0_avx512, tile_mxfp4_avx512,
    tile_q2_k_avx512, tile_q4_k_avx512, tile_q5_k_avx512, tile_q6_k_avx512, tile_iq2_xxs_avx512, tile_q4_1_avx512,
    tile_q5_0_avx512, tile_q5_1_avx512, tile_iq4_nl_avx512, tile_iq4_xs_avx512, tile_iq2_xs_avx512, tile_iq2_s_avx512,
    tile_iq3_xxs_avx512, tile_iq3_s_avx512, tile_q3_k_avx512, tile_tq1_0_avx512, tile_tq2_0_avx512, tile_iq1_s_avx512,
    tile_iq1_m_avx512, tile_nvfp4_avx512, tile_q1_0_avx512, tile_q2_0_avx512, tile_q2_0_128_avx512,
    tile_q8_0_lying_avx512;

enum { SLAB_ROWS = 16 /* weight rows of a vector */ };

/* Into which caches kernels for few activation rows ask for lines (quant_direct_avx512.h says why). */
enum asking { ASK_SECOND, ASK_BOTH };

/* What this processor is better off with. Of AMD's, Zen 5 alone has VP2INTERSECT. */
INLINE enum asking asking(void)
{
    return __builtin_cpu_is("intel") || __builtin_cpu_supports("avx512vp2intersect") ? ASK_BOTH : ASK_SECOND;
}

/* Whether look-ups in two registers take one operation as those in one do (AMD), not three (Intel). */
INLINE bool looks_up_two(void)
{
    return !__builtin_cpu_is("intel");
}

INLINE __m512i load512(const void *p)
{
    return _mm512_loadu_si512(p);
}

INLINE void store512(void *p, __m512i v)
{
    _mm512_storeu_si512(p, v);
}

/* sum += products of four codes each, in place: compilers copy sums that they could add to. */
INLINE __m512i dp512(__m512i sum, __m512i codes, __m512i x)
{
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(codes), "v"(x));
    return sum;
}

/* Matrices over bits that move n bits of a byte, from bit `from` on, to bit `to`. */
INLINE uint64_t moved(int n, int from, int to)
{
    const uint64_t first = (uint64_t)1 << from << 8 * (7 - to);
    return n > 1 ? first | (uint64_t)2 << from << 8 * (6 - to) : first;
}

/* The same 32 bytes in both halves. */
INLINE __m512i twice256(__m256i v)
{
    return _mm512_broadcast_i64x4(v);
}

INLINE __m512i join256(__m256i low, __m256i high)
{
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

/* Transposes sixteen vectors of sixteen 32-bit values. */
INLINE void transpose16(__m512i v[16])
{
    __m512i a[16], b[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; i += 2) {
        a[i] = _mm512_unpacklo_epi32(v[i], v[i + 1]);
        a[i + 1] = _mm512_unpackhi_epi32(v[i], v[i + 1]);
    }
    /* b[4g + j]: column j of every quarter, rows 4g .. 4g+3 */
#pragma GCC unroll 16
    for (int i = 0; i < 16; i += 4) {
        b[i] = _mm512_unpacklo_epi64(a[i], a[i + 2]);
        b[i + 1] = _mm512_unpackhi_epi64(a[i], a[i + 2]);
        b[i + 2] = _mm512_unpacklo_epi64(a[i + 1], a[i + 3]);
        b[i + 3] = _mm512_unpackhi_epi64(a[i + 1], a[i + 3]);
    }
#pragma GCC unroll 16
    for (int j = 0; j < 4; j++) {
        const __m512i lo0 = _mm512_shuffle_i32x4(b[j], b[4 + j], 0x88);      /* quarters 0, 2 of rows 0..3, 4..7 */
        const __m512i hi0 = _mm512_shuffle_i32x4(b[j], b[4 + j], 0xdd);      /* quarters 1, 3 */
        const __m512i lo1 = _mm512_shuffle_i32x4(b[8 + j], b[12 + j], 0x88); /* rows 8..11, 12..15 */
        const __m512i hi1 = _mm512_shuffle_i32x4(b[8 + j], b[12 + j], 0xdd);
        v[j] = _mm512_shuffle_i32x4(lo0, lo1, 0x88);
        v[4 + j] = _mm512_shuffle_i32x4(hi0, hi1, 0x88);
        v[8 + j] = _mm512_shuffle_i32x4(lo0, lo1, 0xdd);
        v[12 + j] = _mm512_shuffle_i32x4(hi0, hi1, 0xdd);
    }
}

#endif
