/* A random Qwen3.8. Standard deviations are such that gates, softmaxes, decays and selections all have work. */
#include "synth_qwen38.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/mem.h"
#include "gguf/gguf.h"
#include "quant/quant.h"
#include "synth_tensors.h"

/* ---- tensors */

static void mixer(struct synth_list *y, const struct synth_qwen38 *s, const char *prefix, bool inject)
{
    char name[64];
    snprintf(name, sizeof name, "%s_norm", prefix);
    synth_norm(y, s->hc * s->E, name);
    snprintf(name, sizeof name, "%s_down", prefix);
    synth_matrix(y, s->type, 4 * sqrt(s->hc), s->hc * s->E, s->rho, name);
    snprintf(name, sizeof name, "%s_up", prefix);
    synth_matrix(y, s->type, 3, s->rho, s->hc * s->E, name);
    snprintf(name, sizeof name, "%s_inject", prefix);
    if (inject) synth_matrix(y, s->type, s->hc, s->hc * s->E, s->hc, name);
}

static void delta_net(struct synth_list *y, const struct synth_qwen38 *s)
{
    const int vd = s->Hv * s->Dl, cd = 2 * s->Hk * s->Dl + vd;
    synth_matrix(y, s->type, 2, s->E, cd, "attn_qkv");
    synth_matrix(y, s->type, 2, s->E, vd, "attn_gate");
    synth_matrix(y, QT_F32, 1.5, s->Kc, cd, "ssm_conv1d");
    synth_vector(y, 1, s->Hv, "ssm_dt.bias");
    synth_add(y, QT_F32, FILL_DECAY, 1, 1, (uint64_t[]){(uint64_t)s->Hv}, "ssm_a");
    synth_matrix(y, s->type, 2, s->E, s->Hv, "ssm_beta");
    synth_matrix(y, s->type, 2, s->E, s->Hv, "ssm_alpha");
    synth_norm(y, s->Dl, "ssm_norm");
    synth_matrix(y, s->type, 2, vd, s->E, "ssm_out");
}

static void attention(struct synth_list *y, const struct synth_qwen38 *s)
{
    synth_matrix(y, s->type, 2, s->E, 2 * s->H * s->D, "attn_q");
    synth_matrix(y, s->type, 2, s->E, s->Hkv * s->D, "attn_k");
    synth_matrix(y, s->type, 2, s->E, s->Hkv * s->D, "attn_v");
    synth_matrix(y, s->type, 3, s->H * s->D, s->E, "attn_output");
    synth_norm(y, s->D, "attn_q_norm");
    synth_norm(y, s->D, "attn_k_norm");
    if (s->dense) return;
    synth_matrix(y, s->type, 1, s->E, s->Hi * s->Di, "indexer.q_proj");
    synth_matrix(y, s->type, 1, s->E, s->Di, "indexer.k_proj");
    synth_norm(y, s->Di, "indexer.q_norm");
    synth_norm(y, s->Di, "indexer.k_norm");
}

static void memory(struct synth_list *y, const struct synth_qwen38 *s)
{
    synth_matrix(y, s->type, 1, s->E, s->hc * s->E, "ple_key");
    synth_matrix(y, s->type, 2, s->E, s->E, "ple_value");
    synth_norm(y, s->hc * s->E, "ple_norm_key");
    synth_norm(y, s->hc * s->E, "ple_norm_query");
    synth_norm(y, s->hc * s->E, "ple_norm_conv");
    synth_matrix(y, QT_F32, 1.5, s->Kp, s->hc * s->E, "ple_conv1d");
}

static void experts(struct synth_list *y, const struct synth_qwen38 *s)
{
    const struct {
        const char *name;
        int width, rows;
    } m[3] = {{"gate", s->E, s->F}, {"up", s->E, s->F}, {"down", s->F, s->E}};
    synth_matrix(y, QT_F32, 4, s->E, s->NE, "ffn_gate_inp");
    synth_add(y, QT_F32, FILL_NORMAL, 2 / sqrt(s->E), 1, (uint64_t[]){(uint64_t)s->E}, "ffn_gate_inp_shexp.weight");
    for (int i = 0; i < 3; i++) {
        const uint64_t ne[3] = {(uint64_t)m[i].width, (uint64_t)m[i].rows, (uint64_t)s->NE};
        synth_add(y, s->experts, FILL_NORMAL, 2 / sqrt(m[i].width), 3, ne, "ffn_%s_exps.weight", m[i].name);
    }
    synth_matrix(y, s->type, 2, s->E, s->Fs, "ffn_gate_shexp");
    synth_matrix(y, s->type, 2, s->E, s->Fs, "ffn_up_shexp");
    synth_matrix(y, s->type, 2, s->Fs, s->E, "ffn_down_shexp");
}

