/* The tensors, and safetensors written by hand. */
#include "st_source.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/str.h"

static const char config_text[] =
    "{\"model_type\": \"deepseek_v4\", \"vocab_size\": 24, \"hidden_size\": 64, \"num_hidden_layers\": 3,\n"
    " \"num_attention_heads\": 2, \"num_key_value_heads\": 1, \"head_dim\": 80, \"qk_rope_head_dim\": 16, "
    "\"q_lora_rank\": 32,\n"
    " \"o_lora_rank\": 16, \"o_groups\": 2, \"n_routed_experts\": 3, \"num_experts_per_tok\": 2, \"n_shared_experts\": "
    "1,\n"
    " \"moe_intermediate_size\": 32, \"num_hash_layers\": 1, \"routed_scaling_factor\": 2.5, \"scoring_func\": "
    "\"sqrtsoftplus\",\n"
    " \"topk_method\": \"noaux_tc\", \"norm_topk_prob\": true, \"hidden_act\": \"silu\", \"swiglu_limit\": 7.0,\n"
    " \"sliding_window\": 8, \"compress_ratios\": [0, 4, 128, 0], \"index_n_heads\": 2, \"index_head_dim\": 32,\n"
    " \"index_topk\": 4, \"hc_mult\": 2, \"hc_sinkhorn_iters\": 19, \"hc_eps\": 1e-5, \"rms_norm_eps\": 2e-6,\n"
    " \"rope_theta\": 10000.0, \"compress_rope_theta\": 160000, \"rope_scaling\": {\"type\": \"yarn\", \"factor\": "
    "16,\n"
    " \"original_max_position_embeddings\": 65536, \"beta_fast\": 32, \"beta_slow\": 1}, \"max_position_embeddings\": "
    "4096,\n"
    " \"num_nextn_predict_layers\": 1, \"bos_token_id\": 0, \"eos_token_id\": 1}\n";

/* 22 of the 24 ids: 20 and 21 are holes. */
static const char tokenizer_text[] =
    "{\"added_tokens\": [{\"id\": 0, \"content\": \"<bos>\", \"special\": true}, {\"id\": 1, \"content\": \"<eos>\", "
    "\"special\": true},\n"
    " {\"id\": 22, \"content\": \"<think>\", \"special\": false}, {\"id\": 23, \"content\": \"</think>\", \"special\": "
    "false}],\n"
    " \"model\": {\"type\": \"BPE\", \"vocab\": {\"<bos>\": 0, \"<eos>\": 1, \"a\": 2, \"b\": 3, \"c\": 4, \"d\": 5, "
    "\"e\": 6, \"f\": 7,\n"
    " \"g\": 8, \"h\": 9, \"i\": 10, \"j\": 11, \"k\": 12, \"\xC4\xA0\": 13, \"\xC3\xA4\": 14, \"\\\"\": 15, \"ab\": "
    "16, \"abc\": 17, \"\xC4\xA0\x61\": 18,\n"
    " \"de\": 19}, \"merges\": [\"a b\", \"ab c\", [\"\xC4\xA0\", \"a\"], \"d e\"]}}\n";

enum { ALL = -1, NO_LAYER = -2 };

