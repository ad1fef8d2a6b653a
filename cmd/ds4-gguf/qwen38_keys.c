/* Parameters of Qwen3.8: keys, what is derived, what is refused. */
#include <inttypes.h>
#include <string.h>
#include "base/mem.h"
#include "dialect/canonical.h"
#include "qwen38_layout.h"
#include "synth_blocks.h"

const struct param_key qwen38_keys[] = {
#define AT(field)               offsetof(struct qwen38_params, field)
#define LIST(list, count, most) AT(list), AT(count), most
    {"block_count", PARAM_WHOLE, AT(Lall)},
    {"nextn_predict_layers", PARAM_WHOLE, AT(nextn)},
    {"context_length", PARAM_WHOLE, AT(context)},
    {"embedding_length", PARAM_WHOLE, AT(E)},
    {"vocab_size", PARAM_WHOLE, AT(V)},
    {"attention.head_count", PARAM_WHOLE, AT(H)},
    {"attention.head_count_kv", PARAM_WHOLE, AT(Hkv)},
    {"attention.key_length", PARAM_WHOLE, AT(D)},
    {"attention.value_length", PARAM_WHOLE, AT(dv)},
    {"attention.layer_norm_rms_epsilon", PARAM_REAL, AT(eps)},
    {"attention.indexer.head_count", PARAM_WHOLE, AT(Hi)},
    {"attention.indexer.key_length", PARAM_WHOLE, AT(Di)},
    {"attention.indexer.top_k", PARAM_WHOLE, AT(B)},
    {"attention.compress_ratios", PARAM_WHOLES, LIST(ratios, n_ratios, QWEN38_MAX_LAYERS)},
    {"full_attention_interval", PARAM_WHOLE, AT(I)},
    {"rope.dimension_count", PARAM_WHOLE, AT(Rn)},
    {"rope.dimension_sections", PARAM_WHOLES, LIST(sections, n_sections, 4)},
    {"rope.freq_base", PARAM_REAL, AT(theta)},
    {"rope.scaling.type", PARAM_OTHER, 0},
    {"rope.scaling.factor", PARAM_REAL, AT(yarn_factor)},
    {"rope.scaling.original_context_length", PARAM_WHOLE, AT(yarn_context)},
    {"expert_count", PARAM_WHOLE, AT(NE)},
    {"expert_used_count", PARAM_WHOLE, AT(K)},
    {"expert_feed_forward_length", PARAM_WHOLE, AT(F)},
    {"expert_shared_feed_forward_length", PARAM_WHOLE, AT(Fs)},
    {"ssm.group_count", PARAM_WHOLE, AT(Hk)},
    {"ssm.time_step_rank", PARAM_WHOLE, AT(Hv)},
    {"ssm.state_size", PARAM_WHOLE, AT(Dl)},
    {"ssm.conv_kernel", PARAM_WHOLE, AT(Kc)},
    {"ssm.inner_size", PARAM_WHOLE, AT(inner)},
    {"hyper_connection.count", PARAM_WHOLE, AT(hc)},
    {"hyper_connection.low_rank", PARAM_WHOLE, AT(rho)},
    {"embedding_length_per_layer_input", PARAM_WHOLE, AT(W)},
    {"ple.layers", PARAM_WHOLES, LIST(lp, n_lp, 2)},
    {"ple.ngram_size", PARAM_WHOLE, AT(G)},
    {"ple.heads_per_ngram", PARAM_WHOLE, AT(P)},
    {"ple.conv_kernel", PARAM_WHOLE, AT(Kp)},
    {"ple.eos_token_id", PARAM_WHOLE, AT(eos)},
    {"ple.image_token_id", PARAM_WHOLE, AT(image)},
    {"ple.layer_multipliers", PARAM_BIGS, LIST(mul, n_mul, QWEN38_MAX_NGRAM)},
    {"ple.head_offsets", PARAM_BIGS, LIST(off, n_off, QWEN38_MAX_HEADS)},
    {"ple.head_vocab_sizes", PARAM_BIGS, LIST(voc, n_voc, QWEN38_MAX_HEADS)},
    {"ple.row_dimension", PARAM_WHOLE, AT(row_dim)},
    {"ple.row_count", PARAM_LONG, AT(row_count)},
    {"ngram_vocab_size_base", PARAM_WHOLE, AT(base)},
    {NULL, PARAM_OTHER, 0},
#undef LIST
#undef AT
};

