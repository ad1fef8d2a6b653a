/* src/quant/quant_slab_q2_k_amx.c with tiles in portable C. */
#include "tiles_model.h"
#include "quant/quant_slab_q2_k_amx.c"
