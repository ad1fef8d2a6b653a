/* The table of published block types (spec gguf-and-quants 2.1). Removed and foreign numbers have no entry, so a file
 * that uses one is refused by number and never mistaken for something else. */
#include "quant/quant_internal.h"

static const struct quant_type types[] = {
    /* number       name     values bytes */
    [QT_F32] = {"F32", 1, 4, quant_decode_f32, ACT_F32},
    [QT_F16] = {"F16", 1, 2, quant_decode_f16, ACT_F32},
    [QT_Q4_0] = {"Q4_0", 32, 18, quant_decode_q4_0, ACT_Q8_0},
    [QT_Q4_1] = {"Q4_1", 32, 20, quant_decode_q4_1, ACT_Q8_0},
    [QT_Q5_0] = {"Q5_0", 32, 22, quant_decode_q5_0, ACT_Q8_0},
    [QT_Q5_1] = {"Q5_1", 32, 24, quant_decode_q5_1, ACT_Q8_0},
    [QT_Q8_0] = {"Q8_0", 32, 34, quant_decode_q8_0, ACT_Q8_0},
    [QT_Q8_1] = {"Q8_1", 32, 36, quant_decode_q8_1, ACT_F32},
    [QT_Q2_K] = {"Q2_K", 256, 84, quant_decode_q2_k, ACT_Q8_K},
    [QT_Q3_K] = {"Q3_K", 256, 110, quant_decode_q3_k, ACT_Q8_K},
    [QT_Q4_K] = {"Q4_K", 256, 144, quant_decode_q4_k, ACT_Q8_K},
    [QT_Q5_K] = {"Q5_K", 256, 176, quant_decode_q5_k, ACT_Q8_K},
    [QT_Q6_K] = {"Q6_K", 256, 210, quant_decode_q6_k, ACT_Q8_K},
    [QT_Q8_K] = {"Q8_K", 256, 292, quant_decode_q8_k, ACT_F32},
    [QT_IQ2_XXS] = {"IQ2_XXS", 256, 66, quant_decode_iq2_xxs, ACT_Q8_K},
    [QT_IQ2_XS] = {"IQ2_XS", 256, 74, quant_decode_iq2_xs, ACT_Q8_K},
    [QT_IQ3_XXS] = {"IQ3_XXS", 256, 98, quant_decode_iq3_xxs, ACT_Q8_K},
    [QT_IQ1_S] = {"IQ1_S", 256, 50, quant_decode_iq1_s, ACT_Q8_K},
    [QT_IQ4_NL] = {"IQ4_NL", 32, 18, quant_decode_iq4_nl, ACT_Q8_0},
    [QT_IQ3_S] = {"IQ3_S", 256, 110, quant_decode_iq3_s, ACT_Q8_K},
    [QT_IQ2_S] = {"IQ2_S", 256, 82, quant_decode_iq2_s, ACT_Q8_K},
    [QT_IQ4_XS] = {"IQ4_XS", 256, 136, quant_decode_iq4_xs, ACT_Q8_K},
    [QT_I8] = {"I8", 1, 1},
    [QT_I16] = {"I16", 1, 2},
    [QT_I32] = {"I32", 1, 4, quant_decode_i32, ACT_F32},
    [QT_I64] = {"I64", 1, 8},
    [QT_F64] = {"F64", 1, 8},
    [QT_IQ1_M] = {"IQ1_M", 256, 56, quant_decode_iq1_m, ACT_Q8_K},
    [QT_BF16] = {"BF16", 1, 2, quant_decode_bf16, ACT_F32},
    [QT_TQ1_0] = {"TQ1_0", 256, 54, quant_decode_tq1_0, ACT_Q8_K},
    [QT_TQ2_0] = {"TQ2_0", 256, 66, quant_decode_tq2_0, ACT_Q8_K},
    [QT_MXFP4] = {"MXFP4", 32, 17, quant_decode_mxfp4, ACT_Q8_0},
    [QT_NVFP4] = {"NVFP4", 64, 36, quant_decode_nvfp4, ACT_Q8_0},
    [QT_Q1_0] = {"Q1_0", 128, 18, quant_decode_q1_0, ACT_Q8_0},
    [QT_Q2_0] = {"Q2_0", 64, 18, quant_decode_q2_0, ACT_Q8_0},
    [SLOT_Q2_0_128] = {"Q2_0_128", 128, 34, quant_decode_q2_0_128, ACT_Q8_0},
    [SLOT_MXFP8] = {"MXFP8", 256, 264, quant_decode_mxfp8, ACT_F32},
    [SLOT_MXFP8_SF] = {"MXFP8_SF", 256, 264, quant_decode_mxfp8_sf, ACT_F32},
};
_Static_assert(sizeof types / sizeof types[0] == QUANT_SLOTS, "every slot has a row");

int quant_slot(uint32_t id)
{
    const uint32_t slot = id < QT_READINGS ? id : id - QT_READINGS + SLOT_Q2_0_128;
    const bool there = id < SLOT_Q2_0_128 || (id >= QT_READINGS && id < QT_READINGS_END);
    return there && types[slot].name ? (int)slot : -1;
}

const struct quant_type *quant_type(uint32_t id)
{
    const int slot = quant_slot(id);
    return slot < 0 ? NULL : &types[slot];
}

/* Names are compared in upper case with '_' for '-'. */
static int canonical(char c)
{
    if (c >= 'a' && c <= 'z') return c - 'a' + 'A';
    return c == '-' ? '_' : c;
}

static bool same_name(const char *a, const char *b)
{
    while (*a && canonical(*a) == canonical(*b)) a++, b++;
    return canonical(*a) == canonical(*b);
}

int quant_type_by_name(const char *name)
{
    for (int slot = 0; slot < QUANT_SLOTS; slot++)
        if (types[slot].name && same_name(types[slot].name, name))
            return slot < SLOT_Q2_0_128 ? slot : slot - SLOT_Q2_0_128 + QT_READINGS;
    return -1;
}

size_t quant_row_bytes(uint32_t id, int64_t k)
{
    const struct quant_type *t = quant_type(id);
    if (!t || k < 0 || k % t->block) return 0;
    const uint64_t n_blocks = (uint64_t)k / t->block;
    return n_blocks <= SIZE_MAX / t->block_bytes ? n_blocks * t->block_bytes : 0;
}
