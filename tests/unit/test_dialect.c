/* The loader of dialects: every known form of a model gives the same canonical model (spec dialects 15), and what
 * cannot be run is refused by name. Expected values come from the shape that the model was made with, from spec
 * dialects 6 and 13, and from the forms' own descriptions in tests/support. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/mem.h"
#include "dialect/canonical.h"
#include "../support/canonical_same.h"
#include "../support/dialect_forms.h"
#include "quant/quant.h"
#include "../support/synth_model.h"
#include "../support/temp_files.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

static char folder[TEMP_PATH];

static const char *at(const char *name)
{
    static char path[4][128];
    static int turn;
    char *p = path[turn++ & 3];
    snprintf(p, sizeof path[0], "%s/%s", folder, name);
    return p;
}

/* F16 where that is allowed, so that copies differ from what the file holds. */
static struct synth_shape shape_of_tests(void)
{
    struct synth_shape s = synth_tiny();
    s.rest = s.embed = QT_F16;
    s.dense = QT_Q8_0;
    s.gate = s.up = QT_Q4_0;
    s.down = QT_MXFP4;
    return s;
}

static void synth(const char *name, const struct synth_shape *s)
{
    struct err e = {0};
    if (synth_deepseek4(at(name), s, &e)) fail_msg("%s", e.msg);
}

static struct canonical *opened(const char *name)
{
    struct canonical *c;
    struct err e = {0};
    const char *path = at(name);
    if (canonical_open(&path, 1, NULL, &c, &e)) fail_msg("%s: %s", name, e.msg);
    return c;
}

static void refused(const char *name, const struct canonical_options *opt, const char *part)
{
    struct canonical *c = NULL;
    struct err e = {0};
    const char *path = at(name);
    const int rc = canonical_open(&path, 1, opt, &c, &e);
    if (rc == 0) fail_msg("not refused: %s", part);
    assert_null(c);
    assert_int_equal(rc, e.code);
    if (!strstr(e.msg, part)) fail_msg("\"%s\" does not say \"%s\"", e.msg, part);
    if (!strstr(e.msg, name)) fail_msg("\"%s\" does not name the file", e.msg);
    if (strchr(e.msg, '\n') || strchr(e.msg, '\x1B')) fail_msg("control characters in \"%s\"", e.msg);
}

static void refused_in_full(const char *name, const char *message)
{
    struct canonical *c;
    struct err e = {0};
    const char *path = at(name);
    char full[1000];
    canonical_open(&path, 1, NULL, &c, &e);
    snprintf(full, sizeof full, "%s: %s", path, message);
    assert_string_equal(e.msg, full);
}

static void edited(const struct form_edit *edits, int n)
{
    struct err e = {0};
    if (dialect_form_edit(at("base.gguf"), at("edited.gguf"), edits, n, &e)) fail_msg("%s", e.msg);
}

static struct str report_of(const struct canonical *c)
{
    struct str s = {0};
    canonical_report(c, &s);
    return s;
}

static void reports(const char *name, const char *const *parts, size_t n)
{
    struct canonical *c = opened(name);
    struct str s = report_of(c);
    for (size_t i = 0; i < n; i++)
        if (!strstr(str_c(&s), parts[i])) fail_msg("no \"%s\" in\n%s", parts[i], str_c(&s));
    str_free(&s);
    canonical_close(c);
}

/* ---- forms */

struct expected {
    const char *key;
    double v;
};

/* Values of every key of spec dialects 6.2 for a shape; per-layer ones apart. */
static void has_parameters(const struct canonical *c, const struct synth_shape *s)
{
    const struct expected all[] = {
        {"block_count", s->L},
        {"embedding_length", s->D},
        {"vocab_size", s->V},
        {"context_length", 1048576},
        {"attention.head_count", s->H},
        {"attention.head_count_kv", 1},
        {"attention.key_length", s->d},
        {"attention.value_length", s->d},
        {"rope.dimension_count", s->r},
        {"attention.q_lora_rank", s->Rq},
        {"attention.output_group_count", s->G},
        {"attention.output_lora_rank", s->Ro},
        {"expert_count", s->E},
        {"expert_used_count", s->K},
        {"expert_feed_forward_length", s->F},
        {"expert_shared_feed_forward_length", s->F},
        {"expert_shared_count", 1},
        {"hash_layer_count", s->hash},
        {"attention.sliding_window", s->W},
        {"attention.indexer.head_count", s->IH},
        {"attention.indexer.key_length", s->ID},
        {"attention.indexer.top_k", s->IK},
        {"attention.compress_rope_freq_base", s->cbase},
        {"rope.freq_base", s->base},
        {"rope.scaling.factor", 16},
        {"rope.scaling.original_context_length", 65536},
        {"rope.scaling.yarn_beta_fast", 32},
        {"rope.scaling.yarn_beta_slow", 1},
        {"hyper_connection.count", s->n},
        {"hyper_connection.sinkhorn_iterations", s->iters},
        {"hyper_connection.epsilon", 1e-6},
        {"swiglu_clamp_exp", s->clamp},
        {"swiglu_clamp_shexp", s->clamp},
        {"expert_weights_scale", s->scale},
        {"expert_weights_norm", 1},
        {"expert_gating_func", 4},
        {"expert_group_count", 0},
        {"attention.layer_norm_rms_epsilon", 1e-6},
        {"attention.kv_sim_block", 64},
        {"attention.indexer.sim_block", 32},
        {"attention.indexer.hadamard", 1},
        {"attention.overlap_ratio", 4},
    };
    for (size_t i = 0; i < COUNT(all); i++) {
        const double got = canonical_float(c, all[i].key);
        if ((float)got != (float)all[i].v) fail_msg("%s is %g, expected %g", all[i].key, got, all[i].v);
    }
    assert_int_equal(canonical_n_layers(c), s->L);
    for (int l = 0; l < s->L; l++) {
        assert_int_equal(canonical_int_at(c, "attention.compress_ratios", l), s->ratios[l]);
        assert_int_equal(canonical_int_at(c, "expert_count", l), s->E);
        assert_int_equal(canonical_int_at(c, "expert_used_count", l), s->K);
        assert_int_equal(canonical_int_at(c, "expert_feed_forward_length", l), s->F);
        assert_float_equal(canonical_float_at(c, "swiglu_clamp_exp", l), s->clamp, 0);
        assert_float_equal(canonical_float_at(c, "swiglu_clamp_shexp", l), s->clamp, 0);
    }
}

