/* Qwen3.8 files as others write them: keys that tensors tell are not needed, vectors may be stored as rows, an
 * incomplete draft block is left alone; what cannot be run is refused in one sentence. */
#include "../support/canonical_same.h"
#include "../support/dialect_forms.h"
#include "../support/forge.h"
#include "../support/qwen38_forms.h"
#include "../support/synth_qwen38.h"
#include "../support/temp_files.h"
#include "dialect/canonical.h"
#include "models/family.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define Q "qwen4exp."

static char base[TEMP_PATH], edited[TEMP_PATH];

static int files_make(void **state)
{
    struct synth_qwen38 s = synth_qwen38_tiny();
    struct err e = {0};
    s.draft = true;
    temp_file(base);
    temp_file(edited);
    if (synth_qwen38_write(base, &s, &e)) fail_msg("%s", e.msg);
    return 0;
}

static int files_remove(void **state)
{
    temp_remove(base);
    temp_remove(edited);
    return 0;
}

static struct canonical *open_file(const char *path)
{
    struct canonical *c;
    struct err e = {0};
    if (canonical_open(&path, 1, NULL, &c, &e)) fail_msg("%s", e.msg);
    return c;
}

/* ---------------------------------------------------------------- what runs */

static const char *const keys[] = {"attention.head_count",
                                   "attention.head_count_kv",
                                   "attention.key_length",
                                   "rope.dimension_count",
                                   "ssm.group_count",
                                   "ssm.time_step_rank",
                                   "ssm.state_size",
                                   "ssm.conv_kernel",
                                   "hyper_connection.count",
                                   "hyper_connection.low_rank",
                                   "attention.indexer.head_count",
                                   "attention.indexer.key_length",
                                   "attention.indexer.top_k",
                                   "attention.compress_ratios",
                                   "expert_count",
                                   "expert_used_count",
                                   "expert_feed_forward_length",
                                   "expert_shared_feed_forward_length",
                                   "ple.layers",
                                   "ple.ngram_size",
                                   "ple.heads_per_ngram",
                                   "ple.conv_kernel",
                                   "embedding_length",
                                   "vocab_size",
                                   "block_count",
                                   "nextn_predict_layers",
                                   "ple.eos_token_id"};

static void same_model(const struct canonical *a, const struct canonical *b)
{
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (canonical_int(a, keys[i]) != canonical_int(b, keys[i]))
            fail_msg("%s: %lld and %lld", keys[i], (long long)canonical_int(a, keys[i]),
                     (long long)canonical_int(b, keys[i]));
    assert_int_equal(canonical_n_tensors(a), canonical_n_tensors(b));
    assert_int_equal(canonical_n_blocks(a), canonical_n_blocks(b));
}

static void tensors_tell(void **state)
{
    static const char *const told[] = {"attention.head_count",
                                       "attention.head_count_kv",
                                       "attention.key_length",
                                       "attention.value_length",
                                       "ssm.group_count",
                                       "ssm.time_step_rank",
                                       "ssm.state_size",
                                       "ssm.inner_size",
                                       "ssm.conv_kernel",
                                       "hyper_connection.count",
                                       "hyper_connection.low_rank",
                                       "attention.indexer.head_count",
                                       "attention.indexer.key_length",
                                       "expert_count",
                                       "expert_feed_forward_length",
                                       "expert_shared_feed_forward_length",
                                       "ple.layers",
                                       "ple.ngram_size",
                                       "ple.heads_per_ngram",
                                       "ple.conv_kernel",
                                       "embedding_length_per_layer_input",
                                       "embedding_length",
                                       "vocab_size",
                                       "block_count",
                                       "nextn_predict_layers",
                                       "full_attention_interval",
                                       "attention.compress_ratios",
                                       "ple.head_offsets"};
    struct form_edit edits[sizeof told / sizeof *told];
    char name[sizeof told / sizeof *told][64];
    struct err e = {0};
    struct str report = {0};
    for (size_t i = 0; i < sizeof told / sizeof *told; i++) {
        snprintf(name[i], sizeof name[i], Q "%s", told[i]);
        edits[i] = (struct form_edit){EDIT_DROP, name[i]};
    }
    if (dialect_form_edit(base, edited, edits, (int)(sizeof told / sizeof *told), &e)) fail_msg("%s", e.msg);
    struct canonical *a = open_file(base), *b = open_file(edited);
    same_model(a, b);
    int n, m;
    const uint64_t *want = canonical_array(a, "ple.head_offsets", &n),
                   *got = canonical_array(b, "ple.head_offsets", &m);
    assert_int_equal(n, m);
    assert_memory_equal(got, want, (size_t)n * sizeof *got);
    canonical_report(b, &report);
    assert_non_null(strstr(str_c(&report), "ple.head_offsets (sums of ple.head_vocab_sizes)"));
    assert_non_null(strstr(str_c(&report), "ssm.group_count 2 (attn_qkv)"));
    assert_non_null(strstr(str_c(&report), "ple.ngram_size 3 (ple.layer_multipliers)"));
    str_free(&report);
    canonical_close(a);
    canonical_close(b);
}

