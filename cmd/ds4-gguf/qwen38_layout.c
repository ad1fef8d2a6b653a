/* The table of tensors with their names in both worlds (sources: names of the published checkpoint). */
#include "qwen38_layout.h"
#include <stdio.h>
#include "base/mem.h"

/* Sizes that occur in shapes. */
enum dim {
    NONE,
    DIM_E,
    DIM_V,
    DIM_W,
    DIM_rows,
    DIM_hc,
    DIM_hcE,
    DIM_rho,
    DIM_2qd,
    DIM_qd,
    DIM_kvd,
    DIM_D,
    DIM_Di,
    DIM_HiDi,
    DIM_cd,
    DIM_vd,
    DIM_Hv,
    DIM_Dl,
    DIM_Kc,
    DIM_Kp,
    DIM_NE,
    DIM_F,
    DIM_Fs,
    DIM_2E
};
/* Which blocks have a tensor. MODEL: ahead of the blocks; BEHIND: behind them. */
enum where { MODEL, EVERY, GDN, ATTENTION, MEMORY, DRAFT, BEHIND };

static const struct row {
    enum where where;
    enum layout_role role;
    const char *name, *source; /* blocks: behind "blk.N." and "model.layers.N." */
    enum dim ne[3];
} rows[] = {
    {MODEL, ROLE_EMBEDDING, "token_embd.weight", "model.embed_tokens.weight", {DIM_E, DIM_V}},
    {MODEL, ROLE_VECTOR, "output_hc_norm.weight", "model.hyper_connection_mixer.hc_norm.weight", {DIM_hcE}},
    {MODEL,
     ROLE_MIXER,
     "output_hc_down.weight",
     "model.hyper_connection_mixer.input_mix_weight_down",
     {DIM_hcE, DIM_rho}},
    {MODEL, ROLE_MIXER, "output_hc_up.weight", "model.hyper_connection_mixer.input_mix_weight_up", {DIM_rho, DIM_hcE}},
    {MODEL, ROLE_HEAD, "output.weight", "lm_head.weight", {DIM_E, DIM_V}},

    {EVERY, ROLE_VECTOR, "hc_attn_norm.weight", "attn_hyper_connection.hc_norm.weight", {DIM_hcE}},
    {EVERY, ROLE_MIXER, "hc_attn_down.weight", "attn_hyper_connection.input_mix_weight_down", {DIM_hcE, DIM_rho}},
    {EVERY, ROLE_MIXER, "hc_attn_up.weight", "attn_hyper_connection.input_mix_weight_up", {DIM_rho, DIM_hcE}},
    {EVERY, ROLE_MIXER, "hc_attn_inject.weight", "attn_hyper_connection.block_inject_weight", {DIM_hcE, DIM_hc}},
    {EVERY, ROLE_VECTOR, "hc_ffn_norm.weight", "mlp_hyper_connection.hc_norm.weight", {DIM_hcE}},
    {EVERY, ROLE_MIXER, "hc_ffn_down.weight", "mlp_hyper_connection.input_mix_weight_down", {DIM_hcE, DIM_rho}},
    {EVERY, ROLE_MIXER, "hc_ffn_up.weight", "mlp_hyper_connection.input_mix_weight_up", {DIM_rho, DIM_hcE}},
    {EVERY, ROLE_MIXER, "hc_ffn_inject.weight", "mlp_hyper_connection.block_inject_weight", {DIM_hcE, DIM_hc}},

    {GDN, ROLE_ATTENTION, "attn_qkv.weight", "linear_attn.in_proj_qkv.weight", {DIM_E, DIM_cd}},
    {GDN, ROLE_ATTENTION, "attn_gate.weight", "linear_attn.in_proj_z.weight", {DIM_E, DIM_vd}},
    {GDN, ROLE_VECTOR, "ssm_conv1d.weight", "linear_attn.conv1d.weight", {DIM_Kc, DIM_cd}},
    {GDN, ROLE_VECTOR, "ssm_dt.bias", "linear_attn.dt_bias", {DIM_Hv}},
    {GDN, ROLE_VECTOR, "ssm_a", "linear_attn.A_log", {DIM_Hv}},
    {GDN, ROLE_ATTENTION, "ssm_beta.weight", "linear_attn.in_proj_b.weight", {DIM_E, DIM_Hv}},
    {GDN, ROLE_ATTENTION, "ssm_alpha.weight", "linear_attn.in_proj_a.weight", {DIM_E, DIM_Hv}},
    {GDN, ROLE_VECTOR, "ssm_norm.weight", "linear_attn.norm.weight", {DIM_Dl}},
    {GDN, ROLE_ATTENTION, "ssm_out.weight", "linear_attn.out_proj.weight", {DIM_vd, DIM_E}},

    {ATTENTION, ROLE_ATTENTION, "attn_q.weight", "self_attn.q_proj.weight", {DIM_E, DIM_2qd}},
    {ATTENTION, ROLE_ATTENTION, "attn_k.weight", "self_attn.k_proj.weight", {DIM_E, DIM_kvd}},
    {ATTENTION, ROLE_ATTENTION, "attn_v.weight", "self_attn.v_proj.weight", {DIM_E, DIM_kvd}},
    {ATTENTION, ROLE_ATTENTION, "attn_output.weight", "self_attn.o_proj.weight", {DIM_qd, DIM_E}},
    {ATTENTION, ROLE_VECTOR, "attn_q_norm.weight", "self_attn.q_norm.weight", {DIM_D}},
    {ATTENTION, ROLE_VECTOR, "attn_k_norm.weight", "self_attn.k_norm.weight", {DIM_D}},
    {ATTENTION, ROLE_SIDE, "indexer.q_proj.weight", "self_attn.indexer.index_qk_proj.weight", {DIM_E, DIM_HiDi}},
    {ATTENTION, ROLE_SIDE, "indexer.k_proj.weight", "self_attn.indexer.index_qk_proj.weight", {DIM_E, DIM_Di}},
    {ATTENTION, ROLE_VECTOR, "indexer.q_norm.weight", "self_attn.indexer.q_layernorm.weight", {DIM_Di}},
    {ATTENTION, ROLE_VECTOR, "indexer.k_norm.weight", "self_attn.indexer.k_layernorm.weight", {DIM_Di}},

    {MEMORY, ROLE_ATTENTION, "ple_key.weight", "ple.key_proj.weight", {DIM_E, DIM_hcE}},
    {MEMORY, ROLE_ATTENTION, "ple_value.weight", "ple.value_proj.weight", {DIM_E, DIM_E}},
    {MEMORY, ROLE_VECTOR, "ple_norm_key.weight", "ple.norm_key.weight", {DIM_hcE}},
    {MEMORY, ROLE_VECTOR, "ple_norm_query.weight", "ple.norm_query.weight", {DIM_hcE}},
    {MEMORY, ROLE_VECTOR, "ple_norm_conv.weight", "ple.norm_conv.weight", {DIM_hcE}},
    {MEMORY, ROLE_VECTOR, "ple_conv1d.weight", "ple.conv1d.weight", {DIM_Kp, DIM_hcE}},

    {EVERY, ROLE_VECTOR, "ffn_gate_inp.weight", "mlp.gate.weight", {DIM_E, DIM_NE}},
    {EVERY, ROLE_EXPERTS, "ffn_gate_exps.weight", "mlp.experts.gate_up_proj", {DIM_E, DIM_F, DIM_NE}},
    {EVERY, ROLE_EXPERTS, "ffn_up_exps.weight", "mlp.experts.gate_up_proj", {DIM_E, DIM_F, DIM_NE}},
    {EVERY, ROLE_EXPERTS, "ffn_down_exps.weight", "mlp.experts.down_proj", {DIM_F, DIM_E, DIM_NE}},
    {EVERY, ROLE_VECTOR, "ffn_gate_inp_shexp.weight", "mlp.shared_expert_gate.weight", {DIM_E}},
    {EVERY, ROLE_SHARED, "ffn_gate_shexp.weight", "mlp.shared_expert.gate_proj.weight", {DIM_E, DIM_Fs}},
    {EVERY, ROLE_SHARED, "ffn_up_shexp.weight", "mlp.shared_expert.up_proj.weight", {DIM_E, DIM_Fs}},
    {EVERY, ROLE_SHARED, "ffn_down_shexp.weight", "mlp.shared_expert.down_proj.weight", {DIM_Fs, DIM_E}},

    {DRAFT, ROLE_ATTENTION, "nextn.eh_proj.weight", "fc_embedding.weight", {DIM_2E, DIM_E}},
    {DRAFT, ROLE_VECTOR, "nextn.enorm.weight", "pre_fc_norm_embedding.weight", {DIM_E}},
    {DRAFT, ROLE_VECTOR, "nextn.hnorm.weight", "pre_fc_norm_hidden.weight", {DIM_hcE}},
    {DRAFT, ROLE_VECTOR, "nextn.hc_head_norm.weight", "hyper_connection_mixer.hc_norm.weight", {DIM_hcE}},
    {DRAFT,
     ROLE_MIXER,
     "nextn.hc_head_down.weight",
     "hyper_connection_mixer.input_mix_weight_down",
     {DIM_hcE, DIM_rho}},
    {DRAFT, ROLE_MIXER, "nextn.hc_head_up.weight", "hyper_connection_mixer.input_mix_weight_up", {DIM_rho, DIM_hcE}},

    {BEHIND, ROLE_TABLE, "per_layer_token_embd.weight", "", {DIM_W, DIM_rows}},
};
enum { N_ROWS = sizeof rows / sizeof rows[0] };

