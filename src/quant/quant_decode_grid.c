/* Row decoders of the types with code books, bit-exact (spec gguf-and-quants 2.9, more-quants 2.3 to 2.5): every
 * product and sum is rounded as written there. */
#include "quant/quant_grid_blocks.h"
#include "quant/quant_internal.h"

void quant_decode_iq2_xxs(const void *row, float *out, int64_t k)
{
    const uint8_t *b = row;
    for (; k > 0; k -= 256, b += IQ2_XXS_BYTES, out += 256) {
        const float d = f16_to_f32(load_u16(b));
        for (int i = 0; i < 256; i++)
            out[i] = d * (0.5f * (float)iq2_xxs_scale(b, i / 32)) * 0.25f * (float)iq2_xxs_value(b, i);
    }
}

void quant_decode_iq2_xs(const void *row, float *out, int64_t k)
{
    const uint8_t *b = row;
    for (; k > 0; k -= 256, b += IQ2_XS_BYTES, out += 256) {
        const float d = f16_to_f32(load_u16(b));
        for (int i = 0; i < 256; i++)
            out[i] = d * (0.5f * (float)iq2_xs_scale(b, i / 16)) * 0.25f * (float)iq2_xs_value(b, i);
    }
}

void quant_decode_iq2_s(const void *row, float *out, int64_t k)
{
    const uint8_t *b = row;
    for (; k > 0; k -= 256, b += IQ2_S_BYTES, out += 256) {
        const float d = f16_to_f32(load_u16(b));
        for (int i = 0; i < 256; i++)
            out[i] = d * (0.5f * (float)iq2_s_scale(b, i / 16)) * 0.25f * (float)iq2_s_value(b, i);
    }
}

void quant_decode_iq3_xxs(const void *row, float *out, int64_t k)
{
    const uint8_t *b = row;
    for (; k > 0; k -= 256, b += IQ3_XXS_BYTES, out += 256) {
        const float d = f16_to_f32(load_u16(b));
        for (int i = 0; i < 256; i++)
            out[i] = d * (0.5f * (float)iq3_xxs_scale(b, i / 32)) * 0.5f * (float)iq3_xxs_value(b, i);
    }
}

void quant_decode_iq3_s(const void *row, float *out, int64_t k)
{
    const uint8_t *b = row;
    for (; k > 0; k -= 256, b += IQ3_S_BYTES, out += 256) {
        const float d = f16_to_f32(load_u16(b));
        for (int i = 0; i < 256; i++) out[i] = d * (float)iq3_s_scale(b, i / 32) * (float)iq3_s_value(b, i);
    }
}

void quant_decode_iq1_s(const void *row, float *out, int64_t k)
{
    const uint8_t *b = row;
    for (; k > 0; k -= 256, b += IQ1_S_BYTES, out += 256) {
        const float d = f16_to_f32(load_u16(b));
        for (int i = 0; i < 256; i++) out[i] = d * (float)iq1_s_scale(b, i / 32) * ((float)iq1_s_value(b, i) * 0.125f);
    }
}

void quant_decode_iq1_m(const void *row, float *out, int64_t k)
{
    const uint8_t *b = row;
    for (; k > 0; k -= 256, b += IQ1_M_BYTES, out += 256) {
        const float d = f16_to_f32(iq1_m_d(b));
        for (int i = 0; i < 256; i++) out[i] = d * (float)iq1_m_scale(b, i / 16) * ((float)iq1_m_value(b, i) * 0.125f);
    }
}