static void layer(struct synth_list *y, const struct synth_qwen38 *s, int l)
{
    y->layer = l;
    mixer(y, s, "hc_attn", true);
    mixer(y, s, "hc_ffn", true);
    if (l < s->L && (l + 1) % s->I)
        delta_net(y, s);
    else
        attention(y, s);
    if (l == s->lp) memory(y, s);
    experts(y, s);
    if (l < s->L) return;
    synth_matrix(y, s->type, 1, 2 * s->E, s->E, "nextn.eh_proj");
    synth_norm(y, s->E, "nextn.enorm");
    synth_norm(y, s->hc * s->E, "nextn.hnorm");
    mixer(y, s, "nextn.hc_head", false);
}

static int heads(const struct synth_qwen38 *s)
{
    return (s->G - 1) * s->P;
}

static void tensors(struct synth_list *y, const struct synth_qwen38 *s, uint64_t table_rows)
{
    y->layer = -1;
    synth_matrix(y, s->type, sqrt(s->E), s->E, s->V, "token_embd");
    if (!s->tied) synth_matrix(y, s->type, 4, s->E, s->V, "output");
    mixer(y, s, "output_hc", false);
    for (int l = 0; l < s->L + s->draft; l++) layer(y, s, l);
    y->layer = -1;
    synth_add(y, s->table, FILL_NORMAL, 1, 2, (uint64_t[]){(uint64_t)(s->E / heads(s)), table_rows},
              "per_layer_token_embd.weight");
}

/* ---- metadata */

static bool is_prime(uint64_t n)
{
    for (uint64_t d = 2; d * d <= n; d++)
        if (n % d == 0) return false;
    return n > 1;
}

static void put_list(struct gguf_writer *w, const char *key, const uint64_t *v, int n)
{
    gguf_put_kv(w, &(struct gguf_kv){.key = {key, strlen(key)},
                                     .type = GGUF_ARRAY,
                                     .elem = GGUF_U64,
                                     .count = (uint64_t)n,
                                     .data = (const uint8_t *)v});
}

/* Hash constants; returns the rows of the table. */
static uint64_t put_hash(struct gguf_writer *w, const struct synth_qwen38 *s)
{
    uint64_t mul[8], off[64], voc[64], rows = 0, prime = (uint64_t)s->primes_from, x = 77 + s->seed;
    for (int j = 0; j < s->G; j++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        mul[j] = (s->big ? x : x >> 20) | 1;
    }
    for (int h = 0; h < heads(s); h++, prime++) {
        while (!is_prime(prime)) prime++;
        voc[h] = prime;
        off[h] = rows;
        rows += prime;
    }
    put_list(w, "qwen4exp.ple.layer_multipliers", mul, s->G);
    put_list(w, "qwen4exp.ple.head_offsets", off, heads(s));
    put_list(w, "qwen4exp.ple.head_vocab_sizes", voc, heads(s));
    return (rows + 31) / 32 * 32;
}

static void put_keys(struct gguf_writer *w, const struct synth_qwen38 *s)
{
    const int vd = s->Hv * s->Dl;
    const struct {
        const char *key;
        int v;
    } ints[] = {
        {"block_count", s->L + s->draft},
        {"context_length", 262144},
        {"embedding_length", s->E},
        {"vocab_size", s->V},
        {"attention.head_count", s->H},
        {"attention.head_count_kv", s->Hkv},
        {"attention.key_length", s->D},
        {"attention.value_length", s->D},
        {"rope.dimension_count", s->Rn},
        {"expert_count", s->NE},
        {"expert_used_count", s->K},
        {"expert_feed_forward_length", s->F},
        {"expert_shared_feed_forward_length", s->Fs},
        {"full_attention_interval", s->I},
        {"ssm.group_count", s->Hk},
        {"ssm.time_step_rank", s->Hv},
        {"ssm.state_size", s->Dl},
        {"ssm.conv_kernel", s->Kc},
        {"ssm.inner_size", vd},
        {"hyper_connection.count", s->hc},
        {"hyper_connection.low_rank", s->rho},
        {"attention.indexer.head_count", s->Hi},
        {"attention.indexer.key_length", s->Di},
        {"attention.indexer.top_k", s->B},
        {"ple.ngram_size", s->G},
        {"ple.heads_per_ngram", s->P},
        {"ple.conv_kernel", s->Kp},
        {"ple.eos_token_id", s->eos},
        {"embedding_length_per_layer_input", s->E / heads(s)},
        {"nextn_predict_layers", s->draft},
    };
    char key[96];
    for (size_t i = 0; i < sizeof ints / sizeof *ints; i++) {
        snprintf(key, sizeof key, "qwen4exp.%s", ints[i].key);
        gguf_put_u32(w, key, (uint32_t)ints[i].v);
    }
    gguf_put_f32(w, "qwen4exp.rope.freq_base", s->base);
    gguf_put_f32(w, "qwen4exp.attention.layer_norm_rms_epsilon", 1e-6f);
    if (s->yarn > 0) {
        gguf_put_str(w, "qwen4exp.rope.scaling.type", "yarn", 4);
        gguf_put_f32(w, "qwen4exp.rope.scaling.factor", s->yarn);
    }
    int32_t ratios[64];
    for (int l = 0; l < s->L + s->draft; l++) ratios[l] = l < s->L && (l + 1) % s->I ? 0 : s->dense ? 0 : s->q;
    gguf_put_arr_i32(w, "qwen4exp.attention.compress_ratios", ratios, (uint64_t)(s->L + s->draft));
    gguf_put_arr_i32(w, "qwen4exp.ple.layers", &(int32_t){s->lp}, 1);
    const int n = s->Rn / 2;
    gguf_put_arr_i32(w, "qwen4exp.rope.dimension_sections", (int32_t[]){(n + 2) / 3, (n + 1) / 3, n / 3, 0}, 4);
}

