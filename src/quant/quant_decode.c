/* Row decoders of the types without code books, bit-exact (spec gguf-and-quants 2.3 to 2.10, more-quants 2): every
 * product, sum and difference is rounded as written there. */
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

void quant_decode_q8_1(const void *row, float *out, int64_t k)
{
    const uint8_t *b = row;
    for (; k > 0; k -= 32, b += Q8_1_BYTES, out += 32) {
        const float d = f16_to_f32(load_u16(b));
        for (int i = 0; i < 32; i++) out[i] = (float)(int8_t)b[Q8_1_QS + i] * d;
    }
}

void quant_decode_q4_1(const void *row, float *out, int64_t k)
{
    const uint8_t *b = row;
    for (; k > 0; k -= 32, b += Q4_1_BYTES, out += 32) {
        const float d = f16_to_f32(load_u16(b)), m = f16_to_f32(load_u16(b + Q4_1_M));
        for (int i = 0; i < 32; i++) out[i] = (float)nibble32(b + Q4_1_QS, i) * d + m;
    }
}

void quant_decode_q5_0(const void *row, float *out, int64_t k)
{
    const uint8_t *b = row;
    for (; k > 0; k -= 32, b += Q5_0_BYTES, out += 32) {
        const float d = f16_to_f32(load_u16(b));
        for (int i = 0; i < 32; i++) out[i] = (float)(q5_code(b + Q5_0_QH, b + Q5_0_QS, i) - 16) * d;
    }
}

void quant_decode_q5_1(const void *row, float *out, int64_t k)
{
    const uint8_t *b = row;
    for (; k > 0; k -= 32, b += Q5_1_BYTES, out += 32) {
        const float d = f16_to_f32(load_u16(b)), m = f16_to_f32(load_u16(b + Q5_1_M));
        for (int i = 0; i < 32; i++) out[i] = (float)q5_code(b + Q5_1_QH, b + Q5_1_QS, i) * d + m;
    }
}

void quant_decode_iq4_nl(const void *row, float *out, int64_t k)
{
    const uint8_t *b = row;
    for (; k > 0; k -= 32, b += IQ4_NL_BYTES, out += 32) {
        const float d = f16_to_f32(load_u16(b));
        for (int i = 0; i < 32; i++) out[i] = (float)iq4_levels[nibble32(b + IQ4_NL_QS, i)] * d;
    }
}

void quant_decode_nvfp4(const void *row, float *out, int64_t k)
{
    const uint8_t *b = row;
    for (; k > 0; k -= 64, b += NVFP4_BYTES, out += 64)
        for (int i = 0; i < 64; i++) out[i] = (float)nvfp4_code(b, i) * nvfp4_scale(b[i / 16]);
}

void quant_decode_q1_0(const void *row, float *out, int64_t k)
{
    const uint8_t *b = row;
    for (; k > 0; k -= 128, b += BITS_QS + 16, out += 128) {
        const float d = f16_to_f32(load_u16(b));
        for (int i = 0; i < 128; i++) out[i] = (float)q1_0_code(b, i) * d;
    }
}

static void decode_q2_0(const uint8_t *b, float *out, int64_t k, int block)
{
    for (; k > 0; k -= block, b += BITS_QS + block / 4, out += block) {
        const float d = f16_to_f32(load_u16(b));
        for (int i = 0; i < block; i++) out[i] = (float)q2_0_code(b, i) * d;
    }
}

void quant_decode_q2_0(const void *row, float *out, int64_t k)
{
    decode_q2_0(row, out, k, 64);
}

void quant_decode_q2_0_128(const void *row, float *out, int64_t k)
{
    decode_q2_0(row, out, k, 128);
}

/* 256 codes and eight scales, in either order. */
static void decode_mxfp8(const uint8_t *b, float *out, int64_t k, int codes, int scales)
{
    for (; k > 0; k -= 256, b += MXFP8_BYTES, out += 256)
        for (int i = 0; i < 256; i++) out[i] = e4m3_to_f32(b[codes + i]) * e8m0_to_f32(b[scales + i / 32]);
}

void quant_decode_mxfp8(const void *row, float *out, int64_t k)
{
    decode_mxfp8(row, out, k, 0, 256);
}

void quant_decode_mxfp8_sf(const void *row, float *out, int64_t k)
{
    decode_mxfp8(row, out, k, 8, 0);
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

void quant_decode_q3_k(const void *row, float *out, int64_t k)
{
    const uint8_t *b = row;
    for (; k > 0; k -= 256, b += Q3_K_BYTES, out += 256) {
        const float d = f16_to_f32(load_u16(b + Q3_K_D));
        for (int i = 0; i < 256; i++) out[i] = d * (float)q3_k_scale(b, i / 16) * (float)q3_k_code(b, i);
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
        for (int i = 0; i < 256; i++) out[i] = d * (float)q6_k_scale(b, i / 16) * (float)q6_k_code(b, i);
    }
}

void quant_decode_q8_k(const void *row, float *out, int64_t k)
{
    const uint8_t *b = row;
    for (; k > 0; k -= 256, b += Q8_K_BYTES, out += 256)
        for (int i = 0; i < 256; i++) out[i] = (float)(int8_t)b[Q8_K_QS + i] * bits_f32(load_u32(b));
}

void quant_decode_iq4_xs(const void *row, float *out, int64_t k)
{
    const uint8_t *b = row;
    for (; k > 0; k -= 256, b += IQ4_XS_BYTES, out += 256) {
        const float d = f16_to_f32(load_u16(b));
        for (int i = 0; i < 256; i++) out[i] = d * (float)iq4_xs_scale(b, i / 32) * (float)iq4_xs_code(b, i);
    }
}

void quant_decode_tq1_0(const void *row, float *out, int64_t k)
{
    const uint8_t *b = row;
    for (; k > 0; k -= 256, b += TQ1_0_BYTES, out += 256) {
        const float d = f16_to_f32(load_u16(b + TQ1_0_D));
        for (int i = 0; i < 256; i++) out[i] = (float)tq1_0_code(b, i) * d;
    }
}

void quant_decode_tq2_0(const void *row, float *out, int64_t k)
{
    const uint8_t *b = row;
    for (; k > 0; k -= 256, b += TQ2_0_BYTES, out += 256) {
        const float d = f16_to_f32(load_u16(b + TQ2_0_D));
        for (int i = 0; i < 256; i++) out[i] = (float)tq2_0_code(b, i) * d;
    }
}
