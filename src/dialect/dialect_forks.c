/* Numbers of types that ggml does not have, and the programs that write them (spec more-quants 5). Their blocks are not
 * decoded: rows are interleaved, weights are rotated, or the layout is not known. */
#include <stdio.h>
#include "dialect/dialect_internal.h"
#include "quant/quant.h"

#define IK     "ik_llama.cpp"
#define UD     "unsloth's llama.cpp"
#define TURBO  "the turbo-tan fork"
#define PRISM  "Prism's fork"
#define ROCMFP "the ROCmFP fork"

static const struct fork_type {
    uint32_t type;
    const char *name, *fork;
} fork_types[] = {
    {31, "Q4_0_4_4", IK},     {32, "Q4_0_4_8", IK},     {33, "Q4_0_8_8", IK},     {36, "I2_S", IK},
    {44, "TQ3_1S", TURBO},    {45, "TQ3_1S", TURBO},    {46, "TQ3_4S", TURBO},    {64, "IQ1_XS", UD},
    {65, "IQ1_XXS", UD},      {66, "IQ1_XXXS", UD},     {100, "ROCmFP4", ROCMFP}, {101, "ROCmFP4", ROCMFP},
    {102, "ROCmFP6", ROCMFP}, {103, "ROCmFP8", ROCMFP}, {104, "ROCmFP3", ROCMFP}, {107, "ROCmFP2", ROCMFP},
    {133, "Q6_0", IK},        {134, "IQ1_BN", IK},      {135, "IQ2_BN", IK},      {137, "IQ2_K", IK},
    {138, "IQ3_K", IK},       {139, "IQ4_K", IK},       {140, "IQ5_K", IK},       {141, "IQ6_K", IK},
    {142, "PQ2_0", PRISM},    {143, "PTQ1_0", PRISM},   {144, "IQ4_KS", IK},      {145, "IQ2_KS", IK},
    {146, "IQ4_KSS", IK},     {152, "IQ5_KS", IK},      {153, "IQ2_KT", IK},      {154, "IQ3_KT", IK},
    {155, "IQ4_KT", IK},      {156, "IQ3_KS", IK},      {157, "IQ2_KL", IK},      {158, "IQ1_KT", IK},
    {200, "TQ3_0", TURBO},
};

void dialect_fork(uint32_t type, char text[80])
{
    if (quant_type(type) || type == 43) {
        snprintf(text, 80, "type %u, but not the size of ggml's: another program's layout", (unsigned)type);
        return;
    }
    for (size_t i = 0; i < sizeof fork_types / sizeof *fork_types; i++)
        if (fork_types[i].type == type) {
            snprintf(text, 80, "type %u (%s), which only %s can read", (unsigned)type, fork_types[i].name,
                     fork_types[i].fork);
            return;
        }
    if (type >= 202 && type <= 399)
        snprintf(text, 80, "type %u (interleaved rows), which only " IK " can read", (unsigned)type);
    else if (type >= 97 && type <= 201)
        snprintf(text, 80, "type %u, which only " IK " can read", (unsigned)type);
    else
        snprintf(text, 80, "type %u, which only another program can read", (unsigned)type);
}
