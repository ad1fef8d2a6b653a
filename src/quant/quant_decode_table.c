/* Decoders of types that only tables of rows have here: no products are computed with them (spec gguf-and-quants 2.4).
 * Every product and sum is rounded. */
#include "quant/quant_blocks.h"
#include "quant/quant_internal.h"

/* Number i of a block of 32 nibbles: the low ones first. */
static int nibble(const uint8_t *qs, int i)
{
    return i < 16 ? qs[i] & 15 : qs[i - 16] >> 4;
}

static void decode_q4_1(const void *row, float *out, int64_t k)
{
    const uint8_t *b = row;
    for (; k > 0; k -= 32, b += 20, out += 32) {
        const float d = f16_to_f32(load_u16(b)), m = f16_to_f32(load_u16(b + 2));
        for (int i = 0; i < 32; i++) out[i] = (float)nibble(b + 4, i) * d + m;
    }
}

/* Five bits: nibbles, and the highest bits in 32 bits in front of them. */
static int five_bits(const uint8_t *high, const uint8_t *qs, int i)
{
    return nibble(qs, i) | (int)(load_u32(high) >> i & 1) << 4;
}

static void decode_q5_0(const void *row, float *out, int64_t k)
{
    const uint8_t *b = row;
    for (; k > 0; k -= 32, b += 22, out += 32) {
        const float d = f16_to_f32(load_u16(b));
        for (int i = 0; i < 32; i++) out[i] = (float)(five_bits(b + 2, b + 6, i) - 16) * d;
    }
}

static void decode_q5_1(const void *row, float *out, int64_t k)
{
    const uint8_t *b = row;
    for (; k > 0; k -= 32, b += 24, out += 32) {
        const float d = f16_to_f32(load_u16(b)), m = f16_to_f32(load_u16(b + 2));
        for (int i = 0; i < 32; i++) out[i] = (float)five_bits(b + 4, b + 8, i) * d + m;
    }
}

static void decode_iq4_nl(const void *row, float *out, int64_t k)
{
    static const int8_t level[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
    const uint8_t *b = row;
    for (; k > 0; k -= 32, b += 18, out += 32) {
        const float d = f16_to_f32(load_u16(b));
        for (int i = 0; i < 32; i++) out[i] = (float)level[nibble(b + 2, i)] * d;
    }
}

quant_row_fn *quant_row_decoder(uint32_t id)
{
    const struct quant_type *t = quant_type(id);
    switch (id) {
    case QT_Q4_1:
        return decode_q4_1;
    case QT_Q5_0:
        return decode_q5_0;
    case QT_Q5_1:
        return decode_q5_1;
    case QT_IQ4_NL:
        return decode_iq4_nl;
    default:
        return t ? t->decode : NULL;
    }
}