static const struct row {
    int layer; /* a number, ALL or NO_LAYER */
    const char *gguf, *source, *dtype;
    uint64_t rows, cols; /* rows 0: a vector of cols */
} rows[] = {
    {NO_LAYER, "token_embd.weight", "embed.weight", "BF16", 24, 64},
    {NO_LAYER, "output_norm.weight", "norm.weight", "F32", 0, 64},
    {NO_LAYER, "output.weight", "head.weight", "BF16", 24, 64},
    {NO_LAYER, "output_hc_fn.weight", "hc_head_fn", "F32", 2, 128},
    {NO_LAYER, "output_hc_base.weight", "hc_head_base", "F32", 0, 2},
    {NO_LAYER, "output_hc_scale.weight", "hc_head_scale", "F32", 0, 1},
    {ALL, "hc_attn_fn.weight", "hc_attn_fn", "F32", 8, 128},
    {ALL, "hc_attn_base.weight", "hc_attn_base", "F32", 0, 8},
    {ALL, "hc_attn_scale.weight", "hc_attn_scale", "F32", 0, 3},
    {ALL, "hc_ffn_fn.weight", "hc_ffn_fn", "F16", 8, 128},
    {ALL, "hc_ffn_base.weight", "hc_ffn_base", "F32", 0, 8},
    {ALL, "hc_ffn_scale.weight", "hc_ffn_scale", "F32", 0, 3},
    {ALL, "attn_norm.weight", "attn_norm.weight", "F32", 0, 64},
    {ALL, "ffn_norm.weight", "ffn_norm.weight", "BF16", 0, 64},
    {ALL, "attn_q_a.weight", "attn.wq_a.weight", "BF16", 32, 64},
    {ALL, "attn_q_a_norm.weight", "attn.q_norm.weight", "F16", 0, 32},
    {ALL, "attn_q_b.weight", "attn.wq_b.weight", "BF16", 160, 32},
    {ALL, "attn_kv.weight", "attn.wkv.weight", "BF16", 80, 64},
    {ALL, "attn_kv_a_norm.weight", "attn.kv_norm.weight", "F32", 0, 80},
    {ALL, "attn_sinks.weight", "attn.attn_sink", "F32", 0, 2},
    {ALL, "attn_output_a.weight", "attn.wo_a.weight", "F16", 32, 80},
    {ALL, "attn_output_b.weight", "attn.wo_b.weight", "F32", 64, 32},
    {1, "attn_compressor_ape.weight", "attn.compressor.ape", "F32", 4, 160},
    {1, "attn_compressor_kv.weight", "attn.compressor.wkv.weight", "BF16", 160, 64},
    {1, "attn_compressor_gate.weight", "attn.compressor.wgate.weight", "BF16", 160, 64},
    {1, "attn_compressor_norm.weight", "attn.compressor.norm.weight", "F32", 0, 80},
    {1, "indexer.attn_q_b.weight", "attn.indexer.wq_b.weight", "BF16", 64, 32},
    {1, "indexer.proj.weight", "attn.indexer.weights_proj.weight", "BF16", 2, 64},
    {1, "indexer_compressor_ape.weight", "attn.indexer.compressor.ape", "F32", 4, 64},
    {1, "indexer_compressor_kv.weight", "attn.indexer.compressor.wkv.weight", "BF16", 64, 64},
    {1, "indexer_compressor_gate.weight", "attn.indexer.compressor.wgate.weight", "BF16", 64, 64},
    {1, "indexer_compressor_norm.weight", "attn.indexer.compressor.norm.weight", "F32", 0, 32},
    {2, "attn_compressor_ape.weight", "attn.compressor.ape", "F32", 128, 80},
    {2, "attn_compressor_kv.weight", "attn.compressor.wkv.weight", "BF16", 80, 64},
    {2, "attn_compressor_gate.weight", "attn.compressor.wgate.weight", "BF16", 80, 64},
    {2, "attn_compressor_norm.weight", "attn.compressor.norm.weight", "F32", 0, 80},
    {ALL, "ffn_gate_inp.weight", "ffn.gate.weight", "BF16", 3, 64},
    {0, "ffn_gate_tid2eid.weight", "ffn.gate.tid2eid", "I64", 24, 2},
    {1, "exp_probs_b.bias", "ffn.gate.bias", "F32", 0, 3},
    {2, "exp_probs_b.bias", "ffn.gate.bias", "F32", 0, 3},
    {ALL, "ffn_gate_shexp.weight", "ffn.shared_experts.w1.weight", "BF16", 32, 64},
    {ALL, "ffn_up_shexp.weight", "ffn.shared_experts.w3.weight", "BF16", 32, 64},
    {ALL, "ffn_down_shexp.weight", "ffn.shared_experts.w2.weight", "BF16", 64, 32},
};