static const struct {
    enum dialect_form form;
    const char *dialect;
    const char *says[3];
} forms[] = {
    {FORM_DS4, "ds4", {"deepseek4, ds4 dialect", "7 entries for 4 blocks"}},
    {FORM_LC, "llama.cpp", {"derived: nextn_predict_layers 0 (tensors), vocab_size 288 (token_embd)"}},
    {FORM_BARE,
     "llama.cpp",
     {"attention.output_group_count 2 (attn_output_a)", "attention.compress_ratios (attn_compressor_ape)",
      "warning: key hyper_connection.sinkhorn_iterations is missing: using 20"}},
    {FORM_IK, "ik_llama.cpp", {"renamed: 30 tensors (", "hc_head_fn -> output_hc_fn.weight", "hash_layer_count 1"}},
    {FORM_EARLY, "early fork", {"renamed: 61 tensors (", "output.hc_head.fn -> output_hc_fn.weight"}},
    {FORM_FUSED, "llama.cpp", {"split: ffn_gate_up_exps -> ffn_gate_exps, ffn_up_exps"}},
    {FORM_MERGED, "llama.cpp", {"31 tensors of a draft inside this file (blk.4)"}},
};

static void form_gives_same_model(enum dialect_form form, enum form_widths widths, const struct canonical *want,
                                  const struct synth_shape *s, const char *dialect)
{
    struct err e = {0};
    if (dialect_form_write(at("base.gguf"), at("form.gguf"), form, widths, &e)) fail_msg("%s", e.msg);
    struct canonical *c = opened("form.gguf");
    assert_string_equal(canonical_dialect(c), dialect);
    canonical_same_tensors(want, c);
    has_parameters(c, s);
    assert_int_equal(canonical_tokens(c)->count, s->V);
    assert_int_equal(canonical_merges(c)->count, 1);
    canonical_close(c);
}

static void test_forms(void **state)
{
    struct synth_shape s = shape_of_tests();
    /* Constants stand in for keys that these forms lack. */
    assert_int_equal(s.iters, 20);
    struct canonical *want = opened("base.gguf");
    has_parameters(want, &s);
    for (size_t i = 0; i < COUNT(forms); i++) {
        for (int widths = WIDTHS_KEPT; widths <= WIDTHS_SIGNED; widths++)
            form_gives_same_model(forms[i].form, widths, want, &s, forms[i].dialect);
        size_t n = 0;
        while (n < COUNT(forms[i].says) && forms[i].says[n]) n++;
        reports("form.gguf", forms[i].says, n);
    }
    canonical_close(want);
}

static void test_hole(void **state)
{
    struct err e = {0};
    assert_int_equal(dialect_form_write(at("base.gguf"), at("form.gguf"), FORM_HOLE, WIDTHS_KEPT, &e), 0);
    refused("form.gguf", NULL, "blk.2.attn_q_b.weight is missing");
}

static void test_origins(void **state)
{
    struct err e = {0};
    assert_int_equal(dialect_form_write(at("base.gguf"), at("form.gguf"), FORM_EARLY, WIDTHS_KEPT, &e), 0);
    struct canonical *c = opened("form.gguf");
    assert_int_equal(canonical_origin(c, "attention.head_count"), ORIGIN_KEY);
    assert_int_equal(canonical_origin(c, "attention.output_lora_rank"), ORIGIN_ALIAS);
    assert_int_equal(canonical_origin(c, "expert_shared_feed_forward_length"), ORIGIN_TENSOR);
    assert_int_equal(canonical_origin(c, "attention.kv_sim_block"), ORIGIN_DEFAULT);
    canonical_close(c);
    const struct form_edit no_context = {EDIT_DROP, "deepseek4.context_length"};
    edited(&no_context, 1);
    c = opened("edited.gguf");
    assert_int_equal(canonical_origin(c, "context_length"), ORIGIN_CONSTANT);
    assert_int_equal(canonical_int(c, "context_length"), 1048576);
    canonical_close(c);
}

/* ---- tensors */

static void test_small_tensors_are_f32_copies_but_for_matrices_of_halves(void **state)
{
    struct canonical *c = opened("base.gguf");
    struct gguf *g;
    struct err e = {0};
    assert_int_equal(gguf_open(at("base.gguf"), &g, &e), 0);
    static const char *const names[] = {"blk.1.attn_compressor_ape.weight", "blk.1.indexer_compressor_ape.weight"};
    static const char *const halves[] = {"blk.1.hc_attn_fn.weight", "output_hc_fn.weight", "blk.2.ffn_gate_inp.weight",
                                         "blk.3.indexer.proj.weight"};
    for (size_t i = 0; i < COUNT(names); i++) {
        const struct tensor_view *v = canonical_tensor(c, "%s", names[i]);
        const struct gguf_tensor *t = gguf_tensor_find(g, names[i], strlen(names[i]));
        assert_int_equal(t->type, QT_F16);
        assert_int_equal(v->type, QT_F32);
        assert_int_equal(v->file, -1);
        for (uint64_t k = 0; k < t->ne[0] * t->ne[1]; k++) {
            uint16_t half;
            float got;
            memcpy(&half, gguf_data(g) + t->offset + 2 * k, 2);
            memcpy(&got, v->data + 4 * k, 4);
            assert_true(got == f16_to_f32(half));
        }
    }
    for (size_t i = 0; i < COUNT(halves); i++) {
        const struct tensor_view *v = canonical_tensor(c, "%s", halves[i]);
        const struct gguf_tensor *t = gguf_tensor_find(g, halves[i], strlen(halves[i]));
        assert_int_equal(v->type, QT_F16);
        assert_int_equal(v->file, 0);
        assert_memory_equal(v->data, gguf_data(g) + t->offset, 2 * t->ne[0] * t->ne[1]);
    }
    const struct tensor_view *big = canonical_tensor(c, "blk.0.ffn_down_exps.weight");
    assert_int_equal(big->type, QT_MXFP4);
    assert_int_equal(big->file, 0);
    assert_int_equal(tensor_view_bytes(big), 64 / 32 * 17 * 64 * 8);
    gguf_close(g);
    canonical_close(c);
}