static void other_layouts(void **state)
{
    static const struct forge_edit edits[] = {
        {T_SHAPE, "blk.0.hc_attn_norm.weight", .n = 2, .v = FORGE_DIMS(64, 4, 1, 1)},
        {T_SHAPE, "blk.0.ssm_conv1d.weight", .n = 3, .v = FORGE_DIMS(4, 1, 160, 1)},
        {T_SHAPE, "blk.1.ffn_gate_inp_shexp.weight", .n = 2, .v = FORGE_DIMS(1, 64, 1, 1)},
        {T_NAME, "per_layer_token_embd.weight", .text = "ple_ngram_embd.weight"},
    };
    forge_write(base, edited, edits, 4);
    struct canonical *a = open_file(base), *b = open_file(edited);
    same_model(a, b);
    int tables = 0;
    for (int i = 0; i < canonical_n_tensors(b); i++) tables += canonical_on_disk(b, i);
    assert_int_equal(tables, 1);
    canonical_close(a);
    canonical_close(b);
}

static void incomplete_draft(void **state)
{
    struct str report = {0};
    forge_write(base, edited, &(struct forge_edit){T_DROP, "blk.4.nextn.enorm.weight"}, 1);
    struct canonical *c = open_file(edited);
    assert_int_equal(canonical_n_layers(c), 4);
    assert_int_equal(canonical_n_blocks(c), 4);
    assert_null(canonical_tensor(c, "blk.4.attn_q.weight"));
    canonical_report(c, &report);
    assert_non_null(strstr(str_c(&report),
                           "draft ignored: blk.4.nextn.enorm.weight (also looked for mtp.pre_norm_embd) is missing"));
    str_free(&report);
    canonical_close(c);
    c = open_file(base);
    assert_int_equal(canonical_n_blocks(c), 5);
    assert_non_null(canonical_tensor(c, "blk.4.nextn.hc_head_up.weight"));
    canonical_close(c);
}

/* The draft's projection as two tensors, and the names of the first files: the same model, tensor by tensor. */
static void draft_in_halves(void **state)
{
    struct err e = {0};
    struct canonical *want = open_file(base);
    for (int form = FORM_QWEN_HALVES; form <= FORM_QWEN_FIRST; form++) {
        struct str report = {0};
        if (dialect_form_write(base, edited, (enum dialect_form)form, WIDTHS_KEPT, &e)) fail_msg("%s", e.msg);
        struct canonical *c = open_file(edited);
        assert_int_equal(canonical_n_blocks(c), 5);
        canonical_same_tensors(want, c);
        canonical_report(c, &report);
        assert_non_null(strstr(str_c(&report), "split: nextn.fc_embd, nextn.fc_hidden -> nextn.eh_proj\n"));
        assert_null(strstr(str_c(&report), "does not use"));
        str_free(&report);
        canonical_close(c);
    }
    canonical_close(want);
}

/* The first files with a draft: what goes around its block has names without a block. The block is no layer of the
 * trunk, whatever its ratio. */
static void draft_with_early_names(void **state)
{
    static const struct forge_edit edits[] = {
        {T_NAME, "blk.4.nextn.enorm.weight", .text = "mtp.pre_norm_embd.weight"},
        {T_NAME, "blk.4.nextn.hnorm.weight", .text = "mtp.pre_norm_hidden.weight"},
        {T_NAME, "blk.4.nextn.eh_proj.weight", .text = "mtp.fc_embd.weight"},
        {T_NAME, "blk.4.nextn.hc_head_norm.weight", .text = "mtp.mixer_norm.weight"},
        {T_NAME, "blk.4.nextn.hc_head_down.weight", .text = "mtp.mixer_down.weight"},
        {T_NAME, "blk.4.nextn.hc_head_up.weight", .text = "mtp.mixer_up.weight"},
        {KEY_LAST, Q "attention.compress_ratios", .v = 0},
    };
    for (int n = 6; n <= 7; n++) {
        struct str report = {0};
        forge_write(base, edited, edits, n);
        struct canonical *c = open_file(edited);
        assert_int_equal(canonical_n_layers(c), 4);
        assert_int_equal(canonical_n_blocks(c), 4);
        canonical_report(c, &report);
        assert_non_null(strstr(str_c(&report), "draft ignored: blk.4.nextn.eh_proj.weight is missing"));
        str_free(&report);
        canonical_close(c);
    }
}

