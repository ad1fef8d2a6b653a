/* Activation quantisers with NEON; same bits as quant_act.c. */
#include "quant/quant_internal.h"
#ifdef __aarch64__
#include <arm_neon.h>
#include <float.h>
#include <math.h>
#include "quant/quant_bits.h"

/* Bits of the magnitudes of four values. */
static inline uint32x4_t magnitudes(const float *x)
{
    return vreinterpretq_u32_f32(vabsq_f32(vld1q_f32(x)));
}

/* Bits of the largest magnitude; a NaN counts as larger than infinity. */
static inline uint32_t magnitude_bits(const float *x, int n)
{
    uint32x4_t max = vdupq_n_u32(0);
    for (int i = 0; i < n; i += 4) max = vmaxq_u32(max, magnitudes(x + i));
    return vmaxvq_u32(max);
}

/* Nearest integers of four products. */
static inline int16x4_t codes4(const float *x, float inv)
{
    return vqmovn_s32(vcvtnq_s32_f32(vmulq_n_f32(vld1q_f32(x), inv)));
}

static inline int8x16_t codes16(const float *x, float inv)
{
    const int16x8_t lo = vcombine_s16(codes4(x, inv), codes4(x + 4, inv));
    const int16x8_t hi = vcombine_s16(codes4(x + 8, inv), codes4(x + 12, inv));
    return vcombine_s8(vqmovn_s16(lo), vqmovn_s16(hi));
}

void act_q8_0_neon(const float *x, int64_t n_blocks, int8_t *q, float *d, int32_t *offset)
{
    for (int64_t b = 0; b < n_blocks; b++, x += 32, q += 32) {
        const float max = bits_f32(magnitude_bits(x, 32)), scale = max / 127, inv = 1 / scale;
        if (max <= FLT_MAX && inv <= FLT_MAX) {
            d[b] = scale;
            const int8x16_t lo = codes16(x, inv), hi = codes16(x + 16, inv);
            vst1q_s8(q, lo);
            vst1q_s8(q + 16, hi);
            offset[b] = -128 * (vaddlvq_s8(lo) + vaddlvq_s8(hi));
        } else {
            act_q8_0_scalar(x, 1, q, d + b, offset + b);
        }
    }
}

/* The first value whose magnitude has the given bits; there is one among the 256. */
static inline float first_of_magnitude(const float *x, uint32_t bits)
{
    while (!vmaxvq_u32(vceqq_u32(magnitudes(x), vdupq_n_u32(bits)))) x += 4;
    while ((f32_bits(*x) & 0x7fffffff) != bits) x++;
    return *x;
}

void act_q8_k_neon(const float *x, int64_t n_blocks, int8_t *q, float *d, int16_t *bsums)
{
    for (int64_t b = 0; b < n_blocks; b++, x += 256, q += 256, bsums += 16) {
        const uint32_t max = magnitude_bits(x, 256);
        const float inv = -127 / first_of_magnitude(x, max);
        if (max > 0x7f7fffff || !(fabsf(inv) <= FLT_MAX)) {
            act_q8_k_scalar(x, 1, q, d + b, bsums);
            continue;
        }
        d[b] = 1 / inv;
        for (int i = 0; i < 16; i++) {
            const int8x16_t v = codes16(x + 16 * i, inv);
            vst1q_s8(q + 16 * i, v);
            bsums[i] = vaddlvq_s8(v);
        }
    }
}
#else
void act_q8_0_neon(const float *x, int64_t n_blocks, int8_t *q, float *d, int32_t *offset)
{
    act_q8_0_scalar(x, n_blocks, q, d, offset);
}

void act_q8_k_neon(const float *x, int64_t n_blocks, int8_t *q, float *d, int16_t *bsums)
{
    act_q8_k_scalar(x, n_blocks, q, d, bsums);
}
#endif
