/* Blocks written by hand (spec more-quants 2.1, 2.2), and that no block type is left out. */
#include "quant/quant.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

/* Nibbles: value i is i, value 16 + i is 15 - i. */
static void nibbles(uint8_t *qs)
{
    for (int i = 0; i < 16; i++) qs[i] = (uint8_t)(i | (15 - i) << 4);
}

static int nibble(int i)
{
    return i < 16 ? i : 31 - i;
}

static void put_half(uint8_t *p, float v)
{
    const uint16_t h = f32_to_f16(v);
    memcpy(p, &h, sizeof h);
}

/* Decodes two equal blocks and gives the second. */
static void decode(uint32_t type, const uint8_t *block, float out[32])
{
    uint8_t twice[2 * 64];
    float both[64];
    const size_t n = quant_row_bytes(type, 32);
    memcpy(twice, block, n);
    memcpy(twice + n, block, n);
    quant_type(type)->decode(twice, both, 64);
    assert_memory_equal(both, both + 32, 32 * sizeof *both);
    memcpy(out, both, 32 * sizeof *out);
}

static void four_bits(void **state)
{
    uint8_t block[20];
    float out[32];
    put_half(block, 0.5f), put_half(block + 2, -2), nibbles(block + 4);
    decode(QT_Q4_1, block, out);
    for (int i = 0; i < 32; i++) assert_true(out[i] == 0.5f * (float)nibble(i) - 2);
}

static void five_bits(void **state)
{
    uint8_t block[24];
    float out[32];
    const uint32_t high = 0x80010001; /* values 0, 16 and 31 */
    put_half(block, 0.25f), memcpy(block + 2, &high, 4), nibbles(block + 6);
    decode(QT_Q5_0, block, out);
    for (int i = 0; i < 32; i++)
        assert_true(out[i] == 0.25f * (float)(nibble(i) + (i == 0 || i == 16 || i == 31 ? 0 : -16)));
    put_half(block + 2, 3), memcpy(block + 4, &high, 4), nibbles(block + 8);
    decode(QT_Q5_1, block, out);
    for (int i = 0; i < 32; i++)
        assert_true(out[i] == 0.25f * (float)(nibble(i) + (i == 0 || i == 16 || i == 31 ? 16 : 0)) + 3);
}

static void levels(void **state)
{
    static const int level[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
    uint8_t block[18];
    float out[32];
    put_half(block, 0.125f), nibbles(block + 2);
    decode(QT_IQ4_NL, block, out);
    for (int i = 0; i < 32; i++) assert_true(out[i] == 0.125f * (float)level[nibble(i)]);
}

/* What can be decoded can be multiplied, by every kernel set; all block types can. */
static void every_type(void **state)
{
    for (uint32_t id = 0; id < QT_READINGS_END; id++) {
        const struct quant_type *t = quant_type(id);
        if (id == 64) id = QT_READINGS - 1;
        if (!t) continue;
        if (t->block > 1) assert_non_null(t->decode);
        for (int isa = 0; isa < QUANT_ISA_COUNT; isa++)
            assert_int_equal(quant_tile((enum quant_isa)isa, id) != NULL, t->decode && id != QT_I32);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(four_bits), cmocka_unit_test(five_bits),
                                       cmocka_unit_test(levels), cmocka_unit_test(every_type)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
