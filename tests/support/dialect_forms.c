/* A file as two lists, records and tensors; a form edits the lists; then they are written. */
#include "dialect_forms.h"
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include "base/mem.h"
#include "gguf/gguf.h"
#include "quant/quant.h"

struct record {
    char key[96];
    struct gguf_kv kv;
    void *own; /* what kv.data points into, if not the source file */
};

struct tensor {
    char name[96];
    uint32_t type;
    int n_dims;
    uint64_t ne[4];
    const uint8_t *a, *b; /* b: the second half of the rows of each expert; a NULL: zeros */
    void *own;            /* what a points into, if not the source file */
};

struct form_file {
    struct gguf *source;
    struct record *record;
    struct tensor *tensor;
    int n_records, n_tensors;
    int L;
};

/* ---- records */

static struct record *find(struct form_file *f, const char *key)
{
    for (int i = 0; i < f->n_records; i++)
        if (strcmp(f->record[i].key, key) == 0) return &f->record[i];
    return NULL;
}

static void drop(struct form_file *f, const char *key)
{
    struct record *r = find(f, key);
    if (r) r->key[0] = 0;
}

static struct record *put(struct form_file *f, const char *key)
{
    struct record *r = find(f, key);
    if (!r) r = &f->record[f->n_records++];
    snprintf(r->key, sizeof r->key, "%s", key);
    return r;
}

/* Values of `count` elements of `bytes` bytes that the record owns from now on. */
static uint8_t *set_data(struct record *r, enum gguf_type type, enum gguf_type elem, uint64_t count, size_t bytes)
{
    uint8_t *data = mem_alloc((size_t)count * bytes + 1);
    r->kv.type = type, r->kv.elem = elem, r->kv.count = count, r->kv.data = data, r->kv.str_at = NULL;
    mem_free(r->own);
    r->own = data;
    return data;
}

static void set_u32(struct form_file *f, const char *key, uint32_t v)
{
    memcpy(set_data(put(f, key), GGUF_U32, GGUF_U32, 1, 4), &v, 4);
}

static uint32_t get_u32(struct form_file *f, const char *key)
{
    uint64_t v = 0;
    const struct record *r = find(f, key);
    if (r) gguf_u64(&r->kv, 0, &v, NULL);
    return (uint32_t)v;
}

static void set_text(struct form_file *f, const char *key, const char *text)
{
    const uint64_t n = strlen(text);
    uint8_t *data = set_data(put(f, key), GGUF_STRING, GGUF_STRING, 1, 8 + (size_t)n);
    memcpy(data, &n, 8);
    memcpy(data + 8, text, (size_t)n);
}

/* A copy of a float array with n entries, the last one repeated. */
static void set_floats_of(struct form_file *f, const char *key, const char *from, uint64_t n)
{
    const struct gguf_kv kv = find(f, from)->kv;
    float *v = mem_alloc((size_t)n * sizeof *v);
    for (uint64_t i = 0; i < n; i++) memcpy(&v[i], kv.data + 4 * (i < kv.count ? i : kv.count - 1), 4);
    memcpy(set_data(put(f, key), GGUF_ARRAY, GGUF_F32, n, 4), v, (size_t)n * 4);
    mem_free(v);
}

/* An array of n times the same text. A string array needs to know where each of its elements is. */
static void set_texts(struct form_file *f, const char *key, const char *text, uint64_t n)
{
    const uint64_t length = strlen(text), each = 8 + length;
    struct record *r = put(f, key);
    uint8_t *data = set_data(r, GGUF_ARRAY, GGUF_STRING, n, (size_t)each + 8);
    uint64_t *at = (uint64_t *)(void *)data; /* the offsets come first: aligned */
    for (uint64_t i = 0; i < n; i++) {
        at[i] = i * each;
        memcpy(data + 8 * n + i * each, &length, 8);
        memcpy(data + 8 * n + i * each + 8, text, (size_t)length);
    }
    r->kv.data = data + 8 * n;
    r->kv.str_at = at;
}

