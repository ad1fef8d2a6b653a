/* ds4-gguf convert of a Qwen3.8 folder: every value of every tensor where the specification (qwen38 2.2) wants it, the
 * table at the end, padded rows, names of both kinds of checkpoints, refusals. Names, shapes and changes are written
 * here apart from the converter's tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../support/quant_vectors.h"
#include "../support/shell_run.h"
#include "../support/temp_files.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "dialect/canonical.h"
#include "gguf/gguf.h"
#include "quant/quant.h"

enum {
    E = 64,
    V = 24,
    H = 2,
    D = 16,
    HK = 2,
    HV = 4,
    DL = 8,
    NE = 3,
    F = 96,
    FS = 32,
    HC = 2,
    RHO = 8,
    DI = 8,
    HI = 2
};
enum { KD = HK * DL, VD = HV * DL, CD = 2 * KD + VD, W = 16, PIECES = 4, PIECE_ROWS = 9, MOST = 128 };

static const char config[] =
    "\"vocab_size\": 24, \"hidden_size\": 64, \"num_hidden_layers\": 2, \"mtp_num_hidden_layers\": 1, "
    "\"num_attention_heads\": 2, \"num_key_value_heads\": 1, \"head_dim\": 16, \"max_position_embeddings\": 4096, "
    "\"rms_norm_eps\": 1e-6, \"linear_conv_kernel_dim\": 4, \"linear_key_head_dim\": 8, \"linear_value_head_dim\": 8, "
    "\"linear_num_key_heads\": 2, \"linear_num_value_heads\": 4, \"num_experts\": 3, \"num_experts_per_tok\": 2, "
    "\"moe_intermediate_size\": 96, \"shared_expert_intermediate_size\": 32, \"hc_count\": 2, \"hc_lowrank\": 8, "
    "\"indexer_n_heads\": 2, \"indexer_head_dim\": 8, \"indexer_budget\": 8, \"indexer_compress_ratio\": 4, "
    "\"layer_types\": [\"linear_attention\", \"full_attention\"], \"full_attention_interval\": 2, "
    "\"ple_layer_ids\": [1], \"ngram_size\": 2, \"heads_per_ngram\": 4, \"ple_conv_kernel_size\": 3, "
    "\"split_ngram_parts\": 4, \"rope_parameters\": {\"rope_type\": \"default\", \"rope_theta\": 10000000, "
    "\"partial_rotary_factor\": 0.5, \"mrope_section\": [2, 1, 1]}";
static const char tokenizer[] = "{\"added_tokens\": [{\"id\": 20, \"content\": \"<|endoftext|>\", \"special\": true}], "
                                "\"model\": {\"type\": \"BPE\", "
                                "\"vocab\": {\"a\": 0, \"b\": 1, \"ab\": 2}, \"merges\": [\"a b\"]}}";

/* ---- the source ---- */

struct part {
    char name[160];
    const char *dtype;
    int n_dims;
    uint64_t dims[3];
};

static struct fixture {
    char folder[TEMP_PATH], out[128];
    struct part part[MOST];
    int n;
    bool nested; /* names and config of a model with images */
    const char *more_config;
    struct str said;
    struct gguf *g;
} f;

static void add(const char *dtype, const char *name, int n_dims, uint64_t a, uint64_t b, uint64_t c)
{
    struct part *const p = &f.part[f.n++];
    *p = (struct part){.dtype = dtype, .n_dims = n_dims, .dims = {a, b, c}};
    snprintf(p->name, sizeof p->name, "%s", name);
}

static void add_in(const char *block, const char *name, int n_dims, uint64_t a, uint64_t b, uint64_t c)
{
    char full[160];
    snprintf(full, sizeof full, "%s%s", block, name);
    add("BF16", full, n_dims, a, b, c);
}

static void add_mixer(const char *block, const char *name, bool inject)
{
    char b[80];
    snprintf(b, sizeof b, "%s%s.", block, name);
    add_in(b, "hc_norm.weight", 1, HC * E, 0, 0);
    add_in(b, "input_mix_weight_down", 2, RHO, HC * E, 0);
    add_in(b, "input_mix_weight_up", 2, HC * E, RHO, 0);
    if (inject) add_in(b, "block_inject_weight", 2, HC, HC * E, 0);
}

