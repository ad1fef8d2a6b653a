/* A list of tensors is made first (name, type, shape, distribution), then declared, then filled row by row. Standard
 * deviations keep every stage of the forward pass near 1, so that clamps, softmaxes and selections all have work. */
#include "synth_model.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "base/mem.h"
#include "base/str.h"
#include "gguf/gguf.h"
#include "quant/quant.h"
#include "text/byte_alphabet.h"

enum fill { FILL_NORMAL, FILL_AROUND_ONE, FILL_HASH };

struct plan {
    char name[64];
    uint32_t type;
    int n_dims;
    uint64_t ne[3];
    enum fill fill;
    double std;
};

struct synth {
    const struct synth_shape *s;
    struct plan plan[40 * SYNTH_MAX_LAYERS];
    int n;
    int layer; /* prefix of the names; -1: none */
};

/* ---- random numbers: xorshift64*, every step exact */

static uint64_t rng_next(uint64_t *state)
{
    uint64_t x = *state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    return x * 0x2545f4914f6cdd1du;
}

static uint64_t rng_seed(uint64_t seed, const char *name)
{
    uint64_t h = 0xcbf29ce484222325u ^ seed * 0x9e3779b97f4a7c15u;
    for (; *name; name++) h = (h ^ (uint8_t)*name) * 0x100000001b3u;
    h ^= h >> 29;
    return h ? h : 1;
}

/* Sum of eight uniforms of 16 bits, centred and scaled to variance 1: the integer sum is exact, one product rounds. */
static double rng_normal(uint64_t *state)
{
    int64_t sum = 0;
    for (int i = 0; i < 2; i++) {
        const uint64_t x = rng_next(state);
        sum += (int64_t)(x & 0xffff) + (int64_t)(x >> 16 & 0xffff) + (int64_t)(x >> 32 & 0xffff) + (int64_t)(x >> 48);
    }
    return (double)(2 * sum - 8 * 65535) * 9.344061825059267e-06; /* 1 / (2 * sqrt(8 * (65536^2 - 1) / 12)) */
}

/* ---- the list of tensors */

__attribute__((format(printf, 7, 8))) static void add(struct synth *y, uint32_t type, enum fill fill, double std,
                                                      int n_dims, const uint64_t *ne, const char *fmt, ...)
{
    struct plan *p = &y->plan[y->n++];
    const int k = y->layer < 0 ? 0 : snprintf(p->name, sizeof p->name, "blk.%d.", y->layer);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(p->name + k, sizeof p->name - (size_t)k, fmt, ap);
    va_end(ap);
    p->type = type, p->fill = fill, p->std = std, p->n_dims = n_dims;
    for (int i = 0; i < 3; i++) p->ne[i] = i < n_dims ? ne[i] : 1;
}

/* A matrix of `rows` rows of `width` values with deviation std / sqrt(width). */
static void matrix(struct synth *y, uint32_t type, double std, int width, int rows, const char *name)
{
    add(y, type, FILL_NORMAL, std / sqrt(width), 2, (uint64_t[]){(uint64_t)width, (uint64_t)rows}, "%s.weight", name);
}

static void vector(struct synth *y, double std, int n, const char *name)
{
    add(y, QT_F32, FILL_NORMAL, std, 1, (uint64_t[]){(uint64_t)n}, "%s", name);
}

static void norm(struct synth *y, int n, const char *name)
{
    add(y, QT_F32, FILL_AROUND_ONE, 0.2, 1, (uint64_t[]){(uint64_t)n}, "%s.weight", name);
}

static void plan_attention(struct synth *y)
{
    const struct synth_shape *s = y->s;
    matrix(y, s->dense, 1, s->D, s->Rq, "attn_q_a");
    norm(y, s->Rq, "attn_q_a_norm");
    matrix(y, s->dense, 2, s->Rq, s->H * s->d, "attn_q_b");
    matrix(y, s->dense, 1, s->D, s->d, "attn_kv");
    norm(y, s->d, "attn_kv_a_norm");
    vector(y, 1, s->H, "attn_sinks.weight");
    matrix(y, s->dense, 1, s->H * s->d / s->G, s->G * s->Ro, "attn_output_a");
    matrix(y, s->dense, 1, s->G * s->Ro, s->D, "attn_output_b");
}