static void widen_record(struct record *r, enum form_widths widths)
{
    const struct gguf_kv kv = r->kv;
    if ((kv.elem != GGUF_U32 && kv.elem != GGUF_I32) || strcmp(r->key, "general.alignment") == 0) return;
    const bool wide = widths == WIDTHS_WIDE;
    uint8_t *old = r->own;
    r->own = NULL;
    const enum gguf_type elem = wide ? GGUF_U64 : GGUF_I32;
    uint8_t *to = set_data(r, kv.type == GGUF_ARRAY ? GGUF_ARRAY : elem, elem, kv.count, wide ? 8 : 4);
    for (uint64_t i = 0; i < kv.count; i++) {
        uint32_t v;
        memcpy(&v, kv.data + 4 * i, 4);
        const uint64_t w = v;
        memcpy(to + i * (wide ? 8 : 4), &w, wide ? 8 : 4);
    }
    mem_free(old);
}

/* ---- tensors */

static struct tensor *find_tensor(struct form_file *f, const char *name)
{
    for (int i = 0; i < f->n_tensors; i++)
        if (strcmp(f->tensor[i].name, name) == 0) return &f->tensor[i];
    return NULL;
}

static struct tensor *copy_tensor(struct form_file *f, const char *from, const char *to)
{
    struct tensor *t = &f->tensor[f->n_tensors++];
    *t = *find_tensor(f, from);
    snprintf(t->name, sizeof t->name, "%s", to);
    return t;
}

/* The beginning of a name, behind "blk.N.", becomes another; bare: ".weight" goes too. */
struct name_rule {
    const char *from, *to;
    bool bare;
};

static const struct name_rule ik_names[] = {
    {"attn_kv.", "attn_kv_latent.", false},
    {"attn_compressor_", "attn_compress_", false},
    {"indexer_compressor_", "indexer.compress_", false},
    {"output_hc_", "hc_head_", true},
    {"exp_probs_b.bias", "exp_probs_b.weight", false},
    {NULL, NULL, false},
};

static const struct name_rule early_names[] = {
    {"attn_kv_a_norm.", "attn_kv_norm.", false},
    {"attn_output_", "attn_o_", false},
    {"attn_compressor_kv.", "compressor.wkv.", false},
    {"attn_compressor_gate.", "compressor.wgate.", false},
    {"attn_compressor_ape.", "compressor.ape.", true},
    {"attn_compressor_norm.", "compressor.norm.", false},
    {"indexer_compressor_kv.", "indexer.compressor.wkv.", false},
    {"indexer_compressor_gate.", "indexer.compressor.wgate.", false},
    {"indexer_compressor_ape.", "indexer.compressor.ape.", true},
    {"indexer_compressor_norm.", "indexer.compressor.norm.", false},
    {"indexer.proj.", "indexer.weights_proj.", false},
    {"hc_attn_", "hc_attn.", true},
    {"hc_ffn_", "hc_ffn.", true},
    {"output_hc_", "output.hc_head.", true},
    {NULL, NULL, false},
};

static void rename_tensor(struct tensor *t, const struct name_rule *rules)
{
    char *stem = t->name, rest[96];
    if (strncmp(stem, "blk.", 4) == 0) stem = strchr(stem + 4, '.') + 1;
    for (; rules->from; rules++) {
        const size_t n = strlen(rules->from);
        if (strncmp(stem, rules->from, n) != 0) continue;
        snprintf(rest, sizeof rest, "%s", stem + n);
        snprintf(stem, sizeof t->name - (size_t)(stem - t->name), "%s%s", rules->to, rest);
        char *end = strstr(stem, ".weight");
        if (rules->bare && end) *end = 0;
        return;
    }
}

/* ---- forms */

static void make_lc(struct form_file *f)
{
    drop(f, "deepseek4.vocab_size");
    drop(f, "deepseek4.nextn_predict_layers");
    set_floats_of(f, "deepseek4.swiglu_clamp_shexp", "deepseek4.swiglu_clamp_exp", (uint64_t)f->L);
    set_u32(f, "deepseek4.embedding_length_out",
            get_u32(f, "deepseek4.embedding_length") * get_u32(f, "deepseek4.hyper_connection.count"));
}

