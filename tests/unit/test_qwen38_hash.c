/* The n-gram hash of Qwen3.8 against written-down values (spec qwen38 3.4, 12.2). */
#include "models/qwen38/qwen38_internal.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static void test_hash(void **state)
{
    static const int token[8] = {4, 9, 2, 6, 9, 9, 5, 3};
    static const uint32_t want[8][4] = {{0, 18, 37, 52}, {4, 13, 38, 51},  {10, 15, 27, 42}, {2, 22, 29, 42},
                                        {5, 16, 35, 52}, {10, 13, 33, 50}, {1, 19, 36, 51},  {5, 14, 37, 50}};
    const struct qwen38_shape s = {.G = 3,
                                   .P = 2,
                                   .Np = 4,
                                   .eos = 9,
                                   .mul = (uint64_t[]){3, 5, 7},
                                   .voc = (uint64_t[]){11, 13, 17, 19},
                                   .off = (uint64_t[]){0, 11, 24, 41}};
    for (int i = 0; i < 8; i++) {
        uint32_t row[4];
        const int32_t before[2] = {i > 0 ? token[i - 1] : 9, i > 1 ? token[i - 2] : 9};
        qwen38_hash(&s, token[i], before, row);
        assert_memory_equal(row, want[i], sizeof row);
    }
    const struct qwen38_shape wraps = {.G = 2,
                                       .P = 1,
                                       .Np = 1,
                                       .eos = 9,
                                       .mul = (uint64_t[]){7191089600892374487u, 11409396526365357623u},
                                       .voc = (uint64_t[]){101},
                                       .off = (uint64_t[]){0}};
    uint32_t row;
    qwen38_hash(&wraps, 11, &(int32_t){9}, &row);
    assert_int_equal(row, 62);
}

/* The constants of the published checkpoint. */
static void test_published_hash(void **state)
{
    static uint64_t voc[16] = {20000003, 20000023, 20000033, 20000047, 20000059, 20000063, 20000069, 20000077,
                               20000081, 20000093, 20000107, 20000147, 20000153, 20000159, 20000161, 20000171};
    static const uint32_t want[2][16] = {
        {16410909, 39682429, 55103279, 60931720, 87006904, 116506179, 131512017, 152932897, 169641436, 182022480,
         209277433, 237891023, 256841529, 277007269, 290665954, 300984276},
        {19556458, 22264623, 53735970, 65927109, 87927175, 108618915, 139679979, 141138361, 162871545, 189762108,
         212811403, 237189125, 244117366, 271377476, 287204615, 306892687}};
    uint64_t off[16] = {0};
    for (int h = 1; h < 16; h++) off[h] = off[h - 1] + voc[h - 1];
    const struct qwen38_shape s = {.G = 3,
                                   .P = 8,
                                   .Np = 16,
                                   .eos = 248044,
                                   .mul = (uint64_t[]){23703573157769u, 20109073645365u, 8052911324071u},
                                   .voc = voc,
                                   .off = off};
    uint32_t row[16];
    qwen38_hash(&s, 9707, (const int32_t[]){248044, 248044}, row);
    assert_memory_equal(row, want[0], sizeof row);
    qwen38_hash(&s, 1879, (const int32_t[]){9707, 248044}, row);
    assert_memory_equal(row, want[1], sizeof row);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hash),
        cmocka_unit_test(test_published_hash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
