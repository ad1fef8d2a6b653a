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
INLINE size_t column(enum qtype t)
{
    (void)t;
    return COLUMN;
}

/* Minimums fill the lower half of a tile; what lies before them in a part is multiplied by zeros. */
INLINE const uint8_t *mins_tile(const struct part256 *s)
{
    return (const uint8_t *)s->min - 512;
}

/* Sums of products are in tiles 0 and 2, of minimums in 1 and 3. */
#define START(sums, mins, n, s, x)                                                                                     \
    do {                                                                                                               \
        _tile_loadd(sums, tile_zeros, 0);                                                                              \
        _tile_loadd(mins, tile_zeros, 0);                                                                              \
        _tile_loadd(CODES, (x) + 256 * (size_t)(n), 64);                                                               \
        _tile_loadd(WEIGHTS, mins_tile(s), 64);                                                                        \
        _tile_dpbsud(mins, CODES, WEIGHTS);                                                                            \
        _tile_loadd(CODES, x, 64);                                                                                     \
    } while (0)

INLINE void start(enum qtype t, bool odd, int n, const struct part256 *s, const uint8_t *x)
{
    (void)t;
    if (odd)
        START(2, 3, n, s, x);
    else
        START(0, 1, n, s, x);
}

INLINE void quarter(bool odd, int i, int n, const struct part256 *s, const uint8_t *x)
{
    _tile_loadd(WEIGHTS, s->code[16 * i], 64);
    if (odd)
        _tile_dpbsud(2, CODES, WEIGHTS);
    else
        _tile_dpbsud(0, CODES, WEIGHTS);
    if (i < 3) _tile_loadd(CODES, x + 64 * (size_t)(n * (i + 1)), 64);
}

INLINE void store_mins(enum qtype t, bool odd, tile_sums to[3])
{
    (void)t, (void)odd, (void)to;
}

INLINE void four(enum qtype t, const struct scaling *s, int r0, int n, float *acc)
{
    __m512 k[4];
    (void)t;
    acc += QUANT_SLAB * r0;
    rows_load(4, n - r0, acc, k);
    UNROLL for (int i = 0; i < 4; i++)
    {
        const __m512 y = _mm512_set1_ps(s->yd[r0 + i]);
        const __m512 v = _mm512_mul_ps(_mm512_mul_ps(s->d, y), sums_row(s->sum[0], r0 + i));
        const __m512 m = _mm512_mul_ps(_mm512_mul_ps(s->dmin, y), sums_row(s->sum[1], r0 + i));
        k[i] = stays(_mm512_add_ps(k[i], _mm512_sub_ps(v, m)));
    }
    rows_store(4, n - r0, k, acc);
}

AMX_PASS(part256, code)

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
