/* Binding of the tensors of spec qwen38 2.2. */
#include "models/qwen38/qwen38_internal.h"
#include "base/mem.h"
#include <stdio.h>
#include <string.h>

/* ---------------------------------------------------------------- layers */

static int mixer_bind(const struct canonical *c, struct qwen38_model *m, const char *prefix, bool inject,
                      struct qwen38_mixer *y, struct err *e)
{
    const struct qwen38_shape *s = &m->shape;
    const int64_t hcE = (int64_t)s->hc * s->E;
    const struct bind_slot t[] = {
        {NULL, &y->norm, "_norm.weight", hcE, 0},
        {&y->down, NULL, "_down.weight", hcE, s->rho},
        {&y->up, NULL, "_up.weight", s->rho, hcE},
        {&y->inject, NULL, "_inject.weight", hcE, s->hc},
    };
    return bind_slots(c, m->dev, prefix, t, inject ? 4 : 3, e);
}

static int mixers_bind(const struct canonical *c, struct qwen38_model *m, const char *p, struct qwen38_layer *y,
                       struct err *e)
{
    char prefix[64];
    snprintf(prefix, sizeof prefix, "%shc_attn", p);
    const int rc = mixer_bind(c, m, prefix, true, &y->attn, e);
    snprintf(prefix, sizeof prefix, "%shc_ffn", p);
    return rc ? rc : mixer_bind(c, m, prefix, true, &y->ffn, e);
}

static int recurrent_bind(const struct canonical *c, struct qwen38_model *m, const char *p, struct qwen38_layer *y,
                          struct err *e)
{
    const struct qwen38_shape *s = &m->shape;
    const int64_t vd = (int64_t)s->Hv * s->Dl, cd = 2 * (int64_t)s->Hk * s->Dl + vd;
    const struct bind_slot t[] = {
        {&y->qkv, NULL, "attn_qkv.weight", s->E, cd},      {&y->z, NULL, "attn_gate.weight", s->E, vd},
        {&y->beta, NULL, "ssm_beta.weight", s->E, s->Hv},  {&y->alpha, NULL, "ssm_alpha.weight", s->E, s->Hv},
        {&y->out, NULL, "ssm_out.weight", vd, s->E},       {NULL, &y->conv, "ssm_conv1d.weight", s->Kc, cd},
        {NULL, &y->dt, "ssm_dt.bias", s->Hv, 0},           {NULL, &y->a, "ssm_a", s->Hv, 0},
        {NULL, &y->out_norm, "ssm_norm.weight", s->Dl, 0},
    };
    return BIND(c, m->dev, p, t, e);
}

/* attn_q holds, head after head, D rows of the query and D rows of its gate (spec 2.2): two views. */
static int query_bind(const struct canonical *c, struct qwen38_model *m, const char *p, struct qwen38_layer *y,
                      struct err *e)
{
    const struct qwen38_shape *s = &m->shape;
    const int64_t ne[2] = {s->E, 2 * (int64_t)s->H * s->D};
    const struct tensor_view *v = canonical_need(c, e, 2, ne, "%sattn_q.weight", p);
    if (!v) return e ? e->code : ERR_MODEL;
    struct tensor_view part = *v;
    const uint64_t half = (uint64_t)s->D * v->stride[1];
    char name[96];
    snprintf(name, sizeof name, "%sattn_q.weight", p);
    part.ne[1] = s->D, part.ne[2] = s->H;
    part.stride[2] = 2 * half, part.stride[3] = part.stride[2] * (uint64_t)s->H;
    const int rc = weight_bind(m->dev, &part, name, &y->q, e);
    if (part.data) part.data += half;
    part.offset += half;
    return rc ? rc : weight_bind(m->dev, &part, name, &y->gate, e);
}