static void make_bare(struct form_file *f)
{
    static const char *const gone[] = {"block_count",
                                       "attention.head_count",
                                       "attention.head_count_kv",
                                       "attention.key_length",
                                       "attention.value_length",
                                       "attention.q_lora_rank",
                                       "attention.output_group_count",
                                       "attention.output_lora_rank",
                                       "expert_count",
                                       "expert_used_count",
                                       "expert_feed_forward_length",
                                       "expert_shared_count",
                                       "hash_layer_count",
                                       "attention.indexer.head_count",
                                       "attention.indexer.key_length",
                                       "attention.compress_ratios",
                                       "hyper_connection.count",
                                       "hyper_connection.sinkhorn_iterations",
                                       "hyper_connection.epsilon",
                                       "swiglu_clamp_shexp",
                                       "expert_weights_norm",
                                       "embedding_length",
                                       "embedding_length_out",
                                       "attention.compress_rope_freq_base"};
    make_lc(f);
    for (size_t i = 0; i < sizeof gone / sizeof *gone; i++) {
        char key[96];
        snprintf(key, sizeof key, "deepseek4.%s", gone[i]);
        drop(f, key);
    }
}

static void make_ik(struct form_file *f)
{
    static const char *const gone[] = {"attention.output_group_count",
                                       "attention.output_lora_rank",
                                       "attention.compress_ratios",
                                       "hyper_connection.count",
                                       "hyper_connection.sinkhorn_iterations",
                                       "hyper_connection.epsilon",
                                       "hash_layer_count",
                                       "swiglu_clamp_shexp",
                                       "embedding_length_out"};
    make_lc(f);
    for (size_t i = 0; i < sizeof gone / sizeof *gone; i++) {
        char key[96];
        snprintf(key, sizeof key, "deepseek4.%s", gone[i]);
        drop(f, key);
    }
    for (int i = 0; i < f->n_tensors; i++) rename_tensor(&f->tensor[i], ik_names);
}

static void make_early(struct form_file *f)
{
    static const char *const keys[][2] = {{"attention.output_lora_rank", "attention.o_lora_rank"},
                                          {"attention.output_group_count", "attention.o_groups"},
                                          {"hyper_connection.count", "hyperconnections.mult"},
                                          {"hyper_connection.sinkhorn_iterations", "hyperconnections.sinkhorn_iters"},
                                          {"hyper_connection.epsilon", "hyperconnections.eps"},
                                          {"hash_layer_count", "n_hash_layers"}};
    const uint64_t G = get_u32(f, "deepseek4.attention.output_group_count");
    for (int i = 0; i < f->n_tensors; i++) {
        struct tensor *t = &f->tensor[i];
        if (strstr(t->name, ".attn_output_a.")) t->n_dims = 3, t->ne[1] /= G, t->ne[2] = G;
        rename_tensor(t, early_names);
    }
    for (int i = 0; i < f->n_records; i++) {
        char *key = f->record[i].key, name[96];
        if (strncmp(key, "deepseek4.", 10) != 0) continue;
        snprintf(name, sizeof name, "%s", key + 10);
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
            if (strcmp(name, keys[k][0]) == 0) snprintf(name, sizeof name, "%s", keys[k][1]);
        snprintf(key, sizeof f->record[i].key, "deepseek-v4.%.80s", name);
    }
    set_text(f, "general.architecture", "deepseek-v4");
}

/* kind: "exps" or "shexp". */
static void fuse(struct form_file *f, const char *kind)
{
    for (int l = 0; l < f->L; l++) {
        char gate[96], up[96];
        snprintf(gate, sizeof gate, "blk.%d.ffn_gate_%s.weight", l, kind);
        snprintf(up, sizeof up, "blk.%d.ffn_up_%s.weight", l, kind);
        struct tensor *g = find_tensor(f, gate), *u = find_tensor(f, up);
        if (g->type != u->type) continue;
        g->b = u->a;
        g->ne[1] *= 2;
        snprintf(g->name, sizeof g->name, "blk.%d.ffn_gate_up_%s.weight", l, kind);
        u->name[0] = 0;
    }
}

static void fuse_experts(struct form_file *f)
{
    fuse(f, "exps");
    fuse(f, "shexp");
}

static void make_fused(struct form_file *f)
{
    make_lc(f);
    fuse_experts(f);
}

