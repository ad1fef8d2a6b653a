/* src/quant/quant_slab_iq4_xs_amx.c with tiles in portable C. */
#include "tiles_model.h"
#include "quant/quant_slab_iq4_xs_amx.c"