int64_t qwen38_layers(const struct qwen38_params *p)
{
    return p->Lall - p->nextn;
}

bool qwen38_is_attention(const struct qwen38_params *p, int layer)
{
    return layer >= qwen38_layers(p) || (layer + 1) % p->I == 0;
}

int qwen38_key_set(void *params, const struct param_key *k, const char *text, struct err *e)
{
    struct qwen38_params *const p = params;
    if (k->kind != PARAM_OTHER) return param_set(p, k, text, e);
    if (!strcmp(text, "none"))
        p->yarn_factor = 1;
    else if (strcmp(text, "yarn"))
        return err_set(e, ERR_ARG, "%s: '%s' is not yarn or none", k->name, text);
    else if (!(p->yarn_factor > 1))
        return err_set(e, ERR_ARG, "%s: yarn needs a rope.scaling.factor above 1 before it", k->name);
    return 0;
}

/* ---- derived */

static bool is_prime(uint64_t n)
{
    for (uint64_t d = 2; d * d <= n; d++)
        if (n % d == 0) return false;
    return n > 1;
}

enum { HASH_SEED = 1234, ROWS_MULTIPLE = 128 };

/* Multipliers: odd numbers of which a product with any id stays below 2^63. */
static void derive_multipliers(struct qwen38_params *p)
{
    const uint64_t bound = ((uint64_t)INT64_MAX / (uint64_t)p->V) / 2;
    uint64_t state = HASH_SEED;
    for (int j = 0; j < p->G; j++) {
        state += UINT64_C(0x9E3779B97F4A7C15);
        uint64_t s = state;
        p->mul[j] = 2 * (synth_next(&s) % (bound ? bound : 1)) + 1;
    }
    p->n_mul = p->G;
}

/* Heads get the primes from `base` on, one behind the other in the table. */
static void derive_heads(struct qwen38_params *p)
{
    const int n = (int)((p->G - 1) * p->P);
    uint64_t prime = (uint64_t)p->base, sum = 0;
    for (int h = 0; h < n && p->n_voc == PARAM_UNSET; h++) {
        while (!is_prime(prime)) prime++;
        p->voc[h] = prime++;
    }
    if (p->n_voc == PARAM_UNSET) p->n_voc = n;
    for (int h = 0; h < n && p->n_off == PARAM_UNSET; h++) {
        p->off[h] = sum;
        sum += p->voc[h];
    }
    if (p->n_off == PARAM_UNSET) p->n_off = n;
}

/* The rows that the heads need. */
static uint64_t rows_needed(const struct qwen38_params *p)
{
    uint64_t rows = 0;
    for (int64_t h = 0; h < p->n_off && h < p->n_voc; h++)
        if (p->off[h] + p->voc[h] > rows) rows = p->off[h] + p->voc[h];
    return rows;
}

static void derive_blocks(struct qwen38_params *p)
{
    const int32_t q = p->ratios[0];
    for (int l = 0; l < p->Lall && p->n_ratios == 1; l++) p->ratios[l] = qwen38_is_attention(p, l) ? q : 0;
    if (p->n_ratios == 1) p->n_ratios = p->Lall;
    const int pairs = (int)p->Rn / 2;
    if (p->n_sections != PARAM_UNSET) return;
    p->n_sections = 4;
    for (int i = 0; i < 3; i++) p->sections[i] = (pairs + 2 - i) / 3;
    p->sections[3] = 0;
}

