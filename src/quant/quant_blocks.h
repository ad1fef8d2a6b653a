/* Where the fields of the block types lie, and single elements of a block (spec gguf-and-quants 2.3 to 2.10). The row
 * decoders and the scalar kernels read blocks through these functions, one value at a time. */
#ifndef QUANT_QUANT_BLOCKS_H
#define QUANT_QUANT_BLOCKS_H
#include "quant/quant.h"
#include "quant/quant_bits.h"

enum {
    Q8_0_BYTES = 34,
    Q8_1_BYTES = 36,
    Q4_0_BYTES = 18,
    Q4_1_BYTES = 20,
    Q5_0_BYTES = 22,
    Q5_1_BYTES = 24,
    IQ4_NL_BYTES = 18,
    MXFP4_BYTES = 17,
    NVFP4_BYTES = 36,
    MXFP8_BYTES = 264,
    Q2_K_BYTES = 84,
    Q3_K_BYTES = 110,
    Q4_K_BYTES = 144,
    Q5_K_BYTES = 176,
    Q6_K_BYTES = 210,
    Q8_K_BYTES = 292,
    IQ4_XS_BYTES = 136,
    TQ1_0_BYTES = 54,
    TQ2_0_BYTES = 66,
    IQ2_XXS_BYTES = 66
};
enum { Q4_1_M = 2, Q4_1_QS = 4, Q5_0_QH = 2, Q5_0_QS = 6, Q5_1_M = 2, Q5_1_QH = 4, Q5_1_QS = 8 };
enum { IQ4_NL_QS = 2, IQ4_XS_HIGH = 2, IQ4_XS_LOW = 4, IQ4_XS_QS = 8 };
enum { Q3_K_HIGH = 0, Q3_K_QS = 32, Q3_K_SCALES = 96, Q3_K_D = 108 };
enum { NVFP4_QS = 4, Q8_1_QS = 4, Q8_K_QS = 4, TQ1_0_HIGH = 48, TQ1_0_D = 52, TQ2_0_D = 64, BITS_QS = 2 };
enum { Q8_0_QS = 2, Q4_0_QS = 2, MXFP4_QS = 1 }; /* f16 d first; MXFP4: exponent byte first */
enum { Q2_K_SCALES = 0, Q2_K_QS = 16, Q2_K_D = 80, Q2_K_DMIN = 82 };
enum { Q4_K_D = 0, Q4_K_DMIN = 2, Q4_K_SCALES = 4, Q4_K_QS = 16 }; /* Q5_K: the same up to the scales */
enum { Q5_K_QH = 16, Q5_K_QS = 48 };
enum { Q6_K_QH = 128, Q6_K_SCALES = 192, Q6_K_D = 208 };
enum { IQ2_XXS_GROUPS = 2 };

/* Code book of IQ2_XXS: byte i of an entry is the magnitude of value i: 8, 25 or 43. */
extern const uint64_t iq2xxs_grid[256];
/* The same entries, two bits per value: 0, 1, 2 for 8, 25, 43; strictly ascending. */
extern const uint16_t iq2xxs_codes[256];
/* Twice these, in nibbles: values i and i + 4 in byte i. */
extern const uint32_t iq2xxs_nibbles[256];
/* A byte of them with values 4, 0, 2, 6 from bit 0 on, and one with values 5, 1, 3, 7. */
extern const uint8_t iq2xxs_even[256], iq2xxs_odd[256];

/* Values of the nibbles of IQ4_NL and IQ4_XS. */
extern const int8_t iq4_levels[16];

