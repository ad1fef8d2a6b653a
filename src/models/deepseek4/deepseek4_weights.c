/* Binding of the tensors of spec deepseek-v4 2.3. */
#include "models/deepseek4/deepseek4_internal.h"
#include "base/mem.h"
#include <stdio.h>
#include <string.h>

static int common_bind(const struct canonical *c, struct deepseek4_model *m, const char *p, struct deepseek4_layer *y,
                       struct err *e)
{
    const struct deepseek4_shape *s = &m->shape;
    const int64_t nD = (int64_t)s->n * s->D, B = 2 * s->n + (int64_t)s->n * s->n, heads = (int64_t)s->H * s->d;
    const struct bind_slot t[] = {
        {&y->hc_attn.fn, NULL, "hc_attn_fn.weight", nD, B},
        {NULL, &y->hc_attn.base, "hc_attn_base.weight", B, 0},
        {NULL, &y->hc_attn.scale, "hc_attn_scale.weight", 3, 0},
        {&y->hc_ffn.fn, NULL, "hc_ffn_fn.weight", nD, B},
        {NULL, &y->hc_ffn.base, "hc_ffn_base.weight", B, 0},
        {NULL, &y->hc_ffn.scale, "hc_ffn_scale.weight", 3, 0},
        {NULL, &y->attn_norm, "attn_norm.weight", s->D, 0},
        {NULL, &y->ffn_norm, "ffn_norm.weight", s->D, 0},
        {&y->q_a, NULL, "attn_q_a.weight", s->D, s->Rq},
        {NULL, &y->q_a_norm, "attn_q_a_norm.weight", s->Rq, 0},
        {&y->q_b, NULL, "attn_q_b.weight", s->Rq, heads},
        {&y->kv, NULL, "attn_kv.weight", s->D, s->d},
        {NULL, &y->kv_norm, "attn_kv_a_norm.weight", s->d, 0},
        {NULL, &y->sinks, "attn_sinks.weight", s->H, 0},
        {&y->out_a, NULL, "attn_output_a.weight", heads / s->G, (int64_t)s->G * s->Ro},
        {&y->out_b, NULL, "attn_output_b.weight", (int64_t)s->G * s->Ro, s->D},
    };
    return BIND(c, m->dev, p, t, e);
}

static int lane_bind(const struct canonical *c, struct deepseek4_model *m, const char *p, const char *lane,
                     const struct deepseek4_layer_shape *ls, int w, struct deepseek4_lane *y, struct err *e)
{
    const int64_t cw = (int64_t)(ls->indexed ? 2 : 1) * w;
    char prefix[96];
    snprintf(prefix, sizeof prefix, "%s%s", p, lane);
    const struct bind_slot t[] = {
        {&y->kv, NULL, "_kv.weight", m->shape.D, cw},
        {&y->gate, NULL, "_gate.weight", m->shape.D, cw},
        {NULL, &y->ape, "_ape.weight", cw, ls->ratio},
        {NULL, &y->norm, "_norm.weight", w, 0},
    };
    return BIND(c, m->dev, prefix, t, e);
}

static int compressors_bind(const struct canonical *c, struct deepseek4_model *m, const char *p, int l, struct err *e)
{
    const struct deepseek4_shape *s = &m->shape;
    struct deepseek4_layer *y = &m->layer[l];
    if (!s->layer[l].ratio) return 0;
    int rc = lane_bind(c, m, p, "attn_compressor", &s->layer[l], s->d, &y->attn_lane, e);
    if (rc || !s->layer[l].indexed) return rc;
    rc = lane_bind(c, m, p, "indexer_compressor", &s->layer[l], s->ID, &y->index_lane, e);
    if (rc) return rc;
    const struct bind_slot t[] = {
        {&y->index_q, NULL, "indexer.attn_q_b.weight", s->Rq, (int64_t)s->IH * s->ID},
        {&y->index_proj, NULL, "indexer.proj.weight", s->D, s->IH},
    };
    return BIND(c, m->dev, p, t, e);
}

static int ffn_bind(const struct canonical *c, struct deepseek4_model *m, const char *p, int l, struct err *e)
{
    const struct deepseek4_shape *s = &m->shape;
    struct deepseek4_layer *y = &m->layer[l];
    const int64_t F = canonical_int(c, "expert_shared_feed_forward_length");
    const struct bind_slot t[] = {
        {&y->router, NULL, "ffn_gate_inp.weight", s->D, s->layer[l].E},
        {&y->shared_gate, NULL, "ffn_gate_shexp.weight", s->D, F},
        {&y->shared_up, NULL, "ffn_up_shexp.weight", s->D, F},
        {&y->shared_down, NULL, "ffn_down_shexp.weight", F, s->D},
    };
    const int rc = BIND(c, m->dev, p, t, e);
    if (rc) return rc;
    if (s->layer[l].hashed) {
        const struct tensor_view *v = canonical_tensor(c, "%sffn_gate_tid2eid.weight", p);
        if (!v) return err_set(e, ERR_MODEL, "%sffn_gate_tid2eid.weight is missing", p);
        y->router_table = m->dev->op->mat_create(m->dev, v);
    } else if (canonical_tensor(c, "%sexp_probs_b.bias", p)) {
        const struct bind_slot bias = {NULL, &y->router_bias, "exp_probs_b.bias", s->layer[l].E, 0};
        return bind_slots(c, m->dev, p, &bias, 1, e);
    }
    return 0;
}

