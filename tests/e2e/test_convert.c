/* ds4-gguf convert as a program: every tensor against its source bit for bit, metadata, vocabulary, types, refusals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../support/shell_run.h"
#include "../support/st_source.h"
#include "../support/temp_files.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "gguf/gguf.h"
#include "quant/quant.h"

struct fixture {
    char folder[TEMP_PATH], out[80];
    struct st_source source;
    struct str said; /* what the program printed */
    struct gguf *g;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    if (!f) return -1;
    *state = f;
    temp_folder(f->folder);
    snprintf(f->out, sizeof f->out, "%s/out.gguf", f->folder);
    st_source_make(&f->source);
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    gguf_close(f->g);
    st_source_free(&f->source);
    str_free(&f->said);
    const int rc = temp_remove(f->folder);
    free(f);
    return rc;
}

/* Runs "ds4-gguf convert FOLDER -o OUT options"; returns the exit status. */
static int run(struct fixture *f, const char *options)
{
    char command[512];
    snprintf(command, sizeof command, TEST_BUILD "/ds4-gguf convert %s -o %s %s 2>&1", f->folder, f->out, options);
    return shell_run(command, &f->said);
}

static void convert(struct fixture *f, const char *options)
{
    struct err e = {0};
    assert_int_equal(st_source_write(&f->source, f->folder, 1), 0);
    if (run(f, options)) fail_msg("%s", str_c(&f->said));
    gguf_close(f->g);
    if (gguf_open(f->out, &f->g, &e)) fail_msg("%s", e.msg);
}

static const struct gguf_tensor *tensor(struct fixture *f, const char *name)
{
    const struct gguf_tensor *t = gguf_tensor_find(f->g, name, strlen(name));
    if (!t) fail_msg("no tensor %s", name);
    return t;
}

static const uint8_t *slice_data(struct fixture *f, const struct st_entry *s, const struct gguf_tensor *t)
{
    return gguf_data(f->g) + t->offset + t->bytes / t->ne[2] * (uint64_t)s->slice;
}

static uint32_t same_type(const struct st_entry *s)
{
    if (!strcmp(s->dtype, "I64")) return QT_I32;
    if (s->n_dims == 1 || !strcmp(s->dtype, "F32")) return QT_F32; /* vectors are widened */
    return !strcmp(s->dtype, "F16") ? QT_F16 : QT_BF16;
}

static uint16_t u16_at(const uint8_t *p, size_t i)
{
    return (uint16_t)(p[2 * i] | p[2 * i + 1] << 8);
}

static float source_value(const struct st_entry *s, size_t i)
{
    float v;
    if (!strcmp(s->dtype, "BF16")) return bf16_to_f32(u16_at(s->data, i));
    if (!strcmp(s->dtype, "F16")) return f16_to_f32(u16_at(s->data, i));
    memcpy(&v, s->data + 4 * i, 4);
    return v;
}

static void check_same(struct fixture *f, const struct st_entry *s)
{
    const struct gguf_tensor *t = tensor(f, s->gguf);
    const uint8_t *got = slice_data(f, s, t);
    const size_t n = (size_t)(s->n_dims == 1 ? s->shape[0] : s->shape[0] * s->shape[1]);
    assert_int_equal(t->type, same_type(s));
    assert_int_equal(t->n_dims, strstr(s->gguf, "_exps") ? 3 : s->n_dims);
    assert_int_equal(t->ne[0], s->n_dims == 1 ? s->shape[0] : s->shape[1]);
    assert_int_equal(t->ne[1], s->n_dims == 1 ? 1 : s->shape[0]);
    assert_int_equal(t->ne[2], strstr(s->gguf, "_exps") ? 3 : 1);
    if (t->type == QT_I32)
        for (size_t i = 0; i < n; i++) {
            const uint8_t want[4] = {s->data[8 * i]};
            assert_memory_equal(got + 4 * i, want, 4);
        }
    else if (t->type == QT_F32)
        for (size_t i = 0; i < n; i++) {
            const float want = source_value(s, i);
            assert_memory_equal(got + 4 * i, &want, 4);
        }
    else
        assert_memory_equal(got, s->data, s->bytes);
}

