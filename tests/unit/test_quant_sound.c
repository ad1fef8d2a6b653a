/* Every type that can hold a NaN or an infinity: it is found in whichever block and scale it is, and a block without
 * one is sound. Decoders are the judges of what is unsound, but where a
 * scale is not used (Q8_1) or NaN is read as a number (NVFP4). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>
#include "quant/quant.h"
#include "quant/quant_sound.h"

enum { N = 3000, MOST_BYTES = 300 };

static uint8_t blocks[N * MOST_BYTES];

/* Bytes in which no scale is unsound: the two highest bits of a number's exponent are never set together. */
static void fill(size_t n)
{
    uint32_t x = 1;
    for (size_t i = 0; i < n; i++) {
        x = x * 1664525 + 1013904223;
        blocks[i] = (uint8_t)(x >> 24) & 0xBF & 0x9F;
    }
}

static bool decodes_to_finite(uint32_t type, const uint8_t *block)
{
    const struct quant_type *q = quant_type(type);
    float v[256];
    quant_type(type)->decode(block, v, q->block);
    for (int i = 0; i < q->block; i++)
        if (!isfinite(v[i])) return false;
    return true;
}

static const struct place {
    uint32_t type;
    int at; /* byte of the block where the number ends */
    uint8_t low, high;
} places[] = {
    {QT_F32, 3, 0x80, 0x7F},   {QT_F16, 1, 0, 0x7C},      {QT_BF16, 1, 0xC0, 0x7F},  {QT_F64, 7, 0xF0, 0x7F},
    {QT_Q4_0, 1, 0, 0x7E},     {QT_Q4_1, 1, 0, 0xFC},     {QT_Q4_1, 3, 0, 0x7C},     {QT_Q5_0, 1, 0, 0x7C},
    {QT_Q5_1, 1, 0, 0x7C},     {QT_Q5_1, 3, 0, 0x7C},     {QT_Q8_0, 1, 0, 0x7C},     {QT_Q8_1, 3, 0, 0x7C},
    {QT_Q2_K, 81, 0, 0x7C},    {QT_Q2_K, 83, 0, 0x7C},    {QT_Q3_K, 109, 0, 0x7C},   {QT_Q4_K, 1, 0, 0x7C},
    {QT_Q4_K, 3, 0, 0x7C},     {QT_Q5_K, 1, 0, 0x7C},     {QT_Q5_K, 3, 0, 0x7C},     {QT_Q6_K, 209, 0, 0x7C},
    {QT_Q8_K, 3, 0x80, 0x7F},  {QT_IQ2_XXS, 1, 0, 0x7C},  {QT_IQ2_XS, 1, 0, 0x7C},   {QT_IQ3_XXS, 1, 0, 0x7C},
    {QT_IQ1_S, 1, 0, 0x7C},    {QT_IQ4_NL, 1, 0, 0x7C},   {QT_IQ3_S, 1, 0, 0x7C},    {QT_IQ2_S, 1, 0, 0x7C},
    {QT_IQ4_XS, 1, 0, 0x7C},   {QT_TQ1_0, 53, 0, 0x7C},   {QT_TQ2_0, 65, 0, 0x7C},   {QT_MXFP4, 0, 0xFF, 0xFF},
    {QT_NVFP4, 0, 0x7F, 0x7F}, {QT_NVFP4, 3, 0x7F, 0x7F}, {QT_Q1_0, 1, 0, 0x7C},     {QT_Q2_0, 1, 0, 0x7C},
    {QT_Q2_0_128, 1, 0, 0x7C}, {QT_MXFP8, 7, 0, 0x7F},    {QT_MXFP8, 255, 0, 0xFF},  {QT_MXFP8, 256, 0, 0xFF},
    {QT_MXFP8, 263, 0, 0xFF},  {QT_MXFP8_SF, 7, 0, 0xFF}, {QT_MXFP8_SF, 8, 0, 0x7F}, {QT_MXFP8_SF, 263, 0, 0xFF},
};

static void every_scale_of_every_type_is_looked_at(void **state)
{
    static const int where[] = {0, 1, 1023, 1024, 1025, N - 1};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const struct place *p = &places[i];
        const size_t bytes = quant_type(p->type)->block_bytes;
        for (size_t k = 0; k < sizeof where / sizeof *where; k++) {
            uint8_t *block = blocks + (size_t)where[k] * bytes;
            fill(N * bytes);
            if (quant_first_unsound(p->type, blocks, N) != -1) fail_msg("%s is sound", quant_type(p->type)->name);
            if (p->at) block[p->at - 1] |= p->low;
            block[p->at] = p->high;
            if (quant_first_unsound(p->type, blocks, N) != where[k])
                fail_msg("%s, byte %d of block %d", quant_type(p->type)->name, p->at, where[k]);
            assert_int_equal(quant_first_unsound(p->type, blocks, where[k]), -1);
            if (p->type != QT_F64 && p->type != QT_NVFP4 && p->type != QT_Q8_1)
                assert_false(decodes_to_finite(p->type, block));
        }
    }
}

/* IQ1_M's scale is in pieces: four bits in each of four numbers. */
static void scale_in_pieces(void **state)
{
    const size_t bytes = quant_type(QT_IQ1_M)->block_bytes;
    fill(4 * bytes);
    for (int i = 0; i < 4; i++) blocks[2 * bytes + 48 + (size_t)i * 2 + 1] &= 0x0F;
    assert_int_equal(quant_first_unsound(QT_IQ1_M, blocks, 4), -1);
    blocks[2 * bytes + 48 + 7] |= 0x70; /* d = 0x7000: large, and finite */
    assert_int_equal(quant_first_unsound(QT_IQ1_M, blocks, 4), -1);
    blocks[2 * bytes + 48 + 5] |= 0xC0; /* d = 0x7C00 */
    assert_int_equal(quant_first_unsound(QT_IQ1_M, blocks, 4), 2);
}

/* Every type that a file can have is either in the table or one of whole numbers. */
static void no_type_is_left_out(void **state)
{
    for (uint32_t id = 0; id < QT_READINGS_END; id++) {
        if (id == 256) id = QT_READINGS;
        const bool whole = id == QT_I8 || id == QT_I16 || id == QT_I32 || id == QT_I64;
        if (quant_type(id) && quant_can_be_unsound(id) == whole) fail_msg("%s", quant_type(id)->name);
        if (!quant_type(id)) assert_false(quant_can_be_unsound(id));
    }
    assert_int_equal(quant_first_unsound(QT_I32, blocks, 10), -1);
    assert_int_equal(quant_first_unsound(4, blocks, 10), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_scale_of_every_type_is_looked_at),
        cmocka_unit_test(scale_in_pieces),
        cmocka_unit_test(no_type_is_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