static void add_experts(const char *b)
{
    add_mixer(b, "attn_hyper_connection", true);
    add_mixer(b, "mlp_hyper_connection", true);
    add_in(b, "mlp.gate.weight", 2, NE, E, 0);
    add_in(b, "mlp.experts.gate_up_proj", 3, NE, 2 * F, E);
    add_in(b, "mlp.experts.down_proj", 3, NE, E, F);
    add_in(b, "mlp.shared_expert_gate.weight", 2, 1, E, 0);
    add_in(b, "mlp.shared_expert.gate_proj.weight", 2, FS, E, 0);
    add_in(b, "mlp.shared_expert.up_proj.weight", 2, FS, E, 0);
    add_in(b, "mlp.shared_expert.down_proj.weight", 2, E, FS, 0);
}

static void add_attention(const char *b)
{
    add_in(b, "self_attn.q_proj.weight", 2, 2 * H * D, E, 0);
    add_in(b, "self_attn.k_proj.weight", 2, D, E, 0);
    add_in(b, "self_attn.v_proj.weight", 2, D, E, 0);
    add_in(b, "self_attn.o_proj.weight", 2, E, H * D, 0);
    add_in(b, "self_attn.q_norm.weight", 1, D, 0, 0);
    add_in(b, "self_attn.k_norm.weight", 1, D, 0, 0);
    add_in(b, "self_attn.indexer.index_qk_proj.weight", 2, (HI + 1) * DI, E, 0);
    add_in(b, "self_attn.indexer.q_layernorm.weight", 1, DI, 0, 0);
    add_in(b, "self_attn.indexer.k_layernorm.weight", 1, DI, 0, 0);
}

static void add_gdn(const char *b)
{
    add_in(b, "linear_attn.in_proj_qkv.weight", 2, CD, E, 0);
    add_in(b, "linear_attn.in_proj_z.weight", 2, VD, E, 0);
    add_in(b, "linear_attn.conv1d.weight", 3, CD, 1, 4);
    add_in(b, "linear_attn.dt_bias", 1, HV, 0, 0);
    add_in(b, "linear_attn.A_log", 1, HV, 0, 0);
    add_in(b, "linear_attn.in_proj_b.weight", 2, HV, E, 0);
    add_in(b, "linear_attn.in_proj_a.weight", 2, HV, E, 0);
    add_in(b, "linear_attn.norm.weight", 1, DL, 0, 0);
    add_in(b, "linear_attn.out_proj.weight", 2, E, VD, 0);
}

static void add_memory(const char *b)
{
    char name[96];
    add_in(b, "ple.key_proj.weight", 2, HC * E, E, 0);
    add_in(b, "ple.value_proj.weight", 2, E, E, 0);
    add_in(b, "ple.norm_key.weight", 1, HC * E, 0, 0);
    add_in(b, "ple.norm_query.weight", 1, HC * E, 0, 0);
    add_in(b, "ple.norm_conv.weight", 1, HC * E, 0, 0);
    add_in(b, "ple.conv1d.weight", 3, HC * E, 1, 3);
    add("I64", "model.ple_embedding.layer_multipliers", 1, 2, 0, 0);
    add("I64", "model.ple_embedding.ngram_heads_offsets", 1, 4, 0, 0);
    add("I64", "model.ple_embedding.ngram_heads_vocab_sizes", 1, 4, 0, 0);
    for (int i = PIECES - 1; i >= 0; i--) { /* in any order */
        snprintf(name, sizeof name, "model.ple_embedding.ngram_embedding.shard_%d", i);
        add("BF16", name, 2, PIECE_ROWS, W, 0);
    }
}

static int set_up(void **state)
{
    memset(&f, 0, sizeof f);
    temp_folder(f.folder);
    snprintf(f.out, sizeof f.out, "%s/out.gguf", f.folder);
    f.more_config = "\"eos_token_id\": 20";
    add_in("", "model.embed_tokens.weight", 2, V, E, 0);
    add_in("", "lm_head.weight", 2, V, E, 0);
    add_mixer("model.", "hyper_connection_mixer", false);
    add_gdn("model.layers.0.");
    add_memory("model.layers.0.");
    add_experts("model.layers.0.");
    add_attention("model.layers.1.");
    add_experts("model.layers.1.");
    add_in("mtp.", "fc_embedding.weight", 2, E, E, 0);
    add_in("mtp.", "fc_hidden.weight", 2, E, E, 0);
    add_in("mtp.", "pre_fc_norm_embedding.weight", 1, E, 0, 0);
    add_in("mtp.", "pre_fc_norm_hidden.weight", 1, HC * E, 0, 0);
    add_mixer("mtp.", "hyper_connection_mixer", false);
    add_attention("mtp.layers.0.");
    add_experts("mtp.layers.0.");
    return 0;
}

