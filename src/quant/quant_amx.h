/* Tiles of 8-bit and BF16 products (AMX). Included by *_amx.c only.
 *
 * Codes lie in slabs as in those of AVX-512, but have their sign, or their scales in them: eight or sixteen groups of
 * four codes of sixteen rows are a tile as they lie. Of panels sixteen activation rows are another one, whose rows have
 * 32 or 64 codes. The tile of their sums is stored, and its rows, of which each is a vector of sixteen weight rows, are
 * scaled and added to chains of floats in the same order as everywhere else.
 *
 * What decides it (one of two cores of an Intel Xeon, Granite Rapids, virtual, cycles): a product of tiles takes 16,
 * whether its rows have 64 codes or 32, also where it adds to the one before it; loading a tile 8, storing one 16. A
 * tile that starts by tilezero delays its product to 53, one that loads zeros does not. Products and stores take one of
 * the two units for vectors: by turns with 32 operations of these a tile takes 43, with 64 and sixteen loads 58. With
 * blocks of 32 more than one tile of sums, stored one to three products later, is no faster. Slabs have 32 rows: with
 * those of 64, whose scaled codes take 33.5 KiB, panels of an expert's rows and products did not stay in a first-level
 * cache of 48 (Q4_K times 48 activations 300 instead of 416 thousand million multiply-adds a second). */
#ifndef QUANT_QUANT_AMX_H
#define QUANT_QUANT_AMX_H
#include "quant/quant_slab_avx512.h"

enum { TILE_ROWS = 16 /* activation rows of a panel */, HALF = PARTS / 2 /* parts of a slab */ };

/* Tiles, which the compiler wants as numbers: activations, weights; sums are in the others. */
#define CODES   4
#define WEIGHTS 5
enum { TILES = 8 };
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

/* Sums of activation row r. */
INLINE __m512 sums_row(const tile_sums v, int r)
{
    return _mm512_cvtepi32_ps(_mm512_load_si512(v[r]));
}

/* Rows of chains or sums that a panel of n has room for: unrolled loops go through R of them. */
INLINE void rows_load(int R, int n, const float *acc, __m512 *v)
{
    UNROLL_16 for (int r = 0; r < R; r++) v[r] = _mm512_maskz_loadu_ps(r < n ? 0xffff : 0, acc + QUANT_SLAB * r);
}

INLINE void rows_store(int R, int n, const __m512 *v, float *acc)
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

/* Stores tiles 0 and 1, or 2 and 3. */
INLINE void store(bool odd, tile_sums to[2])
{
    if (odd) {
        _tile_stored(2, to[0], 64);
        _tile_stored(3, to[1], 64);
    } else {
        _tile_stored(0, to[0], 64);
        _tile_stored(1, to[1], 64);
    }
}

/* Keeps v between the tile instructions that stand before and after it. */
INLINE __m512 stays(__m512 v)
{
    __asm__ volatile("" : "+v"(v));
    return v;
}

/* Blocks of 256: the sums of sixteen weight rows, stored, and what they are scaled by. */
struct scaling {
    tile_sums *sum; /* 2 or 3 of them */
    _Alignas(64) float rest[TILE_ROWS];
    const float *yd; /* scales of the activation rows */
    __m512 d, dmin;
};

enum { SAME_BITS = 4096 /* bytes between addresses that a load and a store before it are not told apart by */ };

/* Where sums are stored: their addresses end like those of the third quarter of codes, which is loaded when they are
 * scaled already, and unlike those of the second one, which is loaded right after they are stored. room: 2 * SAME_BITS
 * bytes. */
INLINE tile_sums *sums_at(uint8_t *room, const void *third)
{
    const size_t at = ((uintptr_t)third - (uintptr_t)room) % SAME_BITS;
    return (tile_sums *)(void *)(room + at);
}

/* Defines pass(class, R, n, n_blocks, slab, panel, acc) of kernels whose blocks have 256 values, from what they have:
 *   struct part                        a block of sixteen rows: codes of 64 groups of four, scales d and dmin
 *   column(class)                      bytes of a block per activation row, whose scale is last
 *   start(class, odd, n, part, x)      starts the sums of a part and loads its first 64 codes
 *   quarter(odd, i, n, part, x)        their products with codes 64i.., which are loaded; loads the next ones
 *   store(odd, sums)                   stores the first two tiles of sums
 *   store_mins(class, odd, sums)       stores the third one, if there is one
 *   four(class, scaling, r, n, acc)    scales and adds those of activation rows r..r+3
 * Sums of parts lie in tiles by turns. The next part's products stand between the rows of this one's sums, as tiles and
 * vectors work at once only if few instructions lie between them, and this one's sums are stored after the first of
 * them: by then they are done. */
#define AMX_PASS(part_type, codes)                                                                                     \
    INLINE void pass(enum qtype t, int R, int n, int n_blocks, const uint8_t *slab, const uint8_t *panel, float *acc)  \
    {                                                                                                                  \
        const struct part_type *s = (const struct part_type *)(const void *)slab;                                      \
        const size_t block = column(t) * (size_t)n;                                                                    \
        _Alignas(64) uint8_t room[2 * SAME_BITS];                                                                      \
        start(t, false, n, s, panel);                                                                                  \
        UNROLL for (int i = 0; i < 4; i++) quarter(false, i, n, s, panel);                                             \
        for (int b = 0; b < n_blocks; b++, panel += block) UNROLL for (int h = 0; h < HALF; h++, s++)                  \
            {                                                                                                          \
                const bool more = h + 1 < HALF || b + 1 < n_blocks, odd = h % 2;                                       \
                const uint8_t *const x = h + 1 < HALF ? panel : panel + block;                                         \
                struct scaling v;                                                                                      \
                v.sum = sums_at(room, s[more].codes + 32);                                                             \
                v.d = _mm512_load_ps(s->d), v.dmin = _mm512_load_ps(s->dmin);                                          \
                v.yd = row_floats(n, panel + block - 4 * (size_t)n, v.rest);                                           \
                if (more) start(t, !odd, n, s + 1, x);                                                                 \
                if (more) quarter(!odd, 0, n, s + 1, x);                                                               \
                store(odd, v.sum);                                                                                     \
                UNROLL for (int i = 0; i < 4; i++)                                                                     \
                {                                                                                                      \
                    if (more && i < 3) quarter(!odd, i + 1, n, s + 1, x);                                              \
                    if (i == 0) store_mins(t, odd, v.sum);                                                             \
                    if (4 * i < R) four(t, &v, 4 * i, n, acc + SLAB_ROWS * h);                                         \
                }                                                                                                      \
            }                                                                                                          \
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
