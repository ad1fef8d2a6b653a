/* Encoding of rows: argument checks, and the formats that need no search (spec gguf-and-quants 4.2, 4.8). */
#include <math.h>
#include "base/err.h"
#include "quant/quant_blocks.h"
#include "quant/quant_fit.h"
#include "quant/quant_internal.h"

static void encode_f32(const float *x, int64_t n, const float *importance, uint8_t *out)
{
    memcpy(out, x, (size_t)n * sizeof *x);
}

static void encode_f16(const float *x, int64_t n, const float *importance, uint8_t *out)
{
    for (int64_t i = 0; i < n; i++) store_u16(out + 2 * i, f32_to_f16(x[i]));
}

static void encode_bf16(const float *x, int64_t n, const float *importance, uint8_t *out)
{
    for (int64_t i = 0; i < n; i++) store_u16(out + 2 * i, f32_to_bf16(x[i]));
}

/* Value of largest magnitude among 32; the first one counts. */
static float signed_max32(const float *x)
{
    float max = 0;
    for (int i = 0; i < 32; i++)
        if (fabsf(x[i]) > fabsf(max)) max = x[i];
    return max;
}

/* 1/d; 0 where that does not exist or overflows (the stored scale is 0 then, and no code matters). */
static float inverse(float d)
{
    const float inv = d != 0 ? 1 / d : 0;
    return isfinite(inv) ? inv : 0;
}

static void encode_q8_0(const float *x, int64_t n, const float *importance, uint8_t *out)
{
    for (; n > 0; n -= 32, x += 32, out += Q8_0_BYTES) {
        const float d = fabsf(signed_max32(x)) / 127, inv = inverse(d);
        store_u16(out, f32_to_f16(d));
        for (int i = 0; i < 32; i++) out[Q8_0_QS + i] = (uint8_t)(int8_t)roundf(x[i] * inv);
    }
}

static void encode_q4_0(const float *x, int64_t n, const float *importance, uint8_t *out)
{
    for (; n > 0; n -= 32, x += 32, out += Q4_0_BYTES) {
        const float d = signed_max32(x) / -8, inv = inverse(d);
        store_u16(out, f32_to_f16(d));
        for (int i = 0; i < 16; i++) {
            const int lo = fit_clamp((int)(x[i] * inv + 8.5f), 0, 15),
                      hi = fit_clamp((int)(x[i + 16] * inv + 8.5f), 0, 15);
            out[Q4_0_QS + i] = (uint8_t)(lo | hi << 4);
        }
    }
}

static int mxfp4_nearest(float x, float d)
{
    int best = 0;
    for (int n = 1; n < 16; n++)
        if (fabsf((float)mxfp4_doubled(n) * d - x) < fabsf((float)mxfp4_doubled(best) * d - x)) best = n;
    return best;
}

static void encode_mxfp4(const float *x, int64_t n, const float *importance, uint8_t *out)
{
    for (; n > 0; n -= 32, x += 32, out += MXFP4_BYTES) {
        const float max = fabsf(signed_max32(x));
        out[0] = (uint8_t)(max > 0 ? fit_clamp((int)floorf(log2f(max)) - 2 + 127, 0, 254) : 0);
        const float d = mxfp4_scale(out[0]);
        for (int i = 0; i < 16; i++)
            out[MXFP4_QS + i] = (uint8_t)(mxfp4_nearest(x[i], d) | mxfp4_nearest(x[i + 16], d) << 4);
    }
}

static quant_encode_fn *encoder(uint32_t id)
{
    switch (id) {
    case QT_F32:
        return encode_f32;
    case QT_F16:
        return encode_f16;
    case QT_BF16:
        return encode_bf16;
    case QT_Q8_0:
        return encode_q8_0;
    case QT_Q4_0:
        return encode_q4_0;
    case QT_Q4_K:
        return quant_encode_q4_k;
    case QT_Q5_K:
        return quant_encode_q5_k;
    case QT_Q2_K:
        return quant_encode_q2_k;
    case QT_IQ2_XXS:
        return quant_encode_iq2_xxs;
    case QT_MXFP4:
        return encode_mxfp4;
    default:
        return NULL;
    }
}

static bool all_finite(const float *x, int64_t n, float least)
{
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(x[i]) || x[i] < least) return false;
    return true;
}

int quant_encode(uint32_t id, const float *x, int64_t n, const float *importance, void *out)
{
    quant_encode_fn *const encode = encoder(id);
    if (!encode || n < 0 || n % quant_type(id)->block) return ERR_ARG;
    if (id == QT_IQ2_XXS && !importance) return ERR_ARG;
    if (!all_finite(x, n, -INFINITY) || (importance && !all_finite(importance, n, 0))) return ERR_ARG;
    encode(x, n, importance, out);
    return 0;
}
