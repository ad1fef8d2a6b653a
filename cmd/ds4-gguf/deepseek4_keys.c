/* Parameters and their keys: one table, from which they are written, set by text and checked. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "deepseek4_layout.h"
#include "dialect/canonical.h"

enum kind { WHOLE, REAL, SWITCH, RATIOS, CLAMPS, SCALING };

/* In the order of the file. */
static const struct key {
    const char *name;
    enum kind kind;
    size_t at; /* of an int64_t (WHOLE, SWITCH) or a float (REAL) in the parameters */
} keys[] = {
#define AT(field) offsetof(struct deepseek4_params, field)
    {"block_count", WHOLE, AT(L)},
    {"context_length", WHOLE, AT(context)},
    {"embedding_length", WHOLE, AT(D)},
    {"vocab_size", WHOLE, AT(V)},
    {"attention.head_count", WHOLE, AT(H)},
    {"attention.head_count_kv", WHOLE, AT(n_kv)},
    {"attention.key_length", WHOLE, AT(d)},
    {"attention.value_length", WHOLE, AT(dv)},
    {"attention.q_lora_rank", WHOLE, AT(Rq)},
    {"attention.output_lora_rank", WHOLE, AT(Ro)},
    {"attention.output_group_count", WHOLE, AT(G)},
    {"attention.sliding_window", WHOLE, AT(W)},
    {"attention.compress_ratios", RATIOS, 0},
    {"attention.indexer.head_count", WHOLE, AT(IH)},
    {"attention.indexer.key_length", WHOLE, AT(ID)},
    {"attention.indexer.top_k", WHOLE, AT(IK)},
    {"attention.layer_norm_rms_epsilon", REAL, AT(rms_eps)},
    {"rope.dimension_count", WHOLE, AT(r)},
    {"rope.freq_base", REAL, AT(theta)},
    {"attention.compress_rope_freq_base", REAL, AT(compress_theta)},
    {"rope.scaling.type", SCALING, 0},
    {"rope.scaling.factor", REAL, AT(yarn_factor)},
    {"rope.scaling.original_context_length", WHOLE, AT(yarn_context)},
    {"rope.scaling.yarn_beta_fast", REAL, AT(beta_fast)},
    {"rope.scaling.yarn_beta_slow", REAL, AT(beta_slow)},
    {"expert_count", WHOLE, AT(E)},
    {"expert_used_count", WHOLE, AT(K)},
    {"expert_shared_count", WHOLE, AT(n_shared)},
    {"expert_feed_forward_length", WHOLE, AT(F)},
    {"expert_weights_scale", REAL, AT(scale)},
    {"expert_weights_norm", SWITCH, AT(norm_weights)},
    {"expert_gating_func", WHOLE, AT(gating)},
    {"hash_layer_count", WHOLE, AT(hash)},
    {"swiglu_clamp_exp", CLAMPS, 0},
    {"hyper_connection.count", WHOLE, AT(n)},
    {"hyper_connection.sinkhorn_iterations", WHOLE, AT(iters)},
    {"hyper_connection.epsilon", REAL, AT(hc_eps)},
    {"nextn_predict_layers", WHOLE, AT(nextn)},
    {"attention.overlap_ratio", WHOLE, AT(overlap)},
    {"attention.kv_sim_block", WHOLE, AT(kv_block)},
    {"attention.indexer.sim_block", WHOLE, AT(index_block)},
    {"attention.indexer.hadamard", SWITCH, AT(hadamard)},
    {"expert_group_count", WHOLE, AT(n_groups)},
    {"expert_group_used_count", WHOLE, AT(n_used_groups)},
    {"expert_shared_feed_forward_length", WHOLE, AT(Fs)},
    {"swiglu_clamp_shexp", REAL, AT(shared_clamp)},
#undef AT
};
enum { N_KEYS = sizeof keys / sizeof keys[0] };

static int64_t whole(const struct deepseek4_params *p, const struct key *k)
{
    int64_t v;
    memcpy(&v, (const char *)p + k->at, sizeof v);
    if (v == DEEPSEEK4_UNSET && k->at == offsetof(struct deepseek4_params, dv)) return p->d;
    return v;
}

