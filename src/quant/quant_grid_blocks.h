/* The types with code books beside IQ2_XXS: where their fields lie, and single elements of a block (spec
 * more-quants 2.3 to 2.5). */
#ifndef QUANT_QUANT_GRID_BLOCKS_H
#define QUANT_QUANT_GRID_BLOCKS_H
#include "quant/quant_blocks.h"

enum { IQ2_XS_BYTES = 74, IQ2_S_BYTES = 82, IQ3_XXS_BYTES = 98, IQ3_S_BYTES = 110, IQ1_S_BYTES = 50, IQ1_M_BYTES = 56 };
/* f16 d first, but in IQ1_M. */
enum { IQ2_XS_CODES = 2, IQ2_XS_SCALES = 66 };
enum { IQ2_S_LOW = 2, IQ2_S_SIGNS = 34, IQ2_S_HIGH = 66, IQ2_S_SCALES = 74 };
enum { IQ3_XXS_INDEX = 2, IQ3_XXS_WORDS = 66 };
enum { IQ3_S_LOW = 2, IQ3_S_HIGH = 66, IQ3_S_SIGNS = 74, IQ3_S_SCALES = 106 };
enum { IQ1_S_LOW = 2, IQ1_S_HIGH = 34 };
enum { IQ1_M_LOW = 0, IQ1_M_HIGH = 32, IQ1_M_SCALES = 48 };

/* Magnitudes of groups of eight or four values, one byte each, and the same entries packed. */
extern const uint64_t iq2xs_grid[512], iq2s_grid[1024];
extern const uint32_t iq3xxs_grid[256], iq3s_grid[512];
/* As iq2xxs_nibbles. */
extern const uint32_t iq2xs_nibbles[512], iq2s_nibbles[1024];
/* Bytes 0 and 1 of the packed codes; of IQ3 the six bits of values 0 and 1, of values 2 and 3, with what happens to
 * follow above. */
extern const uint8_t iq2xs_planes[2][512], iq2s_planes[2][1024], iq3xxs_planes[2][256], iq3s_planes[2][512];
/* IQ1: eight times a value of -1, 0, 1 plus one; packed: two bits, the value plus one. */
extern const uint64_t iq1s_grid[2048];
/* A load of 32 bits from one entry before another has that one in its upper half. */
extern const struct iq1s_book {
    uint16_t before, code[2048];
} iq1s_book;

/* Number k of the scales 2s + 1 in nibbles. */
static inline int odd_scale(const uint8_t *nibbles, int k)
{
    return 2 * (nibbles[k / 2] >> 4 * (k % 2) & 15) + 1;
}

/* Byte i of an entry with the sign of bit i%8 of signs. */
static inline int signed_byte(uint64_t entry, int i, int signs, int bit)
{
    const int v = (int)(entry >> 8 * i & 255);
    return signs >> bit & 1 ? -v : v;
}

/* Scale k (0..15) and value i of a block. */
static inline int iq2_xs_scale(const uint8_t *b, int k)
{
    return odd_scale(b + IQ2_XS_SCALES, k);
}

static inline int iq2_xs_value(const uint8_t *b, int i)
{
    const uint32_t v = load_u16(b + IQ2_XS_CODES + 2 * (i / 8));
    return signed_byte(iq2xs_grid[v & 511], i % 8, iq2_xxs_signs(v >> 9), i % 8);
}

static inline int iq2_s_index(const uint8_t *b, int g)
{
    return b[IQ2_S_LOW + g] | (b[IQ2_S_HIGH + g / 4] >> 2 * (g % 4) & 3) << 8;
}

static inline int iq2_s_scale(const uint8_t *b, int k)
{
    return odd_scale(b + IQ2_S_SCALES, k);
}

static inline int iq2_s_value(const uint8_t *b, int i)
{
    return signed_byte(iq2s_grid[iq2_s_index(b, i / 8)], i % 8, b[IQ2_S_SIGNS + i / 8], i % 8);
}

/* Scale k (0..7) and value i of a block. */
static inline int iq3_xxs_scale(const uint8_t *b, int k)
{
    return 2 * (int)(load_u32(b + IQ3_XXS_WORDS + 4 * k) >> 28) + 1;
}

static inline int iq3_xxs_value(const uint8_t *b, int i)
{
    const uint32_t word = load_u32(b + IQ3_XXS_WORDS + 4 * (i / 32));
    const int signs = iq2_xxs_signs(word >> 7 * (i % 32 / 8) & 127);
    return signed_byte(iq3xxs_grid[b[IQ3_XXS_INDEX + i / 4]], i % 4, signs, i % 8);
}

static inline int iq3_s_index(const uint8_t *b, int t)
{
    return b[IQ3_S_LOW + t] | (b[IQ3_S_HIGH + t / 8] >> t % 8 & 1) << 8;
}

static inline int iq3_s_scale(const uint8_t *b, int k)
{
    return odd_scale(b + IQ3_S_SCALES, k);
}

static inline int iq3_s_value(const uint8_t *b, int i)
{
    return signed_byte(iq3s_grid[iq3_s_index(b, i / 4)], i % 4, b[IQ3_S_SIGNS + i / 8], i % 8);
}

/* Group g (0..31) of 8 values, value i, scale k (0..7): values are eighths, 8 g + delta. */
static inline int iq1_s_index(const uint8_t *b, int g)
{
    return b[IQ1_S_LOW + g] | (load_u16(b + IQ1_S_HIGH + 2 * (g / 4)) >> 3 * (g % 4) & 7) << 8;
}

static inline int iq1_s_scale(const uint8_t *b, int k)
{
    return 2 * (load_u16(b + IQ1_S_HIGH + 2 * k) >> 12 & 7) + 1;
}

static inline int iq1_s_delta(const uint8_t *b, int k)
{
    return load_u16(b + IQ1_S_HIGH + 2 * k) & 0x8000 ? -1 : 1;
}

static inline int iq1_s_value(const uint8_t *b, int i)
{
    return (int)(iq1s_grid[iq1_s_index(b, i / 8)] >> 8 * (i % 8) & 255) - 8 + iq1_s_delta(b, i / 32);
}

/* The same of IQ1_M, whose scales cover 16 values; its d is put together from four bits of each scale word. */
static inline int iq1_m_high(const uint8_t *b, int g)
{
    return b[IQ1_M_HIGH + g / 2] >> 4 * (g % 2) & 15;
}

static inline int iq1_m_index(const uint8_t *b, int g)
{
    return b[IQ1_M_LOW + g] | (iq1_m_high(b, g) & 7) << 8;
}

static inline int iq1_m_scale(const uint8_t *b, int k)
{
    return 2 * (load_u16(b + IQ1_M_SCALES + 2 * (k / 4)) >> 3 * (k % 4) & 7) + 1;
}

static inline int iq1_m_value(const uint8_t *b, int i)
{
    return (int)(iq1s_grid[iq1_m_index(b, i / 8)] >> 8 * (i % 8) & 255) - 8 + (iq1_m_high(b, i / 8) & 8 ? -1 : 1);
}

static inline uint16_t iq1_m_d(const uint8_t *b)
{
    const uint8_t *s = b + IQ1_M_SCALES;
    return (uint16_t)(s[1] >> 4 | (s[3] >> 4) << 4 | (s[5] >> 4) << 8 | (s[7] >> 4) << 12);
}

#endif
