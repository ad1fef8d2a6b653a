/* Scalar conversions and the table of types (spec gguf-and-quants 2.1, 2.2). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>
#include "quant/quant.h"
#include "quant/quant_grid_blocks.h"
#include "../support/quant_vectors.h"

static void test_f16_values(void **state)
{
    for (uint32_t h = 0; h < 0x10000; h++) {
        const int e = h >> 10 & 31, m = h & 1023;
        const float f = f16_to_f32((uint16_t)h), a = fabsf(f);
        assert_int_equal(signbit(f) != 0, h >> 15);
        if (e == 31)
            assert_true(m ? isnan(f) : isinf(f));
        else
            assert_true(a == (e ? ldexpf(1 + (float)m / 1024, e - 15) : ldexpf((float)m, -24)));
        if (!isnan(f)) assert_int_equal(f32_to_f16(f), h);
    }
}

/* Around the middle between neighbours: below goes down, above goes up, the middle to the even one. */
static void test_f16_rounding(void **state)
{
    for (uint32_t h = 0; h < 0x7bff; h++) {
        const float middle = (f16_to_f32((uint16_t)h) + f16_to_f32((uint16_t)(h + 1))) / 2;
        const uint32_t even = h % 2 ? h + 1 : h;
        assert_int_equal(f32_to_f16(middle), even);
        assert_int_equal(f32_to_f16(-middle), even | 0x8000);
        assert_int_equal(f32_to_f16(nextafterf(middle, 0)), h);
        assert_int_equal(f32_to_f16(nextafterf(middle, INFINITY)), h + 1);
    }
    assert_int_equal(f32_to_f16(65520), 0x7c00);
    assert_int_equal(f32_to_f16(nextafterf(65520, 0)), 0x7bff);
    assert_int_equal(f32_to_f16(-INFINITY), 0xfc00);
    assert_int_equal(f32_to_f16(NAN), 0x7e00);
    assert_int_equal(f32_to_f16(0x1p-149f), 0);
}

static void test_bf16(void **state)
{
    for (uint32_t h = 0; h < 0x7f80; h++) {
        assert_int_equal(f32_bits(bf16_to_f32((uint16_t)h)), h << 16);
        assert_int_equal(f32_to_bf16(bits_f32(h << 16)), h);
        assert_int_equal(f32_to_bf16(bits_f32(h << 16 | 0x7fff)), h);
        assert_int_equal(f32_to_bf16(bits_f32(h << 16 | 0x8000)), h % 2 ? h + 1 : h);
        assert_int_equal(f32_to_bf16(bits_f32(0x80000000 | h << 16 | 0x8001)), 0x8000 | (h + 1));
    }
    assert_int_equal(f32_to_bf16(bits_f32(0x7f800001)), 0x7fc0);
}

static void test_e4m3(void **state)
{
    float table[256];
    for (int i = 0; i < 256; i++) table[i] = (i & 127) == 127 ? 0 : e4m3_to_f32((uint8_t)i);
    assert_int_equal(vec_fnv(table, sizeof table), 0x854cabd1defe4645);
    assert_true(isnan(e4m3_to_f32(0x7f)) && isnan(e4m3_to_f32(0xff)));
    for (int i = 0; i < 126; i++) {
        const float middle = (table[i] + table[i + 1]) / 2;
        const int even = i % 2 ? i + 1 : i;
        assert_int_equal(f32_to_e4m3(table[i]), i);
        assert_int_equal(f32_to_e4m3(middle), even);
        assert_int_equal(f32_to_e4m3(-middle), even | 0x80);
        assert_int_equal(f32_to_e4m3(nextafterf(middle, 0)), i);
        assert_int_equal(f32_to_e4m3(nextafterf(middle, INFINITY)), i + 1);
    }
    assert_int_equal(f32_to_e4m3(448), 0x7e);
    assert_int_equal(f32_to_e4m3(1e30f), 0x7e);
    assert_int_equal(f32_to_e4m3(-INFINITY), 0xfe);
    assert_int_equal(f32_to_e4m3(-0.0f), 0);
}

