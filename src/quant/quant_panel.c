/* Panels of activation rows (quant.h): a quad of codes, a sum or a scale of every row side by side. */
#include "quant/quant_panel.h"

/* Rows of the panels of vector kernels, but for a last one. */
enum { SIX = 6 };

/* Four quads of each of the most rows: those of a quad are 24 bytes. Loops are unrolled, or vectors would lie in
 * memory. */
typedef uint32_t v4u __attribute__((vector_size(16)));
#define PANEL_INLINE static inline __attribute__((always_inline))
PANEL_INLINE uint8_t *put_vectors(const v4u v[6], uint8_t *to)
{
    v4u low[3], high[3];
#pragma GCC unroll 3
    for (int i = 0; i < 3; i++) { /* pairs of quads 0 and 1, of 2 and 3 */
        low[i] = __builtin_shufflevector(v[2 * i], v[2 * i + 1], 0, 4, 1, 5);
        high[i] = __builtin_shufflevector(v[2 * i], v[2 * i + 1], 2, 6, 3, 7);
    }
    const v4u out[6] = {
        __builtin_shufflevector(low[0], low[1], 0, 1, 4, 5),   __builtin_shufflevector(low[2], low[0], 0, 1, 6, 7),
        __builtin_shufflevector(low[1], low[2], 2, 3, 6, 7),   __builtin_shufflevector(high[0], high[1], 0, 1, 4, 5),
        __builtin_shufflevector(high[2], high[0], 0, 1, 6, 7), __builtin_shufflevector(high[1], high[2], 2, 3, 6, 7),
    };
#pragma GCC unroll 6
    for (int i = 0; i < 6; i++) memcpy(to + 16 * i, &out[i], sizeof out[i]);
    return to + sizeof out;
}

/* As put, of four quads of the most rows. */
PANEL_INLINE uint8_t *put_four(const uint8_t *const *x, size_t at, uint8_t *to)
{
    v4u v[6];
#pragma GCC unroll 6
    for (int c = 0; c < 6; c++) memcpy(&v[c], x[c] + at, sizeof v[c]);
    return put_vectors(v, to);
}

/* Asks for the lines of a panel that are written next. Q8_0 of 4,096 rows of 4,096 values, more than caches hold, one
 * core of an AMD EPYC (Zen 5, virtual), medians of 21 in turn: 0.136 ns a value, without 0.182; from and to a
 * second-level cache 0.041 and 0.038. Blocks of 256 gain nothing. */
enum { AHEAD = 1024 };
PANEL_INLINE void ask(const uint8_t *to, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 64) __builtin_prefetch(to + AHEAD + i, 1);
}

/* Bytes of n rows, as quads. */
static inline uint8_t *put_quads(const uint8_t *const *x, size_t at, size_t bytes, int n, uint8_t *to)
{
    for (size_t i = 0; i < bytes && n == SIX; i += 16) to = put_four(x, at + i, to);
    for (size_t i = 0; i < bytes && n < SIX; i += 4) to = put(x, at + i, n, to);
    return to;
}

static inline void pack_32(int k, const uint8_t *const *x, int n, int first, int n_blocks, bool sums, uint8_t *to)
{
    const size_t d = (size_t)k, offset = d + (size_t)k / 32 * 4, sum = offset + (size_t)k / 32 * 4;
    for (size_t b = (size_t)first; b < (size_t)(first + n_blocks); b++) {
        ask(to, (sums ? 44 : 40) * (size_t)n);
        to = put_quads(x, 32 * b, 32, n, to);
        to = put(x, offset + 4 * b, n, to);
        to = put(x, d + 4 * b, n, to);
        if (sums) to = put(x, sum + 4 * b, n, to);
    }
}

void quant_pack_32(int k, const uint8_t *const *x, int n, int first, int n_blocks, uint8_t *panel)
{
    if (n == SIX)
        pack_32(k, x, SIX, first, n_blocks, false, panel);
    else if (n == 4)
        pack_32(k, x, 4, first, n_blocks, false, panel);
    else
        pack_32(k, x, n, first, n_blocks, false, panel);
}

void quant_pack_32_sums(int k, const uint8_t *const *x, int n, int first, int n_blocks, uint8_t *panel)
{
    if (n == SIX)
        pack_32(k, x, SIX, first, n_blocks, true, panel);
    else if (n == 4)
        pack_32(k, x, 4, first, n_blocks, true, panel);
    else
        pack_32(k, x, n, first, n_blocks, true, panel);
}