static void test_fused_strides(void **state)
{
    struct err e = {0};
    assert_int_equal(dialect_form_write(at("base.gguf"), at("form.gguf"), FORM_FUSED, WIDTHS_KEPT, &e), 0);
    struct canonical *c = opened("form.gguf");
    const struct tensor_view *gate = canonical_tensor(c, "blk.1.ffn_gate_exps.weight"),
                             *up = canonical_tensor(c, "blk.1.ffn_up_exps.weight");
    const uint64_t row = 64 / 32 * 18; /* Q4_0 */
    assert_int_equal(gate->stride[1], row);
    assert_int_equal(gate->stride[2], 2 * 64 * row);
    assert_int_equal(up->stride[2], 2 * 64 * row);
    assert_int_equal(up->offset - gate->offset, 64 * row);
    assert_int_equal(gate->ne[1], 64);
    canonical_close(c);
}

static int32_t id_at(const struct tensor_view *v, int64_t token, int64_t k)
{
    int32_t id;
    memcpy(&id, v->data + (uint64_t)token * v->stride[1] + 4 * (uint64_t)k, 4);
    return id;
}

/* I64 ids become I32; a table with more columns than experts are used keeps the first ones (spec 6.2). */
static void test_hash_tables(void **state)
{
    struct canonical *base = opened("base.gguf");
    const struct tensor_view *want = canonical_tensor(base, "blk.0.ffn_gate_tid2eid.weight");
    const struct form_edit wide = {EDIT_I64, "blk.0.ffn_gate_tid2eid.weight"};
    edited(&wide, 1);
    struct canonical *c = opened("edited.gguf");
    canonical_same_view("tid2eid", want, canonical_tensor(c, "blk.0.ffn_gate_tid2eid.weight"));
    canonical_close(c);

    const struct form_edit one = {EDIT_U32, "deepseek4.expert_used_count", 1};
    edited(&one, 1);
    c = opened("edited.gguf");
    const struct tensor_view *v = canonical_tensor(c, "blk.0.ffn_gate_tid2eid.weight");
    assert_int_equal(v->ne[0], 1);
    for (int64_t t = 0; t < v->ne[1]; t++) assert_int_equal(id_at(v, t, 0), id_at(want, t, 0));
    canonical_close(c);

    const struct form_edit foreign = {EDIT_POKE, "blk.0.ffn_gate_tid2eid.weight", 8};
    edited(&foreign, 1);
    refused("edited.gguf", NULL, "hash routing names expert 8 of 8");
    const struct form_edit holes[] = {{EDIT_POKE, "blk.0.ffn_gate_tid2eid.weight", -1, .index = 0},
                                      {EDIT_POKE, "blk.0.ffn_gate_tid2eid.weight", -1, .index = 5}};
    edited(holes, 2);
    refused_in_full("edited.gguf",
                    "blk.0.ffn_gate_tid2eid.weight: hash routing names expert -1 of 8: experts were cut away (pruned) "
                    "and this table still sends words to them; that is a fault of its conversion, and downloading it "
                    "again does not help: get another file of DeepSeek V4, in llama.cpp's form (unsloth, bartowski, "
                    "ggml-org, AtomicChat) or ds4's (antirez)");
    const struct form_edit more = {EDIT_U32, "deepseek4.expert_used_count", 3};
    edited(&more, 1);
    refused("edited.gguf", NULL, "blk.0.ffn_gate_tid2eid.weight is [2, 288], expected [3, 288]");
    canonical_close(base);
}

static void test_need(void **state)
{
    struct canonical *c = opened("base.gguf");
    struct err e = {0};
    assert_non_null(canonical_need(c, &e, 2, (const int64_t[]){64, 80}, "blk.%d.attn_kv.weight", 3));
    assert_null(canonical_need(c, &e, 2, (const int64_t[]){80, 64}, "blk.%d.attn_kv.weight", 3));
    assert_string_equal(e.msg, "blk.3.attn_kv.weight is [64, 80], expected [80, 64]");
    err_clear(&e);
    assert_null(canonical_need(c, &e, 1, (const int64_t[]){80}, "blk.%d.indexer.proj.weight", 0));
    assert_string_equal(e.msg, "blk.0.indexer.proj.weight (also looked for blk.0.indexer.weights_proj) is missing");
    assert_null(canonical_tensor(c, "blk.0.attn_kv"));
    assert_null(canonical_tensor(c, "blk.4.attn_kv.weight"));
    canonical_close(c);
}

/* ---- refusals */

#define V4 "deepseek4."