static int used_entries(const struct st_source *s)
{
    int n = 0;
    for (int i = 0; i < s->n; i++) n += s->at[i].gguf[0] && s->at[i].slice == 0;
    return n;
}

static void every_tensor_bit_for_bit(void **state)
{
    struct fixture *f = *state;
    convert(f, "");
    for (int i = 0; i < f->source.n; i++)
        if (f->source.at[i].gguf[0]) check_same(f, &f->source.at[i]);
    assert_int_equal(gguf_n_tensors(f->g), used_entries(&f->source));
    assert_non_null(strstr(str_c(&f->said), "draft block (1 tensors mtp.*) is left out"));
}

static void check_u(struct fixture *f, const char *key, uint64_t want)
{
    const struct gguf_kv *kv = gguf_kv_find(f->g, key);
    uint64_t v = 0;
    struct err e = {0};
    if (!kv || gguf_u64(kv, 0, &v, &e) || v != want) fail_msg("%s is %d, not %d", key, (int)v, (int)want);
}

static void check_f(struct fixture *f, const char *key, uint64_t i, float want)
{
    const struct gguf_kv *kv = gguf_kv_find(f->g, key);
    double v = 0;
    struct err e = {0};
    if (!kv || gguf_f64(kv, i, &v, &e) || (float)v != want) fail_msg("%s is %g, not %g", key, v, (double)want);
}

static void metadata(void **state)
{
    struct fixture *f = *state;
    convert(f, "");
    static const struct {
        const char *key;
        uint64_t want;
    } ints[] = {{"block_count", 3},
                {"embedding_length", 64},
                {"vocab_size", 24},
                {"context_length", 4096},
                {"attention.head_count", 2},
                {"attention.head_count_kv", 1},
                {"attention.key_length", 80},
                {"attention.value_length", 80},
                {"rope.dimension_count", 16},
                {"attention.q_lora_rank", 32},
                {"attention.output_lora_rank", 16},
                {"attention.output_group_count", 2},
                {"expert_count", 3},
                {"expert_used_count", 2},
                {"expert_feed_forward_length", 32},
                {"expert_shared_count", 1},
                {"hash_layer_count", 1},
                {"attention.sliding_window", 8},
                {"attention.indexer.head_count", 2},
                {"attention.indexer.key_length", 32},
                {"attention.indexer.top_k", 4},
                {"hyper_connection.count", 2},
                {"hyper_connection.sinkhorn_iterations", 19},
                {"rope.scaling.original_context_length", 65536},
                {"expert_weights_norm", 1},
                {"expert_gating_func", 4},
                {"nextn_predict_layers", 1}};
    static const struct {
        const char *key;
        float want;
    } floats[] = {{"hyper_connection.epsilon", 1e-5f}, {"attention.layer_norm_rms_epsilon", 2e-6f},
                  {"rope.freq_base", 10000},           {"attention.compress_rope_freq_base", 160000},
                  {"rope.scaling.factor", 16},         {"rope.scaling.yarn_beta_fast", 32},
                  {"rope.scaling.yarn_beta_slow", 1},  {"expert_weights_scale", 2.5f}};
    char key[96];
    for (size_t i = 0; i < sizeof ints / sizeof ints[0]; i++) {
        snprintf(key, sizeof key, "deepseek4.%s", ints[i].key);
        check_u(f, key, ints[i].want);
    }
    for (size_t i = 0; i < sizeof floats / sizeof floats[0]; i++) {
        snprintf(key, sizeof key, "deepseek4.%s", floats[i].key);
        check_f(f, key, 0, floats[i].want);
    }
    const int ratios[] = {0, 4, 128, 0}; /* the draft block's entry is kept */
    const struct gguf_kv *kv = gguf_kv_find(f->g, "deepseek4.attention.compress_ratios");
    assert_non_null(kv);
    assert_int_equal(kv->count, 4);
    assert_int_equal(kv->elem, GGUF_I32);
    for (uint64_t i = 0; i < 4; i++) check_f(f, "deepseek4.attention.compress_ratios", i, (float)ratios[i]);
    assert_int_equal(gguf_kv_find(f->g, "deepseek4.swiglu_clamp_exp")->count, 3);
    for (uint64_t i = 0; i < 3; i++) check_f(f, "deepseek4.swiglu_clamp_exp", i, 7);
}