int synth_qwen38_write(const char *path, const struct synth_qwen38 *s, struct err *e)
{
    static const char *const special[] = {
        "<|endoftext|>", "<|im_start|>", "<|im_end|>",      "<think>",          "</think>",
        "<tool_call>",   "</tool_call>", "<tool_response>", "</tool_response>", "th"};
    struct gguf_writer *w = NULL;
    struct synth_list y = {0};
    int rc = gguf_writer_open(path, &w, e);
    if (rc) return rc;
    gguf_put_str(w, "general.architecture", "qwen4exp", 8);
    gguf_put_str(w, "general.name", "random Qwen shape", 17);
    gguf_put_u32(w, "general.alignment", 32);
    put_keys(w, s);
    const uint64_t rows = put_hash(w, s);
    synth_write_vocabulary(w, s->V, special, sizeof special / sizeof *special, "qwen35", -1, 2);
    tensors(&y, s, rows);
    rc = synth_write(w, &y, s->seed, e);
    if (rc == 0) return gguf_writer_finish(w, e);
    gguf_writer_abort(w);
    return rc;
}

struct synth_qwen38 synth_qwen38_tiny(void)
{
    return (struct synth_qwen38){.V = 288,
                                 .E = 64,
                                 .L = 4,
                                 .H = 4,
                                 .Hkv = 2,
                                 .D = 32,
                                 .Rn = 8,
                                 .NE = 8,
                                 .K = 3,
                                 .F = 32,
                                 .Fs = 32,
                                 .I = 4,
                                 .Hk = 2,
                                 .Hv = 6,
                                 .Dl = 16,
                                 .Kc = 4,
                                 .hc = 4,
                                 .rho = 8,
                                 .Hi = 4,
                                 .Di = 32,
                                 .B = 16,
                                 .q = 4,
                                 .lp = 1,
                                 .G = 3,
                                 .P = 4,
                                 .Kp = 4,
                                 .eos = 0,
                                 .primes_from = 97,
                                 .base = 1e7f,
                                 .type = QT_F32,
                                 .experts = QT_F32,
                                 .table = QT_BF16,
                                 .seed = 1};
}

/* ---- shapes with golden results */

/* What differs from the tiny shape; 0 keeps its value. */
struct variant {
    const char *name;
    int n_ids, E, L, H, Hkv, D, Rn, NE, K, F, Fs, I, Hk, Hv, Dl, Kc, hc, rho, Hi, Di, B, q, lp, G, P, Kp;
    float yarn;
    bool draft, tied, big, dense, grids;
};

