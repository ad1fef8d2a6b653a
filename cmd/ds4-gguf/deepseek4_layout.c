/* The table of tensors with their names in both worlds. */
#include "deepseek4_layout.h"
#include <stdio.h>
#include "base/mem.h"

/* Sizes that occur in shapes; the last ones depend on the layer. */
enum dim {
    NONE,
    ONE,
    THREE,
    DIM_D,
    DIM_V,
    DIM_n,
    DIM_nD,
    DIM_B,
    DIM_Rq,
    DIM_Hd,
    DIM_d,
    DIM_H,
    DIM_Hd_G,
    DIM_GRo,
    DIM_E,
    DIM_K,
    DIM_F,
    DIM_shared,
    DIM_IHID,
    DIM_IH,
    DIM_ID,
    DIM_2ID,
    DIM_cd,
    DIM_ratio
};
/* Which layers have a tensor. */
enum where { MODEL, EVERY, COMPRESSED, INDEXED, HASHED, SCORED };

static const struct row {
    enum where where;
    enum layout_role role;
    const char *name, *source, *tail; /* layers: behind "blk.N." and "layers.N." */
    enum dim ne[3];
} rows[] = {
    {MODEL, ROLE_EMBEDDING, "token_embd.weight", "embed.weight", NULL, {DIM_D, DIM_V}},
    {MODEL, ROLE_VECTOR, "output_norm.weight", "norm.weight", NULL, {DIM_D}},
    {MODEL, ROLE_HEAD, "output.weight", "head.weight", NULL, {DIM_D, DIM_V}},
    {MODEL, ROLE_SMALL, "output_hc_fn.weight", "hc_head_fn", NULL, {DIM_nD, DIM_n}},
    {MODEL, ROLE_VECTOR, "output_hc_base.weight", "hc_head_base", NULL, {DIM_n}},
    {MODEL, ROLE_VECTOR, "output_hc_scale.weight", "hc_head_scale", NULL, {ONE}},

    {EVERY, ROLE_SMALL, "hc_attn_fn.weight", "hc_attn_fn", NULL, {DIM_nD, DIM_B}},
    {EVERY, ROLE_VECTOR, "hc_attn_base.weight", "hc_attn_base", NULL, {DIM_B}},
    {EVERY, ROLE_VECTOR, "hc_attn_scale.weight", "hc_attn_scale", NULL, {THREE}},
    {EVERY, ROLE_VECTOR, "attn_norm.weight", "attn_norm.weight", NULL, {DIM_D}},
    {EVERY, ROLE_ATTENTION, "attn_q_a.weight", "attn.wq_a.weight", NULL, {DIM_D, DIM_Rq}},
    {EVERY, ROLE_VECTOR, "attn_q_a_norm.weight", "attn.q_norm.weight", NULL, {DIM_Rq}},
    {EVERY, ROLE_ATTENTION, "attn_q_b.weight", "attn.wq_b.weight", NULL, {DIM_Rq, DIM_Hd}},
    {EVERY, ROLE_ATTENTION, "attn_kv.weight", "attn.wkv.weight", NULL, {DIM_D, DIM_d}},
    {EVERY, ROLE_VECTOR, "attn_kv_a_norm.weight", "attn.kv_norm.weight", NULL, {DIM_d}},
    {EVERY, ROLE_VECTOR, "attn_sinks.weight", "attn.attn_sink", NULL, {DIM_H}},
    {EVERY, ROLE_ATTENTION, "attn_output_a.weight", "attn.wo_a.weight", NULL, {DIM_Hd_G, DIM_GRo}},
    {EVERY, ROLE_ATTENTION, "attn_output_b.weight", "attn.wo_b.weight", NULL, {DIM_GRo, DIM_D}},
    {COMPRESSED, ROLE_SIDE, "attn_compressor_kv.weight", "attn.compressor.wkv.weight", NULL, {DIM_D, DIM_cd}},
    {COMPRESSED, ROLE_SIDE, "attn_compressor_gate.weight", "attn.compressor.wgate.weight", NULL, {DIM_D, DIM_cd}},
    {COMPRESSED, ROLE_SMALL, "attn_compressor_ape.weight", "attn.compressor.ape", NULL, {DIM_cd, DIM_ratio}},
    {COMPRESSED, ROLE_VECTOR, "attn_compressor_norm.weight", "attn.compressor.norm.weight", NULL, {DIM_d}},
    {INDEXED, ROLE_SIDE, "indexer.attn_q_b.weight", "attn.indexer.wq_b.weight", NULL, {DIM_Rq, DIM_IHID}},
    {INDEXED, ROLE_SMALL, "indexer.proj.weight", "attn.indexer.weights_proj.weight", NULL, {DIM_D, DIM_IH}},
    {INDEXED, ROLE_SIDE, "indexer_compressor_kv.weight", "attn.indexer.compressor.wkv.weight", NULL, {DIM_D, DIM_2ID}},
    {INDEXED,
     ROLE_SIDE,
     "indexer_compressor_gate.weight",
     "attn.indexer.compressor.wgate.weight",
     NULL,
     {DIM_D, DIM_2ID}},
    {INDEXED, ROLE_SMALL, "indexer_compressor_ape.weight", "attn.indexer.compressor.ape", NULL, {DIM_2ID, DIM_ratio}},
    {INDEXED, ROLE_VECTOR, "indexer_compressor_norm.weight", "attn.indexer.compressor.norm.weight", NULL, {DIM_ID}},

    {EVERY, ROLE_SMALL, "hc_ffn_fn.weight", "hc_ffn_fn", NULL, {DIM_nD, DIM_B}},
    {EVERY, ROLE_VECTOR, "hc_ffn_base.weight", "hc_ffn_base", NULL, {DIM_B}},
    {EVERY, ROLE_VECTOR, "hc_ffn_scale.weight", "hc_ffn_scale", NULL, {THREE}},
    {EVERY, ROLE_VECTOR, "ffn_norm.weight", "ffn_norm.weight", NULL, {DIM_D}},
    {EVERY, ROLE_SMALL, "ffn_gate_inp.weight", "ffn.gate.weight", NULL, {DIM_D, DIM_E}},
    {HASHED, ROLE_IDS, "ffn_gate_tid2eid.weight", "ffn.gate.tid2eid", NULL, {DIM_K, DIM_V}},
    {SCORED, ROLE_VECTOR, "exp_probs_b.bias", "ffn.gate.bias", NULL, {DIM_E}},
    {EVERY, ROLE_EXPERTS, "ffn_gate_exps.weight", "ffn.experts.", ".w1.weight", {DIM_D, DIM_F, DIM_E}},
    {EVERY, ROLE_EXPERTS, "ffn_up_exps.weight", "ffn.experts.", ".w3.weight", {DIM_D, DIM_F, DIM_E}},
    {EVERY, ROLE_EXPERTS, "ffn_down_exps.weight", "ffn.experts.", ".w2.weight", {DIM_F, DIM_D, DIM_E}},
    {EVERY, ROLE_SHARED, "ffn_gate_shexp.weight", "ffn.shared_experts.w1.weight", NULL, {DIM_D, DIM_shared}},
    {EVERY, ROLE_SHARED, "ffn_up_shexp.weight", "ffn.shared_experts.w3.weight", NULL, {DIM_D, DIM_shared}},
    {EVERY, ROLE_SHARED, "ffn_down_shexp.weight", "ffn.shared_experts.w2.weight", NULL, {DIM_shared, DIM_D}},
};
enum { N_ROWS = sizeof rows / sizeof rows[0] };

