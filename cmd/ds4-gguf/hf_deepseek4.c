/* Hyper-parameters from config.json. What the engine would refuse in the finished file is refused here, before the work
 * (spec dialects 1.4, deepseek-v4 8). */
#include "hf_deepseek4.h"
#include "hf_json.h"

static void read_shape(struct hf_reader *r, struct deepseek4_params *p)
{
    const int64_t max = 1 << 24;
    p->V = hf_int(r, "vocab_size", 1, max);
    p->D = hf_int(r, "hidden_size", 1, max);
    p->L = hf_int(r, "num_hidden_layers", 1, DEEPSEEK4_MAX_RATIOS);
    p->H = hf_int(r, "num_attention_heads", 1, 65536);
    hf_int_or(r, "num_key_value_heads", 1, 1, 1);
    p->d = hf_int(r, "head_dim", 1, 65536);
    p->r = hf_int(r, "qk_rope_head_dim", 2, 65536);
    p->Rq = hf_int(r, "q_lora_rank", 1, max);
    p->Ro = hf_int(r, "o_lora_rank", 1, max);
    p->G = hf_int(r, "o_groups", 1, 65536);
    p->W = hf_int(r, "sliding_window", 1, max);
    p->IH = hf_int(r, "index_n_heads", 1, 65536);
    p->ID = hf_int(r, "index_head_dim", 1, 65536);
    p->IK = hf_int(r, "index_topk", 1, max);
    p->n = hf_int(r, "hc_mult", 1, 64);
    p->iters = hf_int(r, "hc_sinkhorn_iters", 1, 1000);
    p->hc_eps = (float)hf_float(r, "hc_eps", 0, 0.1);
    p->rms_eps = (float)hf_float(r, "rms_norm_eps", 0, 0.1);
    p->context = hf_int(r, "max_position_embeddings", 1, max);
    p->nextn = hf_int_or(r, "num_nextn_predict_layers", 0, 64, 0);
}

static void read_experts(struct hf_reader *r, struct deepseek4_params *p)
{
    p->E = hf_int(r, "n_routed_experts", 1, 65536);
    p->K = hf_int(r, "num_experts_per_tok", 1, 65536);
    p->n_shared = hf_int(r, "n_shared_experts", 1, 64);
    p->F = hf_int(r, "moe_intermediate_size", 1, 1 << 24);
    p->hash = hf_int(r, "num_hash_layers", 0, DEEPSEEK4_MAX_RATIOS);
    p->scale = (float)hf_float(r, "routed_scaling_factor", 1e-6, 1e6);
    p->norm_weights = hf_bool_or(r, "norm_topk_prob", true);
    if (!p->norm_weights)
        err_set(r->e, ERR_MODEL, "%s: \"norm_topk_prob\" is false; only true can be converted", r->path);
    p->clamps[0] = (float)hf_float(r, "swiglu_limit", 0, 1e30);
    p->n_clamps = 1;
    hf_expect(r, "scoring_func", "sqrtsoftplus", true);
    hf_expect(r, "topk_method", "noaux_tc", false);
    hf_expect(r, "hidden_act", "silu", false);
}

static void read_rope(struct hf_reader *r, struct deepseek4_params *p)
{
    p->theta = (float)hf_float(r, "rope_theta", 1, 1e15);
    p->compress_theta = (float)hf_float(r, "compress_rope_theta", 1, 1e15);
    const json_t *scaling = json_object_get(r->object, "rope_scaling");
    p->yarn_factor = p->beta_slow = 1; /* no scaling: that has to be said, a reader would take the usual one */
    p->beta_fast = 32;
    p->yarn_context = p->context;
    if (!scaling || json_is_null(scaling)) return;
    if (!json_is_object(scaling)) {
        err_set(r->e, ERR_MODEL, "%s: \"rope_scaling\" must be an object", r->path);
        return;
    }
    struct hf_reader s = {r->path, scaling, r->e};
    hf_expect(&s, json_object_get(scaling, "rope_type") ? "rope_type" : "type", "yarn", true);
    p->yarn_factor = (float)hf_float(&s, "factor", 1, 1e6);
    p->yarn_context = hf_int(&s, "original_max_position_embeddings", 1, 1 << 24);
    p->beta_fast = (float)hf_float_or(&s, "beta_fast", 1e-6, 1e6, 32);
    p->beta_slow = (float)hf_float_or(&s, "beta_slow", 1e-6, 1e6, 1);
}

static void read_ratios(struct hf_reader *r, struct deepseek4_params *p)
{
    const json_t *a = json_object_get(r->object, "compress_ratios");
    const size_t n = json_array_size(a);
    if (n == 0 || n > DEEPSEEK4_MAX_RATIOS) {
        err_set(r->e, ERR_MODEL, "%s: \"compress_ratios\" must be a list of 1 to %d numbers", r->path,
                DEEPSEEK4_MAX_RATIOS);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const json_t *v = json_array_get(a, i);
        const int64_t x = json_integer_value(v);
        if (!json_is_integer(v) || x < 0 || x > 1 << 20) {
            err_set(r->e, ERR_MODEL, "%s: \"compress_ratios\" entry %zu is not a whole number", r->path, i);
            return;
        }
        p->ratios[i] = (int32_t)x;
    }
    p->n_ratios = (int64_t)n;
}

int hf_deepseek4_config(const char *path, struct deepseek4_params *p, struct err *e)
{
    json_t *root;
    const int rc = hf_json_read(path, &root, e);
    if (rc) return rc;
    struct err mine = {0};
    struct hf_reader r = {path, root, &mine};
    *p = (struct deepseek4_params){DEEPSEEK4_PARAMS_USUAL};
    hf_expect(&r, "model_type", "deepseek_v4", true);
    read_shape(&r, p);
    read_experts(&r, p);
    read_rope(&r, p);
    read_ratios(&r, p);
    json_decref(root);
    return mine.code ? err_set(e, mine.code, "%s", mine.msg) : deepseek4_params_check(p, true, path, e);
}