static void check_text(const struct gguf_kv *kv, uint64_t i, const char *want)
{
    struct gguf_str s;
    struct err e = {0};
    assert_int_equal(gguf_string(kv, i, &s, &e), 0);
    assert_int_equal(s.n, strlen(want));
    assert_memory_equal(s.p, want, s.n);
}

static void vocabulary(void **state)
{
    struct fixture *f = *state;
    convert(f, "");
    const struct gguf_kv *tokens = gguf_kv_find(f->g, "tokenizer.ggml.tokens"),
                         *merges = gguf_kv_find(f->g, "tokenizer.ggml.merges"),
                         *types = gguf_kv_find(f->g, "tokenizer.ggml.token_type");
    assert_true(tokens && merges && types);
    assert_int_equal(tokens->count, 24);
    assert_int_equal(types->count, 24);
    assert_int_equal(merges->count, 4);
    check_text(tokens, 0, "<bos>");
    check_text(tokens, 13, "\xC4\xA0");
    check_text(tokens, 15, "\"");
    check_text(tokens, 23, "</think>");
    check_text(merges, 0, "a b");
    check_text(merges, 2, "\xC4\xA0 a"); /* written as a pair in the source */
    const int want[24] = {3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 5, 5, 4, 4};
    for (uint64_t i = 0; i < 24; i++) check_f(f, "tokenizer.ggml.token_type", i, (float)want[i]);
    check_u(f, "tokenizer.ggml.bos_token_id", 0);
    check_u(f, "tokenizer.ggml.eos_token_id", 1);
    check_text(gguf_kv_find(f->g, "tokenizer.ggml.pre"), 0, "joyai-llm");
    check_text(gguf_kv_find(f->g, "general.architecture"), 0, "deepseek4");
}

static void shards_give_the_same_file(void **state)
{
    struct fixture *f = *state;
    char *one, *many;
    size_t n_one, n_many;
    struct err e = {0};
    convert(f, "");
    assert_int_equal(file_read(f->out, 1 << 26, &one, &n_one, &e), 0);
    assert_int_equal(st_source_write(&f->source, f->folder, 3), 0);
    assert_int_equal(run(f, "--overwrite --threads 3"), 0);
    assert_int_equal(file_read(f->out, 1 << 26, &many, &n_many, &e), 0);
    assert_int_equal(n_one, n_many);
    assert_memory_equal(one, many, n_one);
    mem_free(one);
    mem_free(many);
}

/* A tensor written as type: every row is what the encoder makes of the source's row. */
static void check_encoded(struct fixture *f, const char *source, uint32_t type)
{
    const struct st_entry *s = st_source_find(&f->source, source);
    const struct gguf_tensor *t = tensor(f, s->gguf);
    const uint8_t *got = slice_data(f, s, t);
    const size_t cols = (size_t)s->shape[1], row_bytes = quant_row_bytes(type, (int64_t)cols);
    float values[256];
    uint8_t want[1024];
    assert_int_equal(t->type, type);
    for (size_t r = 0; r < s->shape[0]; r++) {
        for (size_t i = 0; i < cols; i++) values[i] = source_value(s, r * cols + i);
        assert_int_equal(quant_encode(type, values, (int64_t)cols, NULL, want), 0);
        assert_memory_equal(got + r * row_bytes, want, row_bytes);
    }
}