/* The draft's block is a copy of the last one without what only long context needs, plus its own ends. */
static void make_merged(struct form_file *f)
{
    static const char *const ends[][2] = {{"output_norm.weight", "enorm"},
                                          {"output_norm.weight", "hnorm"},
                                          {"output_norm.weight", "shared_head_norm"},
                                          {"output_hc_fn.weight", "hc_head_fn"},
                                          {"output_hc_base.weight", "hc_head_base"},
                                          {"output_hc_scale.weight", "hc_head_scale"}};
    const uint64_t D = get_u32(f, "deepseek4.embedding_length");
    char last[16], name[96];
    make_lc(f);
    const int n = snprintf(last, sizeof last, "blk.%d.", f->L - 1), n_tensors = f->n_tensors;
    for (int i = 0; i < n_tensors; i++) {
        const char *stem = f->tensor[i].name + n;
        if (strncmp(f->tensor[i].name, last, (size_t)n) != 0 || strstr(stem, "compressor") || strstr(stem, "indexer"))
            continue;
        snprintf(name, sizeof name, "blk.%d.%.70s", f->L, stem);
        copy_tensor(f, f->tensor[i].name, name);
    }
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        snprintf(name, sizeof name, "blk.%d.nextn.%s.weight", f->L, ends[i][1]);
        copy_tensor(f, ends[i][0], name);
    }
    snprintf(name, sizeof name, "blk.%d.nextn.eh_proj.weight", f->L);
    struct tensor *eh = copy_tensor(f, "output_norm.weight", name);
    eh->n_dims = 2, eh->ne[0] = 2 * D, eh->ne[1] = D, eh->a = NULL;
    set_u32(f, "deepseek4.block_count", (uint32_t)f->L + 1);
    set_u32(f, "deepseek4.nextn_predict_layers", 1);
    set_floats_of(f, "deepseek4.swiglu_clamp_shexp", "deepseek4.swiglu_clamp_exp", (uint64_t)f->L + 1);
    set_floats_of(f, "deepseek4.swiglu_clamp_exp", "deepseek4.swiglu_clamp_shexp", (uint64_t)f->L + 1);
}

static void make_hole(struct form_file *f)
{
    make_lc(f);
    find_tensor(f, "blk.2.attn_q_b.weight")->name[0] = 0;
}

/* ---- Qwen3.8 */

