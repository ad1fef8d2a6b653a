/* Conversions between binary32 and the small float formats (spec gguf-and-quants 2.2). All of them work on bits, so
 * they depend on no processor mode. */
#include <math.h>
#include "quant/quant_bits.h"
#include "quant/quant.h"

float f16_to_f32(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000) << 16, e = h >> 10 & 31, m = h & 1023;
    if (e == 0) return bits_f32(sign | f32_bits((float)m * 0x1p-24f));
    if (e == 31) return bits_f32(sign | 0x7f800000 | m << 13);
    return bits_f32(sign | (e + 112) << 23 | m << 13);
}

/* v >> shift, rounded to nearest even. */
static uint32_t shift_round(uint32_t v, int shift)
{
    const uint32_t half = (1u << (shift - 1)) - 1;
    return (v + half + (v >> shift & 1)) >> shift;
}

uint16_t f32_to_f16(float f)
{
    const uint32_t bits = f32_bits(f), a = bits & 0x7fffffff;
    const uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    if (a > 0x7f800000) return sign | 0x7e00;
    if (a >= 0x477ff000) return sign | 0x7c00; /* 65520 and more */
    if (a >= 0x38800000) return sign | (uint16_t)(shift_round(a, 13) - (112u << 10));
    if (a < 0x33000000) return sign; /* below 2^-25 */
    const int shift = 126 - (int)(a >> 23);
    return sign | (uint16_t)shift_round((a & 0x7fffff) | 0x800000, shift);
}

float bf16_to_f32(uint16_t h)
{
    return bits_f32((uint32_t)h << 16);
}

uint16_t f32_to_bf16(float f)
{
    const uint32_t bits = f32_bits(f);
    if ((bits & 0x7fffffff) > 0x7f800000) return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float e4m3_to_f32(uint8_t b)
{
    const uint32_t sign = (uint32_t)(b & 0x80) << 24, e = b >> 3 & 15, m = b & 7;
    if ((b & 0x7f) == 0x7f) return bits_f32(sign | 0x7fc00000);
    if (e == 0) return bits_f32(sign | f32_bits((float)m * 0x1p-9f));
    return bits_f32(sign | (e + 120) << 23 | m << 20);
}

uint8_t f32_to_e4m3(float f)
{
    const uint32_t a = f32_bits(f) & 0x7fffffff;
    const uint8_t sign = f < 0 ? 0x80 : 0;
    if (a > 0x7f800000) return 0x7f;
    if (a >= 0x43e00000) return sign | 0x7e; /* 448 */
    if (a >= 0x3c800000) return sign | (uint8_t)(shift_round(a, 20) - (120u << 3));
    /* Subnormal codes: multiples of 2^-9; adding 1.5 * 2^14 leaves the rounded multiple in the low bits. */
    return sign | (uint8_t)(f32_bits(bits_f32(a) + 0x1.8p14f) & 15);
}

float e8m0_to_f32(uint8_t b)
{
    return bits_f32(b ? (uint32_t)b << 23 : 0x00400000);
}

static const float e2m1_values[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};

float e2m1_to_f32(uint8_t n)
{
    const float v = e2m1_values[n & 7];
    return (n & 8) && v != 0 ? -v : v;
}

uint8_t f32_to_e2m1(float f)
{
    /* Middles between neighbours: a tie goes up exactly where the upper code is even. */
    const float a = fabsf(f);
    const uint8_t code =
        (uint8_t)((a > 0.25f) + (a >= 0.75f) + (a > 1.25f) + (a >= 1.75f) + (a > 2.5f) + (a >= 3.5f) + (a > 5));
    return f < 0 ? code | 8 : code;
}