static void derive(struct qwen38_params *p)
{
    if (p->dv == PARAM_UNSET) p->dv = p->D;
    if (p->inner == PARAM_UNSET) p->inner = p->Hv * p->Dl;
    if (p->W == PARAM_UNSET) p->W = p->E / ((p->G - 1) * p->P);
    if (p->row_dim == PARAM_UNSET) p->row_dim = p->W;
    if (p->n_mul == PARAM_UNSET) derive_multipliers(p);
    derive_heads(p);
    if (p->row_count == PARAM_UNSET)
        p->row_count = (int64_t)((rows_needed(p) + ROWS_MULTIPLE - 1) / ROWS_MULTIPLE * ROWS_MULTIPLE);
    derive_blocks(p);
}

/* ---- checked */

static int refuse(struct err *e, const char *where, const char *key, int64_t v, const char *only)
{
    return err_set(e, ERR_MODEL, "%s: %s = %" PRId64 " is not supported (only %s)", where, key, v, only);
}

/* What has to hold before anything is derived. */
static int check_derivable(const struct qwen38_params *p, const char *where, struct err *e)
{
    static const char *const positive[] = {"embedding_length", "vocab_size", "full_attention_interval",
                                           "ple.heads_per_ngram"};
    for (size_t i = 0; i < sizeof positive / sizeof *positive; i++) {
        const struct param_key *const k = param_find(qwen38_keys, positive[i]);
        const int64_t v = param_whole(p, k);
        if (v < 1 || v > 1 << 24) return refuse(e, where, k->name, v, "1 to 16777216");
    }
    if (p->nextn > 1) return refuse(e, where, "nextn_predict_layers", p->nextn, "0 or 1");
    if (p->Lall > QWEN38_MAX_LAYERS || p->Lall <= p->nextn)
        return refuse(e, where, "block_count", p->Lall, "a trunk and at most 1024");
    if (p->G < 2 || p->G > QWEN38_MAX_NGRAM) return refuse(e, where, "ple.ngram_size", p->G, "2 to 8");
    if ((p->G - 1) * p->P > QWEN38_MAX_HEADS || p->E % ((p->G - 1) * p->P))
        return refuse(e, where, "ple.heads_per_ngram", p->P,
                      "at most 64 heads in all, a number that divides embedding_length");
    if (p->base < 2 || p->base > 1 << 28) return refuse(e, where, "ngram_vocab_size_base", p->base, "2 to 268435456");
    return 0;
}

/* Keys of which a reader takes no number: lists of their own, and what only other programs read. */
static bool is_aside(const struct param_key *k)
{
    static const char *const aside[] = {"rope.dimension_sections", "ple.image_token_id", "ple.row_dimension",
                                        "ple.row_count", "ngram_vocab_size_base"};
    for (size_t i = 0; i < sizeof aside / sizeof *aside; i++)
        if (!strcmp(k->name, aside[i])) return true;
    return k->kind == PARAM_BIGS || k->kind == PARAM_OTHER;
}

enum { MOST_KEYS = 64 };

/* Numbers of all keys, in one piece. */
struct given {
    struct canonical_given at[MOST_KEYS];
    double v[MOST_KEYS + QWEN38_MAX_LAYERS];
    int n, n_v;
};

/* The rules that a file is read by. */
static int check_as_read(const struct qwen38_params *p, const char *where, struct err *e)
{
    struct given *const g = mem_alloc(sizeof *g);
    struct err why = {0};
    for (const struct param_key *k = qwen38_keys; k->name; k++) {
        const int n = is_aside(k) ? 0 : param_is_list(k) ? (int)param_length(p, k) : 1;
        if (n == 0) continue;
        g->at[g->n++] = (struct canonical_given){k->name, &g->v[g->n_v], n};
        for (int i = 0; i < n; i++)
            g->v[g->n_v++] = param_is_list(k)        ? param_entry(p, k, i)
                             : k->kind == PARAM_REAL ? (double)param_real(p, k)
                                                     : (double)param_whole(p, k);
    }
    canonical_check(CANONICAL_QWEN38, (int)qwen38_layers(p), g->at, g->n, NULL, &why);
    mem_free(g);
    return why.code ? err_set(e, why.code, "%s: %s", where, why.msg) : 0;
}