static const struct {
    struct form_edit edit;
    const char *says;
} refusals[] = {
    /* R1, R2 and families of other versions */
    {{EDIT_TEXT, "general.architecture", .text = "mamba"}, "is a model of architecture \"mamba\", which this version"},
    {{EDIT_TEXT, "general.architecture", .text = "deepseek2"},
     "is a DeepSeek V2, V3 or R1 (or Kimi K2) model, which this version does not run; it runs DeepSeek V4 and Qwen3.8 "
     "Flash Next: get a file of one of them, or run this one with another program, such as llama.cpp"},
    {{EDIT_TEXT, "general.architecture", .text = "glm-dsa"},
     "is a GLM 5 model, which this version does not run; it runs DeepSeek V4"},
    {{EDIT_TEXT, "general.architecture", .text = "qwen4exp"}, "qwen4exp.ple.layer_multipliers is missing"},
    {{EDIT_TEXT, "general.architecture", .text = "deepseek41"}, "is a DeepSeek V4.1 model"},
    {{EDIT_NAME, "blk.1.attn_sinks.weight", .text = "blk.1.engram_kv.weight"}, "is a DeepSeek V4.1 model"},
    {{EDIT_TEXT, "general.architecture", .text = "deepseek4-mtp"},
     "is an MTP draft of DeepSeek V4, which this version does not use; run the model itself"},
    {{EDIT_TEXT, "general.architecture", .text = "clip"}, "is a vision encoder"},
    {{EDIT_TEXT, "general.type", .text = "adapter"}, "is an adapter"},
    {{EDIT_NO_TENSORS, "", 0}, "is a vocabulary"},
    {{EDIT_DROP, "general.architecture"},
     "has no general.architecture: it is not a language model, or a faulty conversion of one; give the model's .gguf "
     "file, or get another publisher's"},
    {{EDIT_TEXT, "general.architecture", .text = "deep\x1B[31m\nseek"}, "architecture \"deep?[31m?seek\", which"},
    {{EDIT_U32, "split.count", 3}, "is one of 3 shards"},
    /* R5 */
    {{EDIT_I64, "blk.0.ffn_norm.weight"}, "blk.0.ffn_norm.weight has type I64"},
    /* R9 */
    {{EDIT_NO_TENSORS, "blk.1.attn_kv.", 0},
     "blk.1.attn_kv.weight (also looked for blk.1.attn_kv_latent, blk.1.attn_kv_a_mqa) is missing"},
    {{EDIT_NO_TENSORS, "blk.2.attn_", 0}, "; and "},
    {{EDIT_NO_TENSORS, "blk.1.attn_compressor_ape", 0}, "blk.1.attn_compressor_ape.weight (also"},
    {{EDIT_NO_TENSORS, "blk.2.exp_probs_b", 0}, "blk.2.exp_probs_b.bias is missing"},
    {{EDIT_NO_TENSORS, "blk.0.ffn_gate_tid2eid", 0}, "blk.0.ffn_gate_tid2eid.weight is missing"},
    {{EDIT_NO_TENSORS, "blk.0.ffn_gate_shexp", 0}, "blk.0.ffn_gate_shexp.weight is missing"},
    {{EDIT_NO_TENSORS, "blk.0.", 0},
     "has no blk.0: its blocks are 1 to 3, which is a part of a model; get the file with those before, too, and give "
     "both: -m FIRST -m SECOND"},
    {{EDIT_NO_TENSORS, "blk.", 0}, "has no whole block of a model"},
    {{EDIT_U32, V4 "block_count", 9},
     "blk.4 to blk.8 are missing: the model has 9 blocks (" V4 "block_count), and this is a part of it; get the file "
     "with the others, too, and give both: -m FIRST -m SECOND (to check them: --check-file FIRST --check-file SECOND); "
     "or, if there is no such file, the key is wrong: get another publisher's"},
    {{EDIT_NO_TENSORS, "blk.1.attn_q_b.", 0},
     "blk.1.attn_q_b.weight is missing; get another file of DeepSeek V4, in llama.cpp's form"},
    {{EDIT_NE, "blk.1.attn_q_b.weight", 64, .index = 1}, "blk.1.attn_q_b.weight is [32, 64], expected [32, 320]"},
    {{EDIT_NAME, "blk.1.attn_q_a.weight", .text = "blk.1.attn_kv_latent.weight"}, "are both blk.1.attn_kv.weight"},
    {{EDIT_POKE, "blk.1.attn_q_a.weight", 0x7c00},
     "blk.1.attn_q_a.weight holds NaN or Inf in row 0: the file is damaged, and every token goes through this; get it "
     "again, or another publisher's"},
    {{EDIT_POKE, "blk.2.ffn_up_shexp.weight", 0x7c00}, "blk.2.ffn_up_shexp.weight holds NaN or Inf in row 0"},
    {{EDIT_POKE, "output.weight", 0x7c00}, "output.weight holds NaN or Inf in row 0"},
    {{EDIT_POKE, "blk.1.attn_norm.weight", 0x7fc00000}, "blk.1.attn_norm.weight holds NaN or Inf"},
    {{EDIT_POKE, "blk.1.ffn_gate_inp.weight", 0x7c00}, "blk.1.ffn_gate_inp.weight holds NaN or Inf in row 0"},
    {{EDIT_POKE, "blk.1.attn_compressor_kv.weight", 0x7e00, .index = 32},
     "blk.1.attn_compressor_kv.weight holds NaN or Inf in row 1"},
    {{EDIT_ZERO, "blk.2.ffn_down_exps.weight"},
     "blk.2.ffn_down_exps.weight is zeros only: the download was not finished; continue it or get it again"},
    /* R10: each key alone, then relations */
    {{EDIT_U32, V4 "attention.head_count", 0}, V4 "attention.head_count = 0 is not supported (only 1 to 65536)"},
    {{EDIT_U32, V4 "block_count", 4097}, V4 "block_count = 4097 is not supported (only 1 to 4096)"},
    {{EDIT_U32, V4 "hyper_connection.count", 65}, V4 "hyper_connection.count = 65 is not supported (only 1 to 64)"},
    {{EDIT_U32, V4 "expert_gating_func", 2}, V4 "expert_gating_func = 2 is not supported (only 4)"},
    {{EDIT_U32, V4 "expert_weights_norm", 0}, V4 "expert_weights_norm = false is not supported (only true)"},
    {{EDIT_U32, V4 "attention.head_count_kv", 2}, V4 "attention.head_count_kv = 2 is not supported (only 1)"},
    {{EDIT_I32S, V4 "attention.compress_ratios", 4, 64},
     V4 "attention.compress_ratios[3] = 64 is not supported (only 0, 4, 128)"},
    {{EDIT_I32S, V4 "attention.compress_ratios", 3}, V4 "attention.compress_ratios has 3 entries for 4 blocks"},
    {{EDIT_I32S, V4 "embedding_length", 2, 64}, V4 "embedding_length is an array"},
    {{EDIT_F32, V4 "attention.layer_norm_rms_epsilon", .real = -1},
     V4 "attention.layer_norm_rms_epsilon = -1 is not supported"},
    {{EDIT_F32, V4 "embedding_length", .real = 64}, V4 "embedding_length"},
    {{EDIT_TEXT, V4 "rope.freq_base", .text = "10000"}, V4 "rope.freq_base"},
    {{EDIT_U32, V4 "expert_used_count", 9},
     V4 "expert_used_count = 9, but the model has 8 experts: the key is wrong; that is a fault of its conversion"},
    {{EDIT_U32, V4 "rope.dimension_count", 15}, V4 "rope.dimension_count = 15 is not supported (only an even number"},
    {{EDIT_U32, V4 "rope.dimension_count", 82}, "up to the head width 80"},
    {{EDIT_U32, V4 "rope.dimension_count", 48}, "up to the indexer's width 32"},
    {{EDIT_U32, V4 "rope.dimension_count", 14},
     V4 "attention.key_length = 80 is not supported (only 14 plus a multiple of 64"},
    {{EDIT_U32, V4 "attention.indexer.sim_block", 64},
     V4 "attention.indexer.key_length = 32 is not supported (only multiples of 64"},
    /* R11 */
    {{EDIT_DROP, "tokenizer.ggml.tokens"}, "no tokenizer in this file"},
    {{EDIT_DROP, "tokenizer.ggml.merges"}, "tokenizer.ggml.merges is missing"},
    {{EDIT_TEXTS, "tokenizer.ggml.tokens", 289, .text = "x"},
     "the tokenizer has 289 tokens but the model knows 288: tokens were added to it and not to the model"},
    {{EDIT_TEXT, "tokenizer.ggml.model", .text = "llama"}, "tokenizer.ggml.model = llama is not supported (only gpt2)"},
    /* R16 */
    {{EDIT_DROP, V4 "rope.dimension_count"}, V4 "rope.dimension_count is missing and cannot be derived"},
    {{EDIT_DROP, V4 "attention.sliding_window"}, V4 "attention.sliding_window is missing"},
    {{EDIT_DROP, V4 "expert_weights_scale"}, V4 "expert_weights_scale is missing"},
};

