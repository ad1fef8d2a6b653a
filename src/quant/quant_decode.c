/* Row decoders, bit-exact (spec gguf-and-quants 2.3 to 2.10): every product and difference is rounded as written there.
 */
#include "quant/quant_blocks.h"
#include "quant/quant_internal.h"

void quant_decode_f32(const void *row, float *out, int64_t k)
{
    memcpy(out, row, (size_t)k * sizeof *out);
}

void quant_decode_f16(const void *row, float *out, int64_t k)
{
    const uint8_t *p = row;
    for (int64_t i = 0; i < k; i++) out[i] = f16_to_f32(load_u16(p + 2 * i));
}

void quant_decode_bf16(const void *row, float *out, int64_t k)
{
    const uint8_t *p = row;
    for (int64_t i = 0; i < k; i++) out[i] = bf16_to_f32(load_u16(p + 2 * i));
}

void quant_decode_i32(const void *row, float *out, int64_t k)
{
    const uint8_t *p = row;
    for (int64_t i = 0; i < k; i++) out[i] = (float)(int32_t)load_u32(p + 4 * i);
}

void quant_decode_q8_0(const void *row, float *out, int64_t k)
{
    const uint8_t *b = row;
    for (; k > 0; k -= 32, b += Q8_0_BYTES, out += 32) {
        const float d = f16_to_f32(load_u16(b));
        for (int i = 0; i < 32; i++) out[i] = (float)(int8_t)b[Q8_0_QS + i] * d;
    }
}

void quant_decode_q4_0(const void *row, float *out, int64_t k)
{
    const uint8_t *b = row;
    for (; k > 0; k -= 32, b += Q4_0_BYTES, out += 32) {
        const float d = f16_to_f32(load_u16(b));
        for (int i = 0; i < 32; i++) out[i] = (float)(nibble32(b + Q4_0_QS, i) - 8) * d;
    }
}

void quant_decode_mxfp4(const void *row, float *out, int64_t k)
{
    const uint8_t *b = row;
    for (; k > 0; k -= 32, b += MXFP4_BYTES, out += 32) {
        const float d = mxfp4_scale(b[0]);
        for (int i = 0; i < 32; i++) out[i] = (float)mxfp4_doubled(nibble32(b + MXFP4_QS, i)) * d;
    }
}

void quant_decode_q2_k(const void *row, float *out, int64_t k)
{
    const uint8_t *b = row;
    for (; k > 0; k -= 256, b += Q2_K_BYTES, out += 256) {
        const float d = f16_to_f32(load_u16(b + Q2_K_D)), dmin = f16_to_f32(load_u16(b + Q2_K_DMIN));
        for (int i = 0; i < 256; i++) {
            const int s = b[Q2_K_SCALES + i / 16];
            out[i] = d * (float)(s & 15) * (float)q2_k_code(b, i) - dmin * (float)(s >> 4);
        }
    }
}

void quant_decode_q4_k(const void *row, float *out, int64_t k)
{
    const uint8_t *b = row;
    for (; k > 0; k -= 256, b += Q4_K_BYTES, out += 256) {
        const float d = f16_to_f32(load_u16(b + Q4_K_D)), dmin = f16_to_f32(load_u16(b + Q4_K_DMIN));
        for (int i = 0; i < 256; i++) {
            const float dj = d * (float)q4_k_scale(b + Q4_K_SCALES, i / 32);
            out[i] = dj * (float)q4_k_code(b + Q4_K_QS, i) - dmin * (float)q4_k_min(b + Q4_K_SCALES, i / 32);
        }
    }
}

void quant_decode_q5_k(const void *row, float *out, int64_t k)
{
    const uint8_t *b = row;
    for (; k > 0; k -= 256, b += Q5_K_BYTES, out += 256) {
        const float d = f16_to_f32(load_u16(b + Q4_K_D)), dmin = f16_to_f32(load_u16(b + Q4_K_DMIN));
        for (int i = 0; i < 256; i++) {
            const float dj = d * (float)q4_k_scale(b + Q4_K_SCALES, i / 32);
            out[i] = dj * (float)q5_k_code(b, i) - dmin * (float)q4_k_min(b + Q4_K_SCALES, i / 32);
        }
    }
}

void quant_decode_q6_k(const void *row, float *out, int64_t k)
{
    const uint8_t *b = row;
    for (; k > 0; k -= 256, b += Q6_K_BYTES, out += 256) {
        const float d = f16_to_f32(load_u16(b + Q6_K_D));
        for (int i = 0; i < 256; i++) out[i] = d * (float)q6_k_scale(b, i) * (float)q6_k_code(b, i);
    }
}

void quant_decode_iq2_xxs(const void *row, float *out, int64_t k)
{
    const uint8_t *b = row;
    for (; k > 0; k -= 256, b += IQ2_XXS_BYTES, out += 256) {
        const float d = f16_to_f32(load_u16(b));
        for (int i = 0; i < 256; i++)
            out[i] = d * (0.5f * (float)iq2_xxs_scale(b, i / 32)) * 0.25f * (float)iq2_xxs_value(b, i);
    }
}