static void test_e2m1(void **state)
{
    static const float values[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
    for (int i = 0; i < 8; i++) {
        assert_true(e2m1_to_f32((uint8_t)i) == values[i]);
        assert_true(e2m1_to_f32((uint8_t)(i | 8)) == -values[i]);
        assert_int_equal(f32_to_e2m1(values[i]), i);
        if (i == 7) break;
        const float middle = (values[i] + values[i + 1]) / 2;
        assert_int_equal(f32_to_e2m1(middle), i % 2 ? i + 1 : i);
        assert_int_equal(f32_to_e2m1(nextafterf(middle, 0)), i);
        assert_int_equal(f32_to_e2m1(-nextafterf(middle, 9)), (i + 1) | 8);
    }
    assert_int_equal(signbit(e2m1_to_f32(8)), 0);
    assert_int_equal(f32_to_e2m1(-100), 15);
    assert_int_equal(f32_to_e2m1(-0.0f), 0);
}

static void test_e8m0(void **state)
{
    float whole[256], half[256];
    for (int i = 0; i < 256; i++) {
        whole[i] = e8m0_to_f32((uint8_t)i);
        half[i] = mxfp4_scale((uint8_t)i);
    }
    assert_int_equal(vec_fnv(whole, sizeof whole), 0x6c528b41c33741e5);
    assert_int_equal(vec_fnv(half, sizeof half), 0x7b22ab04866e17b8);
}

/* Hash of packed entries of which the planes have the lower byte and the one from a bit on. */
static uint64_t planes_fnv(const void *planes, size_t entries, int bit)
{
    static uint16_t codes[1024];
    const uint8_t *const low = planes, *const high = low + entries;
    for (size_t i = 0; i < entries; i++) codes[i] = (uint16_t)(low[i] | high[i] << bit);
    return vec_fnv(codes, entries * sizeof codes[0]);
}

/* The nibbles of a code book are twice the numbers of its magnitudes. */
static void check_nibbles(const uint32_t *nibbles, const uint64_t *grid, int entries)
{
    static const int magnitude[3] = {8, 25, 43};
    for (int e = 0; e < entries; e++)
        for (int i = 0; i < 8; i++) {
            const uint32_t n = nibbles[e] >> (8 * (i % 4) + i / 4 * 4) & 15;
            assert_true(n % 2 == 0 && n < 6);
            assert_int_equal(magnitude[n / 2], grid[e] >> 8 * i & 255);
        }
}

/* Hashes of the published tables; values of IQ1 are kept plus one and times eight. */
static void test_code_book(void **state)
{
    uint8_t signs[128];
    for (uint32_t i = 0; i < 128; i++) signs[i] = (uint8_t)iq2_xxs_signs(i);
    assert_int_equal(vec_fnv(iq2xxs_grid, sizeof iq2xxs_grid), 0xbb4ee025b5ac6e8e);
    assert_int_equal(vec_fnv(iq2xxs_codes, sizeof iq2xxs_codes), 0x6fca17f5c451905d);
    assert_int_equal(vec_fnv(signs, sizeof signs), 0xf19ba8f8c3292ba5);
    assert_int_equal(vec_fnv(iq2xs_grid, sizeof iq2xs_grid), 0xc9b1ee61e79909bd);
    assert_int_equal(planes_fnv(iq2xs_planes, 512, 8), 0x29d6ac8e0e6b14e3);
    assert_int_equal(vec_fnv(iq2s_grid, sizeof iq2s_grid), 0x123edd38a3b62b90);
    assert_int_equal(planes_fnv(iq2s_planes, 1024, 8), 0x641f9aa3fbd98694);
    check_nibbles(iq2xxs_nibbles, iq2xxs_grid, 256);
    check_nibbles(iq2xs_nibbles, iq2xs_grid, 512);
    check_nibbles(iq2s_nibbles, iq2s_grid, 1024);
    assert_int_equal(vec_fnv(iq3xxs_grid, sizeof iq3xxs_grid), 0xdfa5dc83d6a155d5);
    assert_int_equal(planes_fnv(iq3xxs_planes, 256, 6), 0x79d733576d562547);
    assert_int_equal(vec_fnv(iq3s_grid, sizeof iq3s_grid), 0xfa37020c25b44829);
    assert_int_equal(planes_fnv(iq3s_planes, 512, 6), 0x55b224116d1e5ca2);
    assert_int_equal(vec_fnv(iq1s_book.code, sizeof iq1s_book.code), 0x03f1880817eeffa4);
    assert_int_equal(vec_fnv(iq4_levels, sizeof iq4_levels), 0x055d06d2d8fa0f75);
    static int8_t ones[8 * 2048];
    for (int i = 0; i < 8 * 2048; i++) ones[i] = (int8_t)((int)(iq1s_grid[i / 8] >> 8 * (i % 8) & 255) / 8 - 1);
    assert_int_equal(vec_fnv(ones, sizeof ones), 0x6703ed863501ae2e);
}

static void test_type_table(void **state)
{
    static const struct {
        const char *name;
        int id, block, bytes;
    } table[] = {
        {"F32", 0, 1, 4},         {"F16", 1, 1, 2},         {"Q4_0", 2, 32, 18},      {"Q4_1", 3, 32, 20},
        {"Q5_0", 6, 32, 22},      {"Q5_1", 7, 32, 24},      {"Q8_0", 8, 32, 34},      {"Q8_1", 9, 32, 36},
        {"Q2_K", 10, 256, 84},    {"Q3_K", 11, 256, 110},   {"Q4_K", 12, 256, 144},   {"Q5_K", 13, 256, 176},
        {"Q6_K", 14, 256, 210},   {"Q8_K", 15, 256, 292},   {"IQ2_XXS", 16, 256, 66}, {"IQ2_XS", 17, 256, 74},
        {"IQ3_XXS", 18, 256, 98}, {"IQ1_S", 19, 256, 50},   {"IQ4_NL", 20, 32, 18},   {"IQ3_S", 21, 256, 110},
        {"IQ2_S", 22, 256, 82},   {"IQ4_XS", 23, 256, 136}, {"I8", 24, 1, 1},         {"I16", 25, 1, 2},
        {"I32", 26, 1, 4},        {"I64", 27, 1, 8},        {"F64", 28, 1, 8},        {"IQ1_M", 29, 256, 56},
        {"BF16", 30, 1, 2},       {"TQ1_0", 34, 256, 54},   {"TQ2_0", 35, 256, 66},   {"MXFP4", 39, 32, 17},
        {"NVFP4", 40, 64, 36},    {"Q1_0", 41, 128, 18},    {"Q2_0", 42, 64, 18},
    };
    enum { N = sizeof table / sizeof table[0] };
    int known = 0;
    for (int i = 0; i < N; i++) {
        const struct quant_type *t = quant_type((uint32_t)table[i].id);
        assert_non_null(t);
        assert_string_equal(t->name, table[i].name);
        assert_int_equal(t->block, table[i].block);
        assert_int_equal(t->block_bytes, table[i].bytes);
        assert_int_equal(quant_type_by_name(table[i].name), table[i].id);
    }
    assert_string_equal(quant_type(QT_Q2_0_128)->name, "Q2_0_128");
    assert_string_equal(quant_type(QT_MXFP8)->name, "MXFP8");
    assert_int_equal(quant_type_by_name("mxfp8-sf"), QT_MXFP8_SF);
    assert_int_equal(quant_row_bytes(QT_MXFP8_SF, 512), 528);
    assert_null(quant_type(QT_READINGS_END));
    for (uint32_t id = 0; id < 500; id++) known += quant_type(id) != NULL;
    assert_int_equal(known, N);
    assert_int_equal(quant_type_by_name("iq2-xxs"), QT_IQ2_XXS);
    assert_int_equal(quant_type_by_name("mxfp4"), QT_MXFP4);
    assert_int_equal(quant_type_by_name("Q4"), -1);
    assert_int_equal(quant_type_by_name("Q4_KX"), -1);
    assert_int_equal(quant_type_by_name(""), -1);
}

static void test_row_bytes(void **state)
{
    assert_int_equal(quant_row_bytes(QT_Q8_0, 4096), 4352);
    assert_int_equal(quant_row_bytes(QT_IQ2_XXS, 4096), 1056);
    assert_int_equal(quant_row_bytes(QT_Q4_K, 128), 0);
    assert_int_equal(quant_row_bytes(QT_F32, -4), 0);
    assert_int_equal(quant_row_bytes(QT_F64, INT64_MAX), 0);
    assert_int_equal(quant_row_bytes(5, 256), 0);
}

static void test_integers(void **state)
{
    const int32_t in[4] = {0, -7, 129279, INT32_MIN};
    float out[4];
    quant_type(QT_I32)->decode(in, out, 4);
    for (int i = 0; i < 4; i++) assert_true(out[i] == (float)in[i]);
}

static void test_encode_refuses(void **state)
{
    float x[256] = {0}, w[256] = {0};
    uint8_t out[256];
    assert_int_equal(quant_encode(QT_Q2_K, x, 256, NULL, out), 0);
    assert_true(quant_encode(QT_Q2_K, x, 128, NULL, out) < 0);
    assert_true(quant_encode(QT_IQ2_XXS, x, 256, NULL, out) < 0);
    assert_true(quant_encode(QT_Q6_K, x, 256, NULL, out) < 0);
    assert_true(quant_encode(99, x, 256, NULL, out) < 0);
    w[3] = -1;
    assert_true(quant_encode(QT_Q2_K, x, 256, w, out) < 0);
    x[255] = INFINITY;
    assert_true(quant_encode(QT_Q2_K, x, 256, NULL, out) < 0);
}

/* Rows of zeros and of subnormal values encode without undefined behaviour and decode to (nearly) zero. */
static void test_encode_tiny(void **state)
{
    static const uint32_t types[] = {QT_Q8_0, QT_Q4_0, QT_Q4_K, QT_Q5_K, QT_Q2_K, QT_IQ2_XXS, QT_MXFP4};
    float x[512] = {0}, w[512], got[512];
    for (int i = 0; i < 512; i++) w[i] = 1;
    for (int i = 256; i < 512; i++) x[i] = (float)(i % 5 - 2) * 1e-42f;
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
        uint8_t out[1024];
        assert_int_equal(quant_encode(types[t], x, 512, w, out), 0);
        quant_type(types[t])->decode(out, got, 512);
        for (int i = 0; i < 512; i++) assert_true(fabsf(got[i]) <= (i < 256 ? 0 : 1e-37f));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_f16_values), cmocka_unit_test(test_f16_rounding),   cmocka_unit_test(test_bf16),
        cmocka_unit_test(test_e4m3),       cmocka_unit_test(test_e2m1),           cmocka_unit_test(test_e8m0),
        cmocka_unit_test(test_code_book),  cmocka_unit_test(test_type_table),     cmocka_unit_test(test_row_bytes),
        cmocka_unit_test(test_integers),   cmocka_unit_test(test_encode_refuses), cmocka_unit_test(test_encode_tiny),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