static uint64_t dim_value(const struct qwen38_params *p, enum dim dim)
{
    const int64_t value[] = {
        [NONE] = 0,
        [DIM_E] = p->E,
        [DIM_V] = p->V,
        [DIM_W] = p->W,
        [DIM_rows] = p->row_count,
        [DIM_hc] = p->hc,
        [DIM_hcE] = p->hc * p->E,
        [DIM_rho] = p->rho,
        [DIM_2qd] = 2 * p->H * p->D,
        [DIM_qd] = p->H * p->D,
        [DIM_kvd] = p->Hkv * p->D,
        [DIM_D] = p->D,
        [DIM_Di] = p->Di,
        [DIM_HiDi] = p->Hi * p->Di,
        [DIM_cd] = 2 * p->Hk * p->Dl + p->Hv * p->Dl,
        [DIM_vd] = p->Hv * p->Dl,
        [DIM_Hv] = p->Hv,
        [DIM_Dl] = p->Dl,
        [DIM_Kc] = p->Kc,
        [DIM_Kp] = p->Kp,
        [DIM_NE] = p->NE,
        [DIM_F] = p->F,
        [DIM_Fs] = p->Fs,
        [DIM_2E] = 2 * p->E,
    };
    return (uint64_t)value[dim];
}

static bool block_has(const struct qwen38_params *p, int layer, enum where where)
{
    switch (where) {
    case EVERY:
        return true;
    case GDN:
        return !qwen38_is_attention(p, layer);
    case ATTENTION:
        return qwen38_is_attention(p, layer);
    case MEMORY:
        return layer == p->lp[0];
    case DRAFT:
        return layer >= qwen38_layers(p);
    case MODEL:
    case BEHIND:
        break;
    }
    return false;
}