static void types_by_option(void **state)
{
    struct fixture *f = *state;
    convert(f, "--dense q8_0 --experts mxfp4 --embedding f16 --type 'blk\\.1\\..*up_exps=q4_0' --type 'up_exps=q8_0' "
               "--type compressor_kv=F32");
    check_encoded(f, "embed.weight", QT_F16);
    check_encoded(f, "head.weight", QT_Q8_0);
    check_encoded(f, "layers.0.attn.wkv.weight", QT_Q8_0);
    check_encoded(f, "layers.2.ffn.shared_experts.w2.weight", QT_Q8_0);
    check_encoded(f, "layers.0.ffn.experts.2.w1.weight", QT_MXFP4);
    check_encoded(f, "layers.1.ffn.experts.1.w3.weight", QT_Q4_0); /* the first rule that matches */
    check_encoded(f, "layers.0.ffn.experts.1.w3.weight", QT_Q8_0);
    check_encoded(f, "layers.1.attn.indexer.compressor.wkv.weight", QT_F32);
    /* Small tensors and those without an option keep their values. */
    check_same(f, st_source_find(&f->source, "layers.0.ffn.gate.weight"));
    check_same(f, st_source_find(&f->source, "layers.1.attn.compressor.wgate.weight"));
    check_same(f, st_source_find(&f->source, "layers.1.hc_ffn_fn"));
}

static void small_tensors_ignore_rules(void **state)
{
    struct fixture *f = *state;
    convert(f, "--type '.=f16'");
    check_same(f, st_source_find(&f->source, "layers.1.hc_attn_fn"));
    check_same(f, st_source_find(&f->source, "layers.1.attn.compressor.ape"));
    check_same(f, st_source_find(&f->source, "layers.1.attn.indexer.weights_proj.weight"));
    check_same(f, st_source_find(&f->source, "layers.1.ffn.gate.bias"));
    check_encoded(f, "layers.0.attn.wq_a.weight", QT_F16);
}

static void rows_that_do_not_fit(void **state)
{
    struct fixture *f = *state;
    convert(f, "--dense q4_k");
    check_encoded(f, "layers.0.attn.wq_a.weight", QT_Q8_0);
    check_encoded(f, "layers.0.attn.wo_a.weight", QT_F16); /* rows of 80: no whole block of 32 either */
    assert_non_null(strstr(str_c(&f->said), "attn_q_a.weight: rows of 64 do not fit Q4_K, written as Q8_0"));
    assert_non_null(strstr(str_c(&f->said), "attn_output_a.weight: rows of 80 do not fit Q4_K, written as F16"));
}

/* FP8 E4M3 with a power of two per 128 x 128: exact in BF16. */
static void fp8_source(void **state)
{
    struct fixture *f = *state;
    struct st_entry *w = st_source_find(&f->source, "layers.0.attn.wq_b.weight");
    st_source_retype(w, "F8_E4M3", 2, 160, 32, 0);
    for (size_t i = 0; i < w->bytes; i++) w->data[i] &= 0x77; /* no NaN codes */
    st_source_add(&f->source, "layers.0.attn.wq_b.scale", "F8_E8M0", 2, 1, 125);
    convert(f, "");
    w = st_source_find(&f->source, "layers.0.attn.wq_b.weight");
    const struct gguf_tensor *t = tensor(f, "blk.0.attn_q_b.weight");
    assert_int_equal(t->type, QT_BF16);
    for (size_t i = 0; i < w->bytes; i++) {
        const float scale = i / 32 < 128 ? 0.25f : 0.5f; /* codes 125 and 126 */
        const int exponent = w->data[i] >> 3 & 15, mantissa = w->data[i] & 7;
        const float want = exponent ? (float)(8 + mantissa) * (float)(1 << exponent) / 1024 : (float)mantissa / 512;
        assert_true(bf16_to_f32(u16_at(gguf_data(f->g) + t->offset, i)) == want * scale);
    }
}

/* FP4 experts become MXFP4: scale first, and value j + 16 beside value j instead of neighbours together. */
static void fp4_source(void **state)
{
    struct fixture *f = *state;
    char name[72];
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "layers.2.ffn.experts.%d.w2.weight", i);
        st_source_retype(st_source_find(&f->source, name), "I8", 2, 64, 16, (uint8_t)(i * 7));
        snprintf(name, sizeof name, "layers.2.ffn.experts.%d.w2.scale", i);
        st_source_add(&f->source, name, "F8_E8M0", 64, 1, (uint8_t)(100 + i));
    }
    convert(f, "");
    const struct gguf_tensor *t = tensor(f, "blk.2.ffn_down_exps.weight");
    assert_int_equal(t->type, QT_MXFP4);
    for (int expert = 0; expert < 3; expert++)
        for (int row = 0; row < 64; row++) {
            const uint8_t *block = gguf_data(f->g) + t->offset + (uint64_t)(expert * 64 + row) * 17;
            assert_int_equal(block[0], (uint8_t)(100 + expert + row));
            for (int j = 0; j < 32; j++) {
                const uint8_t byte = (uint8_t)(expert * 7 + row * 16 + j / 2);
                assert_int_equal(j < 16 ? block[1 + j] & 15 : block[1 + j - 16] >> 4, j % 2 ? byte >> 4 : byte & 15);
            }
        }
}