static int attention_bind(const struct canonical *c, struct qwen38_model *m, const char *p, struct qwen38_layer *y,
                          struct err *e)
{
    const struct qwen38_shape *s = &m->shape;
    const int64_t kv = (int64_t)s->Hkv * s->D;
    const struct bind_slot t[] = {
        {&y->k, NULL, "attn_k.weight", s->E, kv},
        {&y->v, NULL, "attn_v.weight", s->E, kv},
        {&y->out, NULL, "attn_output.weight", (int64_t)s->H * s->D, s->E},
        {NULL, &y->q_norm, "attn_q_norm.weight", s->D, 0},
        {NULL, &y->k_norm, "attn_k_norm.weight", s->D, 0},
    };
    const struct bind_slot index[] = {
        {&y->index_q, NULL, "indexer.q_proj.weight", s->E, (int64_t)s->Hi * s->Di},
        {&y->index_k, NULL, "indexer.k_proj.weight", s->E, s->Di},
        {NULL, &y->index_q_norm, "indexer.q_norm.weight", s->Di, 0},
        {NULL, &y->index_k_norm, "indexer.k_norm.weight", s->Di, 0},
    };
    int rc = query_bind(c, m, p, y, e);
    if (!rc) rc = BIND(c, m->dev, p, t, e);
    return rc || !s->q ? rc : BIND(c, m->dev, p, index, e);
}

static int ffn_bind(const struct canonical *c, struct qwen38_model *m, const char *p, int l, struct err *e)
{
    const struct qwen38_shape *s = &m->shape;
    struct qwen38_layer *y = &m->layer[l];
    const struct bind_slot t[] = {
        {&y->router, NULL, "ffn_gate_inp.weight", s->E, s->layer[l].NE},
        {&y->shared_in, NULL, "ffn_gate_inp_shexp.weight", s->E, 0},
        {&y->shared_gate, NULL, "ffn_gate_shexp.weight", s->E, s->Fs},
        {&y->shared_up, NULL, "ffn_up_shexp.weight", s->E, s->Fs},
        {&y->shared_down, NULL, "ffn_down_shexp.weight", s->Fs, s->E},
    };
    return BIND(c, m->dev, p, t, e);
}

static void block_prefix(char p[32], int l)
{
    snprintf(p, 32, "blk.%d.", l);
}

static int layer_bind(const struct canonical *c, struct qwen38_model *m, int l, struct err *e)
{
    char p[32];
    struct qwen38_layer *y = &m->layer[l];
    block_prefix(p, l);
    int rc = mixers_bind(c, m, p, y, e);
    if (!rc) rc = m->shape.layer[l].recurrent ? recurrent_bind(c, m, p, y, e) : attention_bind(c, m, p, y, e);
    return rc ? rc : ffn_bind(c, m, p, l, e);
}

static int experts_bind(const struct canonical *c, struct qwen38_model *m, struct err *e)
{
    const struct qwen38_shape *s = &m->shape;
    struct expert_layer *layers = mem_try((size_t)s->blocks * sizeof *layers);
    if (!layers) return err_set(e, ERR_MEMORY, "out of memory for %d expert layers", s->blocks);
    int rc = 0;
    for (int l = 0; l < s->blocks && !rc; l++) {
        char p[32];
        block_prefix(p, l);
        rc = bind_experts(c, p, s->E, s->layer[l].F, s->layer[l].NE, &layers[l], e);
    }
    if (!rc) rc = experts_open_resident(layers, s->blocks, &m->experts, e);
    mem_free(layers);
    return rc;
}

/* ---------------------------------------------------------------- n-gram memory */

static int memory_bind(const struct canonical *c, struct qwen38_model *m, struct err *e)
{
    const struct qwen38_shape *s = &m->shape;
    struct qwen38_memory *y = &m->memory;
    const int64_t hcE = (int64_t)s->hc * s->E;
    char p[32];
    block_prefix(p, s->lp);
    const struct bind_slot t[] = {
        {&y->key, NULL, "ple_key.weight", s->E, hcE},          {&y->value, NULL, "ple_value.weight", s->E, s->E},
        {NULL, &y->norm_key, "ple_norm_key.weight", hcE, 0},   {NULL, &y->norm_query, "ple_norm_query.weight", hcE, 0},
        {NULL, &y->norm_conv, "ple_norm_conv.weight", hcE, 0}, {NULL, &y->conv, "ple_conv1d.weight", s->Kp, hcE},
    };
    const int rc = BIND(c, m->dev, p, t, e);
    if (rc) return rc;
    const char *name = "per_layer_token_embd.weight";
    const struct tensor_view *v = canonical_tensor(c, "%s", name);
    if (!v) return err_set(e, ERR_MODEL, "%s is missing", name);
    return rowtable_open(canonical_file(c, v->file), name, v, &y->table, e);
}

/* ---------------------------------------------------------------- draft block, spec 3.10 */