/* In the source the draft block is layer 0 of a model of its own, and what is not in a layer there is beside it. */
static struct layout_tensor fill(const struct qwen38_params *p, const struct row *r, int layer)
{
    const int n_layers = (int)qwen38_layers(p);
    struct layout_tensor t = {.role = r->role, .layer = layer};
    if (layer < 0)
        snprintf(t.source, sizeof t.source, "%s", r->source);
    else if (layer < n_layers)
        snprintf(t.source, sizeof t.source, "model.layers.%d.%s", layer, r->source);
    else if (r->where == DRAFT)
        snprintf(t.source, sizeof t.source, "mtp.%s", r->source);
    else
        snprintf(t.source, sizeof t.source, "mtp.layers.%d.%s", layer - n_layers, r->source);
    if (layer < 0)
        snprintf(t.name, sizeof t.name, "%s", r->name);
    else
        snprintf(t.name, sizeof t.name, "blk.%d.%s", layer, r->name);
    for (int i = 0; i < 3; i++) {
        t.ne[i] = r->ne[i] ? dim_value(p, r->ne[i]) : 1;
        t.n_dims += r->ne[i] != NONE;
    }
    return t;
}

int qwen38_tensors(const void *params, struct layout_tensor **out, int *n, struct err *e)
{
    const struct qwen38_params *const p = params;
    *out = mem_try((size_t)(p->Lall + 1) * N_ROWS * sizeof **out);
    if (!*out) return err_set(e, ERR_MEMORY, "not enough memory for the list of tensors");
    *n = 0;
    for (int i = 0; i < N_ROWS; i++)
        if (rows[i].where == MODEL) (*out)[(*n)++] = fill(p, &rows[i], -1);
    for (int l = 0; l < p->Lall; l++)
        for (int i = 0; i < N_ROWS; i++)
            if (block_has(p, l, rows[i].where)) (*out)[(*n)++] = fill(p, &rows[i], l);
    (*out)[(*n)++] = fill(p, &rows[N_ROWS - 1], -1);
    return 0;
}
