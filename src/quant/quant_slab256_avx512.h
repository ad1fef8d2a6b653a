/* Slabs of the types with blocks of 256, for the AVX-512 kernels (activations ACT_Q8_K): what multiplies them.
 *
 * Floor where all share two 512-bit units (Intel): of sixteen rows, a column and a block 64 products, and what scales
 * and floats take: Q2_K 16 operations, Q3_K, IQ2_XXS, IQ3 and IQ1 20 or 21, Q4_K 28, Q5_K and Q6_K 36, IQ2_XS and IQ2_S
 * 41. One of two cores of an Intel Xeon (Ice Lake, virtual), slabs and panels in the first-level cache, share of the
 * int8 peak in alternation with it, medians of 201, two rounds, the floor in brackets, and with scales that took three
 * operations for every sum of other than Q2_K, Q3_K, Q4_K and IQ1_M, as minimums took eight: Q2_K 0.75 (0.80), IQ2_XXS
 * and IQ3_XXS 0.72 (0.76; 0.66 before), IQ3_S and IQ1_S 0.73 (0.76; 0.66), Q3_K 0.73 (0.76; 0.68), IQ1_M 0.71 (0.75;
 * 0.70), Q4_K 0.67 (0.70; 0.59), Q5_K 0.61 (0.64; 0.58), Q6_K 0.60 to 0.62 (0.64; 0.52 to 0.53), IQ2_XS and IQ2_S 0.58
 * (0.61; 0.52). Q2_K with four columns a pass: no faster.
 *
 * Before slabs had 64 rows: one core of an Intel Xeon (Emerald Rapids), two runs beside other work: Q2_K 0.86 and 0.89,
 * IQ2_XXS 0.74 and 0.79, Q4_K 0.71 and 0.73, Q5_K 0.68 and 0.73, Q6_K 0.62 and 0.68, Q3_K 0.74 and 0.79, IQ1_M 0.74 and
 * 0.80. Zen 4, 3.7 GHz, peak 236, panels of four rows: IQ2_XXS 175 and 196, Q2_K 173 and 192, Q4_K 150 and 173, Q6_K
 * 146 and 176. One of two cores of an AMD EPYC (Zen 5, virtual; two pipes multiply, two others add and convert): Q2_K
 * 0.82, IQ2_XXS 0.84, Q4_K 0.68, Q5_K 0.74, Q6_K 0.76, Q3_K 0.76. Of 64 rows there, in turn with those, three runs:
 * IQ2_XXS 0.79, 0.79 and 0.85 (0.79, 0.80, 0.85), Q2_K 0.77, 0.77 and 0.78 (0.77, 0.78, 0.78); 8,192 rows from memory
 * times 48 activations, with unpacking, 0.70 (0.64, 0.68, 0.68) and 0.69 (0.62, 0.65, 0.65). */
#ifndef QUANT_QUANT_SLAB256_AVX512_H
#define QUANT_QUANT_SLAB256_AVX512_H
#include "quant/quant_slab_avx512.h"
#include "quant/quant_slab_rows_avx512.h"
#include "quant/quant_traits.h"

/* One block of sixteen rows. */
struct part256 {
    uint8_t code[64][64]; /* [group of four][row][4] */
    union {               /* [sub-block][row]; those of Q2_K are in its codes */
        int32_t scale[16][SLAB_ROWS];
        float float_scale[16][SLAB_ROWS]; /* float_scales */
    };
    int16_t min[8][32]; /* [pair of activation sums][row][2] */
    float d[SLAB_ROWS];
    float dmin[SLAB_ROWS];
};

/* Sums of sub-blocks are multiplied by their scales and added as floats, by two instructions, not three: those of half
 * a block are exact, below 2^24, or even and below 2^25; of IQ2_XS and IQ2_S those of a third. Most is 31 * 127 times
 * the magnitudes of the values, of which a code book's eight have at most 203 (IQ2_XXS), 344 (IQ2_XS, IQ2_S), 324 and
 * even ones (IQ3_XXS), 84 (IQ3_S). */
INLINE bool float_scales(enum qtype t)
{
    return !has_min(t) && (sub_block(t) == 32 || is_iq2(t));
}

INLINE void put_scale(enum qtype t, struct part256 *s, int i, __m512i v)
{
    if (float_scales(t))
        _mm512_store_ps(s->float_scale[i], _mm512_cvtepi32_ps(v));
    else
        store512(s->scale[i], v);
}