static bool begins(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* Kinds of blocks and ratios by block; the draft's has none. */
static void set_kinds(struct form_file *f)
{
    const uint64_t n = (uint64_t)f->L;
    uint8_t *recurrent = set_data(put(f, "qwen4exp.attention.recurrent_layers"), GGUF_ARRAY, GGUF_BOOL, n, 1);
    uint64_t q = 0;
    const struct record *r = find(f, "qwen4exp.attention.compress_ratios");
    for (uint64_t i = 0, v; r && i < r->kv.count; i++)
        if (gguf_u64(&r->kv, i, &v, NULL) == 0 && v) q = v;
    int32_t *ratio = mem_alloc((size_t)n * sizeof *ratio);
    for (uint64_t l = 0; l < n; l++) {
        char name[96];
        snprintf(name, sizeof name, "blk.%d.ssm_a", (int)l);
        recurrent[l] = find_tensor(f, name) != NULL;
        snprintf(name, sizeof name, "blk.%d.nextn.enorm.weight", (int)l);
        ratio[l] = recurrent[l] || find_tensor(f, name) ? 0 : (int32_t)q;
    }
    memcpy(set_data(put(f, "qwen4exp.attention.compress_ratios"), GGUF_ARRAY, GGUF_I32, n, 4), ratio, (size_t)n * 4);
    mem_free(ratio);
}

static void make_qwen_lc(struct form_file *f)
{
    const uint64_t E = get_u32(f, "qwen4exp.embedding_length");
    drop(f, "qwen4exp.vocab_size");
    drop(f, "qwen4exp.full_attention_interval");
    drop(f, "qwen4exp.ple.row_dimension");
    drop(f, "qwen4exp.ple.row_count");
    drop(f, "qwen4exp.ple.image_token_id");
    set_kinds(f);
    for (int i = 0; i < f->n_tensors; i++) {
        struct tensor *t = &f->tensor[i];
        const bool rows = strstr(t->name, "_norm.weight") || strstr(t->name, "ple_norm_");
        if (rows && t->n_dims == 1 && t->ne[0] > E && t->ne[0] % E == 0)
            t->n_dims = 2, t->ne[1] = t->ne[0] / E, t->ne[0] = E;
        if (strstr(t->name, "ffn_gate_inp_shexp") && t->n_dims == 1) t->n_dims = 2;
    }
}

static void make_qwen_bare(struct form_file *f)
{
    static const char *const kept[] = {
        "ple.layer_multipliers", "ple.head_vocab_sizes", "ple.eos_token_id",     "rope.",
        "context_length",        "expert_used_count",    "attention.layer_norm", "attention.indexer.top_k"};
    make_qwen_lc(f);
    for (int i = 0; i < f->n_records; i++) {
        bool keep = !begins(f->record[i].key, "qwen4exp.");
        for (size_t k = 0; k < sizeof kept / sizeof *kept && !keep; k++) keep = begins(f->record[i].key + 9, kept[k]);
        if (!keep) f->record[i].key[0] = 0;
    }
}

static void make_qwen_fused(struct form_file *f)
{
    make_qwen_lc(f);
    fuse_experts(f);
}

/* Columns [from, from + n) of a matrix of the draft's block under another name. */
static void put_columns(struct form_file *f, const struct tensor *t, uint64_t from, uint64_t n, const char *name)
{
    struct tensor *to = &f->tensor[f->n_tensors++];
    const uint64_t row = quant_row_bytes(t->type, (int64_t)t->ne[0]), skip = quant_row_bytes(t->type, (int64_t)from);
    const uint64_t part = quant_row_bytes(t->type, (int64_t)n);
    uint8_t *data = mem_alloc((size_t)(part * t->ne[1]));
    for (uint64_t r = 0; r < t->ne[1]; r++) memcpy(data + r * part, t->a + r * row + skip, (size_t)part);
    *to = *t;
    to->a = to->own = data;
    to->ne[0] = n;
    snprintf(to->name, sizeof to->name, "blk.%d.nextn.%s.weight", f->L - 1, name);
}

static const struct name_rule half_names[] = {{"nextn.hc_head_", "nextn.hc_", false}, {NULL, NULL, false}};
static const struct name_rule first_names[][2] = {{{"nextn.fc_", "fc_", false}},
                                                  {{"nextn.enorm.", "pre_norm_embd.", false}},
                                                  {{"nextn.hnorm.", "pre_norm_hidden.", false}},
                                                  {{"nextn.hc_", "mixer_", false}}};

static void make_qwen_halves(struct form_file *f)
{
    char name[96];
    make_qwen_lc(f);
    snprintf(name, sizeof name, "blk.%d.nextn.eh_proj.weight", f->L - 1);
    struct tensor *t = find_tensor(f, name);
    put_columns(f, t, 0, t->ne[0] / 2, "fc_embd");
    put_columns(f, t, t->ne[0] / 2, t->ne[0] / 2, "fc_hidden");
    t->name[0] = 0;
    for (int i = 0; i < f->n_tensors; i++)
        if (begins(f->tensor[i].name, "blk.")) rename_tensor(&f->tensor[i], half_names);
}

static void make_qwen_first(struct form_file *f)
{
    char old[96];
    make_qwen_halves(f);
    for (int i = 0; i < f->n_tensors; i++) {
        struct tensor *t = &f->tensor[i];
        snprintf(old, sizeof old, "%s", t->name);
        for (size_t k = 0; k < sizeof first_names / sizeof *first_names && begins(old, "blk."); k++) {
            rename_tensor(t, first_names[k]);
            if (strcmp(old, t->name) == 0) continue;
            snprintf(old, sizeof old, "%s", strchr(t->name + 4, '.') + 1);
            snprintf(t->name, sizeof t->name, "mtp.%.80s", old);
            break;
        }
    }
}

static bool is_of_table(const char *key)
{
    return begins(key, "qwen4exp.ple.") || strcmp(key, "qwen4exp.embedding_length_per_layer_input") == 0;
}

static void make_qwen_rest(struct form_file *f)
{
    make_qwen_lc(f);
    for (int i = 0; i < f->n_records; i++)
        if (is_of_table(f->record[i].key)) f->record[i].key[0] = 0;
    find_tensor(f, "per_layer_token_embd.weight")->name[0] = 0;
}

static void make_qwen_table(struct form_file *f)
{
    for (int i = 0; i < f->n_records; i++)
        if (!is_of_table(f->record[i].key) && strcmp(f->record[i].key, "general.architecture") != 0)
            f->record[i].key[0] = 0;
    for (int i = 0; i < f->n_tensors; i++)
        if (strcmp(f->tensor[i].name, "per_layer_token_embd.weight") != 0) f->tensor[i].name[0] = 0;
}

static const struct {
    const char *name;
    void (*make)(struct form_file *f);
} forms[FORM_COUNT] = {
    [FORM_DS4] = {"ds4", NULL},
    [FORM_LC] = {"lc", make_lc},
    [FORM_BARE] = {"bare", make_bare},
    [FORM_IK] = {"ik-names", make_ik},
    [FORM_EARLY] = {"early", make_early},
    [FORM_FUSED] = {"fused", make_fused},
    [FORM_MERGED] = {"merged", make_merged},
    [FORM_HOLE] = {"refuse-hole", make_hole},
    [FORM_QWEN_LC] = {"qwen lc", make_qwen_lc},
    [FORM_QWEN_BARE] = {"qwen bare", make_qwen_bare},
    [FORM_QWEN_FUSED] = {"qwen fused", make_qwen_fused},
    [FORM_QWEN_HALVES] = {"qwen halves", make_qwen_halves},
    [FORM_QWEN_FIRST] = {"qwen first", make_qwen_first},
    [FORM_QWEN_REST] = {"qwen without table", make_qwen_rest},
    [FORM_QWEN_TABLE] = {"qwen table", make_qwen_table},
};

const char *dialect_form_name(enum dialect_form form)
{
    return forms[form].name;
}

/* ---- reading and writing */

static void load(struct form_file *f)
{
    f->record = mem_alloc((size_t)(gguf_n_kv(f->source) + 8) * sizeof *f->record);
    f->tensor = mem_alloc((size_t)(2 * gguf_n_tensors(f->source) + 8) * sizeof *f->tensor);
    for (uint64_t i = 0; i < gguf_n_kv(f->source); i++) {
        struct record *r = &f->record[f->n_records++];
        r->kv = *gguf_kv_at(f->source, i);
        snprintf(r->key, sizeof r->key, "%.*s", (int)r->kv.key.n, r->kv.key.p);
    }
    for (uint64_t i = 0; i < gguf_n_tensors(f->source); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(f->source, i);
        struct tensor *to = &f->tensor[f->n_tensors++];
        snprintf(to->name, sizeof to->name, "%.*s", (int)t->name.n, t->name.p);
        to->type = t->type, to->n_dims = t->n_dims, to->a = gguf_data(f->source) + t->offset;
        memcpy(to->ne, t->ne, sizeof to->ne);
    }
    f->L = (int)get_u32(f, find(f, "deepseek4.block_count") ? "deepseek4.block_count" : "qwen4exp.block_count");
}

static void write_tensor(struct gguf_writer *w, const struct tensor *t)
{
    const uint64_t row = quant_row_bytes(t->type, (int64_t)t->ne[0]), bytes = row * t->ne[1] * t->ne[2];
    if (!t->a) {
        void *zeros = mem_alloc((size_t)bytes);
        gguf_write(w, zeros, bytes);
        mem_free(zeros);
    } else if (t->b) {
        const uint64_t half = row * t->ne[1] / 2;
        for (uint64_t e = 0; e < t->ne[2]; e++) {
            gguf_write(w, t->a + e * half, half);
            gguf_write(w, t->b + e * half, half);
        }
    } else {
        gguf_write(w, t->a, bytes);
    }
}

static int store(struct form_file *f, const char *path, enum form_widths widths, struct err *e)
{
    struct gguf_writer *w = NULL;
    const int rc = gguf_writer_open(path, &w, e);
    if (rc) return rc;
    for (int i = 0; i < f->n_records; i++) {
        struct record *r = &f->record[i];
        if (!r->key[0]) continue;
        if (widths != WIDTHS_KEPT) widen_record(r, widths);
        r->kv.key = (struct gguf_str){r->key, strlen(r->key)};
        gguf_put_kv(w, &r->kv);
    }
    for (int i = 0; i < f->n_tensors; i++)
        if (f->tensor[i].name[0])
            gguf_declare(w, f->tensor[i].name, f->tensor[i].type, f->tensor[i].n_dims, f->tensor[i].ne);
    for (int i = 0; i < f->n_tensors; i++)
        if (f->tensor[i].name[0]) write_tensor(w, &f->tensor[i]);
    return gguf_writer_finish(w, e);
}

static void form_free(struct form_file *f)
{
    for (int i = 0; i < f->n_records; i++) mem_free(f->record[i].own);
    for (int i = 0; i < f->n_tensors; i++) mem_free(f->tensor[i].own);
    mem_free(f->record);
    mem_free(f->tensor);
    gguf_close(f->source);
}

int dialect_form_write(const char *from, const char *to, enum dialect_form form, enum form_widths widths, struct err *e)
{
    struct form_file f = {0};
    int rc = gguf_open(from, &f.source, e);
    if (rc) return rc;
    load(&f);
    if (forms[form].make) forms[form].make(&f);
    rc = store(&f, to, widths, e);
    form_free(&f);
    return rc;
}

/* ---- single changes */

static void edit_key(struct form_file *f, const struct form_edit *x)
{
    const float real = (float)x->real;
    const int32_t last = (int32_t)x->real;
    const uint64_t n = (uint64_t)x->number;
    uint8_t *data;
    switch (x->kind) {
    case EDIT_U32:
        set_u32(f, x->name, (uint32_t)x->number);
        break;
    case EDIT_F32:
        memcpy(set_data(put(f, x->name), GGUF_F32, GGUF_F32, 1, 4), &real, 4);
        break;
    case EDIT_TEXTS:
        set_texts(f, x->name, x->text, n);
        break;
    case EDIT_TEXT:
        set_text(f, x->name, x->text);
        break;
    case EDIT_DROP:
        drop(f, x->name);
        break;
    case EDIT_F32S:
        data = set_data(put(f, x->name), GGUF_ARRAY, GGUF_F32, n, 4);
        for (uint64_t i = 0; i < n; i++) memcpy(data + 4 * i, &real, 4);
        break;
    case EDIT_I32S:
        data = set_data(put(f, x->name), GGUF_ARRAY, GGUF_I32, n, 4);
        memcpy(data + 4 * (n - 1), &last, 4);
        break;
    default:
        break;
    }
}

static uint64_t tensor_bytes(const struct tensor *t)
{
    return quant_row_bytes(t->type, (int64_t)t->ne[0]) * t->ne[1] * t->ne[2];
}

static void edit_tensor(struct tensor *t, const struct form_edit *x)
{
    const uint64_t count = t->ne[0] * t->ne[1] * t->ne[2], bytes = tensor_bytes(t);
    void *const old = t->own;
    const uint32_t word = (uint32_t)x->number;
    uint8_t *data;
    switch (x->kind) {
    case EDIT_NO_TENSORS:
        t->name[0] = 0;
        break;
    case EDIT_NAME:
        snprintf(t->name, sizeof t->name, "%s", x->text);
        break;
    case EDIT_NE:
        t->ne[x->index] = (uint64_t)x->number;
        if (t->n_dims <= x->index) t->n_dims = x->index + 1;
        if (tensor_bytes(t) > bytes) t->a = NULL;
        break;
    case EDIT_ZERO:
        t->a = NULL;
        break;
    case EDIT_POKE:
        t->own = data = mem_alloc((size_t)bytes);
        memcpy(data, t->a, (size_t)bytes);
        memcpy(data + 4 * x->index, &word, 4);
        t->a = data;
        mem_free(old);
        break;
    case EDIT_I64:
        t->own = data = mem_alloc((size_t)count * 8);
        for (uint64_t i = 0; i < count; i++) memcpy(data + 8 * i, t->a + 4 * i, 4);
        t->a = data;
        t->type = QT_I64;
        mem_free(old);
        break;
    case EDIT_VALUES:
        t->own = data = mem_alloc((size_t)count * sizeof(float));
        quant_type(t->type)->decode(t->a, (float *)(void *)data, (int64_t)count);
        t->a = data;
        t->type = QT_F32;
        mem_free(old);
        break;
    default:
        break;
    }
}

int dialect_form_edit(const char *from, const char *to, const struct form_edit *edits, int n, struct err *e)
{
    struct form_file f = {0};
    int rc = gguf_open(from, &f.source, e);
    if (rc) return rc;
    load(&f);
    for (int k = 0; k < n; k++) {
        const struct form_edit *x = &edits[k];
        edit_key(&f, x);
        for (int i = 0; i < f.n_tensors; i++) {
            const bool begins = strncmp(f.tensor[i].name, x->name, strlen(x->name)) == 0;
            if (x->kind == EDIT_NO_TENSORS ? begins : strcmp(f.tensor[i].name, x->name) == 0)
                edit_tensor(&f.tensor[i], x);
        }
    }
    rc = store(&f, to, WIDTHS_KEPT, e);
    form_free(&f);
    return rc;
}
