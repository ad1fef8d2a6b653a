#include "quant/quant_internal.h"
const quant_tile_table quant_tiles_avx2 = {0};
