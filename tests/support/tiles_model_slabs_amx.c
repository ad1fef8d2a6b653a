/* src/quant/quant_slabs_amx.c with tiles in portable C. */
#include "tiles_model.h"
#include "quant/quant_slabs_amx.c"

#ifdef __AMX_INT8__
_Thread_local struct tiles_model tiles_model;
#endif
