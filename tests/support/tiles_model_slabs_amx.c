/* src/quant/quant_slabs_amx.c with tiles in portable C. */
#include "tiles_model.h"
#include "quant/quant_slabs_amx.c"