static void plan_compressor(struct synth *y, const char *prefix, int width, int ratio)
{
    const struct synth_shape *s = y->s;
    const int wide = ratio == 4 ? 2 * width : width;
    char name[4][40];
    static const char *const part[4] = {"kv", "gate", "ape", "norm"};
    for (int i = 0; i < 4; i++) snprintf(name[i], sizeof name[i], "%s_%s", prefix, part[i]);
    matrix(y, s->rest, 1, s->D, wide, name[0]);
    matrix(y, s->rest, 2, s->D, wide, name[1]);
    matrix(y, s->rest, sqrt(wide), wide, ratio, name[2]);
    norm(y, width, name[3]);
}

static void plan_experts(struct synth *y, int l)
{
    const struct synth_shape *s = y->s;
    matrix(y, s->rest, 2, s->D, s->E, "ffn_gate_inp");
    if (l < s->hash)
        add(y, QT_I32, FILL_HASH, 0, 2, (uint64_t[]){(uint64_t)s->K, (uint64_t)s->V}, "ffn_gate_tid2eid.weight");
    else
        vector(y, 0.1, s->E, "exp_probs_b.bias");
    const bool late = l >= s->L - s->late;
    const struct {
        const char *name;
        uint32_t type;
        int width, rows;
    } m[3] = {{"gate", s->gate, s->D, s->F}, {"up", s->up, s->D, s->F}, {"down", s->down, s->F, s->D}};
    for (int i = 0; i < 3; i++) {
        const uint64_t ne[3] = {(uint64_t)m[i].width, (uint64_t)m[i].rows, (uint64_t)s->E};
        const double std = 1 / sqrt(m[i].width);
        add(y, late ? s->late_type : m[i].type, FILL_NORMAL, std, 3, ne, "ffn_%s_exps.weight", m[i].name);
        add(y, s->dense, FILL_NORMAL, std, 2, ne, "ffn_%s_shexp.weight", m[i].name);
    }
}

static void plan_layer(struct synth *y, int l)
{
    const struct synth_shape *s = y->s;
    const int B = 2 * s->n + s->n * s->n;
    y->layer = l;
    for (int i = 0; i < 2; i++) {
        const char *site = i ? "ffn" : "attn";
        char name[4][40];
        snprintf(name[0], sizeof name[0], "hc_%s_fn", site);
        snprintf(name[1], sizeof name[1], "hc_%s_base.weight", site);
        snprintf(name[2], sizeof name[2], "hc_%s_scale", site);
        snprintf(name[3], sizeof name[3], "%s_norm", site);
        matrix(y, s->rest, 1, s->n * s->D, B, name[0]);
        vector(y, 0.5, B, name[1]);
        norm(y, 3, name[2]);
        norm(y, s->D, name[3]);
    }
    plan_attention(y);
    if (s->ratios[l]) plan_compressor(y, "attn_compressor", s->d, s->ratios[l]);
    if (s->ratios[l] == 4) {
        plan_compressor(y, "indexer_compressor", s->ID, 4);
        matrix(y, s->rest, 1, s->Rq, s->IH * s->ID, "indexer.attn_q_b");
        matrix(y, s->rest, 1, s->D, s->IH, "indexer.proj");
    }
    plan_experts(y, l);
}

static void plan_model(struct synth *y)
{
    const struct synth_shape *s = y->s;
    y->layer = -1;
    matrix(y, s->embed, sqrt(s->D), s->D, s->V, "token_embd");
    norm(y, s->D, "output_norm");
    matrix(y, s->dense, s->logit_std > 0 ? s->logit_std : 2, s->D, s->V, "output");
    matrix(y, s->rest, 1, s->n * s->D, s->n, "output_hc_fn");
    vector(y, 0.5, s->n, "output_hc_base.weight");
    norm(y, 1, "output_hc_scale");
    for (int l = 0; l < s->L; l++) plan_layer(y, l);
}

/* ---- metadata */

