/* NEON tiles of F32, F16 and BF16 weights (activations ACT_F32): sixteen striped lanes in four vectors per output
 * (docs/numerics.md, lanes16). */
#ifdef __aarch64__
#include <arm_neon.h>
#include "quant/quant_dense.h"

/* Four weights as floats. */
INLINE float32x4_t widen4(enum qtype t, const uint8_t *w)
{
    if (t == QT_F32) return vreinterpretq_f32_u8(vld1q_u8(w));
    const uint16x4_t h = vreinterpret_u16_u8(vld1_u8(w));
    if (t == QT_F16) return vcvt_f32_f16(vreinterpret_f16_u16(h));
    return vreinterpretq_f32_u32(vshll_n_u16(h, 16));
}

/* Sixteen weights to `to`. */
INLINE void widen_store(enum qtype t, const uint8_t *w, float *to)
{
    UNROLL for (int i = 0; i < 16; i += 4) vst1q_f32(to + i, widen4(t, w + value_bytes(t) * (size_t)i));
}

struct lanes {
    float32x4_t quarter[4];
};

INLINE struct lanes lanes_zero(void)
{
    return (struct lanes){{vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0)}};
}

/* Sixteen positions of R weight rows and C activation rows. */
INLINE void multiply16(enum qtype t, int R, int C, const uint8_t *const *w, const uint8_t *const *x, int at,
                       struct lanes acc[MAX_ROWS][MAX_COLS])
{
    UNROLL for (int i = 0; i < 4; i++)
    {
        const size_t first = (size_t)(at + 4 * i);
        float32x4_t v[MAX_ROWS];
        UNROLL for (int r = 0; r < R; r++) v[r] = widen4(t, w[r] + value_bytes(t) * first);
        UNROLL for (int c = 0; c < C; c++)
        {
            const float32x4_t a = vreinterpretq_f32_u8(vld1q_u8(x[c] + 4 * first));
            UNROLL for (int r = 0; r < R; r++) acc[r][c].quarter[i] = vfmaq_f32(acc[r][c].quarter[i], v[r], a);
        }
    }
}

INLINE float lane_tree(struct lanes v)
{
    const float32x4_t s8[2] = {vaddq_f32(v.quarter[0], v.quarter[2]), vaddq_f32(v.quarter[1], v.quarter[3])};
    const float32x4_t s4 = vaddq_f32(s8[0], s8[1]);
    const float32x2_t s2 = vadd_f32(vget_low_f32(s4), vget_high_f32(s4));
    return vget_lane_f32(s2, 0) + vget_lane_f32(s2, 1);
}

#include "quant/quant_dense.inc"

QUANT_TILE(tile_f32_neon, tile, QT_F32)
QUANT_TILE(tile_f16_neon, tile, QT_F16)
QUANT_TILE(tile_bf16_neon, tile, QT_BF16)
#endif