/* What a reader takes from tensors, and does not miss in keys. */
static int check_shapes(const struct qwen38_params *p, const char *where, struct err *e)
{
    if (p->dv != p->D) return refuse(e, where, "attention.value_length", p->dv, "attention.key_length");
    if (p->inner != p->Hv * p->Dl)
        return refuse(e, where, "ssm.inner_size", p->inner, "time_step_rank times state_size");
    if (p->n_lp != 1) return refuse(e, where, "ple.layers", p->lp[1], "one layer");
    if (p->n_ratios < p->Lall)
        return err_set(e, ERR_MODEL, "%s: attention.compress_ratios has %" PRId64 " entries for %" PRId64 " blocks",
                       where, p->n_ratios, p->Lall);
    if (p->row_dim != p->W)
        return refuse(e, where, "ple.row_dimension", p->row_dim, "embedding_length_per_layer_input");
    return 0;
}

static int check_table(const struct qwen38_params *p, const char *where, struct err *e)
{
    const int64_t n = (p->G - 1) * p->P;
    if (p->n_mul != p->G || p->n_off != n || p->n_voc != n)
        return err_set(e, ERR_MODEL,
                       "%s: ple.layer_multipliers, head_offsets and head_vocab_sizes have %" PRId64 ", %" PRId64
                       " and %" PRId64 " entries; %" PRId64 ", %" PRId64 " and %" PRId64 " are needed",
                       where, p->n_mul, p->n_off, p->n_voc, p->G, n, n);
    for (int64_t h = 0; h < n; h++)
        if (p->voc[h] < 1 || p->voc[h] > UINT32_MAX || p->off[h] > UINT32_MAX)
            return err_set(e, ERR_MODEL,
                           "%s: n-gram head %" PRId64 " has %" PRIu64 " rows from %" PRIu64
                           " on; 1 to 2^32 - 1 are possible",
                           where, h, p->voc[h], p->off[h]);
    if ((uint64_t)p->row_count < rows_needed(p) || p->row_count > UINT32_MAX)
        return refuse(e, where, "ple.row_count", p->row_count, "as many as the heads need, up to 2^32 - 1");
    if (p->eos >= p->V || p->eos < 0) return refuse(e, where, "ple.eos_token_id", p->eos, "a token of the vocabulary");
    return 0;
}

int qwen38_complete(struct qwen38_params *p, const char *where, struct err *e)
{
    int rc = check_derivable(p, where, e);
    if (rc) return rc;
    derive(p);
    rc = check_shapes(p, where, e);
    if (!rc) rc = check_as_read(p, where, e);
    return rc ? rc : check_table(p, where, e);
}

/* ---- written */

static bool is_written(const struct qwen38_params *p, const struct param_key *k)
{
    const bool scaling = !strncmp(k->name, "rope.scaling.", 13);
    if (!strcmp(k->name, "ngram_vocab_size_base") || (!strcmp(k->name, "nextn_predict_layers") && !p->nextn))
        return false;
    return !scaling || p->yarn_factor > 1;
}

void qwen38_metadata(struct gguf_writer *w, const void *params, const struct layout_tensor *tensors, int n)
{
    const struct qwen38_params *const p = params;
    for (const struct param_key *k = qwen38_keys; k->name; k++) {
        if (!is_written(p, k)) continue;
        if (k->kind == PARAM_OTHER)
            gguf_put_str(w, "qwen4exp.rope.scaling.type", "yarn", 4);
        else
            param_put(w, "qwen4exp", p, k);
    }
    for (int i = 0; i < n; i++) {
        if (!tensors[i].logical) continue;
        gguf_put_u32(w, "ds4.qwen4.down.logical_input", (uint32_t)tensors[i].logical);
        gguf_put_u32(w, "ds4.qwen4.down.physical_input", (uint32_t)tensors[i].ne[0]);
        break;
    }
}