void quant_pack_nvfp4(int k, const uint8_t *const *x, int n, int first, int n_blocks, uint8_t *to)
{
    const size_t d = (size_t)k;
    for (size_t b = (size_t)first; b < (size_t)(first + n_blocks); b++) {
        to = put_quads(x, 64 * b, 64, n, to);
        for (size_t j = 0; j < 4; j++)
            for (int c = 0; c < n; c++, to += 4) {
                const int8_t *const q = (const int8_t *)x[c] + 64 * b + 16 * j;
                int32_t sum = 0;
                for (int i = 0; i < 16; i++) sum -= NVFP4_OFFSET * q[i];
                memcpy(to, &sum, 4);
            }
        for (size_t j = 0; j < 2; j++) to = put(x, d + 4 * (2 * b + j), n, to);
    }
}

/* Minus `high` times the sums of `each` groups of 16 of a block. */
static inline uint8_t *put_high(const uint8_t *const *x, size_t at, int n, int high, int each, uint8_t *to)
{
    for (int i = 0; i < 16; i += each)
        for (int c = 0; c < n; c++, to += 4) {
            int32_t sum = 0;
            for (int g = i; g < i + each; g++) {
                int16_t v;
                memcpy(&v, x[c] + at + 2 * (size_t)g, sizeof v);
                sum -= high * v;
            }
            memcpy(to, &sum, 4);
        }
    return to;
}

/* Sums of 32 values of a block, of 16-bit sums of 16, in pairs. */
static inline uint8_t *put_sums_32(const uint8_t *const *x, size_t at, int n, uint8_t *to)
{
    for (size_t i = 0; i < 4; i++)
        for (int c = 0; c < n; c++, to += 4) {
            int16_t v[4];
            memcpy(v, x[c] + at + 8 * i, sizeof v);
            const int16_t sum[2] = {(int16_t)(v[0] + v[1]), (int16_t)(v[2] + v[3])};
            memcpy(to, sum, sizeof sum);
        }
    return to;
}

/* Minus 32 times the sums of eight codes. */
static inline uint8_t *put_high_8(const uint8_t *const *x, size_t at, int n, uint8_t *to)
{
    for (size_t i = 0; i < 32; i++)
        for (int c = 0; c < n; c++, to += 4) {
            const int8_t *const q = (const int8_t *)x[c] + at + 8 * i;
            int32_t sum = 0;
            for (int j = 0; j < 8; j++) sum -= Q6_OFFSET * q[j];
            memcpy(to, &sum, sizeof sum);
        }
    return to;
}

/* Bytes of two vectors in turn; low: of their first halves. */
typedef uint8_t v16b __attribute__((vector_size(16)));
PANEL_INLINE v16b zip_bytes(v16b a, v16b b, bool low)
{
    return low ? __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
               : __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}

/* 32 codes of a row as eight quads of every eighth value. */
PANEL_INLINE void eighths(const uint8_t *x, v4u *low, v4u *high)
{
    v16b a, b;
    memcpy(&a, x, sizeof a); /* eighths 0 and 1, 2 and 3 */
    memcpy(&b, x + sizeof a, sizeof b);
    const v16b even = zip_bytes(a, b, true), odd = zip_bytes(a, b, false); /* of 0 and 2, of 1 and 3 */
    *low = (v4u)zip_bytes(even, odd, true);
    *high = (v4u)zip_bytes(even, odd, false);
}

/* The same of n rows. */
PANEL_INLINE uint8_t *put_eighths(const uint8_t *const *x, size_t at, int n, uint8_t *to)
{
    v4u quad[2][SIX];
#pragma GCC unroll 6
    for (int c = 0; c < n; c++) eighths(x[c] + at, &quad[0][c], &quad[1][c]);
    if (n == SIX) return put_vectors(quad[1], put_vectors(quad[0], to));
    for (int j = 0; j < 8; j++)
        for (int c = 0; c < n; c++, to += 4) memcpy(to, (const uint8_t *)&quad[j / 4][c] + 4 * (j % 4), 4);
    return to;
}

/* Rows of four bytes as columns. */
static inline void transpose4(const uint8_t *from, uint32_t to[4])
{
    uint32_t v[4];
    memcpy(v, from, sizeof v);
    const uint32_t even = 0x00ff00ff, low = 0xffff;
    const uint32_t a0 = (v[0] & even) | (v[1] & even) << 8, a1 = (v[0] >> 8 & even) | (v[1] & ~even);
    const uint32_t b0 = (v[2] & even) | (v[3] & even) << 8, b1 = (v[2] >> 8 & even) | (v[3] & ~even);
    to[0] = (a0 & low) | b0 << 16;
    to[1] = (a1 & low) | b1 << 16;
    to[2] = a0 >> 16 | (b0 & ~low);
    to[3] = a1 >> 16 | (b1 & ~low);
}