static uint64_t dim_value(const struct deepseek4_params *p, int layer, enum dim dim)
{
    const int64_t ratio = layer < 0 ? 0 : deepseek4_ratio(p, layer), overlap = deepseek4_overlap(p);
    const int64_t value[] = {
        [NONE] = 0,
        [ONE] = 1,
        [THREE] = 3,
        [DIM_D] = p->D,
        [DIM_V] = p->V,
        [DIM_n] = p->n,
        [DIM_nD] = p->n * p->D,
        [DIM_B] = 2 * p->n + p->n * p->n,
        [DIM_Rq] = p->Rq,
        [DIM_Hd] = p->H * p->d,
        [DIM_d] = p->d,
        [DIM_H] = p->H,
        [DIM_Hd_G] = p->H * p->d / p->G,
        [DIM_GRo] = p->G * p->Ro,
        [DIM_E] = p->E,
        [DIM_K] = p->K,
        [DIM_F] = p->F,
        [DIM_shared] = deepseek4_shared_width(p),
        [DIM_IHID] = p->IH * p->ID,
        [DIM_IH] = p->IH,
        [DIM_ID] = p->ID,
        [DIM_2ID] = 2 * p->ID,
        [DIM_cd] = (ratio == overlap ? 2 : 1) * p->d,
        [DIM_ratio] = ratio,
    };
    return (uint64_t)value[dim];
}

static bool layer_has(const struct deepseek4_params *p, int layer, enum where where)
{
    switch (where) {
    case MODEL:
        return false;
    case EVERY:
        return true;
    case COMPRESSED:
        return deepseek4_ratio(p, layer) != 0;
    case INDEXED:
        return deepseek4_ratio(p, layer) == deepseek4_overlap(p);
    case HASHED:
        return layer < p->hash;
    case SCORED:
        return layer >= p->hash;
    }
    return false;
}

static struct layout_tensor fill(const struct deepseek4_params *p, const struct row *r, int layer)
{
    struct layout_tensor t = {.role = r->role, .layer = layer, .source_tail = r->tail};
    if (layer < 0) {
        snprintf(t.name, sizeof t.name, "%s", r->name);
        snprintf(t.source, sizeof t.source, "%s", r->source);
    } else {
        snprintf(t.name, sizeof t.name, "blk.%d.%s", layer, r->name);
        snprintf(t.source, sizeof t.source, "layers.%d.%s", layer, r->source);
    }
    for (int i = 0; i < 3; i++) {
        t.ne[i] = r->ne[i] ? dim_value(p, layer, r->ne[i]) : 1;
        t.n_dims += r->ne[i] != NONE;
    }
    return t;
}

int deepseek4_tensors(const void *params, struct layout_tensor **out, int *n, struct err *e)
{
    const struct deepseek4_params *const p = params;
    *out = mem_try((size_t)(p->L + 1) * N_ROWS * sizeof **out);
    if (!*out) return err_set(e, ERR_MEMORY, "not enough memory for the list of tensors");
    *n = 0;
    for (int i = 0; i < N_ROWS; i++)
        if (rows[i].where == MODEL) (*out)[(*n)++] = fill(p, &rows[i], -1);
    for (int l = 0; l < p->L; l++)
        for (int i = 0; i < N_ROWS; i++)
            if (layer_has(p, l, rows[i].where)) (*out)[(*n)++] = fill(p, &rows[i], l);
    return 0;
}
