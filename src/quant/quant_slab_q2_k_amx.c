/* Slab kernel of Q2_K by tiles of products (activations ACT_Q8_K). Codes have their scales in them and so do the
 * factors of minimums: a block of sixteen rows times sixteen is four products of tiles, and one of minimums with sums
 * of sixteen activations, which take two bytes, v = 16*high + low. See quant_amx.h.
 *
 * Floor of that: 128 vector operations, five products and 32 rows that are stored on two units, 120 cycles, 15 for 32
 * codes. Measured there, slab and panel in the first-level cache: 28 to 30 (AVX-512 87 to 94). 16,384 rows of 4,096
 * values from memory times 8, 16, 48 and 1,056 activations, with unpacking, thousand million multiply-adds a second:
 * 205, 377, 667 and 694 (AVX-512 194, 243, 316 and 320). */
#if defined(__AMX_INT8__) || defined(__AMXINT8__) /* gcc; clang up to 14 */
#include "quant/quant_amx.h"
#include "quant/quant_slab256_avx512.h"

enum { COLUMN = 256 + 64 + 4 /* codes; bytes of sums behind as many zeros; scale */ };

/* Minimums fill the lower half of a tile; what lies before them in a part is multiplied by zeros. */
INLINE const uint8_t *mins_tile(const struct part256 *s)
{
    return (const uint8_t *)s->min - 512;
}

/* Sums of products in tile 0 or 2, of minimums in tile 1 or 3 (quant_slab256_amx.c says why). */
#define PRODUCTS(sums, mins, n, s, x)                                                                                  \
    do {                                                                                                               \
        _tile_loadd(sums, tile_zeros, 0);                                                                              \
        _tile_loadd(mins, tile_zeros, 0);                                                                              \
        UNROLL for (int i = 0; i < 4; i++)                                                                             \
        {                                                                                                              \
            _tile_loadd(CODES, (x) + 64 * (size_t)((n)*i), 64);                                                        \
            _tile_loadd(WEIGHTS, (s)->code[16 * i], 64);                                                               \
            _tile_dpbsud(sums, CODES, WEIGHTS);                                                                        \
        }                                                                                                              \
        _tile_loadd(CODES, (x) + 256 * (size_t)(n), 64);                                                               \
        _tile_loadd(WEIGHTS, mins_tile(s), 64);                                                                        \
        _tile_dpbsud(mins, CODES, WEIGHTS);                                                                            \
    } while (0)

INLINE void products(bool odd, int n, const struct part256 *s, const uint8_t *x)
{
    if (odd)
        PRODUCTS(2, 3, n, s, x);
    else
        PRODUCTS(0, 1, n, s, x);
}

INLINE void step(bool odd, int R, int n, const struct part256 *s, const uint8_t *x, float *acc)
{
    _Alignas(64) tile_sums sums, mins;
    _Alignas(64) float rest[TILE_ROWS];
    __m512 k[TILE_ROWS];
    sums_store(odd, sums, mins);
    rows_load(R, n, acc, k);
    const float *const yd = row_floats(n, x + (COLUMN - 4) * (size_t)n, rest);
    const __m512 d = _mm512_load_ps(s->d), dmin = _mm512_load_ps(s->dmin);
    UNROLL_16 for (int r = 0; r < R; r++)
    {
        const __m512 y = _mm512_set1_ps(yd[r]);
        const __m512 v = _mm512_mul_ps(_mm512_mul_ps(d, y), sums_row(sums, r));
        const __m512 m = _mm512_mul_ps(_mm512_mul_ps(dmin, y), sums_row(mins, r));
        k[r] = _mm512_add_ps(k[r], _mm512_sub_ps(v, m));
    }
    rows_store(R, n, k, acc);
}

INLINE void pass(enum qtype t, int R, int n, int n_blocks, const uint8_t *slab, const uint8_t *panel, float *acc)
{
    (void)t;
    const struct part256 *const parts = (const struct part256 *)(const void *)slab;
    const size_t block = COLUMN * (size_t)n;
    products(false, n, parts, panel);
    for (int b = 0; b < n_blocks; b++, panel += block) UNROLL for (int h = 0; h < HALF; h++)
        {
            const struct part256 *const s = parts + HALF * b + h;
            if (h + 1 < HALF)
                products(h % 2 == 0, n, s + 1, panel);
            else if (b + 1 < n_blocks)
                products(false, n, s + 1, panel + block);
            step(h % 2, R, n, s, panel, acc + SLAB_ROWS * h);
        }
}

AMX_MULTIPLY(multiply, pass, QT_Q2_K)

/* A minimum of 4 bits, as a factor of the lower byte of a sum and, sixteen times, of the upper one. */
static void fill(const uint8_t *const *row, int first, int n_blocks, uint8_t *slab)
{
    struct part256 *const s = (struct part256 *)(void *)slab;
    fill256_q2_k(&(struct filling){row, first, n_blocks, HALF, s});
    for (int i = 0; i < HALF * n_blocks; i++)
        UNROLL for (int j = 0; j < 8; j++)
            store512(s[i].min[j], _mm512_mullo_epi16(load512(s[i].min[j]), _mm512_set1_epi16(0x1001)));
}

const struct quant_slab slab_q2_k_amx = {.block = 256,
                                         .rows = HALF * SLAB_ROWS,
                                         .panel = TILE_ROWS,
                                         .from = 8,
                                         .fewer = &slab_q2_k_avx512,
                                         .slab_block = HALF * sizeof(struct part256),
                                         .panel_block = COLUMN,
                                         .begin = tiles_begin_64,
                                         .end = tiles_end,
                                         .pack = quant_pack_rows_q2_k,
                                         .fill = fill,
                                         .multiply = multiply};
#endif