static void test_refusals(void **state)
{
    for (size_t i = 0; i < COUNT(refusals); i++) {
        edited(&refusals[i].edit, 1);
        refused("edited.gguf", NULL, refusals[i].says);
    }
}

/* Of several tensors with one fault the first is named, and what to do is said once. */
static void test_damage_of_several(void **state)
{
    static const struct form_edit zeros[] = {{EDIT_ZERO, "blk.1.ffn_down_exps.weight"},
                                             {EDIT_ZERO, "blk.2.ffn_down_exps.weight"},
                                             {EDIT_ZERO, "blk.3.ffn_down_exps.weight"}},
                                  spoilt[] = {{EDIT_POKE, "blk.1.attn_q_a.weight", 0x7c00},
                                              {EDIT_POKE, "blk.2.attn_q_a.weight", 0x7c00}};
    edited(zeros, 3);
    refused(
        "edited.gguf", NULL,
        ".gguf: blk.1.ffn_down_exps.weight is zeros only, and so are 2 more tensors: the download was not finished; "
        "continue it or get it again");
    edited(spoilt, 2);
    refused("edited.gguf", NULL,
            ".gguf: blk.1.attn_q_a.weight holds NaN or Inf in row 0, and so does 1 more tensor: the file is damaged");
}

/* Rows wider than an int can count. */
static void test_widths(void **state)
{
    static const struct form_edit heads[] = {{EDIT_NE, "blk.0.attn_sinks.weight", 65536, .index = 0},
                                             {EDIT_NE, "blk.0.attn_kv.weight", 65536, .index = 1}};
    edited(heads, 2);
    refused("edited.gguf", NULL,
            "attention.key_length = 65536, which attn_kv says, is not supported (only up to 32767 with 65536");
    static const struct form_edit index[] = {{EDIT_NE, "blk.1.indexer.proj.weight", 65536, .index = 1},
                                             {EDIT_NE, "blk.1.indexer_compressor_norm.weight", 65536, .index = 0}};
    edited(index, 2);
    refused("edited.gguf", NULL, "attention.indexer.key_length = 65536, which indexer_compressor_norm says, is not ");
}

/* Shapes that the roundings cannot block are fine when they are off; the other relations still hold. */
static void test_kv_sim_off(void **state)
{
    const struct canonical_options off = {.kv_sim_off = true};
    const struct form_edit narrow = {EDIT_U32, V4 "rope.dimension_count", 14};
    struct canonical *c;
    struct err e = {0};
    edited(&narrow, 1);
    const char *path = at("edited.gguf");
    assert_int_equal(canonical_open(&path, 1, &off, &c, &e), 0);
    assert_int_equal(canonical_int(c, "rope.dimension_count"), 14);
    canonical_close(c);
    const struct form_edit odd = {EDIT_U32, V4 "rope.dimension_count", 15};
    edited(&odd, 1);
    refused("edited.gguf", &off, "an even number");
}

static void test_files(void **state)
{
    refused("none.gguf", NULL, "none.gguf");
    struct canonical *c;
    struct err e = {0};
    assert_int_equal(canonical_open(NULL, 0, NULL, &c, &e), ERR_ARG);
}

/* ---- warnings and corrections */

static const struct {
    struct form_edit edit;
    const char *says;
} comments[] = {
    {{EDIT_U32, V4 "embedding_length", 65}, "warning: key embedding_length says 65, tensors say 64: using 64"},
    {{EDIT_U32, V4 "hash_layer_count", 0}, "warning: key hash_layer_count says 0, tensors say 1: using 1"},
    {{EDIT_I32S, V4 "attention.compress_ratios", 7},
     "warning: key attention.compress_ratios[1] says 0, tensors say 4: using 4"},
    {{EDIT_DROP, V4 "rope.freq_base"}, "warning: key rope.freq_base is missing: using 10000"},
    {{EDIT_TEXT, V4 "rope.scaling.type", .text = "longrope"}, "rope.scaling.type is not understood"},
    {{EDIT_TEXT, V4 "rope.scaling.type", .text = "none"},
     "warning: key " V4 "rope.scaling.type says none, rope.scaling.factor 16: using the factor"},
    {{EDIT_U32, "reap.count", 1}, "reap.count is not understood"},
    {{EDIT_TEXT, "tokenizer.ggml.pre", .text = "qwen2"}, "tokenizer.ggml.pre is \"qwen2\": using joyai-llm"},
    {{EDIT_U32, "tokenizer.ggml.bos_token_id", 3}, "tokenizer.ggml.bos_token_id is 3, which is not <"},
    {{EDIT_POKE, "token_embd.weight", 0xfc00}, "warning: token_embd.weight holds NaN or Inf in row 0"},
    {{EDIT_POKE, "blk.2.ffn_down_exps.weight", 0xff}, "warning: blk.2.ffn_down_exps.weight holds NaN or Inf in row 0"},
    {{EDIT_TEXT, "general.name", .text = "a\x1B]0;b\x07\nwarning: c"}, "model: a?]0;b??warning: c, DeepSeek"},
    {{EDIT_TEXT, "tokenizer.ggml.pre",
      .text = "q\xC2\x9B"
              "2J"},
     "tokenizer.ggml.pre is \"q??2J\""},
};

static void test_comments(void **state)
{
    const struct synth_shape s = shape_of_tests();
    for (size_t i = 0; i < COUNT(comments); i++) {
        edited(&comments[i].edit, 1);
        reports("edited.gguf", &comments[i].says, 1);
        struct canonical *c = opened("edited.gguf");
        has_parameters(c, &s);
        canonical_close(c);
    }
    /* block_count may count the blocks of a draft that is not inside (spec 5). */
    const struct form_edit five = {EDIT_U32, V4 "block_count", 5};
    edited(&five, 1);
    struct canonical *c = opened("edited.gguf");
    struct str r = report_of(c);
    assert_null(strstr(str_c(&r), "warning"));
    assert_int_equal(canonical_int(c, "block_count"), 4);
    str_free(&r);
    canonical_close(c);
}

