/* Tiles of 8-bit products (AMX). Included by *_amx.c only.
 *
 * Codes lie in slabs as in those of AVX-512, but have their sign, or their scales in them: eight or sixteen groups of
 * four codes of sixteen rows are a tile as they lie. Of panels sixteen activation rows are another one, whose rows have
 * 32 or 64 codes. The tile of their sums is stored, and its rows, of which each is a vector of sixteen weight rows, are
 * scaled and added to chains of floats in the same order as everywhere else.
 *
 * What decides it (one of two cores of an Intel Xeon, Granite Rapids, virtual, cycles): a product of tiles takes 16,
 * whether its rows have 64 codes or 32, also where it adds to the one before it; loading a tile 8, storing one 16. A
 * tile that starts by tilezero delays its product to 53, one that loads zeros does not. Products and stores take one of
 * the two units for vectors: by turns with 32 operations of these a tile takes 43, with 64 and sixteen loads 58. More
 * than one tile of sums, stored one to three products later, is no faster. Slabs have 32 rows: with those of 64, whose
 * scaled codes take 33.5 KiB, panels of an expert's rows and products did not stay in a first-level cache of 48 (Q4_K
 * times 48 activations 300 instead of 416 thousand million multiply-adds a second). */
#ifndef QUANT_QUANT_AMX_H
#define QUANT_QUANT_AMX_H
#include "quant/quant_slab_avx512.h"

enum { TILE_ROWS = 16 /* activation rows of a panel */, HALF = PARTS / 2 /* parts of a slab */ };

/* Tiles, which the compiler wants as numbers: activations, weights; sums are 0 to 3. */
#define CODES   4
#define WEIGHTS 5
/* A compiler (gcc 12) does not know that loading a tile reads memory: no function loads one from what it wrote itself.
 */

/* What a thread does before and after its products: tiles whose rows have 32 codes, or 64. */
void tiles_begin_32(void), tiles_begin_64(void), tiles_end(void);

static const _Alignas(64) uint8_t tile_zeros[64];

/* Loads what is multiplied next, 32 codes of sixteen rows each. This goes before sums are stored: a load waits for
 * stores whose addresses have the same twelve lower bits. */
INLINE void tiles_load(const uint8_t *w, const uint8_t *x)
{
    _tile_loadd(WEIGHTS, w, 64);
    _tile_loadd(CODES, x, 32);
}

/* Starts sums with their products. */
INLINE void sums_start(void)
{
    _tile_loadd(0, tile_zeros, 0);
    _tile_dpbssd(0, CODES, WEIGHTS);
}

/* What is stored of a tile: sixteen sums of each activation row. */
typedef int32_t tile_sums[TILE_ROWS][SLAB_ROWS];

/* Stores tiles 0 and 1, or 2 and 3. */
INLINE void sums_store(bool odd, tile_sums first, tile_sums second)
{
    if (odd) {
        _tile_stored(2, first, 64);
        _tile_stored(3, second, 64);
    } else {
        _tile_stored(0, first, 64);
        _tile_stored(1, second, 64);
    }
}

/* Sums of activation row r. */
INLINE __m512 sums_row(const tile_sums v, int r)
{
    return _mm512_cvtepi32_ps(_mm512_load_si512(v[r]));
}

/* Rows of chains or sums that a panel of n has room for: unrolled loops go through R of them. */
INLINE void rows_load(int R, int n, const float *acc, __m512 v[TILE_ROWS])
{
    UNROLL_16 for (int r = 0; r < R; r++) v[r] = _mm512_maskz_loadu_ps(r < n ? 0xffff : 0, acc + QUANT_SLAB * r);
}

INLINE void rows_store(int R, int n, const __m512 v[TILE_ROWS], float *acc)
{
    UNROLL_16 for (int r = 0; r < R; r++) _mm512_mask_storeu_ps(acc + QUANT_SLAB * r, r < n ? 0xffff : 0, v[r]);
}

/* Floats of n activation rows; those of rows that a panel does not have are zero. */
INLINE const float *row_floats(int n, const uint8_t *x, float rest[TILE_ROWS])
{
    if (n == TILE_ROWS) return (const float *)(const void *)x;
    _mm512_store_ps(rest, _mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), x));
    return rest;
}

/* Defines multiply of a class of types by its pass: pass(class, R, n, n_blocks, slab, panel, acc). */
#define AMX_MULTIPLY(name, pass, class)                                                                                \
    static void name(int n_blocks, const uint8_t *slab, const uint8_t *panel, int n, int piece, float *acc)            \
    {                                                                                                                  \
        if (piece & SLAB_FIRST) acc_start(acc, HALF, n);                                                               \
        if (n == TILE_ROWS)                                                                                            \
            pass(class, 16, 16, n_blocks, slab, panel, acc);                                                           \
        else if (n > 12)                                                                                               \
            pass(class, 16, n, n_blocks, slab, panel, acc);                                                            \
        else if (n > 8)                                                                                                \
            pass(class, 12, n, n_blocks, slab, panel, acc);                                                            \
        else if (n > 4)                                                                                                \
            pass(class, 8, n, n_blocks, slab, panel, acc);                                                             \
        else                                                                                                           \
            pass(class, 4, n, n_blocks, slab, panel, acc);                                                             \
    }

#endif