/* ---- refusals: exit status and what is named ---- */

static void refused(struct fixture *f, const char *options, int status, const char *named)
{
    assert_int_equal(st_source_write(&f->source, f->folder, 1), 0);
    const int rc = run(f, options);
    if (rc != status || !strstr(str_c(&f->said), named))
        fail_msg("exit status %d: %s (wanted: %s)", rc, str_c(&f->said), named);
    if (access(f->out, F_OK) == 0) fail_msg("%s was written", f->out);
}

static void missing_tensor(void **state)
{
    struct fixture *f = *state;
    st_source_remove(&f->source, "layers.1.ffn.experts.2.w3.weight");
    refused(f, "", 1, "tensor layers.1.ffn.experts.2.w3.weight is missing");
}

static void wrong_dtype(void **state)
{
    struct fixture *f = *state;
    st_source_retype(st_source_find(&f->source, "layers.0.attn.wkv.weight"), "U8", 2, 80, 64, 0);
    refused(f, "", 1, "tensor layers.0.attn.wkv.weight: type U8 cannot be converted");
}

static void bad_shape(void **state)
{
    struct fixture *f = *state;
    st_source_retype(st_source_find(&f->source, "layers.2.attn.wq_a.weight"), "BF16", 2, 64, 32, 0);
    refused(f, "", 1, "tensor layers.2.attn.wq_a.weight: shape [64, 32], expected [32, 64]");
}

static void missing_scale(void **state)
{
    struct fixture *f = *state;
    st_source_retype(st_source_find(&f->source, "layers.0.attn.wq_b.weight"), "F8_E4M3", 2, 160, 32, 0);
    refused(f, "", 1, "layers.0.attn.wq_b.scale is missing");
}

static void id_outside(void **state)
{
    struct fixture *f = *state;
    st_source_find(&f->source, "layers.0.ffn.gate.tid2eid")->data[8 * 7] = 3; /* row 3 */
    refused(f, "", 1, "layers.0.ffn.gate.tid2eid: row 3 names expert 3, there are 3");
}

static void not_finite(void **state)
{
    struct fixture *f = *state;
    struct st_entry *t = st_source_find(&f->source, "layers.0.attn.wkv.weight");
    t->data[5 * 128 + 1] = 0x7F; /* infinity or not a number in row 5 */
    t->data[5 * 128] |= 0x80;
    refused(f, "", 1, "tensor layers.0.attn.wkv.weight: row 5 holds a value that is not finite");
}

static void too_large_for_f16(void **state)
{
    struct fixture *f = *state;
    struct st_entry *t = st_source_find(&f->source, "head.weight");
    t->data[3 * 128 + 1] = 0x48; /* 2^17 in row 3 */
    t->data[3 * 128] = 0;
    refused(f, "--dense f16", 1, "tensor head.weight: row 3 holds 131072, too large for F16");
}

static void config_without_key(void **state)
{
    struct fixture *f = *state;
    char *text = strdup(f->source.config);
    assert_non_null(text);
    memcpy(strstr(text, "o_groups"), "o_ground", 8);
    f->source.config = text;
    refused(f, "", 1, "config.json: \"o_groups\" is missing");
    free(text);
}

