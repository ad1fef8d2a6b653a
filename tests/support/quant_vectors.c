#include <math.h>
#include <string.h>
#include "quant/quant.h"
#include "quant_vectors.h"

uint32_t vec_xorshift(uint32_t *state)
{
    uint32_t s = *state;
    s ^= s << 13;
    s ^= s >> 17;
    s ^= s << 5;
    return *state = s;
}

/* In [-1, 1), exact. */
static float draw(uint32_t *state)
{
    return (float)(vec_xorshift(state) >> 8) * 0x1p-23f - 1;
}

static float first_block(int i)
{
    if (i < 64) return 0;
    if (i < 128) return 0.5f;
    if (i < 192) return i % 7 == 0 ? -3 : 0.01f;
    return i % 2 ? -1 : 1;
}

void quant_vectors_make(struct quant_vectors *v)
{
    uint32_t s = 0x12345678;
    for (int i = 0; i < 256; i++) v->x[i] = first_block(i);
    for (int i = 256; i < VEC_N; i++) {
        if (i / 256 % 2) {
            v->x[i] = 2.5f * draw(&s);
        } else {
            const float a = draw(&s), b = draw(&s), c = draw(&s), d = draw(&s);
            v->x[i] = ((a + b) + (c + d)) * 0.01f;
        }
    }
    for (int i = 0; i < VEC_ROW; i++) {
        const float u = draw(&s);
        v->importance[i] = 0.05f + u * u;
    }
    for (int i = 0; i < VEC_N; i++) {
        const float a = draw(&s), b = draw(&s);
        v->y[i] = (a + b) * 3;
    }
    v->state = s;
}

uint64_t vec_fnv(const void *data, size_t bytes)
{
    const uint8_t *p = data;
    uint64_t h = 0xcbf29ce484222325;
    for (size_t i = 0; i < bytes; i++) h = (h ^ p[i]) * 0x100000001b3;
    return h;
}

uint64_t vec_fnv_floats(const float *x, size_t n)
{
    uint64_t h = 0xcbf29ce484222325;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        if ((bits & 0x7fffffff) > 0x7f800000) bits = 0x7fc00000;
        for (int b = 0; b < 32; b += 8) h = (h ^ (bits >> b & 255)) * 0x100000001b3;
    }
    return h;
}

void vec_act_ggml(const float *x, int k, void *row)
{
    int8_t *q = row;
    float *d = (float *)(void *)(q + k), *sums = d + k / 32 * 2;
    int32_t *offset = (int32_t *)(void *)(d + k / 32);
    for (int b = 0; b < k / 32; b++) {
        float max = 0;
        for (int i = 0; i < 32; i++) max = fmaxf(max, fabsf(x[32 * b + i]));
        const float scale = max / 127, inv = scale != 0 ? 1 / scale : 0;
        int sum = 0;
        for (int i = 0; i < 32; i++) sum += q[32 * b + i] = (int8_t)roundf(x[32 * b + i] * inv);
        offset[b] = -128 * sum;
        sums[b] = f16_to_f32(f32_to_f16((float)sum * scale));
        d[b] = f16_to_f32(f32_to_f16(scale));
    }
}

/* Clears the infinity and NaN exponents of the two-byte float whose upper byte is given. */
static void finite_f16(uint8_t *upper)
{
    if ((*upper & 0x7c) == 0x7c) *upper ^= 0x40;
}

static void finite_mxfp8(uint8_t *codes, uint8_t *scales)
{
    for (int i = 0; i < 256; i++)
        if ((codes[i] & 127) == 127) codes[i] ^= 1;
    for (int i = 0; i < 8; i++)
        if (scales[i] >= 240) scales[i] -= 128;
}

static void finite_block(uint32_t type, uint8_t *b)
{
    switch (type) {
    case QT_MXFP4:
        if (b[0] >= 240) b[0] -= 128;
        break;
    case QT_BF16:
        if ((b[1] & 0x7f) == 0x7f && b[0] >= 0x80) b[1] ^= 0x40;
        break;
    case QT_Q8_1:
    case QT_Q4_1:
    case QT_Q5_1:
        finite_f16(b + 1);
        finite_f16(b + 3);
        break;
    case QT_Q3_K:
        finite_f16(b + 109);
        break;
    case QT_TQ1_0:
        finite_f16(b + 53);
        break;
    case QT_TQ2_0:
        finite_f16(b + 65);
        break;
    case QT_IQ1_M: /* an f16 in the upper four bits of four words */
        if ((b[55] & 0x70) == 0x70 && (b[53] & 0xc0) == 0xc0) b[55] ^= 0x40;
        break;
    case QT_Q8_K:
        b[3] = (b[3] & 0x8f) | 0x30;
        break;
    case QT_NVFP4:
        for (int i = 0; i < 4; i++) b[i] = (b[i] & 127) == 127 ? 126 : b[i] & 127;
        break;
    case QT_MXFP8:
        finite_mxfp8(b, b + 256);
        break;
    case QT_MXFP8_SF:
        finite_mxfp8(b + 8, b);
        break;
    case QT_Q2_K:
        finite_f16(b + 81);
        finite_f16(b + 83);
        break;
    case QT_Q4_K:
    case QT_Q5_K:
        finite_f16(b + 1);
        finite_f16(b + 3);
        break;
    case QT_Q6_K:
        finite_f16(b + 209);
        break;
    default:
        finite_f16(b + 1);
    }
}

void vec_finite_blocks(uint32_t type, void *blocks, size_t n_bytes)
{
    const size_t size = quant_type(type)->block_bytes;
    for (size_t i = 0; i < n_bytes; i += size) finite_block(type, (uint8_t *)blocks + i);
}

void vec_random_blocks(uint32_t type, void *out, size_t n_bytes)
{
    uint8_t *const b = out;
    const uint32_t number = type == QT_Q2_0_128 ? 142 : type == QT_MXFP8 ? 200 : type == QT_MXFP8_SF ? 201 : type;
    uint32_t state = 0x5eed0000 | number;
    for (size_t i = 0; i < n_bytes; i += 4) {
        const uint32_t v = vec_xorshift(&state);
        memcpy(b + i, &v, n_bytes - i < 4 ? n_bytes - i : 4);
    }
    vec_finite_blocks(type, b, n_bytes);
}