/* ---------------------------------------------------------------- what does not */

static const struct {
    struct forge_edit edit;
    const char *says;
} refusals[] = {
    {{KEY_DROP, Q "ple.layer_multipliers"}, "ple.layer_multipliers is missing and cannot be derived"},
    {{KEY_DROP, Q "ple.head_vocab_sizes"}, "ple.head_vocab_sizes is missing and cannot be derived"},
    {{KEY_NUM, Q "ple.head_offsets", .v = 5, .type = GGUF_U32}, "an array of 1 to 65536 numbers is needed"},
    {{KEY_KEEP, Q "ple.head_offsets", .n = 7}, "ple.head_offsets has 7 entries; 8 are needed"},
    {{KEY_LAST, Q "ple.head_vocab_sizes", .v = 0}, "ple.head_vocab_sizes[7] = 0: a head needs rows"},
    {{KEY_LAST, Q "ple.head_vocab_sizes", .v = 1 << 20}, "head 7 of the n-gram hash needs"},
    {{KEY_LAST, Q "ple.head_offsets", .v = UINT64_C(1) << 33}, "rows are counted in 32 bits"},
    {{KEY_NUM, Q "expert_gating_func", .v = 2, .type = GGUF_U32}, "expert_gating_func = 2 is not supported (only 1)"},
    {{KEY_NUM, Q "rope.dimension_count", .v = 7, .type = GGUF_U32}, "an even number up to 32"},
    {{KEY_NUM, Q "attention.indexer.top_k", .v = 3, .type = GGUF_U32}, "4 or more, a block"},
    {{KEY_DROP, Q "attention.indexer.top_k"}, "attention.indexer.top_k is missing and cannot be derived"},
    {{T_DROP, "blk.0.ssm_beta.weight"}, "blk.0.ssm_beta.weight is missing"},
    {{T_DROP, "blk.2.ssm_a"}, "blk.2.ssm_a is missing"},
    {{T_DROP, "blk.3.attn_q_norm"}, "blk.3.attn_q_norm.weight is missing"},
    {{T_DROP, "per_layer_token_embd"}, "per_layer_token_embd.weight (also looked for ple_ngram_embd) is missing"},
    {{T_DROP, "blk.1.ple_value"}, "blk.1.ple_value.weight is missing"},
    {{T_TYPE, "per_layer_token_embd.weight", .v = 24}, "per_layer_token_embd.weight has type I8"},
    {{T_DIM, "blk.0.ssm_out.weight", .at = 1, .v = 32}, "blk.0.ssm_out.weight is [96, 32], expected [96, 64]"},
};

static void refused(void **state)
{
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        struct canonical *c;
        struct err e = {0};
        const char *path = edited;
        forge_write(base, edited, &refusals[i].edit, 1);
        if (canonical_open(&path, 1, NULL, &c, &e) == 0) fail_msg("refusal %d: opened", (int)i);
        if (!strstr(e.msg, refusals[i].says)) fail_msg("refusal %d: \"%s\"", (int)i, e.msg);
    }
}