/* Columns [at, at + n) of a matrix. */
static int columns_bind(struct qwen38_model *m, const struct tensor_view *v, int64_t at, int64_t n, const char *name,
                        struct weight *w, struct err *e)
{
    const size_t skip = quant_row_bytes(v->type, at);
    if ((at && !skip) || !quant_row_bytes(v->type, n))
        return err_set(e, ERR_MODEL, "%s: its halves do not begin at blocks of its type", name);
    struct tensor_view part = *v;
    part.ne[0] = n;
    if (part.data) part.data += skip;
    part.offset += skip;
    return weight_bind(m->dev, &part, name, w, e);
}

static int projections_bind(const struct canonical *c, struct qwen38_model *m, const char *p, struct err *e)
{
    const int64_t E = m->shape.E, ne[2] = {2 * E, E};
    char name[96];
    snprintf(name, sizeof name, "%snextn.eh_proj.weight", p);
    const struct tensor_view *v = canonical_need(c, e, 2, ne, "%s", name);
    if (!v) return e ? e->code : ERR_MODEL;
    const int rc = columns_bind(m, v, 0, E, name, &m->draft.embed_proj, e);
    return rc ? rc : columns_bind(m, v, E, E, name, &m->draft.hidden_proj, e);
}

/* A convolution that gives the row before: the draft works on the streams of one position earlier. */
static int shift_make(struct qwen38_model *m, struct err *e)
{
    const int64_t n = (int64_t)m->shape.hc * m->shape.E;
    float *taps = m->draft.shift_values = mem_try((size_t)(2 * n) * sizeof *taps);
    if (!taps) return err_set(e, ERR_MEMORY, "out of memory for %lld values", (long long)(2 * n));
    for (int64_t i = 0; i < n; i++) taps[2 * i] = 1;
    const struct tensor_view v = {.type = QT_F32,
                                  .ne = {2, n, 1, 1},
                                  .stride = {0, 2 * sizeof *taps, (uint64_t)n * 2 * sizeof *taps, 0},
                                  .data = (const uint8_t *)taps,
                                  .file = -1};
    m->draft.shift = m->dev->op->mat_create(m->dev, &v);
    return m->draft.shift ? 0 : err_set(e, ERR_MEMORY, "out of memory for %lld values", (long long)(2 * n));
}

static int draft_bind(const struct canonical *c, struct qwen38_model *m, struct err *e)
{
    const struct qwen38_shape *s = &m->shape;
    struct qwen38_draft *y = &m->draft;
    if (s->blocks == s->L) return 0;
    char p[32], head[64];
    block_prefix(p, s->L);
    snprintf(head, sizeof head, "%snextn.hc_head", p);
    const struct bind_slot t[] = {
        {NULL, &y->embed_norm, "nextn.enorm.weight", s->E, 0},
        {NULL, &y->hidden_norm, "nextn.hnorm.weight", (int64_t)s->hc * s->E, 0},
    };
    int rc = BIND(c, m->dev, p, t, e);
    if (!rc) rc = projections_bind(c, m, p, e);
    if (!rc) rc = mixer_bind(c, m, head, false, &y->head, e);
    return rc ? rc : shift_make(m, e);
}

/* ---------------------------------------------------------------- ends of the model */

static int ends_bind(const struct canonical *c, struct qwen38_model *m, struct err *e)
{
    const struct qwen38_shape *s = &m->shape;
    const bool own = canonical_tensor(c, "output.weight") != NULL;
    const struct bind_slot t[] = {
        {&m->embedding, NULL, "token_embd.weight", s->E, s->V},
        {&m->output, NULL, own ? "output.weight" : "token_embd.weight", s->E, s->V},
    };
    const int rc = BIND(c, m->dev, "", t, e);
    return rc ? rc : mixer_bind(c, m, "output_hc", false, &m->head, e);
}

/* ---------------------------------------------------------------- formats */

static void mixer_note(struct qwen38_model *m, const struct qwen38_mixer *y)
{
    m->formats[INPUT_STREAMS] |= weight_format(&y->down) | weight_format(&y->inject);
    m->formats[INPUT_LOW] |= weight_format(&y->up);
}

