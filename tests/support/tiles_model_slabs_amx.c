/* src/quant/quant_slabs_amx.c with tiles in portable C. */
#include "tiles_model.h"
#include "quant/quant_slabs_amx.c"

#if defined(__AMX_INT8__) || defined(__AMXINT8__) /* gcc; clang up to 14 */
_Thread_local struct tiles_model tiles_model;
#endif