static const struct {
    const char *gguf, *part;
    uint64_t rows, cols;
} expert_parts[] = {{"ffn_gate_exps.weight", "w1", 32, 64},
                    {"ffn_up_exps.weight", "w3", 32, 64},
                    {"ffn_down_exps.weight", "w2", 64, 32}};

static int dtype_bytes(const char *dtype)
{
    if (!strcmp(dtype, "I64")) return 8;
    if (!strcmp(dtype, "F32")) return 4;
    return !strcmp(dtype, "BF16") || !strcmp(dtype, "F16") ? 2 : 1;
}

/* Finite values: the exponent of every float is kept away from its ends by the two top bits "01" below the sign. */
static void fill(struct st_entry *t)
{
    uint32_t x = 2166136261u;
    for (const char *p = t->name; *p; p++) x = (x ^ (unsigned char)*p) * 16777619u;
    const int width = dtype_bytes(t->dtype);
    for (size_t i = 0; i < t->bytes; i++) {
        x ^= x << 13, x ^= x >> 17, x ^= x << 5;
        t->data[i] = (uint8_t)(x >> 11);
        if (width == 8)
            t->data[i] = i % 8 ? 0 : (uint8_t)((x >> 11) % 3); /* an expert id */
        else if (i % (size_t)width == (size_t)width - 1)
            t->data[i] = (uint8_t)((t->data[i] & 0x83) | 0x38);
    }
}

static struct st_entry *add(struct st_source *s, const char *dtype, uint64_t n_rows, uint64_t cols)
{
    if (s->n == ST_SOURCE_MAX) abort();
    struct st_entry *t = &s->at[s->n++];
    *t = (struct st_entry){.dtype = dtype, .n_dims = n_rows ? 2 : 1, .shape = {n_rows ? n_rows : cols, cols}};
    t->bytes = (size_t)((n_rows ? n_rows : 1) * cols) * (size_t)dtype_bytes(dtype);
    t->data = malloc(t->bytes);
    if (!t->data) abort();
    return t;
}

static void add_row(struct st_source *s, const struct row *r, int layer)
{
    struct st_entry *t = add(s, r->dtype, r->rows, r->cols);
    if (layer < 0) {
        snprintf(t->gguf, sizeof t->gguf, "%s", r->gguf);
        snprintf(t->name, sizeof t->name, "%s", r->source);
    } else {
        snprintf(t->gguf, sizeof t->gguf, "blk.%d.%s", layer, r->gguf);
        snprintf(t->name, sizeof t->name, "layers.%d.%s", layer, r->source);
    }
    fill(t);
}

void st_source_make(struct st_source *s)
{
    *s = (struct st_source){.config = config_text, .tokenizer = tokenizer_text};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (int layer = rows[i].layer == NO_LAYER ? -1 : 0; layer < (rows[i].layer == NO_LAYER ? 0 : 3); layer++)
            if (rows[i].layer < 0 || rows[i].layer == layer) add_row(s, &rows[i], layer);
    for (int layer = 0; layer < 3; layer++)
        for (int expert = 2; expert >= 0; expert--) /* the order in the file must not matter */
            for (int part = 0; part < 3; part++) {
                struct st_entry *t = add(s, "BF16", expert_parts[part].rows, expert_parts[part].cols);
                snprintf(t->gguf, sizeof t->gguf, "blk.%d.%s", layer, expert_parts[part].gguf);
                snprintf(t->name, sizeof t->name, "layers.%d.ffn.experts.%d.%s.weight", layer, expert,
                         expert_parts[part].part);
                t->slice = expert;
                fill(t);
            }
    st_source_add(s, "mtp.0.norm.weight", "BF16", 1, 64, 0);
}

void st_source_free(struct st_source *s)
{
    for (int i = 0; i < s->n; i++) free(s->at[i].data);
    s->n = 0;
}

struct st_entry *st_source_find(struct st_source *s, const char *name)
{
    for (int i = 0; i < s->n; i++)
        if (!strcmp(s->at[i].name, name)) return &s->at[i];
    return NULL;
}

