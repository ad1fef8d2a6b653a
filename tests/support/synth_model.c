/* A random DeepSeek V4. Standard
 * deviations keep every stage of the forward pass near 1, so that clamps, softmaxes and selections all have work. */
#include "synth_model.h"
#include "synth_tensors.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/mem.h"
#include "base/str.h"
#include "gguf/gguf.h"
#include "quant/quant.h"

struct synth {
    const struct synth_shape *s;
    struct synth_list list;
};

static void plan_attention(struct synth *y)
{
    const struct synth_shape *s = y->s;
    synth_matrix(&y->list, s->dense, 1, s->D, s->Rq, "attn_q_a");
    synth_norm(&y->list, s->Rq, "attn_q_a_norm");
    synth_matrix(&y->list, s->dense, 2, s->Rq, s->H * s->d, "attn_q_b");
    synth_matrix(&y->list, s->dense, 1, s->D, s->d, "attn_kv");
    synth_norm(&y->list, s->d, "attn_kv_a_norm");
    synth_vector(&y->list, 1, s->H, "attn_sinks.weight");
    synth_matrix(&y->list, s->dense, 1, s->H * s->d / s->G, s->G * s->Ro, "attn_output_a");
    synth_matrix(&y->list, s->dense, 1, s->G * s->Ro, s->D, "attn_output_b");
}

static void plan_compressor(struct synth *y, const char *prefix, int width, int ratio)
{
    const struct synth_shape *s = y->s;
    const int wide = ratio == 4 ? 2 * width : width;
    char name[4][40];
    static const char *const part[4] = {"kv", "gate", "ape", "norm"};
    for (int i = 0; i < 4; i++) snprintf(name[i], sizeof name[i], "%s_%s", prefix, part[i]);
    synth_matrix(&y->list, s->rest, 1, s->D, wide, name[0]);
    synth_matrix(&y->list, s->rest, 2, s->D, wide, name[1]);
    synth_matrix(&y->list, s->rest, sqrt(wide), wide, ratio, name[2]);
    synth_norm(&y->list, width, name[3]);
}

static void plan_experts(struct synth *y, int l)
{
    const struct synth_shape *s = y->s;
    synth_matrix(&y->list, s->rest, 2, s->D, s->E, "ffn_gate_inp");
    if (l < s->hash)
        synth_add(&y->list, QT_I32, FILL_HASH, 0, 2, (uint64_t[]){(uint64_t)s->K, (uint64_t)s->V},
                  "ffn_gate_tid2eid.weight")
            ->most = s->E;
    else
        synth_vector(&y->list, 0.1, s->E, "exp_probs_b.bias");
    const bool late = l >= s->L - s->late;
    const struct {
        const char *name;
        uint32_t type;
        int width, rows;
    } m[3] = {{"gate", s->gate, s->D, s->F}, {"up", s->up, s->D, s->F}, {"down", s->down, s->F, s->D}};
    for (int i = 0; i < 3; i++) {
        const uint64_t ne[3] = {(uint64_t)m[i].width, (uint64_t)m[i].rows, (uint64_t)s->E};
        const double std = 1 / sqrt(m[i].width);
        synth_add(&y->list, late ? s->late_type : m[i].type, FILL_NORMAL, std, 3, ne, "ffn_%s_exps.weight", m[i].name);
        synth_add(&y->list, s->dense, FILL_NORMAL, std, 2, ne, "ffn_%s_shexp.weight", m[i].name);
    }
}

static void plan_layer(struct synth *y, int l)
{
    const struct synth_shape *s = y->s;
    const int B = 2 * s->n + s->n * s->n;
    y->list.layer = l;
    for (int i = 0; i < 2; i++) {
        const char *site = i ? "ffn" : "attn";
        char name[4][40];
        snprintf(name[0], sizeof name[0], "hc_%s_fn", site);
        snprintf(name[1], sizeof name[1], "hc_%s_base.weight", site);
        snprintf(name[2], sizeof name[2], "hc_%s_scale", site);
        snprintf(name[3], sizeof name[3], "%s_norm", site);
        synth_matrix(&y->list, s->rest, 1, s->n * s->D, B, name[0]);
        synth_vector(&y->list, 0.5, B, name[1]);
        synth_norm(&y->list, 3, name[2]);
        synth_norm(&y->list, s->D, name[3]);
    }
    plan_attention(y);
    if (s->ratios[l]) plan_compressor(y, "attn_compressor", s->d, s->ratios[l]);
    if (s->ratios[l] == 4) {
        plan_compressor(y, "indexer_compressor", s->ID, 4);
        synth_matrix(&y->list, s->rest, 1, s->Rq, s->IH * s->ID, "indexer.attn_q_b");
        synth_matrix(&y->list, s->rest, 1, s->D, s->IH, "indexer.proj");
    }
    plan_experts(y, l);
}

static void plan_model(struct synth *y)
{
    const struct synth_shape *s = y->s;
    y->list.layer = -1;
    synth_matrix(&y->list, s->embed, sqrt(s->D), s->D, s->V, "token_embd");
    synth_norm(&y->list, s->D, "output_norm");
    synth_matrix(&y->list, s->dense, s->logit_std > 0 ? s->logit_std : 2, s->D, s->V, "output");
    synth_matrix(&y->list, s->rest, 1, s->n * s->D, s->n, "output_hc_fn");
    synth_vector(&y->list, 0.5, s->n, "output_hc_base.weight");
    synth_norm(&y->list, 1, "output_hc_scale");
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

int synth_deepseek4(const char *path, const struct synth_shape *shape, struct err *e)
{
    struct gguf_writer *w = NULL;
    int rc = gguf_writer_open(path, &w, e);
    if (rc) return rc;
    gguf_put_str(w, "general.architecture", "deepseek4", 9);
    gguf_put_str(w, "general.name", "random V4 shape", 15);
    gguf_put_u32(w, "general.alignment", 32);
    put_keys(w, shape);
    static const char *const special[] = {"<｜begin▁of▁sentence｜>",
                                          "<｜end▁of▁sentence｜>",
                                          "<｜User｜>",
                                          "<｜Assistant｜>",
                                          "<think>",
                                          "</think>",
                                          "｜DSML｜",
                                          "th"};
    synth_write_vocabulary(w, shape->V, special, sizeof special / sizeof *special, "joyai-llm", 0, 1);
    struct synth *y = mem_alloc(sizeof *y);
    y->s = shape;
    plan_model(y);
    rc = synth_write(w, &y->list, shape->seed, e);
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