/* A draft that is named behind the model is not dropped in silence. */
static void test_draft_beside(void **state)
{
    static const struct form_edit rest[] = {{EDIT_NO_TENSORS, "blk.0."},
                                            {EDIT_NO_TENSORS, "blk.1."},
                                            {EDIT_NO_TENSORS, "blk.2."},
                                            {EDIT_NO_TENSORS, "blk.3."},
                                            {EDIT_NO_TENSORS, "output"}};
    char merged[256], draft[256];
    struct err e = {0};
    struct canonical *c;
    struct str report = {0};
    snprintf(merged, sizeof merged, "%s", at("merged.gguf"));
    snprintf(draft, sizeof draft, "%s", at("draft.gguf"));
    const char *const paths[] = {at("base.gguf"), draft};
    if (dialect_form_write(paths[0], merged, FORM_MERGED, WIDTHS_KEPT, &e)) fail_msg("%s", e.msg);
    if (dialect_form_edit(merged, draft, rest, COUNT(rest), &e)) fail_msg("%s", e.msg);
    if (canonical_open(paths, 2, NULL, &c, &e)) fail_msg("%s", e.msg);
    canonical_report(c, &report);
    const char *said = strstr(str_c(&report), "warning: ");
    assert_non_null(said);
    assert_non_null(
        strstr(said, "draft.gguf is a draft of DeepSeek V4, which this version does not use: leave it out"));
    assert_null(strstr(str_c(&report), "inside this file"));
    str_free(&report);
    canonical_close(c);
}

/* Where the file holds the stages of a DSpark draft, its last blocks are not the trunk's (spec 5). */
static void test_draft_stages(void **state)
{
    struct form_edit staged[] = {{EDIT_NAME, "blk.3.attn_norm.weight", .text = "fc.weight"},
                                 {EDIT_NAME, "blk.3.ffn_norm.weight", .text = "markov_w1.weight"},
                                 {EDIT_U32, V4 "nextn_predict_layers", 1}};
    edited(staged, COUNT(staged));
    struct canonical *c = opened("edited.gguf");
    assert_int_equal(canonical_n_layers(c), 3);
    canonical_close(c);
    staged[2].kind = EDIT_DROP;
    edited(staged, COUNT(staged)); /* without the key all blocks have the trunk's number of experts: none is a stage */
    refused("edited.gguf", NULL, "blk.3.attn_norm.weight is missing");
}

/* A vector is one wherever its length is written, for what is derived from it too (spec 4 T2). */
static void test_vectors_of_any_rank(void **state)
{
    static const struct form_edit ranks[] = {{EDIT_NE, "blk.0.attn_sinks.weight", 4, .index = 1},
                                             {EDIT_NE, "blk.0.attn_sinks.weight", 1, .index = 0},
                                             {EDIT_NE, "blk.1.indexer_compressor_norm.weight", 32, .index = 2},
                                             {EDIT_NE, "blk.1.indexer_compressor_norm.weight", 1, .index = 0},
                                             {EDIT_DROP, V4 "attention.head_count"},
                                             {EDIT_DROP, V4 "attention.indexer.key_length"}};
    const struct synth_shape s = shape_of_tests();
    edited(ranks, COUNT(ranks));
    struct canonical *c = opened("edited.gguf");
    has_parameters(c, &s);
    canonical_close(c);
}

/* To be described only: nothing is copied, the same is told and refused. */
static void test_look(void **state)
{
    static const struct canonical_options look = {.look = true};
    static const struct form_edit damage = {EDIT_POKE, "blk.1.attn_norm.weight", 0x7fc00000};
    const char *path = at("base.gguf");
    struct canonical *whole = opened("base.gguf"), *c;
    struct err e = {0};
    assert_int_equal(canonical_open(&path, 1, &look, &c, &e), 0);
    struct str a = report_of(whole), b = report_of(c);
    assert_string_equal(str_c(&a), str_c(&b));
    assert_int_equal(canonical_n_tensors(c), canonical_n_tensors(whole));
    const struct tensor_view *v = canonical_tensor(c, "blk.1.attn_norm.weight");
    assert_null(v->data);
    assert_int_equal(v->type, QT_F32);
    assert_int_equal(tensor_view_bytes(v), tensor_view_bytes(canonical_tensor(whole, "blk.1.attn_norm.weight")));
    assert_non_null(canonical_tensor(c, "blk.1.attn_q_a.weight")->data);
    str_free(&a);
    str_free(&b);
    canonical_close(whole);
    canonical_close(c);
    edited(&damage, 1);
    refused("edited.gguf", &look, "blk.1.attn_norm.weight holds NaN or Inf");
}

/* From headers alone: the same is told, and damage inside tensors is not noticed. */
static void test_headers_only(void **state)
{
    static const struct canonical_options headers = {.look = true, .headers_only = true};
    static const struct form_edit damage[] = {{EDIT_POKE, "blk.1.attn_norm.weight", 0x7fc00000},
                                              {EDIT_POKE, "blk.0.attn_kv.weight", 0x7fc00000},
                                              {EDIT_POKE, "blk.0.ffn_gate_tid2eid.weight", -1}};
    struct canonical *whole = opened("base.gguf"), *c;
    struct err e = {0};
    edited(damage, 3);
    const char *path = at("edited.gguf");
    if (canonical_open(&path, 1, &headers, &c, &e)) fail_msg("%s", e.msg);
    struct str a = report_of(whole), b = report_of(c);
    assert_string_equal(str_c(&a), str_c(&b));
    assert_int_equal(canonical_n_tensors(c), canonical_n_tensors(whole));
    for (int i = 0; i < canonical_n_tensors(c); i++) {
        const struct tensor_view *v, *w;
        assert_string_equal(canonical_tensor_at(c, i, &v), canonical_tensor_at(whole, i, &w));
        assert_int_equal(v->type, w->type);
        assert_int_equal(v->file, w->file);
        assert_true(tensor_view_bytes(v) == tensor_view_bytes(w));
        assert_true(v->file >= 0 || !v->data);
    }
    str_free(&a);
    str_free(&b);
    canonical_close(whole);
    canonical_close(c);
}

