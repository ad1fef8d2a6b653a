/* The table of published block types (spec gguf-and-quants 2.1). Removed and foreign numbers have no entry, so a file
 * that uses one is refused by number and never mistaken for something else. */
#include "quant/quant_internal.h"

static const struct quant_type types[] = {
    /* number       name     values bytes */
    [QT_F32] = {"F32", 1, 4, quant_decode_f32, ACT_F32},
    [QT_F16] = {"F16", 1, 2, quant_decode_f16, ACT_F32},
    [QT_Q4_0] = {"Q4_0", 32, 18, quant_decode_q4_0, ACT_Q8_0},
    [QT_Q4_1] = {"Q4_1", 32, 20},
    [QT_Q5_0] = {"Q5_0", 32, 22},
    [QT_Q5_1] = {"Q5_1", 32, 24},
    [QT_Q8_0] = {"Q8_0", 32, 34, quant_decode_q8_0, ACT_Q8_0},
    [QT_Q8_1] = {"Q8_1", 32, 36},
    [QT_Q2_K] = {"Q2_K", 256, 84, quant_decode_q2_k, ACT_Q8_K},
    [QT_Q3_K] = {"Q3_K", 256, 110},
    [QT_Q4_K] = {"Q4_K", 256, 144, quant_decode_q4_k, ACT_Q8_K},
    [QT_Q5_K] = {"Q5_K", 256, 176, quant_decode_q5_k, ACT_Q8_K},
    [QT_Q6_K] = {"Q6_K", 256, 210, quant_decode_q6_k, ACT_Q8_K},
    [QT_Q8_K] = {"Q8_K", 256, 292},
    [QT_IQ2_XXS] = {"IQ2_XXS", 256, 66, quant_decode_iq2_xxs, ACT_Q8_K},
    [QT_IQ2_XS] = {"IQ2_XS", 256, 74},
    [QT_IQ3_XXS] = {"IQ3_XXS", 256, 98},
    [QT_IQ1_S] = {"IQ1_S", 256, 50},
    [QT_IQ4_NL] = {"IQ4_NL", 32, 18},
    [QT_IQ3_S] = {"IQ3_S", 256, 110},
    [QT_IQ2_S] = {"IQ2_S", 256, 82},
    [QT_IQ4_XS] = {"IQ4_XS", 256, 136},
    [QT_I8] = {"I8", 1, 1},
    [QT_I16] = {"I16", 1, 2},
    [QT_I32] = {"I32", 1, 4, quant_decode_i32, ACT_F32},
    [QT_I64] = {"I64", 1, 8},
    [QT_F64] = {"F64", 1, 8},
    [QT_IQ1_M] = {"IQ1_M", 256, 56},
    [QT_BF16] = {"BF16", 1, 2, quant_decode_bf16, ACT_F32},
    [QT_TQ1_0] = {"TQ1_0", 256, 54},
    [QT_TQ2_0] = {"TQ2_0", 256, 66},
    [QT_MXFP4] = {"MXFP4", 32, 17, quant_decode_mxfp4, ACT_Q8_0},
    [QT_NVFP4] = {"NVFP4", 64, 36},
    [QT_Q1_0] = {"Q1_0", 128, 18},
    [QT_Q2_0] = {"Q2_0", 64, 18},
};
enum { N_TYPES = sizeof types / sizeof types[0] };

const struct quant_type *quant_type(uint32_t id)
{
    return id < N_TYPES && types[id].name ? &types[id] : NULL;
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
    for (int id = 0; id < N_TYPES; id++)
        if (types[id].name && same_name(types[id].name, name)) return id;
    return -1;
}

size_t quant_row_bytes(uint32_t id, int64_t k)
{
    const struct quant_type *t = quant_type(id);
    if (!t || k < 0 || k % t->block) return 0;
    const uint64_t n_blocks = (uint64_t)k / t->block;
    return n_blocks <= SIZE_MAX / t->block_bytes ? n_blocks * t->block_bytes : 0;
}