/* Fused projections: how many rows are whose only a key can tell. */
static void fused_projections(void **state)
{
    static const struct {
        struct forge_edit edit;
        const char *says;
    } cases[] = {{{KEY_DROP, Q "attention.head_count"}, "attention.head_count is missing and cannot be derived"},
                 {{KEY_DROP, Q "attention.head_count_kv"}, "attention.head_count_kv is missing and cannot be derived"},
                 {{KEY_NUM, Q "attention.head_count", .v = 8, .type = GGUF_U32},
                  "blk.3.attn_qkv.weight is [64, 384], expected [64, 640]"},
                 {{T_NAME, "blk.3.attn_qkv.weight", .text = "blk.3.attn_q.weight"}, "blk.3.attn_k.weight is missing"},
                 {{T_DROP, "blk.3.attn_qkv.weight"}, "blk.3.attn_q.weight is missing"}};
    char fused[TEMP_PATH];
    struct err e = {0};
    struct str report = {0};
    temp_file(fused);
    if (qwen38_write_fused(base, fused, &e)) fail_msg("%s", e.msg);
    struct canonical *a = open_file(base), *b = open_file(fused);
    same_model(a, b);
    assert_int_equal(canonical_tensor(b, "blk.3.attn_v.weight")->ne[1], 64);
    assert_int_equal(canonical_tensor(b, "blk.0.attn_qkv.weight")->ne[1], 160);
    canonical_report(b, &report);
    assert_non_null(strstr(str_c(&report), "ffn_gate_up_exps -> ffn_gate_exps, ffn_up_exps"));
    assert_non_null(strstr(str_c(&report), "attn_qkv -> attn_q, attn_k, attn_v"));
    str_free(&report);
    canonical_close(a);
    canonical_close(b);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct canonical *c;
        const char *path = edited;
        e = (struct err){0};
        forge_write(fused, edited, &cases[i].edit, 1);
        if (canonical_open(&path, 1, NULL, &c, &e) == 0) fail_msg("case %d: opened", (int)i);
        if (!strstr(e.msg, cases[i].says)) fail_msg("case %d: \"%s\"", (int)i, e.msg);
    }
    temp_remove(fused);
}

/* What the values of small tensors show of a conversion, with and without a scan of all weights elsewhere. */
static void faulty_conversions(void **state)
{
    static const struct {
        const char *tensor, *says;
        int values;
        uint64_t bits;
    } cases[] = {{"blk.0.ssm_a", "blk.0.ssm_a holds positive values; expected -exp(A_log)", 1, 0x3f},
                 {"blk.0.hc_attn_norm.weight",
                  "norm weights of this file are not stored as 1+w: those of blk.0.hc_attn_norm.weight lie around 0, "
                  "where 1 is right",
                  256, 0}};
    for (size_t i = 0; i < 2 * (sizeof cases / sizeof *cases); i++) {
        const struct canonical_options o = {.look = i % 2, .scanned = i % 2};
        struct err e = {0};
        struct canonical *c;
        const char *path = edited;
        forge_write(base, edited,
                    &(struct forge_edit){T_POKE, cases[i / 2].tensor, .at = cases[i / 2].bits ? 3 : 0,
                                         .v = cases[i / 2].bits,
                                         .n = cases[i / 2].bits ? 1 : 4 * (uint64_t)cases[i / 2].values},
                    1);
        if (canonical_open(&path, 1, &o, &c, &e) == 0) fail_msg("case %d: opened", (int)i);
        if (!strstr(e.msg, cases[i / 2].says)) fail_msg("\"%s\"", e.msg);
        if (!strstr(e.msg, "; that is a fault of its conversion, and downloading it again does not help: get another "
                           "file of Qwen3.8 Flash Next, in llama.cpp's form"))
            fail_msg("\"%s\"", e.msg);
    }
}

/* A model whose table or whose other half is in another file. */
static void parts(void **state)
{
    static const struct {
        struct forge_edit edit;
        const char *says;
    } cases[] = {{{T_DROP, "per_layer_token_embd"},
                  "per_layer_token_embd.weight (also looked for ple_ngram_embd) is missing: this is the n-gram table, "
                  "which is published in a file of its own; get that from the same place and give it second: -m MODEL "
                  "-m TABLE (to check them: --check-file MODEL --check-file TABLE)"},
                 {{KEY_NUM, "qwen4exp.block_count", 48, .type = GGUF_U32},
                  "blk.4 to blk.47 are missing: the model has 48 blocks (qwen4exp.block_count), and this is a part of "
                  "it; get the file with the others, too, and give both: -m FIRST -m SECOND (to check them: "
                  "--check-file FIRST --check-file SECOND); or, if there is no such file, the key is wrong: get "
                  "another publisher's"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err e = {0};
        struct canonical *c;
        const char *path = edited;
        forge_write(base, edited, &cases[i].edit, 1);
        if (canonical_open(&path, 1, NULL, &c, &e) == 0) fail_msg("case %d: opened", (int)i);
        const char *says = strstr(e.msg, cases[i].says);
        if (!says || strlen(says) != strlen(cases[i].says)) fail_msg("\"%s\"", e.msg);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_tell),       cmocka_unit_test(other_layouts),
        cmocka_unit_test(incomplete_draft),   cmocka_unit_test(refused),
        cmocka_unit_test(faulty_conversions), cmocka_unit_test(parts),
        cmocka_unit_test(draft_in_halves),    cmocka_unit_test(draft_with_early_names),
        cmocka_unit_test(fused_projections),
    };
    return cmocka_run_group_tests(tests, files_make, files_remove);
}
