/* src/quant/quant_slab32_amx.c with tiles in portable C. */
#include "tiles_model.h"
#include "quant/quant_slab32_amx.c"