static const struct variant variants[] = {
    {.name = "plain", .n_ids = 60, .B = 256},
    {.name = "selecting", .n_ids = 150},
    {.name = "narrow",
     .n_ids = 100,
     .E = 48,
     .H = 2,
     .Hkv = 1,
     .D = 64,
     .Rn = 16,
     .NE = 6,
     .K = 2,
     .F = 40,
     .Fs = 24,
     .Hk = 4,
     .Hv = 4,
     .hc = 2,
     .rho = 12,
     .Hi = 8,
     .Di = 16,
     .lp = 2,
     .G = 2,
     .P = 4},
    {.name = "odd",
     .n_ids = 120,
     .E = 96,
     .L = 6,
     .H = 6,
     .Hkv = 3,
     .D = 24,
     .Rn = 12,
     .F = 48,
     .Fs = 64,
     .I = 3,
     .Hk = 2,
     .Hv = 4,
     .Dl = 24,
     .Kc = 3,
     .hc = 3,
     .rho = 20,
     .Hi = 7,
     .Di = 20,
     .B = 24,
     .q = 8,
     .lp = 3,
     .Kp = 3,
     .big = true},
    {.name = "deep", .n_ids = 200, .L = 8, .Hi = 8, .B = 40, .NE = 32, .K = 10},
    {.name = "single_rows", .n_ids = 90, .Hi = 8, .q = 1, .B = 24, .K = 1},
    {.name = "four_grams", .n_ids = 80, .hc = 2, .G = 5, .P = 2, .Kp = 2, .lp = 0, .Kc = 2},
    {.name = "stretched", .n_ids = 100, .Rn = 32, .Hi = 8, .yarn = 4, .tied = true},
    {.name = "all_seen", .n_ids = 100, .dense = true, .Hkv = 4, .Kc = 1, .Kp = 1},
    {.name = "pictures", .n_ids = 90, .D = 48, .Rn = 24, .Hi = 8, .q = 8, .grids = true},
    {.name = "drafting", .n_ids = 140, .L = 4, .Hi = 8, .NE = 16, .K = 4, .draft = true},
};

int qwen38_case_count(void)
{
    return (int)(sizeof variants / sizeof variants[0]);
}

struct qwen38_case qwen38_case_at(int i)
{
    const struct variant *v = &variants[i];
    struct qwen38_case c = {.name = v->name, .shape = synth_qwen38_tiny(), .n_ids = v->n_ids};
    struct synth_qwen38 *s = &c.shape;
    const struct {
        int *to, value;
    } set[] = {{&s->E, v->E},   {&s->L, v->L},     {&s->H, v->H},   {&s->Hkv, v->Hkv}, {&s->D, v->D},
               {&s->Rn, v->Rn}, {&s->NE, v->NE},   {&s->K, v->K},   {&s->F, v->F},     {&s->Fs, v->Fs},
               {&s->I, v->I},   {&s->Hk, v->Hk},   {&s->Hv, v->Hv}, {&s->Dl, v->Dl},   {&s->Kc, v->Kc},
               {&s->hc, v->hc}, {&s->rho, v->rho}, {&s->Hi, v->Hi}, {&s->Di, v->Di},   {&s->B, v->B},
               {&s->q, v->q},   {&s->G, v->G},     {&s->P, v->P},   {&s->Kp, v->Kp}};
    for (size_t k = 0; k < sizeof set / sizeof *set; k++)
        if (set[k].value) *set[k].to = set[k].value;
    if (v->lp || !strcmp(v->name, "four_grams")) s->lp = v->lp;
    s->yarn = v->yarn, s->draft = v->draft, s->tied = v->tied, s->big = v->big, s->dense = v->dense;
    if (v->grids) c.grid[0].first = 10, c.grid[0].rows = 3, c.grid[0].columns = 4;
    if (v->grids) c.grid[1].first = 37, c.grid[1].rows = 5, c.grid[1].columns = 2;
    s->V = 96;
    s->type = s->experts = QT_F16;
    s->seed = 2000 + (uint64_t)i;
    return c;
}

void qwen38_case_ids(const struct qwen38_case *c, int32_t *ids)
{
    uint64_t x = 0x9e3779b97f4a7c15u * (c->shape.seed + 1);
    for (int i = 0; i < c->n_ids; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        ids[i] = (x >> 20) % 16 == 0 ? c->shape.eos : (int32_t)((x >> 33) % (uint64_t)c->shape.V);
    }
}

/* Where a token's grid is: its number in it, or -1. */
static int in_grid(const struct qwen38_case *c, int i, int *grid)
{
    for (*grid = 0; *grid < 2; ++*grid) {
        const int k = i - c->grid[*grid].first;
        if (k >= 0 && k < c->grid[*grid].rows * c->grid[*grid].columns) return k;
    }
    return -1;
}

void qwen38_case_positions(const struct qwen38_case *c, int32_t *rope)
{
    int ahead = 0; /* of the positions against the tokens */
    for (int i = 0; i < c->n_ids; i++, rope += 3) {
        int g;
        const int k = in_grid(c, i, &g), rows = c->grid[g & 1].rows, columns = c->grid[g & 1].columns;
        rope[0] = rope[1] = rope[2] = i + ahead;
        if (k < 0) continue;
        rope[0] = i - k + ahead;
        rope[1] = rope[0] + k / columns, rope[2] = rope[0] + k % columns;
        if (k + 1 == rows * columns) ahead -= k + 1 - (rows > columns ? rows : columns);
    }
}
