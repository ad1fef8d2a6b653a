/* Hyper-parameters of DeepSeek V4 from canonical parameters (spec deepseek-v4 1, 8). The dialect layer has derived
 * missing values and checked the relations between them. */
#include "models/deepseek4/deepseek4_internal.h"
#include "base/mem.h"
#include <math.h>

static void layer_shape_read(const struct canonical *c, int l, struct deepseek4_layer_shape *y)
{
    y->ratio = (int)canonical_int_at(c, "attention.compress_ratios", l);
    y->indexed = y->ratio && y->ratio == canonical_int(c, "attention.overlap_ratio");
    y->hashed = l < canonical_int(c, "hash_layer_count");
    y->E = (int)canonical_int_at(c, "expert_count", l);
    y->K = (int)canonical_int_at(c, "expert_used_count", l);
    y->clamp = canonical_float_at(c, "swiglu_clamp_exp", l);
    y->shared_clamp = canonical_float_at(c, "swiglu_clamp_shexp", l);
}

/* Formats of stored rows; a block of 0, or kv_sim_off, keeps them as they are. */
static void row_formats_read(const struct canonical *c, const struct bind_options *o, struct deepseek4_shape *s)
{
    const int kv_block = o->kv_sim_off ? 0 : (int)canonical_int(c, "attention.kv_sim_block");
    const int index_block = o->kv_sim_off ? 0 : (int)canonical_int(c, "attention.indexer.sim_block");
    s->kv_row = (struct row_format){.kind = ROWFMT_F32, .width = s->d};
    if (kv_block)
        s->kv_row = (struct row_format){.kind = ROWFMT_FP8, .width = s->d, .n_fp8 = s->d - s->r, .block = kv_block};
    s->index_row = (struct row_format){.kind = ROWFMT_F32, .width = s->ID};
    if (index_block) s->index_row = (struct row_format){.kind = ROWFMT_FP4, .width = s->ID, .block = index_block};
}

int deepseek4_shape_read(const struct canonical *c, const struct bind_options *o, struct deepseek4_shape *s,
                         struct err *e)
{
    const struct {
        int *to;
        const char *key;
    } ints[] = {
        {&s->D, "embedding_length"},
        {&s->V, "vocab_size"},
        {&s->H, "attention.head_count"},
        {&s->d, "attention.key_length"},
        {&s->r, "rope.dimension_count"},
        {&s->G, "attention.output_group_count"},
        {&s->Rq, "attention.q_lora_rank"},
        {&s->Ro, "attention.output_lora_rank"},
        {&s->W, "attention.sliding_window"},
        {&s->IH, "attention.indexer.head_count"},
        {&s->ID, "attention.indexer.key_length"},
        {&s->IK, "attention.indexer.top_k"},
        {&s->n, "hyper_connection.count"},
        {&s->iterations, "hyper_connection.sinkhorn_iterations"},
    };
    for (size_t i = 0; i < sizeof ints / sizeof ints[0]; i++) *ints[i].to = (int)canonical_int(c, ints[i].key);
    s->L = canonical_n_layers(c);
    s->hc_eps = canonical_float(c, "hyper_connection.epsilon");
    s->eps = canonical_float(c, "attention.layer_norm_rms_epsilon");
    s->route_scale = canonical_float(c, "expert_weights_scale");
    s->route_norm = canonical_bool(c, "expert_weights_norm");
    s->hadamard = canonical_bool(c, "attention.indexer.hadamard");
    row_formats_read(c, o, s);
    s->layer = mem_try((size_t)s->L * sizeof *s->layer);
    if (!s->layer) return err_set(e, ERR_MEMORY, "out of memory for %d layer shapes", s->L);
    for (int l = 0; l < s->L; l++) layer_shape_read(c, l, &s->layer[l]);
    return 0;
}

void deepseek4_shape_free(struct deepseek4_shape *s)
{
    mem_free(s->layer);
    s->layer = NULL;
}

/* Pair index at which a rotation makes beta turns within the original context (spec 3.4). */
static double yarn_corner(int r, double original, double beta, double base)
{
    const double two_pi = 6.283185307179586476925286766559;
    return r * log(original / (two_pi * beta)) / (2 * log(base));
}

void deepseek4_frequencies(const struct canonical *c, int r, bool compressed, double *freq)
{
    const double base = canonical_float(c, compressed ? "attention.compress_rope_freq_base" : "rope.freq_base");
    for (int i = 0; i < r / 2; i++) freq[i] = pow(base, -2.0 * i / r);
    const double factor = canonical_float(c, "rope.scaling.factor");
    if (!compressed || factor <= 1) return;
    const double original = canonical_float(c, "rope.scaling.original_context_length");
    const double fast = canonical_float(c, "rope.scaling.yarn_beta_fast"),
                 slow = canonical_float(c, "rope.scaling.yarn_beta_slow");
    const double lo = fmax(0, floor(yarn_corner(r, original, fast, base)));
    const double hi = fmin(r - 1, ceil(yarn_corner(r, original, slow, base)));
    for (int i = 0; i < r / 2; i++) {
        const double t = fmin(1, fmax(0, (i - lo) / fmax(0.001, hi - lo)));
        freq[i] = freq[i] * (1 - t) + freq[i] / factor * t;
    }
}
