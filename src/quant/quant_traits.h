/* What the vector kernels of every processor must know of a type. All of it is decided by the compiler. */
#ifndef QUANT_QUANT_TRAITS_H
#define QUANT_QUANT_TRAITS_H
#include "quant/quant_grid_blocks.h"
#include "quant/quant_walk.h"

INLINE size_t block_bytes(enum qtype t)
{
    switch (t) {
    case QT_Q8_0:
        return Q8_0_BYTES;
    case QT_Q4_0:
        return Q4_0_BYTES;
    case QT_Q4_1:
        return Q4_1_BYTES;
    case QT_Q5_0:
        return Q5_0_BYTES;
    case QT_Q5_1:
        return Q5_1_BYTES;
    case QT_IQ4_NL:
        return IQ4_NL_BYTES;
    case QT_MXFP4:
        return MXFP4_BYTES;
    case QT_Q2_K:
        return Q2_K_BYTES;
    case QT_Q3_K:
        return Q3_K_BYTES;
    case QT_Q4_K:
        return Q4_K_BYTES;
    case QT_Q5_K:
        return Q5_K_BYTES;
    case QT_Q6_K:
        return Q6_K_BYTES;
    case QT_IQ4_XS:
        return IQ4_XS_BYTES;
    case QT_TQ1_0:
        return TQ1_0_BYTES;
    case QT_TQ2_0:
        return TQ2_0_BYTES;
    case QT_IQ2_XXS:
        return IQ2_XXS_BYTES;
    case QT_IQ2_XS:
        return IQ2_XS_BYTES;
    case QT_IQ2_S:
        return IQ2_S_BYTES;
    case QT_IQ3_XXS:
        return IQ3_XXS_BYTES;
    case QT_IQ3_S:
        return IQ3_S_BYTES;
    case QT_IQ1_S:
        return IQ1_S_BYTES;
    case QT_IQ1_M:
        return IQ1_M_BYTES;
    default:
        return 0;
    }
}

/* A minimum term is subtracted or, of the types with 32 values, added. */
INLINE bool has_min(enum qtype t)
{
    return t == QT_Q2_K || t == QT_Q4_K || t == QT_Q5_K || t == QT_Q4_1 || t == QT_Q5_1;
}

/* ---- types whose steps cover 32 codes: Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, IQ4_NL, MXFP4, and IQ4_XS with eight per block
 */

/* Where the block of step b begins. */
INLINE size_t block_at(enum qtype t, int b)
{
    return (size_t)(t == QT_IQ4_XS ? b / 8 : b) * block_bytes(t);
}

/* Where the nibbles of step b of a block lie. */
INLINE size_t nibbles_at(enum qtype t, int b)
{
    return t == QT_Q4_1     ? Q4_1_QS
           : t == QT_Q5_0   ? Q5_0_QS
           : t == QT_Q5_1   ? Q5_1_QS
           : t == QT_IQ4_XS ? (size_t)(IQ4_XS_QS + 16 * (b % 8))
           : t == QT_MXFP4  ? MXFP4_QS
                            : Q4_0_QS; /* = IQ4_NL_QS */
}

/* A second scale per step: a minimum, or the sub-block's own scale. */
INLINE bool has_second(enum qtype t)
{
    return t == QT_Q4_1 || t == QT_Q5_1 || t == QT_IQ4_XS;
}

/* The activation scale of step b. */
INLINE float step_d(enum qtype t, const uint8_t *x, int k, int b)
{
    return row_d(x, k)[t == QT_IQ4_XS ? b / 8 : b];
}

/* ---- types with blocks of 256 that are one step */

INLINE bool is_iq1(enum qtype t)
{
    return t == QT_IQ1_S || t == QT_IQ1_M;
}

INLINE bool is_iq2(enum qtype t)
{
    return t == QT_IQ2_XXS || t == QT_IQ2_XS || t == QT_IQ2_S;
}

/* A value is a magnitude of a code book with a sign bit. */
INLINE bool has_signs(enum qtype t)
{
    return is_iq2(t) || t == QT_IQ3_XXS || t == QT_IQ3_S;
}

/* Values per scale. */
INLINE int sub_block(enum qtype t)
{
    return t == QT_Q2_K || t == QT_Q3_K || t == QT_Q6_K || t == QT_IQ2_XS || t == QT_IQ2_S || t == QT_IQ1_M ? 16 : 32;
}

/* How much higher than the values unsigned codes are. */
INLINE int code_offset(enum qtype t)
{
    return t == QT_Q6_K                     ? Q6_OFFSET
           : t == QT_Q3_K                   ? Q3_OFFSET
           : t == QT_TQ1_0 || t == QT_TQ2_0 ? 1
           : is_iq2(t)                      ? IQ2_OFFSET
           : t == QT_IQ3_XXS                ? IQ3_XXS_OFFSET
           : t == QT_IQ3_S                  ? IQ3_S_OFFSET
           : is_iq1(t)                      ? IQ1_OFFSET
                                            : 0;
}

/* Factors of the sum of a block, and of the whole sum. */
INLINE float block_factor(enum qtype t)
{
    return is_iq1(t) ? 0.125f : 1;
}

INLINE float last_factor(enum qtype t)
{
    return is_iq2(t) ? 0.125f : t == QT_IQ3_XXS ? 0.25f : 1;
}

INLINE size_t d_at(enum qtype t)
{
    return t == QT_Q2_K    ? Q2_K_D
           : t == QT_Q3_K  ? Q3_K_D
           : t == QT_Q6_K  ? Q6_K_D
           : t == QT_TQ1_0 ? TQ1_0_D
           : t == QT_TQ2_0 ? TQ2_0_D
                           : 0;
}

INLINE size_t dmin_at(enum qtype t)
{
    return t == QT_Q2_K ? Q2_K_DMIN : Q4_K_DMIN;
}

/* The f16 d of a block. */
INLINE uint16_t block_d(enum qtype t, const uint8_t *b)
{
    return t == QT_IQ1_M ? iq1_m_d(b) : load_u16(b + d_at(t));
}

#endif
