/* Activation rows: layout, definition of the quantisers, equal bits of the kernel sets, values that are not numbers. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "quant/quant_internal.h"
#include "../support/quant_vectors.h"

enum { K = 1000, KP = 1024 };

static float x[KP];
static _Alignas(64) char row[8192];

static void fill(float size)
{
    uint32_t state = 5;
    memset(x, 0, sizeof x);
    for (int i = 0; i < K; i++) x[i] = (float)(int32_t)vec_xorshift(&state) * 0x1p-31f * size;
}

static void test_layout(void **state)
{
    assert_int_equal(act_block(ACT_F32), 1);
    assert_int_equal(act_block(ACT_Q8_0), 32);
    assert_int_equal(act_block(ACT_Q8_K), 256);
    assert_int_equal(act_row_bytes(ACT_F32, 1000), 4032);
    assert_int_equal(act_row_bytes(ACT_Q8_0, 1024), 1024 + 128 + 128 + 128);
    assert_int_equal(act_row_bytes(ACT_Q8_K, 1000), 1216); /* 1024 + 16 + 128 = 1168, a multiple of 64 */
    assert_ptr_equal(act_d(ACT_Q8_0, row, 1000), row + 1024);
    assert_ptr_equal(act_d(ACT_Q8_K, row, 1000), row + 1024);
    assert_ptr_equal(act_offset(row, 1000), row + 1024 + 128);
    assert_ptr_equal(act_sum(row, 1000), row + 1024 + 256);
    assert_ptr_equal(act_bsums(row, 1000), row + 1024 + 16);
}

static void test_f32(void **state)
{
    float out[K];
    fill(1);
    act_quantise(ACT_F32, x, K, row);
    act_decode(ACT_F32, row, K, out);
    assert_memory_equal(out, x, sizeof out);
}

/* Written from the formula, with the nearest-even rounding of the C library. */
static void test_q8_0_definition(void **state)
{
    fill(3);
    act_quantise(ACT_Q8_0, x, K, row);
    float out[K];
    act_decode(ACT_Q8_0, row, K, out);
    for (int b = 0; b < KP / 32; b++) {
        float max = 0;
        for (int i = 0; i < 32; i++) max = fmaxf(max, fabsf(x[32 * b + i]));
        const float d = max / 127;
        assert_true(act_d(ACT_Q8_0, row, K)[b] == d);
        int sum = 0;
        for (int i = 0; i < 32; i++) sum += ((int8_t *)row)[32 * b + i];
        assert_int_equal(act_offset(row, K)[b], -128 * sum);
        assert_true(act_sum(row, K)[b] == (float)sum * d);
        for (int i = 0; i < 32; i++) {
            const int q = (int)nearbyintf(x[32 * b + i] * (1 / d));
            assert_int_equal(((int8_t *)row)[32 * b + i], q);
            if (32 * b + i < K) assert_true(out[32 * b + i] == (float)q * d);
        }
    }
}

static void test_q8_k_definition(void **state)
{
    fill(3);
    x[300] = 5;
    x[301] = -5; /* the first of equal magnitudes counts */
    act_quantise(ACT_Q8_K, x, K, row);
    const int8_t *q = (const int8_t *)row;
    assert_int_equal(q[300], -127);
    assert_int_equal(q[301], 127);
    assert_true(act_d(ACT_Q8_K, row, K)[1] == 1 / (-127 / 5.0f));
    for (int i = 0; i < KP; i++)
        if (i / 256 == 1) assert_int_equal(q[i], (int)nearbyintf(-127 / 5.0f * x[i]));
    for (int s = 0; s < KP / 16; s++) {
        int sum = 0;
        for (int i = 0; i < 16; i++) sum += q[16 * s + i];
        assert_int_equal(act_bsums(row, K)[s], sum);
    }
}

/* Codes, scales and sums of all blocks of x, of one kernel set. */
struct quantised {
    int8_t q8_0[KP], q8_k[KP];
    float d8_0[KP / 32], d8_k[KP / 256];
    int32_t offset[KP / 32];
    int16_t sums[KP / 16];
};

static void quantise(enum quant_isa isa, struct quantised *out)
{
    const struct quant_act_set set = quant_act_set(isa);
    set.q8_0(x, KP / 32, out->q8_0, out->d8_0, out->offset);
    set.q8_k(x, KP / 256, out->q8_k, out->d8_k, out->sums);
}

/* Returns the scalar set's hash. */
static uint64_t check_equal_sets(void)
{
    static struct quantised want, got;
    quantise(QUANT_SCALAR, &want);
    for (int isa = QUANT_SCALAR + 1; isa < QUANT_ISA_COUNT; isa++) {
        if (!quant_isa_usable((enum quant_isa)isa)) continue;
        quantise((enum quant_isa)isa, &got);
        assert_memory_equal(&got, &want, sizeof want);
    }
    for (int i = 0; i < KP; i++) assert_true(want.q8_0[i] >= -127 && want.q8_k[i] >= -127);
    return vec_fnv(&want, sizeof want);
}

/* The hash over everything is the same on every kind of processor. */
static void test_sets_agree(void **state)
{
    static const float sizes[] = {1, 1e-3f, 1e38f, 1e-30f, 1e-36f, 1e-37f, 1e-42f, 0};
    uint64_t hash = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        fill(sizes[i]);
        hash = hash * 31 + check_equal_sets();
        for (int j = 0; j < KP; j++) x[j] = (float)(j % 255 - 127) * sizes[i]; /* ties and exact codes */
        hash = hash * 31 + check_equal_sets();
        for (int j = 0; j < KP; j++) x[j] *= 0.5f;
        hash = hash * 31 + check_equal_sets();
    }
    fill(1);
    x[40] = NAN;
    x[300] = -INFINITY;
    hash = hash * 31 + check_equal_sets();
    assert_int_equal(hash, 0x560565d6157ca3f7);
}

static void test_not_finite(void **state)
{
    const enum act_format formats[] = {ACT_Q8_0, ACT_Q8_K};
    for (int f = 0; f < 2; f++) {
        const int block = act_block(formats[f]);
        fill(1);
        x[3] = NAN;
        x[block + 3] = INFINITY;
        act_quantise(formats[f], x, K, row);
        for (int b = 0; b < 3; b++) {
            assert_int_equal(isnan(act_d(formats[f], row, K)[b]) != 0, b < 2);
            for (int i = 0; b < 2 && i < block; i++) assert_int_equal(((int8_t *)row)[b * block + i], 0);
        }
    }
}

static void test_too_small(void **state)
{
    for (int i = 0; i < KP; i++) x[i] = 1e-42f;
    act_quantise(ACT_Q8_0, x, KP, row);
    assert_true(act_d(ACT_Q8_0, row, KP)[0] == 0 && row[0] == 0);
    act_quantise(ACT_Q8_K, x, KP, row);
    assert_true(act_d(ACT_Q8_K, row, KP)[3] == 0 && row[1023] == 0 && act_bsums(row, KP)[63] == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layout),          cmocka_unit_test(test_f32),
        cmocka_unit_test(test_q8_0_definition), cmocka_unit_test(test_q8_k_definition),
        cmocka_unit_test(test_sets_agree),      cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_too_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