static void layer_note(struct qwen38_model *m, const struct qwen38_layer *y, bool recurrent)
{
    const struct weight *const mixed[] = {&y->qkv, &y->z, &y->beta,    &y->alpha,   &y->q,      &y->gate,
                                          &y->k,   &y->v, &y->index_q, &y->index_k, &y->router, &y->shared_in};
    mixer_note(m, &y->attn);
    mixer_note(m, &y->ffn);
    for (size_t i = 0; i < sizeof mixed / sizeof *mixed; i++) m->formats[INPUT_MIXED] |= weight_format(mixed[i]);
    m->formats[recurrent ? INPUT_STATE : INPUT_HEADS] |= weight_format(&y->out);
}

static void formats_note(struct qwen38_model *m)
{
    for (int l = 0; l < m->shape.blocks; l++) layer_note(m, &m->layer[l], m->shape.layer[l].recurrent);
    mixer_note(m, &m->head);
    mixer_note(m, &m->draft.head);
    m->formats[INPUT_MIXED] |= weight_format(&m->output);
    m->formats[INPUT_MEMORY] |= weight_format(&m->memory.key) | weight_format(&m->memory.value);
    m->formats[INPUT_EMBED] |= weight_format(&m->draft.embed_proj);
    m->formats[INPUT_HIDDEN] |= weight_format(&m->draft.hidden_proj);
}

int qwen38_weights_bind(const struct canonical *c, struct qwen38_model *m, struct err *e)
{
    m->layer = mem_try((size_t)m->shape.blocks * sizeof *m->layer);
    if (!m->layer) return err_set(e, ERR_MEMORY, "out of memory for %d layers", m->shape.blocks);
    int rc = ends_bind(c, m, e);
    for (int l = 0; l < m->shape.blocks && !rc; l++) rc = layer_bind(c, m, l, e);
    if (!rc) rc = memory_bind(c, m, e);
    if (!rc) rc = draft_bind(c, m, e);
    if (!rc) rc = experts_bind(c, m, e);
    formats_note(m);
    return rc;
}

/* ---------------------------------------------------------------- the end */

static void weights_unbind(struct dev *dev, struct weight *const *list, int n)
{
    for (int i = 0; i < n; i++) weight_unbind(dev, list[i]);
}
#define FREE_WEIGHTS(dev, ...)                                                                                         \
    weights_unbind(dev, (struct weight *const[]){__VA_ARGS__},                                                         \
                   (int)(sizeof((struct weight *const[]){__VA_ARGS__}) / sizeof(struct weight *)))
#define FREE_MATS(dev, ...)                                                                                            \
    mats_free(dev, (struct dev_mat * *const[]){__VA_ARGS__},                                                           \
              (int)(sizeof((struct dev_mat **const[]){__VA_ARGS__}) / sizeof(struct dev_mat **)))

static void mixer_free(struct dev *dev, struct qwen38_mixer *y)
{
    FREE_WEIGHTS(dev, &y->down, &y->up, &y->inject);
    FREE_MATS(dev, &y->norm);
}

static void layer_free(struct dev *dev, struct qwen38_layer *y)
{
    mixer_free(dev, &y->attn);
    mixer_free(dev, &y->ffn);
    FREE_WEIGHTS(dev, &y->out, &y->qkv, &y->z, &y->beta, &y->alpha, &y->q, &y->gate, &y->k, &y->v, &y->index_q,
                 &y->index_k, &y->router, &y->shared_in, &y->shared_gate, &y->shared_up, &y->shared_down);
    FREE_MATS(dev, &y->conv, &y->dt, &y->a, &y->out_norm, &y->q_norm, &y->k_norm, &y->index_q_norm, &y->index_k_norm);
}

void qwen38_weights_free(struct qwen38_model *m)
{
    struct dev *dev = m->dev;
    struct qwen38_memory *y = &m->memory;
    struct qwen38_draft *d = &m->draft;
    for (int l = 0; m->layer && l < m->shape.blocks; l++) layer_free(dev, &m->layer[l]);
    mem_free(m->layer);
    FREE_WEIGHTS(dev, &m->embedding, &m->output, &y->key, &y->value, &d->embed_proj, &d->hidden_proj);
    FREE_MATS(dev, &y->norm_key, &y->norm_query, &y->norm_conv, &y->conv, &d->embed_norm, &d->hidden_norm, &d->shift);
    mixer_free(dev, &m->head);
    mixer_free(dev, &d->head);
    rowtable_close(y->table);
    mem_free(d->shift_values);
    experts_close(m->experts);
}
