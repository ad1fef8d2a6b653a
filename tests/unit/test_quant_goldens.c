/* Every block type on random blocks, and on blocks with scales at the ends of their range, against an independent
 * decoder and its dot products: hashes that tests/oracle/quant_goldens.py computed (tests/golden/quant_types.txt), with
 * every kernel set. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "../support/quant_vectors.h"
#include "quant/quant.h"
#include "quant/quant_sound.h"

enum { BLOCKS = 64, MOST_VALUES = BLOCKS * 256, MOST_BYTES = BLOCKS * 300 };

static uint8_t blocks[MOST_BYTES];
static float y[MOST_VALUES], values[MOST_VALUES];

static void make_activations(void)
{
    uint32_t state = 0x5eed;
    for (int i = 0; i < MOST_VALUES; i++) y[i] = (float)(int32_t)vec_xorshift(&state) * 0x1p-31f;
}

static uint32_t oracle_number(uint32_t type)
{
    return type == QT_Q2_0_128 ? 142 : type == QT_MXFP8 ? 200 : type == QT_MXFP8_SF ? 201 : type;
}

static void make_blocks(uint32_t type, int set)
{
    static const uint16_t special[8] = {0, 0x8000, 1, 0x03ff, 0x0400, 0x3c00, 0x7bff, 0xfbff};
    const size_t size = quant_type(type)->block_bytes;
    uint32_t state = 0xb10c0000 | (uint32_t)set << 8 | oracle_number(type);
    int at[2];
    for (size_t i = 0; i < BLOCKS * size; i += 4) {
        const uint32_t v = vec_xorshift(&state);
        memcpy(blocks + i, &v, 4);
    }
    vec_finite_blocks(type, blocks, BLOCKS * size);
    for (int n = 0; set == 2 && n < quant_f16_scales(type, at); n++)
        for (size_t b = 0; b < BLOCKS; b++) memcpy(blocks + b * size + at[n], &special[b / (1 + 7 * (size_t)n) % 8], 2);
}

/* Hash of the dots of rows of 8 blocks of 256 values, or of 16 smaller ones. */
static uint64_t dots(uint32_t type, enum quant_isa isa)
{
    const struct quant_type *const t = quant_type(type);
    const int row = t->block == 256 ? 8 : 16, k = row * t->block;
    float out[BLOCKS];
    void *const act = aligned_alloc(64, act_row_bytes(t->act, k));
    for (int r = 0; r < BLOCKS / row; r++) {
        act_quantise(t->act, y + r * k, k, act);
        quant_tile(isa, type)(k, blocks + (size_t)(r * row) * t->block_bytes, 0, 1, act, 0, 1, &out[r], 1);
    }
    free(act);
    return vec_fnv_floats(out, (size_t)(BLOCKS / row));
}

static void check_line(const char *name, int set, const unsigned long long want[3])
{
    const int id = quant_type_by_name(name);
    if (id < 0) fail_msg("%s is unknown", name);
    const uint32_t type = (uint32_t)id;
    const struct quant_type *const t = quant_type(type);
    make_blocks(type, set);
    if (vec_fnv(blocks, (size_t)BLOCKS * t->block_bytes) != want[0]) fail_msg("%s, set %d: other blocks", name, set);
    t->decode(blocks, values, (int64_t)BLOCKS * t->block);
    if (vec_fnv(values, (size_t)BLOCKS * t->block * sizeof *values) != want[1])
        fail_msg("%s, set %d: other values", name, set);
    for (int isa = 0; want[2] && isa < QUANT_ISA_COUNT; isa++)
        if (quant_isa_usable((enum quant_isa)isa) && dots(type, (enum quant_isa)isa) != want[2])
            fail_msg("%s, set %d: other dots of %s", name, set, quant_isa_name((enum quant_isa)isa));
}

static void all_types_are_the_oracles(void **state)
{
    FILE *const f = fopen("tests/golden/quant_types.txt", "r");
    char name[32];
    int set, lines = 0;
    unsigned long long want[3];
    assert_non_null(f);
    make_activations();
    while (fscanf(f, "%31s %d %llx %llx %llx", name, &set, &want[0], &want[1], &want[2]) == 5) {
        check_line(name, set, want);
        lines++;
    }
    fclose(f);
    assert_int_equal(lines, 3 * 30); /* every block type, three times */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_types_are_the_oracles)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
