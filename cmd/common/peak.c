#include "peak_internal.h"

enum { LANES = 16 };

static int64_t int8_portable(int rounds, volatile float *sink)
{
    int32_t sum[LANES] = {0};
    int8_t a[LANES], b[LANES];
    for (int i = 0; i < LANES; i++) a[i] = (int8_t)(i + (int)*sink), b[i] = (int8_t)(7 * i);
    for (int n = 0; n < rounds; n++)
        for (int i = 0; i < LANES; i++) sum[i] += a[i] * (b[i] ^ (n & 1));
    for (int i = 0; i < LANES; i++) *sink = (float)(sum[i] & 1);
    return (int64_t)rounds * LANES;
}

static int64_t f32_portable(int rounds, volatile float *sink)
{
    float sum[LANES] = {0};
    const float a = *sink;
    for (int n = 0; n < rounds; n++)
        for (int i = 0; i < LANES; i++) sum[i] += a * (float)n;
    for (int i = 0; i < LANES; i++) *sink = sum[i] * 0;
    return (int64_t)rounds * LANES;
}

peak_fn *peak_loop(enum quant_isa isa, enum peak_kind kind)
{
#if defined(__x86_64__)
    if (kind == PEAK_TILES) return isa == QUANT_AMX ? peak_tiles_amx : NULL;
    if (isa == QUANT_AVX512 || isa == QUANT_AMX) return kind == PEAK_INT8 ? peak_int8_avx512 : peak_f32_avx512;
    if (isa == QUANT_AVXVNNI) return kind == PEAK_INT8 ? peak_int8_avxvnni : peak_f32_avx2;
    if (isa == QUANT_AVX2) return kind == PEAK_INT8 ? peak_int8_avx2 : peak_f32_avx2;
#endif
    if (kind == PEAK_TILES) return NULL;
    return kind == PEAK_INT8 ? int8_portable : f32_portable;
}
