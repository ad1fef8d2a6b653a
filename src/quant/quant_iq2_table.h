/* Tables that turn six bits into a value of IQ2_XXS, IQ2_XS or IQ2_S (spec gguf-and-quants 2.9). */
#ifndef QUANT_QUANT_IQ2_TABLE_H
#define QUANT_QUANT_IQ2_TABLE_H
#include "quant/quant_internal.h"

/* Entry x is IQ2_OFFSET more than the magnitude (8, 25, 43) of the code in bits p and p + 1 of x, with the sign in bit
 * s; the other bits do not matter. */
#define IQ2_MAGNITUDE(code) ((code) == 0 ? 8 : (code) == 1 ? 25 : 43)
#define IQ2_VALUE(x, p, s)  (IQ2_OFFSET + ((x) >> (s)&1 ? -1 : 1) * IQ2_MAGNITUDE((x) >> (p)&3))
#define IQ2_FOUR(x, p, s)                                                                                              \
    IQ2_VALUE(x, p, s), IQ2_VALUE((x) + 1, p, s), IQ2_VALUE((x) + 2, p, s), IQ2_VALUE((x) + 3, p, s)
#define IQ2_SIXTEEN(x, p, s)                                                                                           \
    IQ2_FOUR(x, p, s), IQ2_FOUR((x) + 4, p, s), IQ2_FOUR((x) + 8, p, s), IQ2_FOUR((x) + 12, p, s)
#define IQ2_TABLE(p, s)                                                                                                \
    {                                                                                                                  \
        IQ2_SIXTEEN(0, p, s), IQ2_SIXTEEN(16, p, s), IQ2_SIXTEEN(32, p, s), IQ2_SIXTEEN(48, p, s)                      \
    }

#endif
