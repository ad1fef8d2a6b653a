/* src/quant/quant_slab256_amx.c with tiles in portable C. */
#include "tiles_model.h"
#include "quant/quant_slab256_amx.c"