/* Scales i.. of eight nibbles. */
INLINE void put_nibble_scales(enum qtype t, __m512i v, struct part256 *s, int i)
{
    put_scale(t, s, i, odd_of_lanes(_mm512_slli_epi32(v, 1), 0x1e));
    UNROLL for (int j = 1; j < 8; j++)
        put_scale(t, s, i + j, odd_of_lanes(_mm512_srli_epi32(v, 4 * (unsigned)j - 1), 0x1e));
}

/* multiply (quant.h) of types whose slabs are alike: scales for 32 or 16 values; of small codes (narrow); a sum in
 * eighths (block_factor). slab256_q2_k: codes that have their scales in them. */
typedef void slab_multiply(int n_blocks, const uint8_t *slab, const uint8_t *panel, int n, int piece, float *acc);
slab_multiply slab256_q2_k, slab256_q4_k, slab256_q5_k, slab256_32, slab256_32_eighths, slab256_16, slab256_q6_k,
    slab256_16_narrow, slab256_16_eighths;

INLINE slab_multiply *slab256_multiply(enum qtype t)
{
    if (t == QT_Q2_K) return slab256_q2_k;
    if (t == QT_Q6_K) return slab256_q6_k;
    if (t == QT_Q3_K) return slab256_16_narrow;
    if (has_min(t)) return t == QT_Q4_K ? slab256_q4_k : slab256_q5_k;
    if (sub_block(t) == 32) return is_iq1(t) ? slab256_32_eighths : slab256_32;
    return is_iq1(t) ? slab256_16_eighths : slab256_16;
}

/* One block of sixteen rows; book: what the codes are looked up in. */
typedef void part256_fn(enum qtype t, const void *book, const uint8_t *const row[SLAB_ROWS], size_t at,
                        struct part256 *s);

/* What a fill reads and writes: blocks first.. of rows, in parts: of all that a slab has, or one. */
struct filling {
    const uint8_t *const *row;
    int first, n_blocks, parts;
    struct part256 *to;
};

INLINE void fill256(part256_fn *part, enum qtype t, const void *book, const struct filling *f)
{
    for (int h = 0; h < f->parts; h++)
        for (int b = 0; b < f->n_blocks; b++) {
            const size_t at = (size_t)(f->first + b) * block_bytes(t);
            part(t, book, f->row + SLAB_ROWS * h, at, f->to + f->parts * b + h);
        }
}

/* Part i of those that a fill writes; behind the last one, the last one. */
INLINE struct ahead rows_ahead(enum qtype t, const struct filling *f, int i)
{
    if (i == f->parts * f->n_blocks) i--;
    return (struct ahead){.row = f->row + i % f->parts * SLAB_ROWS,
                          .at = (size_t)(f->first + i / f->parts) * block_bytes(t)};
}

typedef void fill256_fn(const struct filling *f);
fill256_fn fill256_q2_k, fill256_q3_k, fill256_q4_k, fill256_q5_k, fill256_q6_k, fill256_tq1_0, fill256_tq2_0,
    fill256_iq2_xxs, fill256_iq2_xs, fill256_iq2_s, fill256_iq3_xxs, fill256_iq3_s, fill256_iq1_s, fill256_iq1_m;

/* Defines the kernels of a type by `fill_blocks`, which is fill of several types; sums: panel_sums. */
#define SLAB256(name, type, packing, sums)                                                                             \
    void fill256_##name(const struct filling *f)                                                                       \
    {                                                                                                                  \
        fill_blocks(type, f);                                                                                          \
    }                                                                                                                  \
    static void name##_fill(const uint8_t *const *row, int first, int n_blocks, uint8_t *slab)                         \
    {                                                                                                                  \
        struct part256 *const to = (struct part256 *)(void *)slab;                                                     \
        fill256_##name(&(struct filling){row, first, n_blocks, PARTS, to});                                            \
    }                                                                                                                  \
    static void name##_multiply(int n_blocks, const uint8_t *slab, const uint8_t *panel, int n, int piece, float *acc) \
    {                                                                                                                  \
        slab256_multiply(type)(n_blocks, slab, panel, n, piece, acc);                                                  \
        if (last_factor(type) != 1 && (piece & SLAB_LAST)) acc_scale(acc, PARTS, n, last_factor(type));                \
    }                                                                                                                  \
    const struct quant_slab slab_##name##_avx512 = {.block = 256,                                                      \
                                                    .rows = QUANT_SLAB,                                                \
                                                    .panel = PANEL,                                                    \
                                                    .from = SLAB_FROM_256(type),                                       \
                                                    .slab_block = PARTS * sizeof(struct part256),                      \
                                                    .panel_block = 4 * (65 + (sums)),                                  \
                                                    .pack = packing,                                                   \
                                                    .fill = name##_fill,                                               \
                                                    .multiply = name##_multiply};

#endif
