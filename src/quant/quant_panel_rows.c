/* Panels of activation rows for tiles of products (quant_amx.h): of every block pieces of 32 or 64 codes, one row's
 * beside the other's, sums and scales of every row side by side. */
#include "quant/quant_panel.h"

enum { PIECE = 32, WIDE = 64 /* codes of a row of a tile, of types with blocks of 32 and of 256 */ };

static inline void pack_32(int k, const uint8_t *const *x, int n, int first, int n_blocks, bool sums, uint8_t *to)
{
    const size_t d = (size_t)k, sum = d + (size_t)k / 32 * 8;
    for (size_t b = (size_t)first; b < (size_t)(first + n_blocks); b++) {
        for (int c = 0; c < n; c++, to += PIECE) memcpy(to, x[c] + PIECE * b, PIECE);
        to = put(x, d + 4 * b, n, to);
        if (sums) to = put(x, sum + 4 * b, n, to);
    }
}

void quant_pack_rows_32(int k, const uint8_t *const *x, int n, int first, int n_blocks, uint8_t *panel)
{
    pack_32(k, x, n, first, n_blocks, false, panel);
}

void quant_pack_rows_32_sums(int k, const uint8_t *const *x, int n, int first, int n_blocks, uint8_t *panel)
{
    pack_32(k, x, n, first, n_blocks, true, panel);
}

/* Orders of the values of 32: as they are, every fourth one of sixteen, every eighth one. */
typedef uint8_t v32 __attribute__((vector_size(32)));
static inline void put_piece(enum order order, const uint8_t *x, uint8_t *to)
{
    v32 v;
    memcpy(&v, x, sizeof v);
    if (order == FOURTHS)
        v = __builtin_shufflevector(v, v, 0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15, 16, 20, 24, 28, 17, 21,
                                    25, 29, 18, 22, 26, 30, 19, 23, 27, 31);
    if (order == EIGHTHS)
        v = __builtin_shufflevector(v, v, 0, 8, 16, 24, 1, 9, 17, 25, 2, 10, 18, 26, 3, 11, 19, 27, 4, 12, 20, 28, 5,
                                    13, 21, 29, 6, 14, 22, 30, 7, 15, 23, 31);
    memcpy(to, &v, sizeof v);
}

/* The upper half of a float, which is all of it here. */
static inline void put_bf16(int32_t v, uint8_t *to)
{
    const float f = (float)v;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    const uint16_t half = (uint16_t)(bits >> 16);
    memcpy(to, &half, sizeof half);
}

/* Sums of 32 codes, of 13 bits and more, as BF16 of their upper and lower ones; zeros to a whole row. */
static inline uint8_t *put_sums_32(const uint8_t *const *x, size_t at, int n, uint8_t *to)
{
    for (int c = 0; c < n; c++, to += WIDE) {
        int16_t v[16];
        memcpy(v, x[c] + at, sizeof v);
        memset(to + 32, 0, 32);
        for (int i = 0; i < 8; i++) {
            const int32_t sum = v[2 * i] + v[2 * i + 1], low = sum & 31;
            put_bf16(sum - low, to + 2 * i);
            put_bf16(low, to + 16 + 2 * i);
        }
    }
    return to;
}

/* width: of pieces. */
static inline void pack_256(int k, const uint8_t *const *x, int n, int first, int n_blocks, size_t width,
                            enum order order, bool sums, uint8_t *to)
{
    const size_t d = (size_t)k, bsums = d + (size_t)k / 256 * 4;
    for (size_t b = (size_t)first; b < (size_t)(first + n_blocks); b++) {
        for (size_t i = 0; i < 256; i += width)
            for (int c = 0; c < n; c++)
                for (size_t j = i; j < i + width; j += PIECE, to += PIECE) put_piece(order, x[c] + 256 * b + j, to);
        if (sums) to = put_sums_32(x, bsums + 32 * b, n, to);
        to = put(x, d + 4 * b, n, to);
    }
}

#define PACK_256(name, width, order, sums)                                                                             \
    void name(int k, const uint8_t *const *x, int n, int first, int n_blocks, uint8_t *panel)                          \
    {                                                                                                                  \
        pack_256(k, x, n, first, n_blocks, width, order, sums, panel);                                                 \
    }

PACK_256(quant_pack_rows_steps, PIECE, NEIGHBOURS, false)
PACK_256(quant_pack_rows_256, WIDE, NEIGHBOURS, false)
PACK_256(quant_pack_rows_sums_32, WIDE, NEIGHBOURS, true)
PACK_256(quant_pack_rows_fourths, WIDE, FOURTHS, false)
PACK_256(quant_pack_rows_eighths, WIDE, EIGHTHS, false)

/* Sums of sixteen codes, below 2^11, as 16 times a byte with sign, plus one without. */
static inline uint8_t *put_sums_16(const uint8_t *const *x, size_t at, int n, uint8_t *to)
{
    for (int c = 0; c < n; c++, to += 64) {
        int16_t v[16];
        memcpy(v, x[c] + at, sizeof v);
        memset(to, 0, 32);
        for (int i = 0; i < 16; i++) {
            to[32 + 2 * i] = v[i] & 15;
            to[32 + 2 * i + 1] = (uint8_t)(v[i] >> 4);
        }
    }
    return to;
}

void quant_pack_rows_q2_k(int k, const uint8_t *const *x, int n, int first, int n_blocks, uint8_t *panel)
{
    const size_t d = (size_t)k, bsums = d + (size_t)k / 256 * 4;
    uint8_t *to = panel;
    for (size_t b = (size_t)first; b < (size_t)(first + n_blocks); b++) {
        for (size_t i = 0; i < 256; i += WIDE)
            for (int c = 0; c < n; c++, to += WIDE) memcpy(to, x[c] + 256 * b + i, WIDE);
        to = put_sums_16(x, bsums + 32 * b, n, to);
        to = put(x, d + 4 * b, n, to);
    }
}
