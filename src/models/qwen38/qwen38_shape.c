/* Hyper-parameters of Qwen3.8 from canonical parameters (spec qwen38 1), rotation frequencies and the n-gram hash. The
 * dialect layer has derived missing values and checked the relations between them. */
#include "models/qwen38/qwen38_internal.h"
#include "base/mem.h"
#include <math.h>
#include <string.h>

static void layer_shapes_read(const struct canonical *c, struct qwen38_shape *s)
{
    for (int l = 0; l < s->blocks; l++)
        s->layer[l] = (struct qwen38_layer_shape){
            .recurrent = canonical_tensor(c, "blk.%d.ssm_a", l) != NULL,
            .NE = (int)canonical_int_at(c, "expert_count", l),
            .K = (int)canonical_int_at(c, "expert_used_count", l),
            .F = (int)canonical_int_at(c, "expert_feed_forward_length", l),
        };
}

static uint64_t *list_copy(const struct canonical *c, const char *key)
{
    int n;
    const uint64_t *from = canonical_array(c, key, &n);
    uint64_t *to = mem_alloc((size_t)(n + 1) * sizeof *to);
    if (n) memcpy(to, from, (size_t)n * sizeof *to);
    return to;
}

/* Keys and values in F16, as far as rounding is wanted (spec 3.11). */
static void row_formats_read(const struct bind_options *o, struct qwen38_shape *s)
{
    const enum row_format_kind kind = o->kv_sim_off ? ROWFMT_F32 : ROWFMT_F16;
    s->kv_row = (struct row_format){.kind = kind, .width = 2 * s->Hkv * s->D};
    s->block_row = (struct row_format){.kind = kind, .width = s->Di};
}

int qwen38_shape_read(const struct canonical *c, const struct bind_options *o, struct qwen38_shape *s, struct err *e)
{
    const struct {
        int *to;
        const char *key;
    } ints[] = {
        {&s->E, "embedding_length"},
        {&s->V, "vocab_size"},
        {&s->H, "attention.head_count"},
        {&s->Hkv, "attention.head_count_kv"},
        {&s->D, "attention.key_length"},
        {&s->Rn, "rope.dimension_count"},
        {&s->hc, "hyper_connection.count"},
        {&s->rho, "hyper_connection.low_rank"},
        {&s->Hk, "ssm.group_count"},
        {&s->Hv, "ssm.time_step_rank"},
        {&s->Dl, "ssm.state_size"},
        {&s->Kc, "ssm.conv_kernel"},
        {&s->Hi, "attention.indexer.head_count"},
        {&s->Di, "attention.indexer.key_length"},
        {&s->q, "attention.compress_ratios"},
        {&s->lp, "ple.layers"},
        {&s->G, "ple.ngram_size"},
        {&s->P, "ple.heads_per_ngram"},
        {&s->Kp, "ple.conv_kernel"},
        {&s->Fs, "expert_shared_feed_forward_length"},
    };
    for (size_t i = 0; i < sizeof ints / sizeof ints[0]; i++) *ints[i].to = (int)canonical_int(c, ints[i].key);
    s->L = canonical_n_layers(c);
    s->blocks = o->draft ? canonical_n_blocks(c) : s->L;
    s->Np = (s->G - 1) * s->P;
    s->eos = (int32_t)canonical_int(c, "ple.eos_token_id");
    if (!s->Di) s->q = 0;
    s->Kb = s->q ? (int)canonical_int(c, "attention.indexer.top_k") / s->q : 0;
    s->eps = canonical_float(c, "attention.layer_norm_rms_epsilon");
    row_formats_read(o, s);
    s->mul = list_copy(c, "ple.layer_multipliers");
    s->off = list_copy(c, "ple.head_offsets");
    s->voc = list_copy(c, "ple.head_vocab_sizes");
    s->layer = mem_try((size_t)s->blocks * sizeof *s->layer);
    if (!s->layer) return err_set(e, ERR_MEMORY, "out of memory for %d layer shapes", s->blocks);
    layer_shapes_read(c, s);
    return 0;
}

void qwen38_shape_free(struct qwen38_shape *s)
{
    mem_free(s->layer);
    mem_free(s->mul);
    mem_free(s->off);
    mem_free(s->voc);
}

/* ---------------------------------------------------------------- rotation, spec 3.9 */

/* Which of a row's three positions turns each pair. */
static void axes(const struct canonical *c, int pairs, uint8_t *axis)
{
    int n;
    const uint64_t *given = canonical_array(c, "rope.dimension_sections", &n);
    const int64_t h = n > 2 ? (int64_t)given[1] : (pairs + 1) / 3, w = n > 2 ? (int64_t)given[2] : pairs / 3;
    for (int i = 0; i < pairs; i++) axis[i] = i % 3 == 1 && i < 3 * h ? 1 : i % 3 == 2 && i < 3 * w ? 2 : 0;
}

/* Pair index at which a rotation makes beta turns within the native context. */
static double yarn_corner(const struct qwen38_shape *s, double native, double beta, double base)
{
    const double two_pi = 6.283185307179586476925286766559;
    return s->Rn * log(native / (beta * two_pi)) / (2 * log(base));
}

static void yarn(const struct canonical *c, const struct qwen38_shape *s, double factor, double base, double *freq)
{
    const int64_t original = canonical_int(c, "rope.scaling.original_context_length");
    const double native = (double)(original ? original : canonical_int(c, "context_length"));
    const double lo = fmax(0, floor(yarn_corner(s, native, 32, base)));
    double hi = fmin(s->Rn - 1, ceil(yarn_corner(s, native, 1, base)));
    if (hi == lo) hi += 0.001;
    for (int i = 0; i < s->Rn / 2; i++) {
        const double keep = 1 - fmin(1, fmax(0, (i - lo) / (hi - lo)));
        freq[i] = freq[i] / factor * (1 - keep) + freq[i] * keep;
    }
}

struct dev_rope *qwen38_rope(const struct canonical *c, struct dev *dev, const struct qwen38_shape *s)
{
    const int pairs = s->Rn / 2;
    const double base = canonical_float(c, "rope.freq_base"), factor = canonical_float(c, "rope.scaling.factor");
    double *freq = mem_alloc((size_t)pairs * sizeof *freq);
    uint8_t *axis = mem_alloc((size_t)pairs);
    for (int i = 0; i < pairs; i++) freq[i] = (float)pow(base, -2.0 * i / s->Rn);
    axes(c, pairs, axis);
    if (factor > 1) yarn(c, s, factor, base, freq);
    struct dev_rope *rope = dev->op->rope_create(
        dev, &(struct rope_desc){
                 .freq = freq, .pairs = pairs, .axis = axis, .halves = true, .magnitude = 0.1 * log(factor) + 1});
    mem_free(axis);
    mem_free(freq);
    return rope;
}

/* ---------------------------------------------------------------- n-gram hash, spec 3.4 */

void qwen38_hash(const struct qwen38_shape *s, int32_t token, const int32_t *before, uint32_t *row)
{
    uint64_t x = (uint64_t)(uint32_t)token * s->mul[0];
    bool cut = false;
    for (int n = 2; n <= s->G; n++) {
        const int32_t t = cut ? s->eos : before[n - 2];
        cut = cut || t == s->eos;
        x ^= (uint64_t)(uint32_t)t * s->mul[n - 1];
        for (int g = 0; g < s->P; g++) {
            const int h = (n - 2) * s->P + g;
            row[h] = (uint32_t)(x % s->voc[h] + s->off[h]);
        }
    }
}
