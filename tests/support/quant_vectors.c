#include <math.h>
#include <stdlib.h>
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

/* ---- rows of ggml's quantisers */

const struct vec_encoded vec_encoded[] = {
    {QT_Q4_1, VEC_PLAIN, 0x721080aa3d605d74, 0xf7e0c8baf580cb9e, {0xc312e7de, 0xc34a0a27, 0xc2bd591c, 0xc1e35120}},
    {QT_Q4_1, VEC_GIVEN, 0x6091ab6378f621a7, 0xd2c32b3bb1baa9bf, {0xc310de5a, 0xc340f17d, 0xc2b4e0ea, 0xc16f539c}},
    {QT_Q5_0, VEC_PLAIN, 0x94c519da84f08046, 0x39fc31b1877d63d0, {0xc30c3bea, 0xc3456ca0, 0xc2c4a3fb, 0xc1a9938d}},
    {QT_Q5_0, VEC_GIVEN, 0xb473daa85e07ea3d, 0xa619ab468e9af7a7, {0xc30c41d4, 0xc340b990, 0xc2c4663a, 0xc1ab84f5}},
    {QT_Q5_1, VEC_PLAIN, 0x8e464ea73f22c802, 0x78dd2103e95b4d3c, {0xc310dbda, 0xc3401de4, 0xc2c7acbc, 0xc1adcc63}},
    {QT_Q5_1, VEC_GIVEN, 0xbd644f7e838473f5, 0x95224c08ba70c6bd, {0xc31082d6, 0xc34023b2, 0xc2bc8370, 0xc19dc077}},
    {QT_Q3_K, VEC_GIVEN, 0x4de9b0bfbd318563, 0x5250a57101f3649b, {0xc319ba8b, 0xc340206c, 0xc2bdc012, 0xc1dea9ea}},
    {QT_IQ4_NL, VEC_PLAIN, 0x7ba400e74c0e945b, 0xdf9cfcd38d261b5f, {0xc3125e0a, 0xc341c41f, 0xc2b6f8a3, 0xc19dffc6}},
    {QT_IQ4_NL, VEC_GIVEN, 0xac04cf8a4a506f66, 0x7abe8cd5ac3b080d, {0xc318d2d3, 0xc349af60, 0xc2c7ab78, 0xc1c3b7be}},
    {QT_IQ4_XS, VEC_PLAIN, 0x534c7be0f970638a, 0xed9756e91230c5de, {0xc31206cd, 0xc3470af1, 0xc2b539ba, 0xc19e2856}},
    {QT_IQ4_XS, VEC_GIVEN, 0xb15c959c920d6b11, 0x37c7e0d6d386a99c, {0xc317850b, 0xc34a7a71, 0xc2bd3128, 0xc1c1d83f}},
    {QT_IQ3_XXS, VEC_PLAIN, 0x2afa30fd0559d27a, 0x240656e2150d63f2, {0xc32d6d9e, 0xc32c181c, 0xc290ab5f, 0xc1fe2438}},
    {QT_IQ3_XXS, VEC_GIVEN, 0xf6ef24eaa0fc303d, 0x5c7ff99e62eb7b1c, {0xc313a995, 0xc330d292, 0xc27db724, 0xc1910fc8}},
    {QT_IQ3_S, VEC_PLAIN, 0xab646021e9b9b088, 0x389434c047e79553, {0xc2b32aab, 0xc3414180, 0xc2c1fe7f, 0xc0adf5a0}},
    {QT_IQ3_S, VEC_GIVEN, 0x25ef4ed27b9b0fad, 0x7a34981a1a4d8485, {0xc24325e4, 0xc342993e, 0xc2fc627f, 0xc1ba1992}},
    {QT_IQ2_XS, VEC_GIVEN, 0xb45f4c12dd60f5a6, 0xbcf5a26db311ac85, {0xc32f0b42, 0xc35e622e, 0xc2c9293f, 0xc2831491}},
    {QT_IQ2_XS, VEC_ONES, 0x69e6facbdad0d509, 0xa6c408741e4073bd, {0xc31726e1, 0xc3759bad, 0xc2a9a779, 0xc20a104d}},
    {QT_IQ2_S, VEC_GIVEN, 0xee3d5ac04641cbf8, 0xe353fb77cda7872f, {0xc306d05a, 0xc343447a, 0xc2c772f2, 0xc1f70b93}},
    {QT_IQ2_S, VEC_ONES, 0x236511550b3e813a, 0xda540f2b9402d509, {0xc2fbda86, 0xc3538a62, 0xc2bff4a4, 0xc1ed1440}},
    {QT_IQ1_S, VEC_GIVEN, 0x9016c135c01bdf5b, 0xb43f80c70beb3b6f, {0xc296a793, 0xc34ab47e, 0xc2a9ae1a, 0xc2aa5f45}},
    {QT_IQ1_S, VEC_ONES, 0xc3de25890094fe8d, 0x0c367b3445d9de39, {0xc2cd6cde, 0xc3504f6e, 0xc25105cb, 0xc1705780}},
    {QT_Q2_0, VEC_PLAIN, 0x3adff549a3c40531, 0x3751f1aa088611a2, {0xc3113555, 0xc368bd9f, 0xc2b8e034, 0xc2c6e1d9}},
    {QT_Q1_0, VEC_PLAIN, 0x8c2dd13395a079d8, 0x2528d239b254c325, {0xc25f3a37, 0xc32b90aa, 0xc2e4e756, 0x41f4e430}},
    {QT_TQ1_0, VEC_PLAIN, 0x335a469de7bafd2c, 0x6751911227991e56, {0xc326ed0d, 0xc36c298a, 0xc2b7b7d0, 0xc2dbaaf0}},
    {QT_TQ2_0, VEC_PLAIN, 0x649c1dd11f7600fc, 0x6751911227991e56, {0xc326ed0d, 0xc36c298a, 0xc2b7b7d0, 0xc2dbaaf0}},
    {QT_NVFP4, VEC_PLAIN, 0xb557b6e09ea96f73, 0x9711cc78f68d72a1, {0xc3119288, 0xc34d7ebc, 0xc2da7154, 0xc1bd6474}},
    {QT_Q4_0, VEC_GIVEN, 0x2aff3a75561519a9, 0x781f6318bd352767, {0xc30f57d4, 0xc33fc7ad, 0xc2b92787, 0xc1bb3a1a}},
    {QT_Q5_K, VEC_GIVEN, 0xda51170c36957e53, 0x421801a42fbaeee7, {0xc30f5401, 0xc340ba71, 0xc2b665c4, 0xc1947e1e}},
    {QT_Q6_K, VEC_GIVEN, 0xfe47449b07787f64, 0x7c67b16da9802ecb, {0xc3102675, 0xc3455e20, 0xc2be1490, 0xc19e78f8}},
};
const int vec_n_encoded = sizeof vec_encoded / sizeof *vec_encoded;

bool vec_isa_tested(enum quant_isa isa)
{
    if (!quant_isa_usable(isa)) return false;
    return !getenv("TEST_ISA") || isa == QUANT_SCALAR || isa == quant_isa_best();
}