static float real(const struct deepseek4_params *p, const struct key *k)
{
    float v;
    memcpy(&v, (const char *)p + k->at, sizeof v);
    return v;
}

/* True if the file has the key. */
static bool is_set(const struct deepseek4_params *p, const struct key *k)
{
    if (k->kind == WHOLE || k->kind == SWITCH) return whole(p, k) != DEEPSEEK4_UNSET;
    return k->kind != REAL || real(p, k) != DEEPSEEK4_UNSET;
}

int32_t deepseek4_ratio(const struct deepseek4_params *p, int layer)
{
    return p->ratios[p->n_ratios == 1 ? 0 : layer];
}

int64_t deepseek4_overlap(const struct deepseek4_params *p)
{
    return p->overlap == DEEPSEEK4_UNSET ? 4 : p->overlap;
}

int64_t deepseek4_shared_width(const struct deepseek4_params *p)
{
    return p->Fs == DEEPSEEK4_UNSET ? p->F * p->n_shared : p->Fs;
}

/* ---- written */

static const char *scaling(const struct deepseek4_params *p)
{
    return p->yarn_factor > 1 ? "yarn" : "none";
}

static void put_clamps(struct gguf_writer *w, const char *key, const struct deepseek4_params *p)
{
    float all[DEEPSEEK4_MAX_RATIOS];
    for (int64_t l = 0; l < p->L; l++) all[l] = p->clamps[p->n_clamps == 1 ? 0 : l];
    gguf_put_arr_f32(w, key, all, (uint64_t)p->L);
}

void deepseek4_metadata(struct gguf_writer *w, const struct deepseek4_params *p)
{
    for (const struct key *k = keys; k < keys + N_KEYS; k++) {
        char name[96];
        if (!is_set(p, k)) continue;
        snprintf(name, sizeof name, "deepseek4.%s", k->name);
        switch (k->kind) {
        case WHOLE:
            gguf_put_u32(w, name, (uint32_t)whole(p, k));
            break;
        case REAL:
            gguf_put_f32(w, name, real(p, k));
            break;
        case SWITCH:
            gguf_put_bool(w, name, whole(p, k) != 0);
            break;
        case RATIOS:
            gguf_put_arr_i32(w, name, p->ratios, (uint64_t)p->n_ratios);
            break;
        case CLAMPS:
            put_clamps(w, name, p);
            break;
        case SCALING:
            gguf_put_str(w, name, scaling(p), strlen(scaling(p)));
            break;
        }
    }
}

/* ---- set by text */

const char *deepseek4_key_at(int i)
{
    return i >= 0 && i < N_KEYS ? keys[i].name : NULL;
}

/* A number of at least 0, whole or any, which ends at a comma or at the end of the text. Returns what is behind it. */
static const char *number(const char *text, bool is_whole, double *v)
{
    const double most = is_whole ? INT32_MAX : 3.4e38;
    char *end;
    *v = is_whole ? (double)strtoll(text, &end, 10) : strtod(text, &end);
    return end > text && (!*end || *end == ',') && *v >= 0 && *v <= most ? end : NULL;
}

/* Numbers with commas between them into v[DEEPSEEK4_MAX_RATIOS]; returns how many, 0: it is no such list. */
static int numbers(const char *text, bool is_whole, double *v)
{
    for (int n = 0; n < DEEPSEEK4_MAX_RATIOS;) {
        const char *end = number(text, is_whole, &v[n++]);
        if (!end) return 0;
        if (!*end) return n;
        text = end + 1;
    }
    return 0;
}

static int set_list(struct deepseek4_params *p, const struct key *k, const char *text, struct err *e)
{
    double v[DEEPSEEK4_MAX_RATIOS];
    const bool ratios = k->kind == RATIOS;
    const int n = numbers(text, ratios, v);
    if (!n)
        return err_set(e, ERR_ARG, "%s: '%s' is not a list of at most %d %snumbers such as %s", k->name, text,
                       DEEPSEEK4_MAX_RATIOS, ratios ? "whole " : "", ratios ? "0,4,128" : "10,10,7.5");
    for (int i = 0; i < n; i++)
        if (ratios)
            p->ratios[i] = (int32_t)v[i];
        else
            p->clamps[i] = (float)v[i];
    *(ratios ? &p->n_ratios : &p->n_clamps) = n;
    return 0;
}

