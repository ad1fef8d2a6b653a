/* The values of the nibbles of IQ4_NL and IQ4_XS, fixed by the GGUF format (NOTICE). Spec more-quants 2.2. */
#include "quant/quant_blocks.h"

const int8_t iq4_levels[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