/* Twice the values of E2M1, by nibble. */
static inline int mxfp4_doubled(int n)
{
    static const int8_t table[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
    return table[n];
}

/* 2^(e-128), the scale that goes with the doubled values. */
static inline float mxfp4_scale(uint8_t e)
{
    return bits_f32(e < 2 ? 0x00200000u << e : (uint32_t)(e - 1) << 23);
}

/* Nibble i of 32 in 16 bytes: the low ones are values 0..15, the high ones 16..31. */
static inline int nibble32(const uint8_t *qs, int i)
{
    return i < 16 ? qs[i] & 15 : qs[i - 16] >> 4;
}

/* Five bits of 32 values: nibbles, and the highest bits in front of them. */
static inline int q5_code(const uint8_t *high, const uint8_t *qs, int i)
{
    return nibble32(qs, i) | (int)(load_u32(high) >> i & 1) << 4;
}

/* Twice the value i (0..63) of NVFP4. */
static inline int nvfp4_code(const uint8_t *b, int i)
{
    return mxfp4_doubled(b[NVFP4_QS + i / 16 * 8 + i % 8] >> (i & 8 ? 4 : 0) & 15);
}

/* Half the value of an unsigned E4M3 byte; 0x7f gives 0 and bit 7 is ignored, but 0xff gives 240 (spec
 * more-quants 2.7).
 */
static inline float nvfp4_scale(uint8_t b)
{
    const int e = b >> 3 & 15, m = b & 7;
    if (b == 0x7f) return 0;
    return e ? bits_f32((uint32_t)(e + 119) << 23 | (uint32_t)m << 20) : (float)m * 0x1p-10f;
}

/* Number i of two-bit codes that lie one behind the other (Q2_0), and of bits (Q1_0). */
static inline int q2_0_code(const uint8_t *b, int i)
{
    return (b[BITS_QS + i / 4] >> 2 * (i % 4) & 3) - 1;
}

static inline int q1_0_code(const uint8_t *b, int i)
{
    return b[BITS_QS + i / 8] >> i % 8 & 1 ? 1 : -1;
}

/* Two-bit codes of 256 values in 64 bytes: four values 32 apart in a byte. */
static inline int code2_planes(const uint8_t *qs, int i)
{
    return qs[32 * (i / 128) + i % 32] >> 2 * (i % 128 / 32) & 3;
}

static inline int tq2_0_code(const uint8_t *b, int i)
{
    return code2_planes(b, i) - 1;
}

/* Digits of base 3, the first one the most significant: 5 of 32 bytes, 5 of 16, 4 of 4. */
static inline int tq1_0_code(const uint8_t *b, int i)
{
    static const uint8_t power[5] = {1, 3, 9, 27, 81};
    const int byte = i < 160   ? b[i % 32] * power[i / 32]
                     : i < 240 ? b[32 + i % 16] * power[(i - 160) / 16]
                               : b[TQ1_0_HIGH + i % 4] * power[(i - 240) / 4];
    return ((byte & 255) * 3 >> 8) - 1;
}

static inline int q3_k_code(const uint8_t *b, int i)
{
    return (code2_planes(b + Q3_K_QS, i) | (b[Q3_K_HIGH + i % 32] >> i / 32 & 1) << 2) - 4;
}

/* Scale of sub-block k (0..15). */
static inline int q3_k_scale(const uint8_t *b, int k)
{
    const uint8_t *s = b + Q3_K_SCALES;
    const int low = k < 8 ? s[k] & 15 : s[k - 8] >> 4;
    return (low | (s[8 + k % 4] >> 2 * (k / 4) & 3) << 4) - 32;
}

static inline int iq4_xs_code(const uint8_t *b, int i)
{
    return iq4_levels[nibble32(b + IQ4_XS_QS + 16 * (i / 32), i % 32)];
}

/* Scale of sub-block k (0..7). */
static inline int iq4_xs_scale(const uint8_t *b, int k)
{
    const int low = b[IQ4_XS_LOW + k / 2] >> 4 * (k % 2) & 15;
    return (low | (load_u16(b + IQ4_XS_HIGH) >> 2 * k & 3) << 4) - 32;
}

static inline int q2_k_code(const uint8_t *b, int i)
{
    return code2_planes(b + Q2_K_QS, i);
}

/* 6-bit scale and minimum of sub-block j (0..7) from the 12 bytes of Q4_K and Q5_K. */
static inline int q4_k_scale(const uint8_t *s, int j)
{
    return j < 4 ? s[j] & 63 : (s[j + 4] & 15) | s[j - 4] >> 6 << 4;
}

static inline int q4_k_min(const uint8_t *s, int j)
{
    return j < 4 ? s[j + 4] & 63 : s[j + 4] >> 4 | s[j] >> 6 << 4;
}

static inline int q4_k_code(const uint8_t *qs, int i)
{
    return qs[32 * (i / 64) + i % 32] >> 4 * (i / 32 % 2) & 15;
}

static inline int q5_k_code(const uint8_t *b, int i)
{
    return q4_k_code(b + Q5_K_QS, i) | (b[Q5_K_QH + i % 32] >> i / 32 & 1) << 4;
}

static inline int q6_k_code(const uint8_t *b, int i)
{
    const int h = i / 128, p = i % 128 / 32, l = i % 32;
    const int lo = b[64 * h + 32 * (p & 1) + l] >> (p < 2 ? 0 : 4) & 15;
    return (lo | (b[Q6_K_QH + 32 * h + l] >> 2 * p & 3) << 4) - 32;
}

/* Scale of sub-block k (0..15). */
static inline int q6_k_scale(const uint8_t *b, int k)
{
    return (int8_t)b[Q6_K_SCALES + k];
}

/* Group g (0..7) of 32 values: the odd scale 2s + 1. */
static inline int iq2_xxs_scale(const uint8_t *b, int g)
{
    return 2 * (b[IQ2_XXS_GROUPS + 8 * g + 7] >> 4) + 1;
}

/* Sign bits of 8 values from the stored 7: bit 7 makes their number even. */
static inline int iq2_xxs_signs(uint32_t s7)
{
    uint32_t p = s7 ^ s7 >> 4;
    p ^= p >> 2;
    p ^= p >> 1;
    return (int)(s7 | (p & 1) << 7);
}

/* Signed magnitude of value i. */
static inline int iq2_xxs_value(const uint8_t *b, int i)
{
    const uint8_t *group = b + IQ2_XXS_GROUPS + 8 * (i / 32);
    const int r = i % 32 / 8;
    const int v = (int)(iq2xxs_grid[group[r]] >> 8 * (i % 8) & 255);
    return iq2_xxs_signs(load_u32(group + 4) >> 7 * r & 127) >> i % 8 & 1 ? -v : v;
}

#endif
