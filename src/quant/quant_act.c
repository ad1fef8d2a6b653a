/* Activation rows: layout, the scalar quantisers, and the choice of the fastest one (spec gguf-and-quants 3.1). */
#include <float.h>
#include <math.h>
#include "quant/quant_bits.h"
#include "quant/quant_internal.h"

int act_block(enum act_format f)
{
    return f == ACT_F32 ? 1 : f == ACT_Q8_0 ? 32 : 256;
}

static int64_t padded(enum act_format f, int64_t k)
{
    const int64_t block = act_block(f);
    return (k + block - 1) / block * block;
}

size_t act_row_bytes(enum act_format f, int64_t k)
{
    const size_t kp = (size_t)padded(f, k);
    const size_t bytes = f == ACT_F32 ? 4 * kp : f == ACT_Q8_0 ? kp + kp / 32 * 12 : kp + kp / 256 * 4 + kp / 16 * 2;
    return (bytes + 63) / 64 * 64;
}

const float *act_d(enum act_format f, const void *row, int64_t k)
{
    return (const float *)((const char *)row + padded(f, k));
}

const int32_t *act_offset(const void *row, int64_t k)
{
    const int64_t kp = padded(ACT_Q8_0, k);
    return (const int32_t *)((const char *)row + kp + kp / 32 * 4);
}

const float *act_sum(const void *row, int64_t k)
{
    const int64_t kp = padded(ACT_Q8_0, k);
    return (const float *)((const char *)row + kp + kp / 32 * 8);
}

const int16_t *act_bsums(const void *row, int64_t k)
{
    const int64_t kp = padded(ACT_Q8_K, k);
    return (const int16_t *)((const char *)row + kp + kp / 256 * 4);
}

/* Bits of the largest magnitude; a NaN counts as larger than infinity. */
static uint32_t magnitude_bits(const float *x, int n)
{
    uint32_t max = 0;
    for (int i = 0; i < n; i++) {
        const uint32_t a = f32_bits(x[i]) & 0x7fffffff;
        if (a > max) max = a;
    }
    return max;
}

static int8_t nearest8(float v)
{
    return (int8_t)lrintf(v);
}

void act_q8_0_scalar(const float *x, int64_t n_blocks, int8_t *q, float *d, int32_t *offset)
{
    for (int64_t b = 0; b < n_blocks; b++, x += 32, q += 32) {
        const float max = bits_f32(magnitude_bits(x, 32)), scale = max / 127, inv = 1 / scale;
        if (!(max <= FLT_MAX) || !(inv <= FLT_MAX)) {
            d[b] = max <= FLT_MAX ? 0 : bits_f32(0x7fc00000);
            memset(q, 0, 32);
            offset[b] = 0;
            continue;
        }
        d[b] = scale;
        offset[b] = 0;
        for (int i = 0; i < 32; i++) {
            q[i] = nearest8(x[i] * inv);
            offset[b] -= 128 * q[i];
        }
    }
}

/* The first value of the given magnitude. */
static float first_of_magnitude(const float *x, uint32_t bits)
{
    while ((f32_bits(*x) & 0x7fffffff) != bits) x++;
    return *x;
}

void act_q8_k_scalar(const float *x, int64_t n_blocks, int8_t *q, float *d, int16_t *bsums)
{
    for (int64_t b = 0; b < n_blocks; b++, x += 256, q += 256, bsums += 16) {
        const uint32_t max = magnitude_bits(x, 256);
        const float inv = -127 / first_of_magnitude(x, max);
        memset(bsums, 0, 16 * sizeof *bsums);
        if (max > 0x7f7fffff || !(fabsf(inv) <= FLT_MAX)) {
            d[b] = max <= 0x7f7fffff ? 0 : bits_f32(0x7fc00000);
            memset(q, 0, 256);
            continue;
        }
        d[b] = 1 / inv;
        for (int i = 0; i < 256; i++) {
            q[i] = nearest8(inv * x[i]);
            bsums[i / 16] = (int16_t)(bsums[i / 16] + q[i]);
        }
    }
}

static void quantise_blocks(enum act_format f, const float *x, int64_t n_blocks, int8_t *q, float *d, void *sums)
{
    const struct quant_act_set set = quant_act_set(quant_isa_vectors());
    if (f == ACT_Q8_0)
        set.q8_0(x, n_blocks, q, d, sums);
    else
        set.q8_k(x, n_blocks, q, d, sums);
}

void act_quantise_part(enum act_format f, const float *x, int64_t first, int64_t n, int64_t k, void *row)
{
    if (f == ACT_F32) {
        memcpy((float *)row + first, x, (size_t)n * sizeof *x);
        return;
    }
    const int block = act_block(f);
    const int64_t at = first / block, n_blocks = n / block, tail = n % block;
    int8_t *const q = (int8_t *)row + first;
    float *const d = (float *)(uintptr_t)act_d(f, row, k) + at;
    int32_t *const offset = (int32_t *)(uintptr_t)act_offset(row, k) + at;
    int16_t *const bsums = (int16_t *)(uintptr_t)act_bsums(row, k) + 16 * at;
    const bool wide = f == ACT_Q8_K;
    quantise_blocks(f, x, n_blocks, q, d, wide ? (void *)bsums : (void *)offset);
    if (tail) {
        float last[256] = {0};
        memcpy(last, x + n_blocks * block, (size_t)tail * sizeof *x);
        quantise_blocks(f, last, 1, q + n_blocks * block, d + n_blocks,
                        wide ? (void *)(bsums + 16 * n_blocks) : (void *)(offset + n_blocks));
    }
    float *const sum = (float *)(uintptr_t)act_sum(row, k) + at;
    for (int64_t b = 0; !wide && b < n_blocks + (tail != 0); b++) sum[b] = (float)(offset[b] / -128) * d[b];
}

void act_quantise(enum act_format f, const float *x, int64_t k, void *row)
{
    act_quantise_part(f, x, 0, k, k, row);
}

void act_decode(enum act_format f, const void *row, int64_t k, float *out)
{
    if (f == ACT_F32) {
        memcpy(out, row, (size_t)k * sizeof *out);
        return;
    }
    const int8_t *const q = row;
    const float *const d = act_d(f, row, k);
    for (int64_t i = 0; i < k; i++) out[i] = (float)q[i] * d[i / act_block(f)];
}