/* 16 codes of n rows as quads of every fourth value. */
static inline uint8_t *put_fourths(const uint8_t *const *x, size_t at, int n, uint8_t *to)
{
    for (int c = 0; c < n; c++) {
        uint32_t quad[4];
        transpose4(x[c] + at, quad);
        for (int j = 0; j < 4; j++) memcpy(to + 4 * (j * n + c), &quad[j], 4);
    }
    return to + 16 * n;
}

static inline uint8_t *put_codes(const uint8_t *const *x, size_t at, int n, enum order order, uint8_t *to)
{
    if (order == EIGHTHS)
        for (size_t j = 0; j < 8; j++) to = put_eighths(x, at + 32 * j, n, to);
    else if (order == FOURTHS)
        for (size_t j = 0; j < 16; j++) to = put_fourths(x, at + 16 * j, n, to);
    else
        to = put_quads(x, at, 256, n, to);
    return to;
}

/* high 0: pairs of sums; each 0: of eight codes. */
static inline void pack_256(int k, const uint8_t *const *x, int n, int first, int n_blocks, int high, int each,
                            enum order order, uint8_t *to)
{
    const size_t d = (size_t)k, bsums = d + (size_t)k / 256 * 4;
    for (size_t b = (size_t)first; b < (size_t)(first + n_blocks); b++) {
        to = put_codes(x, 256 * b, n, order, to);
        if (high && each)
            to = put_high(x, bsums + 32 * b, n, high, each, to);
        else if (high)
            to = put_high_8(x, 256 * b, n, to);
        else if (each == 2)
            to = put_sums_32(x, bsums + 32 * b, n, to);
        else
            for (size_t i = 0; i < 8; i++) to = put(x, bsums + 32 * b + 4 * i, n, to);
        to = put(x, d + 4 * b, n, to);
    }
}

#define PACK_256(name, high, each, order)                                                                              \
    void name(int k, const uint8_t *const *x, int n, int first, int n_blocks, uint8_t *panel)                          \
    {                                                                                                                  \
        if (n == SIX)                                                                                                  \
            pack_256(k, x, SIX, first, n_blocks, high, each, order, panel);                                            \
        else if (n == 4)                                                                                               \
            pack_256(k, x, 4, first, n_blocks, high, each, order, panel);                                              \
        else                                                                                                           \
            pack_256(k, x, n, first, n_blocks, high, each, order, panel);                                              \
    }

PACK_256(quant_pack_pairs, 0, 1, NEIGHBOURS)
PACK_256(quant_pack_pairs_32, 0, 2, NEIGHBOURS)
PACK_256(quant_pack_high_8, Q6_OFFSET, 0, NEIGHBOURS)
PACK_256(quant_pack_high_32, IQ2_OFFSET, 2, NEIGHBOURS)
PACK_256(quant_pack_iq2_xxs_eighths, IQ2_OFFSET, 2, EIGHTHS)
PACK_256(quant_pack_high_16, Q6_OFFSET, 1, NEIGHBOURS)
PACK_256(quant_pack_q3_k, Q3_OFFSET, 1, NEIGHBOURS)
PACK_256(quant_pack_tq, 1, 2, NEIGHBOURS)
PACK_256(quant_pack_iq2_16, IQ2_OFFSET, 1, NEIGHBOURS)
PACK_256(quant_pack_iq3_xxs, IQ3_XXS_OFFSET, 2, NEIGHBOURS)
PACK_256(quant_pack_iq3_s, IQ3_S_OFFSET, 2, NEIGHBOURS)
PACK_256(quant_pack_iq1_s, IQ1_OFFSET, 2, NEIGHBOURS)
PACK_256(quant_pack_iq1_m, IQ1_OFFSET, 1, NEIGHBOURS)
PACK_256(quant_pack_iq2_16_fourths, IQ2_OFFSET, 1, FOURTHS)
PACK_256(quant_pack_iq3_xxs_fourths, IQ3_XXS_OFFSET, 2, FOURTHS)
PACK_256(quant_pack_iq3_s_fourths, IQ3_S_OFFSET, 2, FOURTHS)
PACK_256(quant_pack_iq1_s_fourths, IQ1_OFFSET, 2, FOURTHS)
PACK_256(quant_pack_iq1_m_fourths, IQ1_OFFSET, 1, FOURTHS)
PACK_256(quant_pack_iq4_xs, 128, 2, NEIGHBOURS)