static int tear_down(void **state)
{
    gguf_close(f.g);
    str_free(&f.said);
    return temp_remove(f.folder);
}

static struct part *find(const char *name)
{
    for (int i = 0; i < f.n; i++)
        if (!strcmp(f.part[i].name, name)) return &f.part[i];
    fail_msg("no source %s", name);
    return NULL;
}

/* Numbers that BF16 and F16 hold exactly. */
static float value_of(const char *name, uint64_t at)
{
    const uint64_t h = vec_fnv(name, strlen(name)) % 1009 + at * 37 + at / 64 * 11;
    return (float)((int)(h % 255) - 127) / 64;
}

static int64_t number_of(const char *name, uint64_t i)
{
    static const int64_t multipliers[] = {INT64_C(7191089600892374487), 12345678901}, sizes[] = {5, 7, 11, 13},
                         offsets[] = {0, 5, 12, 23};
    return strstr(name, "mult") ? multipliers[i] : strstr(name, "sizes") ? sizes[i] : offsets[i];
}

static uint64_t count(const struct part *p)
{
    uint64_t n = 1;
    for (int i = 0; i < p->n_dims; i++) n *= p->dims[i];
    return n;
}

static void put_values(FILE *to, const struct part *p)
{
    for (uint64_t i = 0; i < count(p); i++) {
        const float v = value_of(p->name, i);
        const int64_t number = *p->dtype == 'I' ? number_of(p->name, i) : 0;
        const uint16_t half = f32_to_bf16(v);
        if (*p->dtype == 'I')
            fwrite(&number, 8, 1, to);
        else if (*p->dtype == 'F')
            fwrite(&v, 4, 1, to);
        else
            fwrite(&half, 2, 1, to);
    }
}

static const char *name_in_file(const struct part *p, char text[200])
{
    if (f.nested && !strncmp(p->name, "model.", 6))
        snprintf(text, 200, "model.language_model.%s", p->name + 6);
    else
        snprintf(text, 200, "%s", p->name);
    return text;
}

static void write_text(const char *file, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", f.folder, file);
    FILE *const to = fopen(path, "wb");
    assert_non_null(to);
    fputs(text, to);
    fclose(to);
}

