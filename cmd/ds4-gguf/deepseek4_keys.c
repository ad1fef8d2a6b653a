/* Parameters and their keys: one table, from which they are written, set by text and checked. */
#include <stddef.h>
#include <string.h>
#include "base/mem.h"
#include "deepseek4_layout.h"
#include "dialect/canonical.h"

const struct param_key deepseek4_keys[] = {
#define AT(field)         offsetof(struct deepseek4_params, field)
#define LIST(list, count) AT(list), AT(count), DEEPSEEK4_MAX_RATIOS
    {"block_count", PARAM_WHOLE, AT(L)},
    {"context_length", PARAM_WHOLE, AT(context)},
    {"embedding_length", PARAM_WHOLE, AT(D)},
    {"vocab_size", PARAM_WHOLE, AT(V)},
    {"attention.head_count", PARAM_WHOLE, AT(H)},
    {"attention.head_count_kv", PARAM_WHOLE, AT(n_kv)},
    {"attention.key_length", PARAM_WHOLE, AT(d)},
    {"attention.value_length", PARAM_WHOLE, AT(dv)},
    {"attention.q_lora_rank", PARAM_WHOLE, AT(Rq)},
    {"attention.output_lora_rank", PARAM_WHOLE, AT(Ro)},
    {"attention.output_group_count", PARAM_WHOLE, AT(G)},
    {"attention.sliding_window", PARAM_WHOLE, AT(W)},
    {"attention.compress_ratios", PARAM_WHOLES, LIST(ratios, n_ratios)},
    {"attention.indexer.head_count", PARAM_WHOLE, AT(IH)},
    {"attention.indexer.key_length", PARAM_WHOLE, AT(ID)},
    {"attention.indexer.top_k", PARAM_WHOLE, AT(IK)},
    {"attention.layer_norm_rms_epsilon", PARAM_REAL, AT(rms_eps)},
    {"rope.dimension_count", PARAM_WHOLE, AT(r)},
    {"rope.freq_base", PARAM_REAL, AT(theta)},
    {"attention.compress_rope_freq_base", PARAM_REAL, AT(compress_theta)},
    {"rope.scaling.type", PARAM_OTHER, 0},
    {"rope.scaling.factor", PARAM_REAL, AT(yarn_factor)},
    {"rope.scaling.original_context_length", PARAM_WHOLE, AT(yarn_context)},
    {"rope.scaling.yarn_beta_fast", PARAM_REAL, AT(beta_fast)},
    {"rope.scaling.yarn_beta_slow", PARAM_REAL, AT(beta_slow)},
    {"expert_count", PARAM_WHOLE, AT(E)},
    {"expert_used_count", PARAM_WHOLE, AT(K)},
    {"expert_shared_count", PARAM_WHOLE, AT(n_shared)},
    {"expert_feed_forward_length", PARAM_WHOLE, AT(F)},
    {"expert_weights_scale", PARAM_REAL, AT(scale)},
    {"expert_weights_norm", PARAM_SWITCH, AT(norm_weights)},
    {"expert_gating_func", PARAM_WHOLE, AT(gating)},
    {"hash_layer_count", PARAM_WHOLE, AT(hash)},
    {"swiglu_clamp_exp", PARAM_REALS, LIST(clamps, n_clamps)},
    {"hyper_connection.count", PARAM_WHOLE, AT(n)},
    {"hyper_connection.sinkhorn_iterations", PARAM_WHOLE, AT(iters)},
    {"hyper_connection.epsilon", PARAM_REAL, AT(hc_eps)},
    {"nextn_predict_layers", PARAM_WHOLE, AT(nextn)},
    {"attention.overlap_ratio", PARAM_WHOLE, AT(overlap)},
    {"attention.kv_sim_block", PARAM_WHOLE, AT(kv_block)},
    {"attention.indexer.sim_block", PARAM_WHOLE, AT(index_block)},
    {"attention.indexer.hadamard", PARAM_SWITCH, AT(hadamard)},
    {"expert_group_count", PARAM_WHOLE, AT(n_groups)},
    {"expert_group_used_count", PARAM_WHOLE, AT(n_used_groups)},
    {"expert_shared_feed_forward_length", PARAM_WHOLE, AT(Fs)},
    {"swiglu_clamp_shexp", PARAM_REAL, AT(shared_clamp)},
    {NULL, PARAM_OTHER, 0},
#undef LIST
#undef AT
};
enum { N_KEYS = sizeof deepseek4_keys / sizeof *deepseek4_keys };

int32_t deepseek4_ratio(const struct deepseek4_params *p, int layer)
{
    return p->ratios[p->n_ratios == 1 ? 0 : layer];
}

int64_t deepseek4_overlap(const struct deepseek4_params *p)
{
    return p->overlap == PARAM_UNSET ? 4 : p->overlap;
}

