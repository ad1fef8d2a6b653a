/* Which kernel sets this program and this processor have, and the choice among their tile kernels. */
#include "quant/quant_internal.h"

const char *quant_isa_name(enum quant_isa isa)
{
    static const char *const names[QUANT_ISA_COUNT] = {"scalar", "avx2"};
    return names[isa];
}

bool quant_isa_usable(enum quant_isa isa)
{
    if (isa == QUANT_SCALAR) return true;
#ifdef __x86_64__
    /* Every processor with AVX2 has the half-float conversions (F16C) too. */
    if (isa == QUANT_AVX2)
        return quant_tiles_avx2[QT_F32] && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
    return false;
}

enum quant_isa quant_isa_best(void)
{
    int isa = QUANT_ISA_COUNT - 1;
    while (!quant_isa_usable((enum quant_isa)isa)) isa--;
    return (enum quant_isa)isa;
}

quant_tile_fn *quant_tile(enum quant_isa isa, uint32_t id)
{
    if (id >= QUANT_TILES) return NULL;
    if (isa == QUANT_AVX2 && quant_tiles_avx2[id]) return quant_tiles_avx2[id];
    return quant_tiles_scalar[id];
}

float quant_dot_f32(const float *a, const float *b, int64_t k)
{
    float sum;
    quant_tile(quant_isa_best(), QT_F32)((int)k, a, 0, 1, b, 0, 1, &sum, 1);
    return sum;
}
