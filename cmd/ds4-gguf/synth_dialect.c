/* What each maker calls things. */
#include "synth_dialect.h"
#include <stdio.h>
#include <string.h>

/* The beginning of a name, behind "blk.N.", becomes another; bare: ".weight" goes too. */
struct name_rule {
    const char *from, *to;
    bool bare;
};

/* A key without architecture becomes another, or with to NULL is left out. */
struct key_rule {
    const char *from, *to;
};

struct synth_dialect {
    const char *arch, *name;
    const char *as_arch;           /* general.architecture and prefix of keys; NULL: arch */
    const struct name_rule *names; /* ends with from NULL; as are the keys */
    const struct key_rule *keys;
    bool groups_apart; /* attn_output_a in three dimensions */
    bool rows;         /* vectors of several streams as rows */
    bool no_gaps;      /* the table lies directly behind the other tensors */
};

static const struct name_rule same_names[] = {{NULL, NULL, false}};
static const struct key_rule same_keys[] = {{NULL, NULL}};

/* ---- DeepSeek V4 */

static const struct key_rule lc_keys[] = {{"vocab_size", NULL}, {"nextn_predict_layers", NULL}, {NULL, NULL}};

static const struct name_rule ik_names[] = {
    {"attn_kv.", "attn_kv_latent.", false},
    {"attn_compressor_", "attn_compress_", false},
    {"indexer_compressor_", "indexer.compress_", false},
    {"output_hc_", "hc_head_", true},
    {"exp_probs_b.bias", "exp_probs_b.weight", false},
    {NULL, NULL, false},
};
static const struct key_rule ik_keys[] = {
    {"vocab_size", NULL},
    {"nextn_predict_layers", NULL},
    {"attention.output_group_count", NULL},
    {"attention.output_lora_rank", NULL},
    {"attention.compress_ratios", NULL},
    {"hyper_connection.count", NULL},
    {"hyper_connection.sinkhorn_iterations", NULL},
    {"hyper_connection.epsilon", NULL},
    {"hash_layer_count", NULL},
    {NULL, NULL},
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
static const struct key_rule early_keys[] = {
    {"vocab_size", NULL},
    {"attention.output_lora_rank", "attention.o_lora_rank"},
    {"attention.output_group_count", "attention.o_groups"},
    {"hyper_connection.count", "hyperconnections.mult"},
    {"hyper_connection.sinkhorn_iterations", "hyperconnections.sinkhorn_iters"},
    {"hyper_connection.epsilon", "hyperconnections.eps"},
    {"hash_layer_count", "n_hash_layers"},
    {NULL, NULL},
};

/* ---- Qwen3.8 */

static const struct key_rule qwen_keys[] = {
    {"vocab_size", NULL}, {"ple.row_dimension", NULL}, {"ple.row_count", NULL}, {"ple.image_token_id", NULL},
    {NULL, NULL},
};

static const struct synth_dialect dialects[] = {
    {"deepseek4", "ds4", NULL, same_names, same_keys},
    {"deepseek4", "llama.cpp", NULL, same_names, lc_keys},
    {"deepseek4", "ik_llama.cpp", NULL, ik_names, ik_keys},
    {"deepseek4", "early", "deepseek-v4", early_names, early_keys, .groups_apart = true},
    {"qwen4exp", "ds4", NULL, same_names, same_keys},
    {"qwen4exp", "llama.cpp", NULL, same_names, qwen_keys, .rows = true, .no_gaps = true},
};

const struct synth_dialect *synth_dialect_find(const char *arch, const char *name, char names[200])
{
    size_t n = 0;
    names[0] = 0;
    for (size_t i = 0; i < sizeof dialects / sizeof *dialects; i++) {
        if (strcmp(dialects[i].arch, arch)) continue;
        if (!strcmp(dialects[i].name, name)) return &dialects[i];
        n += (size_t)snprintf(names + n, 200 - n, "%s%s", n ? ", " : "", dialects[i].name);
    }
    return NULL;
}

/* ---- tensors */

static void rename_tensor(struct layout_tensor *t, const struct name_rule *r)
{
    char rest[80];
    char *stem = t->layer < 0 ? t->name : strchr(t->name + 4, '.') + 1;
    for (; r->from; r++) {
        const size_t n = strlen(r->from);
        if (strncmp(stem, r->from, n)) continue;
        snprintf(rest, sizeof rest, "%s", stem + n);
        snprintf(stem, sizeof t->name - (size_t)(stem - t->name), "%s%s", r->to, rest);
        char *end = strstr(stem, ".weight");
        if (r->bare && end) *end = 0;
        return;
    }
}

void synth_dialect_tensor(const struct synth_dialect *d, struct layout_tensor *t, uint64_t width, uint64_t groups)
{
    const bool norm = strstr(t->name, "norm.weight") || strstr(t->name, "ple_norm_");
    if (d->groups_apart && strstr(t->name, ".attn_output_a.") && t->n_dims == 2 && t->ne[1] % groups == 0)
        t->n_dims = 3, t->ne[1] /= groups, t->ne[2] = groups;
    if (d->rows && norm && t->n_dims == 1 && t->ne[0] > width && t->ne[0] % width == 0)
        t->n_dims = 2, t->ne[1] = t->ne[0] / width, t->ne[0] = width;
    if (d->no_gaps && t->role == ROLE_TABLE) t->role = ROLE_EMBEDDING;
    rename_tensor(t, d->names);
}

/* ---- keys */

static bool key_of(const void *arg, const char *key, char name[GGUF_RENAMED_KEY])
{
    const struct synth_dialect *d = arg;
    const size_t n = strlen(d->arch);
    snprintf(name, GGUF_RENAMED_KEY, "%s", key);
    if (strncmp(key, d->arch, n) || key[n] != '.') return true;
    const char *stem = key + n + 1;
    for (const struct key_rule *r = d->keys; r->from; r++)
        if (!strcmp(stem, r->from)) {
            if (!r->to) return false;
            stem = r->to;
            break;
        }
    snprintf(name, GGUF_RENAMED_KEY, "%s.%s", synth_dialect_arch(d), stem);
    return true;
}

const char *synth_dialect_arch(const struct synth_dialect *d)
{
    return d->as_arch ? d->as_arch : d->arch;
}

void synth_dialect_keys(const struct synth_dialect *d, struct gguf_writer *w)
{
    gguf_writer_rename(w, key_of, d);
}