static void write_source(void)
{
    struct str head = {0};
    char path[128], name[200];
    uint64_t at = 0;
    for (int i = 0; i < f.n; i++) {
        const struct part *const p = &f.part[i];
        const uint64_t bytes = count(p) * (*p->dtype == 'I' ? 8 : *p->dtype == 'F' ? 4 : 2);
        str_printf(&head, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[", i ? "," : "{", name_in_file(p, name), p->dtype);
        for (int d = 0; d < p->n_dims; d++) str_printf(&head, "%s%d", d ? "," : "", (int)p->dims[d]);
        str_printf(&head, "],\"data_offsets\":[%d,%d]}", (int)at, (int)(at + bytes));
        at += bytes;
    }
    str_puts(&head, "}");
    snprintf(path, sizeof path, "%s/model.safetensors", f.folder);
    FILE *const to = fopen(path, "wb");
    const uint64_t n = head.n;
    assert_non_null(to);
    fwrite(&n, 8, 1, to);
    fwrite(head.p, 1, head.n, to);
    for (int i = 0; i < f.n; i++) put_values(to, &f.part[i]);
    fclose(to);
    str_clear(&head);
    if (f.nested)
        str_printf(&head,
                   "{\"model_type\": \"qwen4_exp\", %s, \"text_config\": {\"model_type\": \"qwen4_exp_text\", %s}}",
                   f.more_config, config);
    else
        str_printf(&head, "{\"model_type\": \"qwen4_exp_text\", %s, %s}", f.more_config, config);
    write_text("config.json", str_c(&head));
    write_text("tokenizer.json", tokenizer);
    str_free(&head);
}

static int run(const char *options)
{
    char command[512];
    write_source();
    snprintf(command, sizeof command, TEST_BUILD "/ds4-gguf convert %s -o %s %s 2>&1", f.folder, f.out, options);
    return shell_run(command, &f.said);
}

static void convert(const char *options)
{
    struct err e = {0};
    gguf_close(f.g);
    f.g = NULL;
    if (run(options)) fail_msg("%s", str_c(&f.said));
    if (gguf_open(f.out, &f.g, &e)) fail_msg("%s", e.msg);
}

/* ---- what is expected ---- */

static const struct gguf_tensor *tensor(const char *name)
{
    const struct gguf_tensor *const t = gguf_tensor_find(f.g, name, strlen(name));
    if (!t) fail_msg("no tensor %s", name);
    return t;
}

/* Row and column of the source for those of the file, and the value. */
typedef int64_t place(int64_t i);
typedef float change(float v);

static int64_t same(int64_t i)
{
    return i;
}

/* Heads 0..3 of the file are heads 0, 2, 1, 3 of the source: value heads 0 and 1 belong to key head 0 there, to key
 * heads 0 and 1 here. */
static const int64_t tiled[] = {0, 2, 1, 3};

static int64_t head(int64_t i)
{
    return tiled[i];
}

static int64_t in_head(int64_t i)
{
    return tiled[i / DL] * DL + i % DL;
}

static int64_t behind_keys(int64_t i)
{
    return i < 2 * KD ? i : 2 * KD + in_head(i - 2 * KD);
}

static int64_t gate_of_expert(int64_t i)
{
    return i / F * 2 * F + i % F;
}

static int64_t up_of_expert(int64_t i)
{
    return i / F * 2 * F + F + i % F;
}

static int64_t behind_queries(int64_t i)
{
    return HI * DI + i;
}

static float as_is(float v)
{
    return v;
}

static float one_more(float v)
{
    return 1 + v;
}

static float minus_exp(float v)
{
    return -(float)exp((double)v);
}

static void check(const char *name, uint32_t type, const char *source, place *row, place *col, change *value)
{
    const struct gguf_tensor *const t = tensor(name);
    const int64_t k = (int64_t)t->ne[0], rows = (int64_t)(t->ne[1] * t->ne[2]);
    const size_t row_bytes = quant_row_bytes(t->type, k);
    float x[HC * E];
    if (t->type != type) fail_msg("%s is of type %u", name, t->type);
    assert_true(k <= HC * E);
    for (int64_t r = 0; r < rows; r++) {
        quant_type(type)->decode(gguf_data(f.g) + t->offset + (size_t)r * row_bytes, x, k);
        for (int64_t c = 0; c < k; c++) {
            const float want = value(value_of(source, (uint64_t)(row(r) * k + col(c))));
            if (x[c] != want) fail_msg("%s [%d][%d] is %g, not %g", name, (int)r, (int)c, (double)x[c], (double)want);
        }
    }
}

static void check_in(int block, const char *prefix, const char *name, uint32_t type, const char *source, place *row,
                     place *col, change *value)
{
    char to[96], from[128];
    snprintf(to, sizeof to, "blk.%d.%s", block, name);
    snprintf(from, sizeof from, "%s%s", prefix, source);
    check(to, type, from, row, col, value);
}

static void check_plain(int b, const char *prefix, const char *name, const char *source)
{
    check_in(b, prefix, name, QT_BF16, source, same, same, as_is);
}

static void check_gain(int b, const char *prefix, const char *name, const char *source)
{
    check_in(b, prefix, name, QT_F32, source, same, same, one_more);
}

static void check_ffn(int b, const char *p)
{
    check_gain(b, p, "hc_attn_norm.weight", "attn_hyper_connection.hc_norm.weight");
    check_gain(b, p, "hc_ffn_norm.weight", "mlp_hyper_connection.hc_norm.weight");
    check_in(b, p, "hc_attn_down.weight", QT_F16, "attn_hyper_connection.input_mix_weight_down", same, same, as_is);
    check_in(b, p, "hc_attn_inject.weight", QT_F16, "attn_hyper_connection.block_inject_weight", same, same, as_is);
    check_in(b, p, "hc_ffn_up.weight", QT_F16, "mlp_hyper_connection.input_mix_weight_up", same, same, as_is);
    check_in(b, p, "ffn_gate_inp.weight", QT_F32, "mlp.gate.weight", same, same, as_is);
    check_in(b, p, "ffn_gate_exps.weight", QT_BF16, "mlp.experts.gate_up_proj", gate_of_expert, same, as_is);
    check_in(b, p, "ffn_up_exps.weight", QT_BF16, "mlp.experts.gate_up_proj", up_of_expert, same, as_is);
    check_plain(b, p, "ffn_down_exps.weight", "mlp.experts.down_proj");
    check_in(b, p, "ffn_gate_inp_shexp.weight", QT_F32, "mlp.shared_expert_gate.weight", same, same, as_is);
    check_plain(b, p, "ffn_gate_shexp.weight", "mlp.shared_expert.gate_proj.weight");
    check_plain(b, p, "ffn_up_shexp.weight", "mlp.shared_expert.up_proj.weight");
    check_plain(b, p, "ffn_down_shexp.weight", "mlp.shared_expert.down_proj.weight");
}

static void check_attention(int b, const char *p)
{
    check_plain(b, p, "attn_q.weight", "self_attn.q_proj.weight");
    check_plain(b, p, "attn_k.weight", "self_attn.k_proj.weight");
    check_plain(b, p, "attn_v.weight", "self_attn.v_proj.weight");
    check_plain(b, p, "attn_output.weight", "self_attn.o_proj.weight");
    check_gain(b, p, "attn_q_norm.weight", "self_attn.q_norm.weight");
    check_gain(b, p, "attn_k_norm.weight", "self_attn.k_norm.weight");
    check_plain(b, p, "indexer.q_proj.weight", "self_attn.indexer.index_qk_proj.weight");
    check_in(b, p, "indexer.k_proj.weight", QT_BF16, "self_attn.indexer.index_qk_proj.weight", behind_queries, same,
             as_is);
    check_gain(b, p, "indexer.q_norm.weight", "self_attn.indexer.q_layernorm.weight");
    check_gain(b, p, "indexer.k_norm.weight", "self_attn.indexer.k_layernorm.weight");
}

static void check_gdn(void)
{
    static const char p[] = "model.layers.0.linear_attn.";
    check_in(0, p, "attn_qkv.weight", QT_BF16, "in_proj_qkv.weight", behind_keys, same, as_is);
    check_in(0, p, "attn_gate.weight", QT_BF16, "in_proj_z.weight", in_head, same, as_is);
    check_in(0, p, "ssm_conv1d.weight", QT_F32, "conv1d.weight", behind_keys, same, as_is);
    check_in(0, p, "ssm_dt.bias", QT_F32, "dt_bias", same, head, as_is);
    check_in(0, p, "ssm_a", QT_F32, "A_log", same, head, minus_exp);
    check_in(0, p, "ssm_beta.weight", QT_BF16, "in_proj_b.weight", head, same, as_is);
    check_in(0, p, "ssm_alpha.weight", QT_BF16, "in_proj_a.weight", head, same, as_is);
    check_in(0, p, "ssm_norm.weight", QT_F32, "norm.weight", same, same, as_is);
    check_in(0, p, "ssm_out.weight", QT_BF16, "out_proj.weight", same, in_head, as_is);
}

static void check_memory(void)
{
    static const char p[] = "model.layers.0.ple.";
    check_plain(0, p, "ple_key.weight", "key_proj.weight");
    check_plain(0, p, "ple_value.weight", "value_proj.weight");
    check_gain(0, p, "ple_norm_key.weight", "norm_key.weight");
    check_gain(0, p, "ple_norm_query.weight", "norm_query.weight");
    check_gain(0, p, "ple_norm_conv.weight", "norm_conv.weight");
    check_in(0, p, "ple_conv1d.weight", QT_F32, "conv1d.weight", same, same, as_is);
}

static void check_draft(void)
{
    const struct gguf_tensor *const t = tensor("blk.2.nextn.eh_proj.weight");
    float x[2 * E];
    assert_int_equal(t->ne[0], 2 * E);
    for (uint64_t r = 0; r < E; r++) {
        quant_type(QT_BF16)->decode(gguf_data(f.g) + t->offset + r * 4 * E, x, 2 * E);
        for (uint64_t c = 0; c < E; c++) {
            assert_true(x[c] == value_of("mtp.fc_embedding.weight", r * E + c));
            assert_true(x[E + c] == value_of("mtp.fc_hidden.weight", r * E + c));
        }
    }
    check_gain(2, "mtp.", "nextn.enorm.weight", "pre_fc_norm_embedding.weight");
    check_gain(2, "mtp.", "nextn.hnorm.weight", "pre_fc_norm_hidden.weight");
    check_gain(2, "mtp.", "nextn.hc_head_norm.weight", "hyper_connection_mixer.hc_norm.weight");
}

static void check_table(void)
{
    const struct gguf_tensor *const t = tensor("per_layer_token_embd.weight");
    assert_int_equal(t->type, QT_BF16);
    assert_int_equal(t->ne[0], W);
    assert_int_equal(t->ne[1], PIECES * PIECE_ROWS);
    assert_int_equal(t->offset % 65536, 0);
    assert_int_equal(t->offset + t->bytes, gguf_size(f.g));
    for (uint64_t r = 0; r < t->ne[1]; r++) {
        char name[96];
        float x[W];
        snprintf(name, sizeof name, "model.ple_embedding.ngram_embedding.shard_%d", (int)(r / PIECE_ROWS));
        quant_type(QT_BF16)->decode(gguf_data(f.g) + t->offset + r * 2 * W, x, W);
        for (uint64_t c = 0; c < W; c++) assert_true(x[c] == value_of(name, r % PIECE_ROWS * W + c));
    }
}

static void every_value_at_its_place(void **state)
{
    convert("");
    check("token_embd.weight", QT_BF16, "model.embed_tokens.weight", same, same, as_is);
    check("output.weight", QT_BF16, "lm_head.weight", same, same, as_is);
    check("output_hc_norm.weight", QT_F32, "model.hyper_connection_mixer.hc_norm.weight", same, same, one_more);
    check("output_hc_up.weight", QT_F16, "model.hyper_connection_mixer.input_mix_weight_up", same, same, as_is);
    check_gdn();
    check_memory();
    check_ffn(0, "model.layers.0.");
    check_attention(1, "model.layers.1.");
    check_ffn(1, "model.layers.1.");
    check_attention(2, "mtp.layers.0.");
    check_ffn(2, "mtp.layers.0.");
    check_draft();
    check_table();
    assert_int_equal(gguf_n_tensors(f.g), 5 + 3 * 8 + 9 + 2 * 10 + 6 + 3 * 8 + 6 + 1);
}

/* F32 sources give F32, but for the mixers, which stay what they are. */
static void wide_sources(void **state)
{
    find("model.layers.0.mlp.experts.gate_up_proj")->dtype = "F32";
    find("model.layers.0.linear_attn.out_proj.weight")->dtype = "F32";
    find("model.layers.0.linear_attn.A_log")->dtype = "F32";
    find("model.hyper_connection_mixer.input_mix_weight_up")->dtype = "F32";
    convert("");
    check("blk.0.ffn_up_exps.weight", QT_F32, "model.layers.0.mlp.experts.gate_up_proj", up_of_expert, same, as_is);
    check("blk.0.ssm_out.weight", QT_F32, "model.layers.0.linear_attn.out_proj.weight", same, in_head, as_is);
    check("blk.0.ssm_a", QT_F32, "model.layers.0.linear_attn.A_log", same, head, minus_exp);
    check("output_hc_up.weight", QT_F32, "model.hyper_connection_mixer.input_mix_weight_up", same, same, as_is);
}

static uint64_t number(const char *key, uint64_t i)
{
    uint64_t v = 0;
    const struct gguf_kv *const kv = gguf_kv_find(f.g, key);
    if (!kv || i >= kv->count || gguf_u64(kv, i, &v, NULL)) fail_msg("no number %d of %s", (int)i, key);
    return v;
}

static void metadata(void **state)
{
    static const struct {
        const char *key;
        uint64_t at, want;
    } want[] = {
        {"qwen4exp.block_count", 0, 3},
        {"qwen4exp.nextn_predict_layers", 0, 1},
        {"qwen4exp.rope.dimension_count", 0, 8},
        {"qwen4exp.rope.dimension_sections", 0, 2},
        {"qwen4exp.rope.dimension_sections", 3, 0},
        {"qwen4exp.attention.compress_ratios", 0, 0},
        {"qwen4exp.attention.compress_ratios", 1, 4},
        {"qwen4exp.attention.compress_ratios", 2, 4},
        {"qwen4exp.ssm.inner_size", 0, VD},
        {"qwen4exp.ple.layers", 0, 0},
        {"qwen4exp.ple.eos_token_id", 0, 20},
        {"qwen4exp.ple.layer_multipliers", 0, UINT64_C(7191089600892374487)},
        {"qwen4exp.ple.head_offsets", 3, 23},
        {"qwen4exp.ple.head_vocab_sizes", 3, 13},
        {"qwen4exp.ple.row_count", 0, 36},
        {"qwen4exp.embedding_length_per_layer_input", 0, W},
        {"qwen4exp.expert_feed_forward_length", 0, F},
        {"tokenizer.ggml.eos_token_id", 0, 20},
    };
    convert("");
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        if (number(want[i].key, want[i].at) != want[i].want) fail_msg("%s", want[i].key);
    struct gguf_str pre;
    assert_int_equal(gguf_string(gguf_kv_find(f.g, "tokenizer.ggml.pre"), 0, &pre, NULL), 0);
    assert_true(pre.n == 6 && !memcmp(pre.p, "qwen35", 6));
    assert_null(gguf_kv_find(f.g, "ds4.qwen4.down.logical_input"));
}

/* The recipe of the published 2-bit files; rows are too short here for their gate and up types. */
static void padded_rows(void **state)
{
    float x[256], want[256] = {0};
    uint8_t row[84];
    convert("--experts Q2_K --dense Q8_0 --type ffn_gate_exps=Q8_0 --type ffn_up_exps=MXFP4");
    const struct gguf_tensor *const t = tensor("blk.1.ffn_down_exps.weight");
    assert_int_equal(t->type, QT_Q2_K);
    assert_int_equal(t->ne[0], 256);
    assert_int_equal(tensor("blk.1.ffn_up_exps.weight")->type, QT_MXFP4);
    assert_int_equal(tensor("blk.1.attn_q.weight")->type, QT_Q8_0);
    assert_int_equal(tensor("blk.1.ffn_gate_inp.weight")->type, QT_F32);
    for (uint64_t r = 0; r < t->ne[1] * t->ne[2]; r++) {
        for (uint64_t i = 0; i < F; i++) want[i] = value_of("model.layers.1.mlp.experts.down_proj", r * F + i);
        assert_int_equal(quant_encode(QT_Q2_K, want, 256, NULL, row), 0);
        assert_memory_equal(gguf_data(f.g) + t->offset + r * 84, row, 84);
        quant_type(QT_Q2_K)->decode(row, x, 256);
        for (int i = F; i < 256; i++) assert_true(x[i] == 0);
    }
    assert_int_equal(number("ds4.qwen4.down.logical_input", 0), F);
    assert_int_equal(number("ds4.qwen4.down.physical_input", 0), 256);
}

/* Options as in the help, with the draft block of this model. */
static void types_as_published(void **state)
{
    convert("--dense Q8_0 --type blk.2.ffn_down_exps=MXFP4 --type 'blk.2.ffn_.*_exps=Q4_0' --type ffn_down_exps=Q2_K "
            "--experts Q8_0 --type indexer=F16 --type per_layer_token_embd=F16");
    assert_int_equal(tensor("blk.2.ffn_down_exps.weight")->type, QT_MXFP4);
    assert_int_equal(tensor("blk.2.ffn_down_exps.weight")->ne[0], F);
    assert_int_equal(tensor("blk.2.ffn_gate_exps.weight")->type, QT_Q4_0);
    assert_int_equal(tensor("blk.1.ffn_down_exps.weight")->type, QT_Q2_K);
    assert_int_equal(tensor("blk.1.ffn_up_exps.weight")->type, QT_Q8_0);
    check("blk.1.indexer.q_proj.weight", QT_F16, "model.layers.1.self_attn.indexer.index_qk_proj.weight", same, same,
          as_is);
    const struct gguf_tensor *const t = tensor("per_layer_token_embd.weight");
    assert_int_equal(t->type, QT_F16);
    assert_int_equal(t->offset % 65536, 0);
}

static uint64_t checksum(void)
{
    char *data;
    size_t n;
    assert_int_equal(file_read(f.out, 1 << 26, &data, &n, NULL), 0);
    const uint64_t sum = vec_fnv(data, n);
    mem_free(data);
    return sum;
}

static void a_model_with_images_is_the_same(void **state)
{
    convert("");
    const uint64_t sum = checksum();
    f.nested = true;
    convert("--overwrite --threads 3");
    assert_true(checksum() == sum);
}

/* Without tensors of the draft block there is none; a head that is the embedding is written as such. */
static void what_may_be_missing(void **state)
{
    int kept = 0;
    for (int i = 0; i < f.n; i++)
        if (strncmp(f.part[i].name, "mtp.", 4) && strcmp(f.part[i].name, "lm_head.weight")) f.part[kept++] = f.part[i];
    f.n = kept;
    convert("");
    assert_int_equal(number("qwen4exp.block_count", 0), 2);
    assert_null(gguf_kv_find(f.g, "qwen4exp.nextn_predict_layers"));
    check("output.weight", QT_BF16, "model.embed_tokens.weight", same, same, as_is);
}

/* A reader of models takes what was written, padded or not. */
static void is_recognised(void **state)
{
    static const char *const options[] = {
        "", "--experts Q2_K --dense Q8_0 --type ffn_gate=F16 --type ffn_up=F16 --overwrite"};
    const char *paths[] = {f.out};
    for (int i = 0; i < 2; i++) {
        struct canonical *c;
        struct err e = {0};
        convert(options[i]);
        if (canonical_open(paths, 1, NULL, &c, &e)) fail_msg("%s", e.msg);
        assert_int_equal(canonical_n_layers(c), 2);
        assert_int_equal(canonical_int(c, "expert_feed_forward_length"), F);
        assert_int_equal(canonical_int(c, "ple.eos_token_id"), 20);
        canonical_close(c);
    }
}

/* ---- refusals ---- */

static void refused(const char *told)
{
    if (run("") != 1) fail_msg("not refused: %s", told);
    if (!strstr(str_c(&f.said), told)) fail_msg("'%s' does not say '%s'", str_c(&f.said), told);
    assert_int_equal(access(f.out, F_OK), -1);
}

static void damaged_sources(void **state)
{
    struct part *p = find("model.layers.1.mlp.experts.down_proj");
    p->dims[1]--;
    refused("tensor model.layers.1.mlp.experts.down_proj: shape [3, 63, 96], expected [192, 96]");
    p->dims[1]++;
    p = find("model.ple_embedding.ngram_embedding.shard_2");
    p->dims[0]++;
    refused("ngram_embedding.shard_2: other rows than shard 0 has");
    p->dims[0]--;
    strcpy(p->name, "model.ple_embedding.ngram_embedding.shard_7");
    refused("ngram_embedding.shard_2 is missing; there are to be 4");
    strcpy(p->name, "model.ple_embedding.ngram_embedding.shard_2");
    p = find("model.ple_embedding.ngram_heads_offsets");
    p->dims[0] = 3;
    refused("have 2, 3 and 4 entries; 2, 4 and 4 are needed");
    p->dims[0] = 4;
    p = find("model.layers.0.linear_attn.A_log");
    strcpy(p->name, "model.layers.0.linear_attn.B_log");
    refused("tensor model.layers.0.linear_attn.A_log is missing");
}

static void other_configurations(void **state)
{
    static const struct {
        const char *more, *told;
    } cases[] = {
        {"\"eos_token_id\": [20, 21]", "\"eos_token_id\" is a list"},
        {"\"bos_token_id\": 1", "\"eos_token_id\" is missing"},
        {"\"eos_token_id\": 20, \"output_gate_type\": \"silu\"", "\"output_gate_type\" is silu; only sigmoid"},
        {"\"eos_token_id\": 20, \"norm_topk_prob\": false", "\"norm_topk_prob\" is false"},
        {"\"eos_token_id\": 30", "ple.eos_token_id = 30 is not supported"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        f.more_config = cases[i].more;
        refused(cases[i].told);
    }
}

#define WITH_SOURCE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SOURCE(every_value_at_its_place),
        WITH_SOURCE(wide_sources),
        WITH_SOURCE(metadata),
        WITH_SOURCE(padded_rows),
        WITH_SOURCE(types_as_published),
        WITH_SOURCE(a_model_with_images_is_the_same),
        WITH_SOURCE(what_may_be_missing),
        WITH_SOURCE(is_recognised),
        WITH_SOURCE(damaged_sources),
        WITH_SOURCE(other_configurations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