int64_t deepseek4_shared_width(const struct deepseek4_params *p)
{
    return p->Fs == PARAM_UNSET ? p->F * p->n_shared : p->Fs;
}

/* With what the file states though nothing set it. */
static struct deepseek4_params *stated(const struct deepseek4_params *p)
{
    struct deepseek4_params *const full = mem_alloc(sizeof *full);
    *full = *p;
    if (full->dv == PARAM_UNSET) full->dv = full->d;
    return full;
}

/* ---- written */

static const char *scaling(const struct deepseek4_params *p)
{
    return p->yarn_factor > 1 ? "yarn" : "none";
}

/* A value for every block, and no more. */
static void spread_clamps(struct deepseek4_params *p)
{
    for (int64_t l = 1; l < p->L && p->n_clamps == 1; l++) p->clamps[l] = p->clamps[0];
    p->n_clamps = p->L;
}

void deepseek4_metadata(struct gguf_writer *w, const void *params, const struct layout_tensor *tensors, int n)
{
    const struct deepseek4_params *const p = params;
    struct deepseek4_params *const full = stated(p);
    spread_clamps(full);
    for (const struct param_key *k = deepseek4_keys; k->name; k++)
        if (k->kind == PARAM_OTHER)
            gguf_put_str(w, "deepseek4.rope.scaling.type", scaling(p), strlen(scaling(p)));
        else
            param_put(w, "deepseek4", full, k);
    mem_free(full);
}

/* ---- set by text */

/* The type is what the factor says; "none" is the factor 1. */
static int set_scaling(struct deepseek4_params *p, const char *text, struct err *e)
{
    if (!strcmp(text, "none"))
        p->yarn_factor = 1;
    else if (strcmp(text, "yarn"))
        return err_set(e, ERR_ARG, "rope.scaling.type: '%s' is not yarn or none", text);
    else if (!(p->yarn_factor > 1))
        return err_set(e, ERR_ARG, "rope.scaling.type: yarn needs a rope.scaling.factor above 1 before it");
    return 0;
}

int deepseek4_key_set(void *params, const struct param_key *k, const char *text, struct err *e)
{
    return k->kind == PARAM_OTHER ? set_scaling(params, text, e) : param_set(params, k, text, e);
}

/* ---- checked */

/* Numbers of all keys, in one piece. */
struct given {
    struct canonical_given at[N_KEYS];
    double v[N_KEYS + 2 * DEEPSEEK4_MAX_RATIOS];
    int n, n_v;
};

static void give(struct given *g, const char *key, double v)
{
    g->v[g->n_v] = v;
    g->at[g->n++] = (struct canonical_given){key, &g->v[g->n_v++], 1};
}

static void give_list(struct given *g, const struct param_key *k, const struct deepseek4_params *p)
{
    const int n = (int)param_length(p, k);
    g->at[g->n++] = (struct canonical_given){k->name, &g->v[g->n_v], n};
    for (int i = 0; i < n; i++) g->v[g->n_v++] = param_entry(p, k, i);
}

static void give_all(struct given *g, const struct deepseek4_params *p)
{
    for (const struct param_key *k = deepseek4_keys; k->name; k++) {
        const bool derived = k->at == offsetof(struct deepseek4_params, Fs) && k->kind == PARAM_WHOLE;
        if (k->kind == PARAM_OTHER || (!param_is_set(p, k) && !derived)) continue;
        if (param_is_list(k))
            give_list(g, k, p);
        else if (derived)
            give(g, k->name, (double)deepseek4_shared_width(p));
        else
            give(g, k->name, k->kind == PARAM_REAL ? (double)param_real(p, k) : (double)param_whole(p, k));
    }
}

int deepseek4_params_check(const struct deepseek4_params *p, bool kv_sim_off, const char *where, struct err *e)
{
    const struct canonical_options opt = {.kv_sim_off = kv_sim_off};
    struct err why = {0};
    struct given *g = mem_alloc(sizeof *g);
    struct deepseek4_params *const full = stated(p);
    give_all(g, full);
    canonical_check(CANONICAL_DEEPSEEK4, (int)p->L, g->at, g->n, &opt, &why);
    mem_free(full);
    mem_free(g);
    if (!why.code && p->hash > p->L)
        err_set(&why, ERR_MODEL, "hash_layer_count = %lld is not supported (only 0 to the %lld blocks)",
                (long long)p->hash, (long long)p->L);
    if (!why.code && p->dv != PARAM_UNSET && p->dv != p->d)
        err_set(&why, ERR_MODEL, "attention.value_length = %lld is not supported (only %lld, the length of keys)",
                (long long)p->dv, (long long)p->d);
    return why.code ? err_set(e, why.code, "%s: %s", where, why.msg) : 0;
}
