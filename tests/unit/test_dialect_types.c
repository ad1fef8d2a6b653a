/* Types that a file's numbers do not settle, and types of other programs: what a model with one is told. The number of
 * the last tensor is changed, and where the file ends says how large its blocks are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../support/forge.h"
#include "../support/synth_model.h"
#include "../support/temp_files.h"
#include "dialect/canonical.h"
#include "quant/quant.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])
#define LAST     "blk.3.ffn_down_shexp.weight" /* [256, 256] */
#define REFUSED                                                                                                        \
    "; get another quantisation (Q2_K, UD-Q2_K_XL, IQ2_XXS, Q4_K_M, Q8_0 ...) of DeepSeek V4, in llama.cpp's form "    \
    "(unsloth, bartowski, ggml-org, AtomicChat) or ds4's (antirez), or run this file with the program that it was "    \
    "made for"

enum { VALUES = 65536 };

static char base[TEMP_PATH], file[TEMP_PATH];
static uint64_t last_at;

static int set_up(void **state)
{
    const struct synth_shape s = synth_wide();
    struct err e = {0};
    struct gguf *g;
    temp_file(base);
    temp_file(file);
    if (synth_deepseek4(base, &s, &e) || gguf_open(base, &g, &e)) return -1;
    last_at = gguf_tensor_find(g, LAST, strlen(LAST))->offset;
    gguf_close(g);
    return 0;
}

static int tear_down(void **state)
{
    return temp_remove(base) || temp_remove(file);
}

/* The last tensor has that number, and n bytes of data: zeros, and from each block's byte `at` on `scales` bytes of
 * about the same value. */