void st_source_retype(struct st_entry *t, const char *dtype, int n_dims, uint64_t n_rows, uint64_t cols, uint8_t first)
{
    t->dtype = dtype;
    t->n_dims = n_dims;
    t->shape[0] = n_dims == 1 ? cols : n_rows;
    t->shape[1] = cols;
    t->bytes = (size_t)(n_rows * cols) * (size_t)dtype_bytes(dtype);
    free(t->data);
    t->data = malloc(t->bytes);
    if (!t->data) abort();
    for (size_t i = 0; i < t->bytes; i++) t->data[i] = (uint8_t)(first + i);
}

struct st_entry *st_source_add(struct st_source *s, const char *name, const char *dtype, uint64_t n_rows, uint64_t cols,
                               uint8_t first)
{
    struct st_entry *t = add(s, dtype, n_rows, cols);
    snprintf(t->name, sizeof t->name, "%s", name);
    st_source_retype(t, dtype, 2, n_rows, cols, first);
    return t;
}

void st_source_remove(struct st_source *s, const char *name)
{
    struct st_entry *t = st_source_find(s, name);
    if (!t) abort();
    free(t->data);
    *t = s->at[--s->n];
}

/* ---- files ---- */

static int write_text(const char *folder, const char *file, const char *text, size_t n)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    FILE *f = fopen(path, "wb");
    if (!f) return -1;
    const size_t done = fwrite(text, 1, n, f);
    return fclose(f) || done != n ? -1 : 0;
}

/* Tensors i with i mod n_shards = shard. */
static int write_shard(const struct st_source *s, const char *folder, const char *file, int shard, int n_shards)
{
    struct str header = {0}, whole = {0};
    size_t at = 0;
    str_puts(&header, "{\"__metadata__\": {\"format\": \"pt\"}");
    for (int i = shard; i < s->n; i += n_shards) {
        const struct st_entry *t = &s->at[i];
        str_printf(&header, ", \"%s\": {\"dtype\": \"%s\", \"shape\": [%" PRIu64, t->name, t->dtype, t->shape[0]);
        if (t->n_dims == 2) str_printf(&header, ", %" PRIu64, t->shape[1]);
        str_printf(&header, "], \"data_offsets\": [%zu, %zu]}", at, at + t->bytes);
        at += t->bytes;
    }
    str_puts(&header, "}");
    for (int i = 0; i < 8; i++) str_add(&whole, &(char){(char)((uint64_t)header.n >> 8 * i)}, 1);
    str_add(&whole, header.p, header.n);
    for (int i = shard; i < s->n; i += n_shards) str_add(&whole, s->at[i].data, s->at[i].bytes);
    const int rc = write_text(folder, file, whole.p, whole.n);
    str_free(&header);
    str_free(&whole);
    return rc;
}

static int write_shards(const struct st_source *s, const char *folder, int n_shards)
{
    struct str index = {0};
    char file[64];
    int rc = 0;
    str_puts(&index, "{\"weight_map\": {");
    for (int i = 0; i < s->n; i++)
        str_printf(&index, "%s\"%s\": \"model-%05d-of-%05d.safetensors\"", i ? ", " : "", s->at[i].name,
                   i % n_shards + 1, n_shards);
    str_puts(&index, "}}");
    for (int shard = 0; shard < n_shards && !rc; shard++) {
        snprintf(file, sizeof file, "model-%05d-of-%05d.safetensors", shard + 1, n_shards);
        rc = write_shard(s, folder, file, shard, n_shards);
    }
    if (!rc) rc = write_text(folder, "model.safetensors.index.json", index.p, index.n);
    str_free(&index);
    return rc;
}

int st_source_write(const struct st_source *s, const char *folder, int n_shards)
{
    if (write_text(folder, "config.json", s->config, strlen(s->config)) ||
        write_text(folder, "tokenizer.json", s->tokenizer, strlen(s->tokenizer)))
        return -1;
    return n_shards == 1 ? write_shard(s, folder, "model.safetensors", 0, 1) : write_shards(s, folder, n_shards);
}