static int experts_bind(const struct canonical *c, struct deepseek4_model *m, struct err *e)
{
    const struct deepseek4_shape *s = &m->shape;
    struct expert_layer *layers = mem_try((size_t)s->L * sizeof *layers);
    if (!layers) return err_set(e, ERR_MEMORY, "out of memory for %d expert layers", s->L);
    int rc = 0;
    for (int l = 0; l < s->L && !rc; l++) {
        char p[32];
        snprintf(p, sizeof p, "blk.%d.", l);
        const int64_t E = s->layer[l].E, F = canonical_int_at(c, "expert_feed_forward_length", l);
        rc = bind_experts(c, p, s->D, F, E, &layers[l], e);
    }
    if (!rc) rc = experts_open_resident(layers, s->L, &m->experts, e);
    mem_free(layers);
    return rc;
}

static int ends_bind(const struct canonical *c, struct deepseek4_model *m, struct err *e)
{
    const struct deepseek4_shape *s = &m->shape;
    const struct bind_slot t[] = {
        {&m->embedding, NULL, "token_embd.weight", s->D, s->V},
        {&m->output, NULL, "output.weight", s->D, s->V},
        {NULL, &m->output_norm, "output_norm.weight", s->D, 0},
        {&m->output_hc.fn, NULL, "output_hc_fn.weight", (int64_t)s->n * s->D, s->n},
        {NULL, &m->output_hc.base, "output_hc_base.weight", s->n, 0},
        {NULL, &m->output_hc.scale, "output_hc_scale.weight", 1, 0},
    };
    return BIND(c, m->dev, "", t, e);
}

static void inputs_note(struct deepseek4_model *m, const struct deepseek4_layer *y)
{
    m->formats[INPUT_NORMED] |= weight_format(&y->q_a) | weight_format(&y->kv) | weight_format(&y->attn_lane.kv) |
                                weight_format(&y->attn_lane.gate) | weight_format(&y->index_lane.kv) |
                                weight_format(&y->index_lane.gate) | weight_format(&y->index_proj) |
                                weight_format(&y->router);
    m->formats[INPUT_QR] |= weight_format(&y->q_b) | weight_format(&y->index_q);
    m->formats[INPUT_HEADS] |= weight_format(&y->out_a);
    m->formats[INPUT_LOW] |= weight_format(&y->out_b);
}

int deepseek4_weights_bind(const struct canonical *c, struct deepseek4_model *m, struct err *e)
{
    const struct deepseek4_shape *s = &m->shape;
    m->layer = mem_try((size_t)s->L * sizeof *m->layer);
    if (!m->layer) return err_set(e, ERR_MEMORY, "out of memory for %d layers", s->L);
    int rc = ends_bind(c, m, e);
    m->formats[INPUT_HEAD] = weight_format(&m->output);
    for (int l = 0; l < s->L && !rc; l++) {
        char p[32];
        snprintf(p, sizeof p, "blk.%d.", l);
        rc = common_bind(c, m, p, &m->layer[l], e);
        if (!rc) rc = compressors_bind(c, m, p, l, e);
        if (!rc) rc = ffn_bind(c, m, p, l, e);
        inputs_note(m, &m->layer[l]);
    }
    return rc ? rc : experts_bind(c, m, e);
}

static void layer_free(struct dev *dev, struct deepseek4_layer *y)
{
    struct weight *const w[] = {
        &y->hc_attn.fn,
        &y->hc_ffn.fn,
        &y->q_a,
        &y->q_b,
        &y->kv,
        &y->out_a,
        &y->out_b,
        &y->attn_lane.kv,
        &y->attn_lane.gate,
        &y->index_lane.kv,
        &y->index_lane.gate,
        &y->index_q,
        &y->index_proj,
        &y->router,
        &y->shared_gate,
        &y->shared_up,
        &y->shared_down,
    };
    struct dev_mat **const v[] = {
        &y->hc_attn.base,   &y->hc_attn.scale,  &y->hc_ffn.base,     &y->hc_ffn.scale, &y->attn_norm,
        &y->ffn_norm,       &y->q_a_norm,       &y->kv_norm,         &y->sinks,        &y->attn_lane.ape,
        &y->attn_lane.norm, &y->index_lane.ape, &y->index_lane.norm, &y->router_bias,  &y->router_table,
    };
    for (size_t i = 0; i < sizeof w / sizeof w[0]; i++) weight_unbind(dev, w[i]);
    mats_free(dev, v, (int)(sizeof v / sizeof v[0]));
}

void deepseek4_weights_free(struct deepseek4_model *m)
{
    for (int l = 0; m->layer && l < m->shape.L; l++) layer_free(m->dev, &m->layer[l]);
    mem_free(m->layer);
    weight_unbind(m->dev, &m->embedding);
    weight_unbind(m->dev, &m->output);
    weight_unbind(m->dev, &m->output_hc.fn);
    struct dev_mat **const v[] = {&m->output_norm, &m->output_hc.base, &m->output_hc.scale};
    mats_free(m->dev, v, 3);
    experts_close(m->experts);
}