/* Parameters before there is a file: what is refused in one is refused here, in the same words. */
static void test_check(void **state)
{
    static const double ratios[] = {0, 4, 128, 4, 0}, bad_ratio[] = {0, 4, 64, 4}, one = 4, L = 4, D = 64, V = 300,
                        H = 4, d = 80, r = 16, G = 2, R = 32, W = 8, F = 64, E = 8, K = 2, zero = 0, odd = 15,
                        eight = 8, n = 9;
    struct canonical_given given[] = {
        {"block_count", &L, 1},
        {"embedding_length", &D, 1},
        {"vocab_size", &V, 1},
        {"attention.head_count", &H, 1},
        {"attention.key_length", &d, 1},
        {"attention.value_length", &d, 1},
        {"rope.dimension_count", &r, 1},
        {"attention.output_group_count", &G, 1},
        {"attention.q_lora_rank", &R, 1},
        {"attention.output_lora_rank", &R, 1},
        {"attention.sliding_window", &W, 1},
        {"attention.compress_ratios", ratios, 5},
        {"attention.indexer.head_count", &G, 1},
        {"attention.indexer.key_length", &R, 1},
        {"attention.indexer.top_k", &L, 1},
        {"hyper_connection.count", &H, 1},
        {"expert_count", &E, 1},
        {"expert_used_count", &K, 1},
        {"expert_feed_forward_length", &F, 1},
        {"expert_shared_feed_forward_length", &F, 1},
        {"hash_layer_count", &zero, 1},
        {"expert_weights_scale", &one, 1},
    };
    static const struct {
        const char *key;
        const double *v;
        int n;
        const char *says; /* NULL: fine */
    } changes[] = {
        {"attention.compress_ratios", &one, 1, NULL},
        {"attention.compress_ratios", ratios, 3, "attention.compress_ratios has 3 entries for 4 blocks; one or at"},
        {"attention.compress_ratios", bad_ratio, 4,
         "attention.compress_ratios[2] = 64 is not supported (only 0, 4, 128)"},
        {"attention.head_count", &zero, 1, "attention.head_count = 0 is not supported (only 1 to 65536)"},
        {"expert_used_count", &n, 1, "expert_used_count = 9, but the model has 8 experts"},
        {"rope.dimension_count", &odd, 1, "rope.dimension_count = 15 is not supported (only an even number"},
        {"rope.dimension_count", &eight, 1, "attention.key_length = 80 is not supported (only 8 plus a multiple of 64"},
    };
    struct err e = {0};
    if (canonical_check(CANONICAL_DEEPSEEK4, 4, given, COUNT(given), NULL, &e)) fail_msg("%s", e.msg);
    for (size_t i = 0; i < COUNT(changes); i++) {
        struct canonical_given changed[COUNT(given)];
        struct err why = {0};
        memcpy(changed, given, sizeof given);
        for (size_t k = 0; k < COUNT(given); k++)
            if (!strcmp(given[k].key, changes[i].key))
                changed[k] = (struct canonical_given){given[k].key, changes[i].v, changes[i].n};
        const int rc = canonical_check(CANONICAL_DEEPSEEK4, 4, changed, COUNT(changed), NULL, &why);
        assert_int_equal(rc, why.code);
        assert_int_equal(rc != 0, changes[i].says != NULL);
        if (rc && strncmp(why.msg, changes[i].says, strlen(changes[i].says))) fail_msg("%s", why.msg);
    }
    /* Without the roundings their blocks do not matter; what is missing and cannot be guessed is named. */
    static const struct canonical_options off = {.kv_sim_off = true};
    given[6].v = &eight;
    assert_int_equal(canonical_check(CANONICAL_DEEPSEEK4, 4, given, COUNT(given), &off, &e), 0);
    assert_int_equal(canonical_check(CANONICAL_DEEPSEEK4, 4, given, COUNT(given) - 1, &off, &e), ERR_MODEL);
    assert_string_equal(e.msg, "deepseek4.expert_weights_scale is missing and cannot be derived for this shape");
}

/* A scalar and an array of one entry stand for all layers (spec 3). */
static void test_scalar_or_array(void **state)
{
    static const struct form_edit edits[] = {{EDIT_F32, V4 "swiglu_clamp_exp", .real = 7},
                                             {EDIT_F32S, V4 "swiglu_clamp_exp", 1, 7},
                                             {EDIT_F32S, V4 "swiglu_clamp_exp", 9, 7}};
    for (size_t i = 0; i < COUNT(edits); i++) {
        edited(&edits[i], 1);
        struct canonical *c = opened("edited.gguf");
        for (int l = 0; l < 4; l++) assert_float_equal(canonical_float_at(c, "swiglu_clamp_shexp", l), 7, 0);
        canonical_close(c);
    }
}

static void test_precision_warnings(void **state)
{
    static const char *const small[] = {"hyper-connection weights in Q4_0",  "router in Q4_0: widened",
                                        "chooses as the model does",         "for long contexts get a file",
                                        "is hardly larger and better",       "long-context selection is imprecise",
                                        "small vectors are quantised (Q4_0)"};
    struct synth_shape s = synth_tiny();
    s.rest = QT_Q4_0;
    s.d = 96; /* rows of every matrix fill blocks of 32 */
    s.r = 32;
    synth("crude.gguf", &s);
    reports("crude.gguf", small, COUNT(small));
    static const char *const experts[] = {"experts have 2.06 bits a weight", "types: F32 "};
    s = synth_wide();
    s.gate = s.up = s.down = QT_IQ2_XXS;
    synth("crude.gguf", &s);
    reports("crude.gguf", experts, COUNT(experts));
}