/* What contradicts the tensors, and what the engine would refuse in the finished file. */
static void config_contradictions(void **state)
{
    static const struct {
        const char *from, *to, *says;
    } edits[] = {
        {"\"num_hidden_layers\": 3", "\"num_hidden_layers\": 2", "counts 2 layers, but there is a tensor layers.2."},
        {"\"norm_topk_prob\": true", "\"norm_topk_prob\": false", "\"norm_topk_prob\" is false"},
        {"\"swiglu_limit\": 7.0", "\"swiglu_limit\": -7.0", "\"swiglu_limit\" must be a number from 0 to 1e+30"},
        {"\"rope_theta\": 10000.0", "\"rope_theta\": 0", "\"rope_theta\" must be a number from 1 to"},
        {"\"factor\": 16", "\"factor\": 0.5", "\"factor\" must be a number from 1 to"},
        {"\"rope_scaling\": {", "\"rope_scaling\": \"x\", \"other\": {", "\"rope_scaling\" must be an object"},
        {"\"index_head_dim\": 32", "\"index_head_dim\": 48",
         "attention.indexer.key_length = 48 is not supported (only a power of two"},
        {"\"rms_norm_eps\": 2e-6", "\"rms_norm_eps\": 2", "\"rms_norm_eps\" must be a number from 0 to 0.1"},
    };
    struct fixture *f = *state;
    const char *whole = f->source.config;
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        struct str text = {0};
        const char *at = strstr(whole, edits[i].from);
        assert_non_null(at);
        str_add(&text, whole, (size_t)(at - whole));
        str_puts(&text, edits[i].to);
        str_puts(&text, at + strlen(edits[i].from));
        f->source.config = str_c(&text);
        refused(f, "", 1, edits[i].says);
        str_free(&text);
    }
}

/* Said, because a reader takes the usual scaling where nothing is. */
static void no_rope_scaling(void **state)
{
    struct fixture *f = *state;
    char *text = strdup(f->source.config);
    assert_non_null(text);
    memcpy(strstr(text, "rope_scaling"), "rope_unknown", 12);
    f->source.config = text;
    convert(f, "");
    check_f(f, "deepseek4.rope.scaling.factor", 0, 1);
    free(text);
}

static void source_is_not_replaced(void **state)
{
    struct fixture *f = *state;
    snprintf(f->out, sizeof f->out, "%.50s/./model.safetensors", f->folder);
    assert_int_equal(st_source_write(&f->source, f->folder, 1), 0);
    assert_int_equal(run(f, "--overwrite"), 2);
    assert_non_null(strstr(str_c(&f->said), "is one of the files to be converted"));
}

static void other_scoring(void **state)
{
    struct fixture *f = *state;
    char *text = strdup(f->source.config);
    assert_non_null(text);
    memcpy(strstr(text, "sqrtsoftplus"), "softmax_here", 12);
    f->source.config = text;
    refused(f, "", 1, "config.json: \"scoring_func\" is softmax_here; only sqrtsoftplus can be converted");
    free(text);
}

static void wrong_use(void **state)
{
    struct fixture *f = *state;
    refused(f, "--dense q9_9", 2, "type q9_9 cannot be written");
    refused(f, "--no-such-option", 2, "unknown option --no-such-option");
    refused(f, "--type 'nothing_is_called_so=q8_0'", 2, "decides no tensor");
    refused(f, "--type '(=q8_0'", 2, "not a regular expression");
    refused(f, "--threads 0", 2, "not a whole number");
}

static void existing_file_is_kept(void **state)
{
    struct fixture *f = *state;
    convert(f, "");
    assert_int_equal(run(f, ""), 1);
    assert_non_null(strstr(str_c(&f->said), "--overwrite replaces it"));
    assert_int_equal(run(f, "--overwrite"), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_tensor_bit_for_bit),
        TEST(metadata),
        TEST(vocabulary),
        TEST(shards_give_the_same_file),
        TEST(types_by_option),
        TEST(small_tensors_ignore_rules),
        TEST(rows_that_do_not_fit),
        TEST(fp8_source),
        TEST(fp4_source),
        TEST(missing_tensor),
        TEST(wrong_dtype),
        TEST(bad_shape),
        TEST(missing_scale),
        TEST(id_outside),
        TEST(not_finite),
        TEST(too_large_for_f16),
        TEST(config_without_key),
        TEST(config_contradictions),
        TEST(no_rope_scaling),
        TEST(source_is_not_replaced),
        TEST(other_scoring),
        TEST(wrong_use),
        TEST(existing_file_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