static void put_keys(struct gguf_writer *w, const struct synth_shape *s)
{
    const struct {
        const char *key;
        int v;
    } ints[] = {
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
        {"attention.output_lora_rank", s->Ro},
        {"attention.output_group_count", s->G},
        {"expert_count", s->E},
        {"expert_used_count", s->K},
        {"expert_feed_forward_length", s->F},
        {"expert_shared_count", 1},
        {"hash_layer_count", s->hash},
        {"attention.sliding_window", s->W},
        {"attention.indexer.head_count", s->IH},
        {"attention.indexer.key_length", s->ID},
        {"attention.indexer.top_k", s->IK},
        {"hyper_connection.count", s->n},
        {"hyper_connection.sinkhorn_iterations", s->iters},
        {"expert_gating_func", 4},
        {"nextn_predict_layers", 1},
        {"rope.scaling.original_context_length", 65536},
    };
    const struct {
        const char *key;
        float v;
    } floats[] = {
        {"hyper_connection.epsilon", 1e-6f},
        {"rope.freq_base", s->base},
        {"attention.compress_rope_freq_base", s->cbase},
        {"rope.scaling.factor", 16},
        {"rope.scaling.yarn_beta_fast", 32},
        {"rope.scaling.yarn_beta_slow", 1},
        {"expert_weights_scale", s->scale},
        {"attention.layer_norm_rms_epsilon", s->eps},
    };
    char key[96];
    for (size_t i = 0; i < sizeof ints / sizeof *ints; i++) {
        snprintf(key, sizeof key, "deepseek4.%s", ints[i].key);
        gguf_put_u32(w, key, (uint32_t)ints[i].v);
    }
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++) {
        snprintf(key, sizeof key, "deepseek4.%s", floats[i].key);
        gguf_put_f32(w, key, floats[i].v);
    }
    gguf_put_str(w, "deepseek4.rope.scaling.type", "yarn", 4);
    gguf_put_bool(w, "deepseek4.expert_weights_norm", true);
    int32_t ratios[SYNTH_MAX_LAYERS + 3] = {0}; /* three entries more, as for draft stages */
    float clamp[SYNTH_MAX_LAYERS];
    for (int l = 0; l < s->L; l++) ratios[l] = s->ratios[l], clamp[l] = s->clamp;
    gguf_put_arr_i32(w, "deepseek4.attention.compress_ratios", ratios, (uint64_t)s->L + 3);
    gguf_put_arr_f32(w, "deepseek4.swiglu_clamp_exp", clamp, (uint64_t)s->L);
}

/* Special tokens, one merged pair, the byte alphabet (printable bytes first), then fillers. */
static void put_vocabulary(struct gguf_writer *w, const struct synth_shape *s)
{
    static const char *const special[] = {"<｜begin▁of▁sentence｜>",
                                          "<｜end▁of▁sentence｜>",
                                          "<｜User｜>",
                                          "<｜Assistant｜>",
                                          "<think>",
                                          "</think>",
                                          "｜DSML｜",
                                          "th"};
    enum { N_SPECIAL = sizeof special / sizeof *special };
    const size_t V = (size_t)s->V;
    char(*text)[40] = mem_alloc(V * sizeof *text);
    struct gguf_str *tokens = mem_alloc(V * sizeof *tokens);
    int32_t *kind = mem_alloc(V * sizeof *kind);
    size_t n = 0;
    for (; n < N_SPECIAL && n < V; n++) snprintf(text[n], sizeof text[n], "%s", special[n]);
    for (int pass = 0; pass < 2; pass++) {
        for (int b = 0; b < 256 && n < V; b++) {
            const bool printable = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
            if (printable == (pass == 0)) text[n][byte_alphabet_text((uint8_t)b, text[n])] = 0, n++;
        }
    }
    for (; n < V; n++) snprintf(text[n], sizeof text[n], "tok%zu", n);
    for (size_t i = 0; i < V; i++) tokens[i] = (struct gguf_str){text[i], strlen(text[i])}, kind[i] = i < 2 ? 3 : 1;
    gguf_put_str(w, "tokenizer.ggml.model", "gpt2", 4);
    gguf_put_str(w, "tokenizer.ggml.pre", "joyai-llm", 9);
    gguf_put_arr_str(w, "tokenizer.ggml.tokens", tokens, V);
    gguf_put_arr_i32(w, "tokenizer.ggml.token_type", kind, V);
    gguf_put_arr_str(w, "tokenizer.ggml.merges", &(struct gguf_str){"t h", 3}, 1);
    gguf_put_u32(w, "tokenizer.ggml.bos_token_id", 0);
    gguf_put_u32(w, "tokenizer.ggml.eos_token_id", 1);
    mem_free(kind);
    mem_free(tokens);
    mem_free(text);
}