/* Block 1 has lost half of its experts (spec 6.4). */
static void test_pruned_experts(void **state)
{
    static const struct form_edit prune[] = {{EDIT_NE, "blk.1.ffn_gate_inp.weight", 4, .index = 1},
                                             {EDIT_NE, "blk.1.exp_probs_b.bias", 4, .index = 0},
                                             {EDIT_NE, "blk.1.ffn_gate_exps.weight", 4, .index = 2},
                                             {EDIT_NE, "blk.1.ffn_up_exps.weight", 4, .index = 2},
                                             {EDIT_NE, "blk.1.ffn_down_exps.weight", 4, .index = 2}};
    static const char *const says[] = {"1 of 4 blocks have fewer than 8 experts",
                                       "1 blocks have fewer experts than are used"};
    struct synth_shape s = shape_of_tests();
    struct err e = {0};
    s.hash = 0;
    s.K = 6;
    synth("many.gguf", &s);
    assert_int_equal(dialect_form_edit(at("many.gguf"), at("pruned.gguf"), prune, COUNT(prune), &e), 0);
    struct canonical *c = opened("pruned.gguf");
    assert_int_equal(canonical_int(c, "expert_count"), 8);
    for (int l = 0; l < 4; l++) {
        assert_int_equal(canonical_int_at(c, "expert_count", l), l == 1 ? 4 : 8);
        assert_int_equal(canonical_int_at(c, "expert_used_count", l), l == 1 ? 4 : 6);
    }
    canonical_close(c);
    reports("pruned.gguf", says, COUNT(says));
    assert_int_equal(dialect_form_edit(at("many.gguf"), at("pruned.gguf"), prune, 4, &e), 0);
    refused("pruned.gguf", NULL,
            "blk.1 has 8 experts in ffn_down_exps and 4 in its router: pruned only in part; that is a fault of its "
            "conversion, and downloading it again does not help: get another file of DeepSeek V4");
    assert_int_equal(dialect_form_edit(at("many.gguf"), at("pruned.gguf"), prune, 1, &e), 0);
    refused(
        "pruned.gguf", NULL,
        "blk.1 has 8 experts in exp_probs_b and 4 in its router, and so differ 3 more tensors: pruned only in part");
}

/* A file with Flash's width and length, everything else minimal: constants of the release may stand in (spec 1.6). */
static void test_published_constants(void **state)
{
    static const struct form_edit gone[] = {{EDIT_DROP, V4 "rope.dimension_count"},
                                            {EDIT_DROP, V4 "attention.sliding_window"},
                                            {EDIT_DROP, V4 "attention.indexer.top_k"},
                                            {EDIT_DROP, V4 "expert_weights_scale"},
                                            {EDIT_DROP, V4 "expert_used_count"}};
    struct synth_shape s = {.V = 128,
                            .D = 4096,
                            .L = 43,
                            .H = 1,
                            .d = 64,
                            .r = 64,
                            .G = 1,
                            .Rq = 1,
                            .Ro = 1,
                            .E = 6,
                            .K = 1,
                            .F = 1,
                            .W = 8,
                            .IH = 1,
                            .ID = 64,
                            .IK = 4,
                            .n = 1,
                            .iters = 20,
                            .clamp = 10,
                            .scale = 1,
                            .eps = 1e-6f,
                            .base = 10000,
                            .cbase = 160000,
                            .seed = 1,
                            .ratios = {4},
                            .embed = QT_F16,
                            .dense = QT_F16,
                            .gate = QT_F16,
                            .up = QT_F16,
                            .down = QT_F16,
                            .rest = QT_F16};
    struct err e = {0};
    synth("flash.gguf", &s);
    assert_int_equal(dialect_form_edit(at("flash.gguf"), at("bare.gguf"), gone, COUNT(gone), &e), 0);
    struct canonical *c = opened("bare.gguf");
    assert_int_equal(canonical_int(c, "rope.dimension_count"), 64);
    assert_int_equal(canonical_int(c, "attention.sliding_window"), 128);
    assert_int_equal(canonical_int(c, "attention.indexer.top_k"), 512);
    assert_int_equal(canonical_int(c, "expert_used_count"), 6);
    assert_float_equal(canonical_float(c, "expert_weights_scale"), 1.5, 0);
    assert_int_equal(canonical_origin(c, "expert_weights_scale"), ORIGIN_CONSTANT);
    canonical_close(c);
    reports("bare.gguf", (const char *const[]){"DeepSeek V4 Flash (deepseek4, ds4 dialect)"}, 1);
}

/* Signs of the later checkpoint's mapping of effort (spec 6.3). */
static void test_late_effort(void **state)
{
    static const struct form_edit signs[] = {
        {EDIT_TEXT, "general.name", .text = "DeepSeek V4 Flash 0731"},
        {EDIT_TEXT, "general.source.url", .text = "https://example.org/V4-Vision-Exp"},
        {EDIT_TEXT, "tokenizer.chat_template", .text = "... Beyond maximum ..."},
    };
    bool known = true;
    struct canonical *c = opened("base.gguf");
    assert_false(canonical_late_effort(c, &known));
    assert_false(known);
    assert_string_equal(canonical_name(c), "random V4 shape");
    canonical_close(c);
    for (size_t i = 0; i < COUNT(signs); i++) {
        edited(&signs[i], 1);
        c = opened("edited.gguf");
        assert_true(canonical_late_effort(c, &known));
        assert_true(known);
        canonical_close(c);
    }
}

/* ---- the models themselves */

/* Goldens of other implementations belong to these bytes. FNV-1a of whole files. */
static uint64_t file_hash(const char *path)
{
    char *data;
    size_t n;
    struct err e = {0};
    uint64_t h = 0xcbf29ce484222325u;
    assert_int_equal(file_read(path, 1 << 28, &data, &n, &e), 0);
    for (size_t i = 0; i < n; i++) h = (h ^ (uint8_t)data[i]) * 0x100000001b3u;
    mem_free(data);
    return h;
}

static void test_synth_bytes_are_stable(void **state)
{
    struct synth_shape s = synth_tiny();
    synth("stable.gguf", &s);
    assert_int_equal(file_hash(at("stable.gguf")), 0xe92e0f1e7e88fd28u);
}

static int setup(void **state)
{
    temp_folder(folder);
    const struct synth_shape s = shape_of_tests();
    synth("base.gguf", &s);
    return 0;
}

static int teardown(void **state)
{
    return temp_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_synth_bytes_are_stable),
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_hole),
        cmocka_unit_test(test_origins),
        cmocka_unit_test(test_small_tensors_are_f32_copies_but_for_matrices_of_halves),
        cmocka_unit_test(test_fused_strides),
        cmocka_unit_test(test_hash_tables),
        cmocka_unit_test(test_need),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_damage_of_several),
        cmocka_unit_test(test_widths),
        cmocka_unit_test(test_kv_sim_off),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_comments),
        cmocka_unit_test(test_draft_beside),
        cmocka_unit_test(test_draft_stages),
        cmocka_unit_test(test_vectors_of_any_rank),
        cmocka_unit_test(test_look),
        cmocka_unit_test(test_headers_only),
        cmocka_unit_test(test_check),
        cmocka_unit_test(test_scalar_or_array),
        cmocka_unit_test(test_precision_warnings),
        cmocka_unit_test(test_pruned_experts),
        cmocka_unit_test(test_published_constants),
        cmocka_unit_test(test_late_effort),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
