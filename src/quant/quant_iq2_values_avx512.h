/* Values of IQ2_XXS, IQ2_XS and IQ2_S by their packed codes and signs (spec more-quants 2.3, 8.3). Included by
 * *_avx512.c only. */
#ifndef QUANT_QUANT_IQ2_VALUES_AVX512_H
#define QUANT_QUANT_IQ2_VALUES_AVX512_H
#include "quant/quant_avx512.h"
#include "quant/quant_internal.h"

/* Values as unsigned bytes: 43 more than the code's magnitude (8, 25, 43) with its sign. Entry x of table i is that of
 * the code in bits CODE_AT(i) and CODE_AT(i) + 1 of x and the sign in bit SIGN_AT(i); other bits do not matter. */
#define CODE_AT(i)      ((i) == 3 ? 0 : 2 * (i))
#define SIGN_AT(i)      ((i) == 0 ? 2 : (i) == 3 ? 3 : (i)-1)
#define MAGNITUDE(code) ((code) == 0 ? 8 : (code) == 1 ? 25 : 43)
#define ENTRY(i, x)     (IQ2_OFFSET + ((x) >> SIGN_AT(i) & 1 ? -1 : 1) * MAGNITUDE((x) >> CODE_AT(i) & 3))
#define FOUR(i, x)      ENTRY(i, x), ENTRY(i, (x) + 1), ENTRY(i, (x) + 2), ENTRY(i, (x) + 3)
#define SIXTEEN(i, x)   FOUR(i, x), FOUR(i, (x) + 4), FOUR(i, (x) + 8), FOUR(i, (x) + 12)
#define TABLE(i)                                                                                                       \
    {                                                                                                                  \
        SIXTEEN(i, 0), SIXTEEN(i, 16), SIXTEEN(i, 32), SIXTEEN(i, 48)                                                  \
    }
static const _Alignas(64) uint8_t iq2_value_table[4][64] = {TABLE(0), TABLE(1), TABLE(2), TABLE(3)};

/* Matrices over bits that put at SIGN_AT(i) of each half the sign of its value i: of eight signs; of seven, the eighth
 * being their parity; of seven in the upper bits. */
#define IQ2_SIGNS       0x0204010820401080
#define IQ2_SIGNS_SEVEN 0x020401082040107f
#define IQ2_SIGNS_UPPER 0x04080210408020fe

/* Value i of four of each group, IQ2_OFFSET too high. code: of these four; sign: in the lower four bits, as the
 * matrices put it. */
INLINE __m512i iq2_values(__m512i code, __m512i sign, int i)
{
    const __m512i here = _mm512_set1_epi8((char)(3 << CODE_AT(i)));
    const __m512i at = i == 3 ? _mm512_srli_epi16(code, 6) : code;
    return _mm512_permutexvar_epi8(_mm512_ternarylogic_epi32(here, at, sign, 0xca), load512(iq2_value_table[i]));
}

#endif