/* ---- values */

/* K different experts, in random order. */
static void hash_row(uint64_t *rng, int32_t *row, uint64_t K, int E)
{
    for (uint64_t i = 0; i < K; i++) {
        uint64_t j;
        do {
            row[i] = (int32_t)((rng_next(rng) >> 32) % (uint64_t)E);
            for (j = 0; row[j] != row[i]; j++) {
            }
        } while (j < i);
    }
}

static int fill_row(const struct synth_shape *s, const struct plan *p, uint64_t *rng, float *row, const float *ones,
                    void *raw)
{
    if (p->fill == FILL_HASH) {
        hash_row(rng, raw, p->ne[0], s->E);
        return 0;
    }
    for (uint64_t i = 0; i < p->ne[0]; i++)
        row[i] = (float)((p->fill == FILL_AROUND_ONE ? 1 : 0) + p->std * rng_normal(rng));
    return quant_encode(p->type, row, (int64_t)p->ne[0], ones, raw);
}

static int write_tensor(struct gguf_writer *w, const struct synth_shape *s, const struct plan *p, struct err *e)
{
    const size_t bytes = quant_row_bytes(p->type, (int64_t)p->ne[0]);
    if (bytes == 0) return err_set(e, ERR_ARG, "%s: no row of %d values in this type", p->name, (int)p->ne[0]);
    float *row = mem_alloc(p->ne[0] * sizeof *row), *ones = mem_alloc(p->ne[0] * sizeof *ones);
    void *raw = mem_alloc(bytes);
    for (uint64_t i = 0; i < p->ne[0]; i++) ones[i] = 1;
    uint64_t rng = rng_seed(s->seed, p->name);
    int rc = 0;
    for (uint64_t i = 0; i < p->ne[1] * p->ne[2] && rc == 0; i++) {
        rc = fill_row(s, p, &rng, row, ones, raw);
        gguf_write(w, raw, bytes);
    }
    if (rc != 0) rc = err_set(e, ERR_ARG, "%s: its type has no encoder", p->name);
    mem_free(raw);
    mem_free(ones);
    mem_free(row);
    return rc;
}

int synth_deepseek4(const char *path, const struct synth_shape *shape, struct err *e)
{
    struct gguf_writer *w = NULL;
    int rc = gguf_writer_open(path, &w, e);
    if (rc) return rc;
    gguf_put_str(w, "general.architecture", "deepseek4", 9);
    gguf_put_str(w, "general.name", "random V4 shape", 15);
    gguf_put_u32(w, "general.alignment", 32);
    put_keys(w, shape);
    put_vocabulary(w, shape);
    struct synth *y = mem_alloc(sizeof *y);
    y->s = shape;
    plan_model(y);
    for (int i = 0; i < y->n; i++) gguf_declare(w, y->plan[i].name, y->plan[i].type, y->plan[i].n_dims, y->plan[i].ne);
    for (int i = 0; i < y->n && rc == 0; i++) rc = write_tensor(w, shape, &y->plan[i], e);
    mem_free(y);
    if (rc == 0) return gguf_writer_finish(w, e);
    gguf_writer_abort(w);
    return rc;
}

struct synth_shape synth_tiny(void)
{
    return (struct synth_shape){.V = 288,
                                .D = 64,
                                .L = 4,
                                .H = 4,
                                .d = 80,
                                .r = 16,
                                .G = 2,
                                .Rq = 32,
                                .Ro = 32,
                                .E = 8,
                                .K = 2,
                                .F = 64,
                                .W = 8,
                                .IH = 2,
                                .ID = 32,
                                .IK = 4,
                                .n = 4,
                                .iters = 20,
                                .hash = 1,
                                .ratios = {0, 4, 128, 4},
                                .clamp = 1.5f,
                                .scale = 1.5f,
                                .eps = 1e-6f,
                                .base = 10000,
                                .cbase = 160000,
                                .seed = 1};
}

struct synth_shape synth_wide(void)
{
    struct synth_shape s = synth_tiny();
    s.D = s.F = 256;
    return s;
}