static void write_last(uint32_t number, int block, int bytes, int at, int scales)
{
    const struct forge_edit edits[] = {{T_TYPE, LAST, number}, {FORGE_END}};
    const size_t n = (size_t)(VALUES / block) * (size_t)bytes;
    uint8_t *data = malloc(n);
    assert_non_null(data);
    forge_write(base, file, edits, 2);
    for (size_t i = 0; i < n; i++) {
        const int k = (int)(i % (size_t)bytes) - at;
        data[i] = !scales ? 1 : k >= 0 && k < scales ? (uint8_t)(120 + i % 7) : (uint8_t)(i * 77 % 127);
    }
    FILE *f = fopen(file, "r+b");
    assert_non_null(f);
    assert_int_equal(ftruncate(fileno(f), (off_t)last_at), 0);
    assert_int_equal(fseek(f, (long)last_at, SEEK_SET), 0);
    assert_int_equal(fwrite(data, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
    free(data);
}

static void says(const char *part)
{
    const char *path = file;
    struct canonical *c = NULL;
    struct err e = {0};
    struct str report = {0};
    if (canonical_open(&path, 1, &(struct canonical_options){.look = true}, &c, &e) == 0) canonical_report(c, &report);
    const char *text = c ? str_c(&report) : e.msg;
    if (!strstr(text, part)) fail_msg("no \"%s\" in\n%s", part, text);
    str_free(&report);
    canonical_close(c);
}

/* Layouts that are understood, among them both orders of MXFP8 and both sizes of Q2_0. */
static const struct reading {
    uint32_t number;
    int block, bytes, at, scales;
    const char *says;
} readings[] = {
    {42, 64, 18, 0, 0, "Q2_0 1"},
    {42, 128, 34, 0, 0, "warning: FILE: type 42 is Q2_0_128 here, by the size of its tensors"},
    {43, 128, 34, 0, 0, "warning: FILE: type 43 is Q2_0_128 here, by the size of its tensors"},
    {43, 256, 264, 256, 8, "warning: FILE: type 43 is MXFP8 here, by the size of its tensors"},
    {43, 256, 264, 0, 8, "warning: FILE: type 43 is MXFP8_SF here, by the size of its tensors"},
    {40, 64, 36, 0, 0, "NVFP4 1"},
    {41, 128, 18, 0, 0, "Q1_0 1"},
};

static void understood(void **state)
{
    const char *name = strrchr(file, '/') + 1;
    for (size_t i = 0; i < COUNT(readings); i++) {
        const struct reading *r = &readings[i];
        const char *mark = strstr(r->says, "FILE");
        char want[200];
        snprintf(want, sizeof want, "%.*s%s%s", (int)(mark ? mark - r->says : 0), r->says, mark ? name : "",
                 mark ? mark + 4 : r->says);
        write_last(r->number, r->block, r->bytes, r->at, r->scales);
        says(want);
    }
}

/* What others write: by number, or by number and size. */
static const struct foreign {
    uint32_t number;
    int block, bytes;
    const char *says; /* behind the tensor's name */
} foreign[] = {
    {42, 128, 129, "type 42 (FP8 with a scale for 128 values, 8.06 bits a weight), which only a fork of ds4 can read"},
    {42, 64, 20, "type 42 of 2.50 bits a weight, which is not the size of Q2_0: another program's layout"},
    {43, 256, 264,
     "type 43 (MXFP8 in an order that its bytes do not tell, 8.25 bits a weight), which only the fork that wrote it "
     "can read"},
    {43, 64, 20, "type 43 of 2.50 bits a weight, which is not the size of MXFP8: another program's layout"},
    {41, 32, 30, "type 41 (S-X8, 7.50 bits a weight), which only MarlaLabs' fork can read"},
    {31, 32, 16, "type 31 (TQ3_1S_AP1, 4.00 bits a weight), which only the turbo-tan fork can read"},
    {31, 32, 18, "type 31 (Q4_0_4_4, 4.50 bits a weight), which only ik_llama.cpp can read"},
    {45, 32, 16, "type 45 (TQ3_1S, 4.00 bits a weight), which only TurboQuant's fork can read"},
    {46, 32, 16, "type 46 (TQ3_4S, 4.00 bits a weight), which only the turbo-tan fork can read"},
    {46, 32, 20, "type 46 (TQ4_1S, 5.00 bits a weight), which only TurboQuant's fork can read"},
    {65, 64, 18, "type 65 (IQ1_XXS, 2.25 bits a weight), which only unsloth's llama.cpp can read"},
    {102, 32, 26, "type 102 (ROCmFP6, 6.50 bits a weight), which only the ROCmFP fork can read"},
    {139, 256, 144, "type 139 (IQ4_K, 4.50 bits a weight), which only ik_llama.cpp can read"},
    {142, 128, 34, "type 142 (PQ2_0, 2.12 bits a weight), which only Prism's fork can read"},
    {148, 256, 144, "type 148 (4.50 bits a weight), which only ik_llama.cpp can read"},
    {219, 256, 50, "type 219 (interleaved rows, 1.56 bits a weight), which only ik_llama.cpp can read"},
    {9999, 32, 33, "type 9999 (8.25 bits a weight), which only another program can read"},
};

static void of_other_programs(void **state)
{
    for (size_t i = 0; i < COUNT(foreign); i++) {
        char want[600];
        write_last(foreign[i].number, foreign[i].block, foreign[i].bytes, 0, 0);
        snprintf(want, sizeof want, LAST " has %s" REFUSED, foreign[i].says);
        says(want);
    }
}

/* A sentence for all of them, and what to get once. */
static void told_once(void **state)
{
    const struct forge_edit edits[] = {{T_TYPE, "blk.1.ffn_gate_exps.weight", 139},
                                       {T_TYPE, "blk.2.ffn_gate_exps.weight", 139},
                                       {T_TYPE, "blk.2.ffn_up_exps.weight", 139},
                                       {T_TYPE, "blk.3.ffn_down_exps.weight", 140},
                                       {FORGE_END}};
    forge_write(base, file, edits, COUNT(edits));
    says(
        "blk.1.ffn_gate_exps.weight has type 139 (IQ4_K, 32.00 bits a weight), which only ik_llama.cpp can read, and 3 "
        "more tensors have such a type" REFUSED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(understood),
        cmocka_unit_test(of_other_programs),
        cmocka_unit_test(told_once),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
