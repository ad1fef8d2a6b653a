/* Numbers of types that ggml does not have, or that others write tensors of another size under, and the programs that
 * write them (spec more-quants 5). Their blocks are not decoded: rows are interleaved, weights are rotated, or the
 * layout is not known. */
#include <math.h>
#include <stdio.h>
#include "dialect/dialect_internal.h"
#include "quant/quant.h"

#define IK     "ik_llama.cpp"
#define UD     "unsloth's llama.cpp"
#define TURBO  "the turbo-tan fork"
#define TQUANT "TurboQuant's fork"
#define PRISM  "Prism's fork"
#define ROCMFP "the ROCmFP fork"

/* Where the number has several meanings: bytes of a block of so many values, as far as a file shows its size; without
 * them any size. */
static const struct fork_type {
    uint32_t type;
    const char *name, *fork;
    int bytes, block;
} fork_types[] = {
    {31, "TQ3_1S_AP1", TURBO, 16, 32},
    {31, "Q4_0_4_4", IK},
    {32, "Q4_0_4_8", IK},
    {33, "Q4_0_8_8", IK},
    {36, "TQ3_4SE", TURBO, 18, 32},
    {36, "I2_S", IK},
    {37, "TQ3_4SV", TURBO},
    {41, "S-X8", "MarlaLabs' fork", 30, 32},
    {42, "FP8 with a scale for 128 values", "a fork of ds4", 129, 128},
    {43, "MXFP8 in an order that its bytes do not tell", "the fork that wrote it", 264, 256},
    {44, "TQ3_1S", TURBO},
    {45, "TQ3_1S", TQUANT},
    {46, "TQ4_1S", TQUANT, 20, 32},
    {46, "TQ3_4S", TURBO},
    {64, "IQ1_XS", UD},
    {65, "IQ1_XXS", UD},
    {66, "IQ1_XXXS", UD},
    {100, "ROCmFP4", ROCMFP},
    {101, "ROCmFP4", ROCMFP},
    {102, "ROCmFP6", ROCMFP},
    {103, "ROCmFP8", ROCMFP},
    {104, "ROCmFP3", ROCMFP},
    {107, "ROCmFP2", ROCMFP},
    {133, "Q6_0", IK},
    {134, "IQ1_BN", IK},
    {135, "IQ2_BN", IK},
    {137, "IQ2_K", IK},
    {138, "IQ3_K", IK},
    {139, "IQ4_K", IK},
    {140, "IQ5_K", IK},
    {141, "IQ6_K", IK},
    {142, "PQ2_0", PRISM},
    {143, "PTQ1_0", PRISM},
    {144, "IQ4_KS", IK},
    {145, "IQ2_KS", IK},
    {146, "IQ4_KSS", IK},
    {152, "IQ5_KS", IK},
    {153, "IQ2_KT", IK},
    {154, "IQ3_KT", IK},
    {155, "IQ4_KT", IK},
    {156, "IQ3_KS", IK},
    {157, "IQ2_KL", IK},
    {158, "IQ1_KT", IK},
    {200, "TQ3_0", TURBO},
};

/* Bits of a weight, by how far the next tensor is away. */
static double bits_found(const struct gguf *g, const struct gguf_tensor *t)
{
    uint64_t end = gguf_size(g);
    for (uint64_t i = 0; i < gguf_n_tensors(g); i++) {
        const uint64_t at = gguf_tensor_at(g, i)->offset;
        if (at > t->offset && at < end) end = at;
    }
    const double values = (double)t->ne[0] * (double)t->ne[1] * (double)t->ne[2] * (double)t->ne[3];
    return end > t->offset ? 8 * (double)(end - t->offset) / values : 0;
}

static const struct fork_type *find_fork(uint32_t type, double bits)
{
    for (size_t i = 0; i < sizeof fork_types / sizeof *fork_types; i++) {
        const struct fork_type *f = &fork_types[i];
        if (f->type == type && (!f->block || fabs(bits - 8.0 * f->bytes / f->block) < 0.02 * bits)) return f;
    }
    return NULL;
}

const char *canonical_fork_type(const struct gguf *g, const struct gguf_tensor *t)
{
    const struct fork_type *f = find_fork(t->number, bits_found(g, t));
    return f ? f->name : NULL;
}

void dialect_fork(const struct canonical *c, const struct source *s, char text[FORK_TEXT])
{
    const uint32_t type = s->t->number;
    const double bits = bits_found(c->files[s->file], s->t);
    const struct fork_type *f = find_fork(type, bits);
    if (f)
        snprintf(text, FORK_TEXT, "type %u (%s, %.2f bits a weight), which only %s can read", (unsigned)type, f->name,
                 bits, f->fork);
    else if ((type < QT_READINGS && quant_type(type)) || type == 43)
        snprintf(text, FORK_TEXT,
                 "type %u of %.2f bits a weight, which is not the size of %s: another program's layout", (unsigned)type,
                 bits, type == 43 ? "MXFP8" : quant_type(type)->name);
    else
        snprintf(text, FORK_TEXT, "type %u (%s%.2f bits a weight), which only %s can read", (unsigned)type,
                 type >= 202 && type <= 399 ? "interleaved rows, " : "", bits,
                 type >= 97 && type <= 399 ? IK : "another program");
}