/* The type is what the factor says; "none" is the factor 1. */
static int set_scaling(struct deepseek4_params *p, const struct key *k, const char *text, struct err *e)
{
    if (!strcmp(text, "none"))
        p->yarn_factor = 1;
    else if (strcmp(text, "yarn"))
        return err_set(e, ERR_ARG, "%s: '%s' is not yarn or none", k->name, text);
    else if (!(p->yarn_factor > 1))
        return err_set(e, ERR_ARG, "%s: yarn needs a rope.scaling.factor above 1 before it", k->name);
    return 0;
}

static int set_one(struct deepseek4_params *p, const struct key *k, const char *text, struct err *e)
{
    double v;
    const char *end = number(text, k->kind == WHOLE, &v);
    if (k->kind == SWITCH) {
        end = text + strlen(text);
        v = !strcmp(text, "true");
        if (!v && strcmp(text, "false")) return err_set(e, ERR_ARG, "%s: '%s' is not true or false", k->name, text);
    }
    if (!end || *end)
        return err_set(e, ERR_ARG, "%s: '%s' is not a %s", k->name, text,
                       k->kind == WHOLE ? "whole number from 0 to 2147483647" : "number from 0 on");
    const int64_t i = (int64_t)v;
    const float f = (float)v;
    if (k->kind == REAL)
        memcpy((char *)p + k->at, &f, sizeof f);
    else
        memcpy((char *)p + k->at, &i, sizeof i);
    return 0;
}

int deepseek4_key_set(struct deepseek4_params *p, const char *key, const char *text, struct err *e)
{
    for (const struct key *k = keys; k < keys + N_KEYS; k++) {
        if (strcmp(k->name, key)) continue;
        if (k->kind == RATIOS || k->kind == CLAMPS) return set_list(p, k, text, e);
        return k->kind == SCALING ? set_scaling(p, k, text, e) : set_one(p, k, text, e);
    }
    return err_set(e, ERR_ARG, "there is no key %s", key);
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

static void give_list(struct given *g, const struct key *k, const struct deepseek4_params *p)
{
    const int n = (int)(k->kind == RATIOS ? p->n_ratios : p->n_clamps);
    g->at[g->n++] = (struct canonical_given){k->name, &g->v[g->n_v], n};
    for (int i = 0; i < n; i++) g->v[g->n_v++] = k->kind == RATIOS ? p->ratios[i] : (double)p->clamps[i];
}

static void give_all(struct given *g, const struct deepseek4_params *p)
{
    for (const struct key *k = keys; k < keys + N_KEYS; k++) {
        const bool derived = k->at == offsetof(struct deepseek4_params, Fs) && k->kind == WHOLE;
        if (k->kind == SCALING || (!is_set(p, k) && !derived)) continue;
        if (k->kind == RATIOS || k->kind == CLAMPS)
            give_list(g, k, p);
        else if (derived)
            give(g, k->name, (double)deepseek4_shared_width(p));
        else
            give(g, k->name, k->kind == REAL ? (double)real(p, k) : (double)whole(p, k));
    }
}

int deepseek4_params_check(const struct deepseek4_params *p, bool kv_sim_off, const char *where, struct err *e)
{
    const struct canonical_options opt = {.kv_sim_off = kv_sim_off};
    struct err why = {0};
    struct given *g = mem_alloc(sizeof *g);
    give_all(g, p);
    canonical_check(CANONICAL_DEEPSEEK4, (int)p->L, g->at, g->n, &opt, &why);
    mem_free(g);
    if (!why.code && p->hash > p->L)
        err_set(&why, ERR_MODEL, "hash_layer_count = %lld is not supported (only 0 to the %lld blocks)",
                (long long)p->hash, (long long)p->L);
    if (!why.code && p->dv != DEEPSEEK4_UNSET && p->dv != p->d)
        err_set(&why, ERR_MODEL, "attention.value_length = %lld is not supported (only %lld, the length of keys)",
                (long long)p->dv, (long long)p->d);
    return why.code ? err_set(e, why.code, "%s: %s", where, why.msg) : 0;
}
