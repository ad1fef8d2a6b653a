/* Qwen3.8 Flash Next (spec dialects 10, qwen38 1, 2.2): canonical names, shapes, parameters and what replaces them.
 * Canonical names are those of llama.cpp. A draft block behind the trunk is bound with it. */
#include "dialect/dialect_tables.h"

/* ---- what shapes say */

/* Kinds of blocks: by tensors; where a block has neither kind's, by its place. */
static bool recurrent(const struct canonical *c, int l)
{
    if (l >= canonical_n_layers(c)) return false;
    if (dialect_ne(c, l, "ssm_a", 0) > 0) return true;
    if (dialect_ne(c, l, "attn_q_norm", 0) > 0) return false;
    return (l + 1) % canonical_int(c, "full_attention_interval") != 0;
}

static bool attending(const struct canonical *c, int l)
{
    return !recurrent(c, l);
}

static bool any_indexed(const struct canonical *c)
{
    return dialect_first_with(c, "indexer.k_proj") >= 0 || dialect_first_with(c, "attn_q_norm") < 0;
}

static bool indexed(const struct canonical *c, int l)
{
    return attending(c, l) && any_indexed(c);
}

/* Positions are spread over more than the model was made for. */
static bool stretched(const struct canonical *c, int l)
{
    return canonical_float(c, "rope.scaling.factor") != 1;
}

static bool remembering(const struct canonical *c, int l)
{
    return l == canonical_int(c, "ple.layers");
}

static bool drafting(const struct canonical *c, int l)
{
    return l >= canonical_n_layers(c);
}

static bool drafts(const struct canonical *c, int l, double *v)
{
    *v = canonical_n_blocks(c) - canonical_n_layers(c);
    return true;
}

static bool head_width(const struct canonical *c, int l, double *v)
{
    return dialect_say(dialect_first_ne(c, "attn_q_norm", 0), v);
}

static bool heads(const struct canonical *c, int l, double *v)
{
    return dialect_say(dialect_first_ne(c, "attn_q", 1) / (2 * canonical_int(c, "attention.key_length")), v);
}

static bool kv_heads(const struct canonical *c, int l, double *v)
{
    return dialect_say(dialect_first_ne(c, "attn_k", 1) / canonical_int(c, "attention.key_length"), v);
}

static bool value_heads(const struct canonical *c, int l, double *v)
{
    return dialect_say(dialect_first_ne(c, "ssm_a", 0), v);
}

static bool state_width(const struct canonical *c, int l, double *v)
{
    return dialect_say(dialect_first_ne(c, "ssm_norm", 0), v);
}

static bool key_heads(const struct canonical *c, int l, double *v)
{
    const int64_t keys = dialect_first_ne(c, "attn_qkv", 1) - dialect_first_ne(c, "attn_gate", 1);
    return dialect_say(keys / (2 * canonical_int(c, "ssm.state_size")), v);
}

static bool inner_width(const struct canonical *c, int l, double *v)
{
    return dialect_say(canonical_int(c, "ssm.time_step_rank") * canonical_int(c, "ssm.state_size"), v);
}

static bool taps(const struct canonical *c, int l, double *v)
{
    return dialect_say(dialect_first_ne(c, "ssm_conv1d", 0), v);
}

static bool streams(const struct canonical *c, int l, double *v)
{
    return dialect_say(dialect_first_ne(c, "hc_attn_inject", 1), v);
}

static bool rank(const struct canonical *c, int l, double *v)
{
    return dialect_say(dialect_first_ne(c, "hc_attn_down", 1), v);
}

static bool index_width(const struct canonical *c, int l, double *v)
{
    return dialect_say(dialect_first_ne(c, "indexer.k_norm", 0), v);
}

static bool index_heads(const struct canonical *c, int l, double *v)
{
    const int64_t w = canonical_int(c, "attention.indexer.key_length");
    return w > 0 && dialect_say(dialect_first_ne(c, "indexer.q_proj", 1) / w, v);
}

static bool expert_width(const struct canonical *c, int l, double *v)
{
    return dialect_say(dialect_ne(c, l, "ffn_up_exps", 1), v);
}

static bool shared_width(const struct canonical *c, int l, double *v)
{
    return dialect_say(dialect_first_ne(c, "ffn_gate_shexp", 1), v);
}

static bool memory_layer(const struct canonical *c, int l, double *v)
{
    *v = dialect_first_with(c, "ple_key");
    return *v >= 0;
}

static bool memory_taps(const struct canonical *c, int l, double *v)
{
    return dialect_say(dialect_first_ne(c, "ple_conv1d", 0), v);
}

static bool row_width(const struct canonical *c, int l, double *v)
{
    return dialect_say(dialect_ne(c, -1, "per_layer_token_embd", 0), v);
}

static bool gram(const struct canonical *c, int l, double *v)
{
    int n;
    canonical_array(c, "ple.layer_multipliers", &n);
    return dialect_say(n, v);
}

static int64_t gram_heads(const struct canonical *c, int l)
{
    return canonical_int(c, "embedding_length") / canonical_int(c, "embedding_length_per_layer_input");
}

static bool heads_per_gram(const struct canonical *c, int l, double *v)
{
    const int64_t orders = canonical_int(c, "ple.ngram_size") - 1;
    return orders > 0 && dialect_say(gram_heads(c, 0) / orders, v);
}

/* ---- parameters */

static const struct key_row keys[] = {
    {"nextn_predict_layers", KEY_INT, 0, "0 1", .derive = drafts, .from = "tensors", .matters = dialect_nowhere},
    {"block_count", KEY_INT, 0, "1..4096", .derive = dialect_layers, .from = "blocks"},
    {"embedding_length", KEY_INT, 0, "1..16777216", .derive = dialect_width, .from = "token_embd"},
    {"vocab_size", KEY_INT, 0, "1..16777216", .derive = dialect_vocabulary, .from = "token_embd"},
    {"context_length", KEY_INT, 0, "1..16777216", .rule = RULE_ANY, .constant = {262144}, .matters = stretched},
    {"full_attention_interval", KEY_INT, 0, "1..4096", .rule = RULE_QUIET, .constant = {4}, .matters = dialect_nowhere},
    {"attention.key_length", KEY_INT, 0, "1..65536", .derive = head_width, .from = "attn_q_norm"},
    {"attention.value_length", KEY_INT, 0, "1..65536", .derive = head_width, .from = "attn_q_norm"},
    {"attention.head_count", KEY_INT, 0, "1..65536", .derive = heads, .from = "attn_q"},
    {"attention.head_count_kv", KEY_INT, KEY_PER_LAYER, "0..65536", .derive = kv_heads, .from = "attn_k",
     .matters = attending},
    {"rope.dimension_count", KEY_INT, 0, "2..65536", .rule = RULE_PUBLISHED, .constant = {64}},
    {"rope.freq_base", KEY_FLOAT, 0, "1..1e15", .rule = RULE_ANY, .constant = {1e7}},
    {"rope.scaling.factor", KEY_FLOAT, 0, "1..1e6", .rule = RULE_QUIET, .constant = {1}},
    {"rope.scaling.original_context_length", KEY_INT, 0, "0..16777216", .rule = RULE_QUIET, .matters = stretched},
    {"attention.layer_norm_rms_epsilon", KEY_FLOAT, 0, "0..0.1", .rule = RULE_ANY, .constant = {1e-6f}},
    {"ssm.time_step_rank", KEY_INT, 0, "1..65536", .derive = value_heads, .from = "ssm_a"},
    {"ssm.state_size", KEY_INT, 0, "1..65536", .derive = state_width, .from = "ssm_norm"},
    {"ssm.group_count", KEY_INT, 0, "1..65536", .derive = key_heads, .from = "attn_qkv"},
    {"ssm.inner_size", KEY_INT, 0, "1..16777216", .derive = inner_width, .from = "ssm_a"},
    {"ssm.conv_kernel", KEY_INT, 0, "1..64", .derive = taps, .from = "ssm_conv1d"},
    {"hyper_connection.count", KEY_INT, 0, "2..64", .derive = streams, .from = "hc_attn_inject"},
    {"hyper_connection.low_rank", KEY_INT, 0, "1..16777216", .derive = rank, .from = "hc_attn_down"},
    {"attention.indexer.key_length", KEY_INT, 0, "1..65536", .derive = index_width, .from = "indexer.k_norm",
     .needed = any_indexed},
    {"attention.indexer.head_count", KEY_INT, 0, "1..65536", .derive = index_heads, .from = "indexer.q_proj",
     .needed = any_indexed},
    {"attention.indexer.top_k", KEY_INT, 0, "1..16777216", .rule = RULE_PUBLISHED, .constant = {2048},
     .needed = any_indexed},
    {"attention.compress_ratios", KEY_INT, KEY_PER_LAYER, "0..65536", .rule = RULE_ANY, .constant = {4},
     .needed = any_indexed, .matters = attending},
    {"expert_count", KEY_INT, KEY_PER_LAYER, "1..65536", .derive = dialect_experts, .from = "ffn_gate_inp"},
    {"expert_used_count", KEY_INT, KEY_PER_LAYER | KEY_WINS, "1..65536", .rule = RULE_PUBLISHED, .constant = {10}},
    {"expert_feed_forward_length", KEY_INT, KEY_PER_LAYER, "1..16777216", .derive = expert_width,
     .from = "ffn_up_exps"},
    {"expert_shared_feed_forward_length", KEY_INT, 0, "1..16777216", .derive = shared_width, .from = "ffn_gate_shexp"},
    {"expert_weights_norm", KEY_BOOL, 0, "1", .rule = RULE_QUIET, .constant = {1}},
    {"expert_gating_func", KEY_INT, 0, "1", .rule = RULE_QUIET, .constant = {1}},
    {"ple.layers", KEY_INT, KEY_PER_LAYER, "0..4095", .derive = memory_layer, .from = "ple_key"},
    {"ple.ngram_size", KEY_INT, KEY_WINS, "2..8", .derive = gram, .from = "ple.layer_multipliers"},
    {"embedding_length_per_layer_input", KEY_INT, 0, "1..65536", .derive = row_width, .from = "per_layer_token_embd"},
    {"ple.heads_per_ngram", KEY_INT, 0, "1..65536", .derive = heads_per_gram, .from = "per_layer_token_embd"},
    {"ple.conv_kernel", KEY_INT, 0, "1..64", .derive = memory_taps, .from = "ple_conv1d"},
    {"ple.eos_token_id", KEY_INT, 0, "0..16777215", .rule = RULE_PUBLISHED, .constant = {248044}},
};

/* Lists that tell of no layer. Hash constants cannot be derived: a model without them is refused. */
static const struct array_row arrays[] = {
    {"ple.layer_multipliers"},
    {"ple.head_offsets", .sum_of = "ple.head_vocab_sizes"},
    {"ple.head_vocab_sizes"},
    {"rope.dimension_sections", .optional = true},
};

/* ---- tensors (spec qwen38 2.2) */

static int64_t conv_width(const struct canonical *c, int l)
{
    return (2 * canonical_int(c, "ssm.group_count") + canonical_int(c, "ssm.time_step_rank")) *
           canonical_int(c, "ssm.state_size");
}

/* Rows of down matrices may be padded to whole blocks of 256. */
static int64_t down_width(const struct canonical *c, int l)
{
    const int64_t F = canonical_int_at(c, "expert_feed_forward_length", l), padded = (F + 255) / 256 * 256;
    return dialect_ne(c, l, "ffn_down_exps", 0) == padded ? padded : F;
}

static int64_t table_rows(const struct canonical *c, int l)
{
    return dialect_ne(c, -1, "per_layer_token_embd", 1);
}

static const struct tensor_dim dims[] = {
    {"V", "vocab_size", NULL},
    {"E", "embedding_length", NULL},
    {"H", "attention.head_count", NULL},
    {"G", "attention.head_count_kv", NULL},
    {"D", "attention.key_length", NULL},
    {"Hv", "ssm.time_step_rank", NULL},
    {"Dl", "ssm.state_size", NULL},
    {"Kc", "ssm.conv_kernel", NULL},
    {"cd", NULL, conv_width},
    {"hc", "hyper_connection.count", NULL},
    {"rho", "hyper_connection.low_rank", NULL},
    {"Hi", "attention.indexer.head_count", NULL},
    {"Di", "attention.indexer.key_length", NULL},
    {"X", "expert_count", NULL},
    {"F", "expert_feed_forward_length", NULL},
    {"Fp", NULL, down_width},
    {"Fs", "expert_shared_feed_forward_length", NULL},
    {"W", "embedding_length_per_layer_input", NULL},
    {"rows", NULL, table_rows},
    {"Kp", "ple.conv_kernel", NULL},
};

#define GAIN  .class = CLASS_VECTOR, .flags = TENSOR_SMALL | TENSOR_FOLDED
#define MIXER .class = CLASS_HYPER

static const struct tensor_row tensors[] = {
    {"token_embd", "E V", OWN, .class = CLASS_EDGE},
    {"per_layer_token_embd", "W rows", OWN, .class = CLASS_PLAIN, .flags = TENSOR_TABLE,
     .also = {{"ple_ngram_embd", NULL}}},
    {"output", "E V", OWN, .class = CLASS_EDGE, .flags = TENSOR_OPTIONAL},
    {"output_hc_norm", "hc*E", OWN, GAIN},
    {"output_hc_down", "hc*E rho", OWN, MIXER},
    {"output_hc_up", "rho hc*E", OWN, MIXER},
    {"hc_attn_norm", "hc*E", BLOCK, GAIN},
    {"hc_attn_down", "hc*E rho", BLOCK, MIXER},
    {"hc_attn_up", "rho hc*E", BLOCK, MIXER},
    {"hc_attn_inject", "hc*E hc", BLOCK, .class = CLASS_HYPER, .flags = TENSOR_SMALL},
    {"hc_ffn_norm", "hc*E", BLOCK, GAIN},
    {"hc_ffn_down", "hc*E rho", BLOCK, MIXER},
    {"hc_ffn_up", "rho hc*E", BLOCK, MIXER},
    {"hc_ffn_inject", "hc*E hc", BLOCK, .class = CLASS_HYPER, .flags = TENSOR_SMALL},
    {"attn_qkv", "E cd", BLOCK, MATRIX, .when = recurrent},
    {"attn_gate", "E Hv*Dl", BLOCK, MATRIX, .when = recurrent},
    {"ssm_conv1d", "Kc cd", BLOCK, VECTOR, .when = recurrent},
    {"ssm_dt", "Hv", BLOCK, VECTOR, .when = recurrent, .suffix = ".bias"},
    {"ssm_a", "Hv", BLOCK, VECTOR, .when = recurrent, .suffix = ""},
    {"ssm_beta", "E Hv", BLOCK, MATRIX, .when = recurrent},
    {"ssm_alpha", "E Hv", BLOCK, MATRIX, .when = recurrent},
    {"ssm_norm", "Dl", BLOCK, VECTOR, .when = recurrent},
    {"ssm_out", "Hv*Dl E", BLOCK, MATRIX, .when = recurrent},
    {"attn_q", "E 2*H*D", BLOCK, MATRIX, .when = attending},
    {"attn_k", "E G*D", BLOCK, MATRIX, .when = attending},
    {"attn_v", "E G*D", BLOCK, MATRIX, .when = attending},
    {"attn_output", "H*D E", BLOCK, MATRIX, .when = attending},
    {"attn_q_norm", "D", BLOCK, VECTOR, .when = attending},
    {"attn_k_norm", "D", BLOCK, VECTOR, .when = attending},
    {"indexer.q_proj", "E Hi*Di", BLOCK, .class = CLASS_INDEX, .when = indexed},
    {"indexer.k_proj", "E Di", BLOCK, .class = CLASS_INDEX, .when = indexed},
    {"indexer.q_norm", "Di", BLOCK, VECTOR, .when = indexed},
    {"indexer.k_norm", "Di", BLOCK, VECTOR, .when = indexed},
    {"ple_key", "E hc*E", BLOCK, .class = CLASS_MEMORY, .when = remembering},
    {"ple_value", "E E", BLOCK, .class = CLASS_MEMORY, .when = remembering},
    {"ple_norm_key", "hc*E", BLOCK, GAIN, .when = remembering},
    {"ple_norm_query", "hc*E", BLOCK, GAIN, .when = remembering},
    {"ple_norm_conv", "hc*E", BLOCK, GAIN, .when = remembering},
    {"ple_conv1d", "Kp hc*E", BLOCK, VECTOR, .when = remembering},
    {"ffn_gate_inp", "E X", BLOCK, .class = CLASS_ROUTER, .flags = TENSOR_SMALL},
    {"ffn_gate_exps", "E F X", BLOCK, .class = CLASS_EXPERT},
    {"ffn_up_exps", "E F X", BLOCK, .class = CLASS_EXPERT},
    {"ffn_down_exps", "Fp E X", BLOCK, .class = CLASS_EXPERT},
    {"ffn_gate_inp_shexp", "E", BLOCK, .class = CLASS_ROUTER, .flags = TENSOR_SMALL},
    {"ffn_gate_shexp", "E Fs", BLOCK, MATRIX},
    {"ffn_up_shexp", "E Fs", BLOCK, MATRIX},
    {"ffn_down_shexp", "Fs E", BLOCK, MATRIX},
    {"nextn.eh_proj", "2*E E", BLOCK, MATRIX, .when = drafting, .halves = {"nextn.fc_embd", "nextn.fc_hidden"}},
    {"nextn.fc_embd", "E E", BLOCK, .class = CLASS_PLAIN, .flags = TENSOR_HALF,
     .also = {{"mtp.fc_embd", NULL}, {"mtp.fc_embedding", NULL}}},
    {"nextn.fc_hidden", "E E", BLOCK, .class = CLASS_PLAIN, .flags = TENSOR_HALF, .also = {{"mtp.fc_hidden", NULL}}},
    {"nextn.enorm", "E", BLOCK, VECTOR, .when = drafting, .also = {{"mtp.pre_norm_embd", NULL}}},
    {"nextn.hnorm", "hc*E", BLOCK, GAIN, .when = drafting, .also = {{"mtp.pre_norm_hidden", NULL}}},
    {"nextn.hc_head_norm", "hc*E", BLOCK, GAIN, .when = drafting,
     .also = {{"nextn.hc_norm", NULL}, {"mtp.mixer_norm", NULL}}},
    {"nextn.hc_head_down", "hc*E rho", BLOCK, MIXER, .when = drafting,
     .also = {{"nextn.hc_down", NULL}, {"mtp.mixer_down", NULL}}},
    {"nextn.hc_head_up", "rho hc*E", BLOCK, MIXER, .when = drafting,
     .also = {{"nextn.hc_up", NULL}, {"mtp.mixer_up", NULL}}},
};

/* Fused projections of attention have the name of the recurrent blocks' own tensor. */
static const struct tensor_split splits[] = {
    GATE_AND_UP,
    GATE_AND_UP_SHARED,
    {"attn_qkv", {"attn_q", "attn_k", "attn_v"}, false, "attn_q_norm"},
};

/* ---- relations */

static int check_divides(const struct canonical *c, const char *key, const char *of, struct err *e)
{
    const int64_t n = canonical_int(c, key), all = canonical_int(c, of);
    if (n > 0 && all % n == 0) return 0;
    return dialect_refuse_value(c, e, key, n, "a divisor of %s, which is %lld", of, (long long)all);
}

static int check_rotation(const struct canonical *c, struct err *e)
{
    const int64_t Rn = canonical_int(c, "rope.dimension_count"), D = canonical_int(c, "attention.key_length");
    const int64_t Di = any_indexed(c) ? canonical_int(c, "attention.indexer.key_length") : D, most = Di < D ? Di : D;
    if (Rn % 2 == 0 && Rn <= most) return 0;
    return dialect_refuse_value(c, e, "rope.dimension_count", Rn, "an even number up to %lld, the least head width",
                                (long long)most);
}

/* Rows are counted in an int. */
static int check_widths(const struct canonical *c, struct err *e)
{
    const int64_t E = canonical_int(c, "embedding_length"), hc = canonical_int(c, "hyper_connection.count");
    const int64_t H = canonical_int(c, "attention.head_count"), D = canonical_int(c, "attention.key_length");
    if (E > INT32_MAX / hc) return dialect_refuse_value(c, e, "embedding_length", E, "widths below 2^31 / streams");
    if (H > INT32_MAX / (2 * D)) return dialect_refuse_value(c, e, "attention.head_count", H, "fewer of this width");
    if (conv_width(c, 0) > INT32_MAX / 4)
        return dialect_refuse_value(c, e, "ssm.time_step_rank", canonical_int(c, "ssm.time_step_rank"),
                                    "fewer of this width");
    return 0;
}

static int check_blocks(const struct canonical *c, struct err *e)
{
    const int64_t q = canonical_int(c, "attention.compress_ratios"), B = canonical_int(c, "attention.indexer.top_k");
    if (!any_indexed(c)) return 0;
    for (int l = 0; l < canonical_n_layers(c); l++)
        if (attending(c, l) && canonical_int_at(c, "attention.compress_ratios", l) != q)
            return dialect_refuse_value(c, e, "attention.compress_ratios",
                                        canonical_int_at(c, "attention.compress_ratios", l),
                                        "%lld, as in the other attention blocks", (long long)q);
    if (q < 1) return dialect_refuse_value(c, e, "attention.compress_ratios", q, "1 or more where an indexer selects");
    if (B < q) return dialect_refuse_value(c, e, "attention.indexer.top_k", B, "%lld or more, a block", (long long)q);
    return 0;
}

static int check_list(const struct canonical *c, const char *key, int64_t want, const char *by, struct err *e)
{
    int n;
    canonical_array(c, key, &n);
    if (n == want) return 0;
    return err_set(e, ERR_MODEL, "%s has %d entries; %lld are needed (%s)", key, n, (long long)want, by);
}

/* Every head's rows lie in the table, and a row index in 32 bits. */
static int check_heads(const struct canonical *c, struct err *e)
{
    int n, m;
    const uint64_t *off = canonical_array(c, "ple.head_offsets", &n);
    const uint64_t *size = canonical_array(c, "ple.head_vocab_sizes", &m);
    const uint64_t rows = (uint64_t)table_rows(c, 0);
    for (int h = 0; h < n; h++) {
        if (size[h] == 0) return err_set(e, ERR_MODEL, "ple.head_vocab_sizes[%d] = 0: a head needs rows", h);
        const bool many = size[h] > UINT32_MAX;
        if (many || off[h] > UINT32_MAX)
            return err_set(e, ERR_MODEL, "ple.%s[%d] = %llu: rows are counted in 32 bits",
                           many ? "head_vocab_sizes" : "head_offsets", h,
                           (unsigned long long)(many ? size[h] : off[h]));
        if (rows && off[h] + size[h] > rows) /* a missing table is said elsewhere */
            return err_set(e, ERR_MODEL,
                           "per_layer_token_embd.weight has %llu rows; head %d of the n-gram hash needs %llu",
                           (unsigned long long)rows, h, (unsigned long long)(off[h] + size[h]));
    }
    return 0;
}

static int check_memory(const struct canonical *c, struct err *e)
{
    const int64_t lp = canonical_int(c, "ple.layers"), Np = gram_heads(c, 0);
    const int64_t orders = canonical_int(c, "ple.ngram_size") - 1;
    int rc = check_divides(c, "embedding_length_per_layer_input", "embedding_length", e);
    if (rc) return rc;
    if (lp >= canonical_n_layers(c) || !recurrent(c, (int)lp))
        return dialect_refuse_value(c, e, "ple.layers", lp, "a recurrent block");
    if (Np != orders * canonical_int(c, "ple.heads_per_ngram"))
        return dialect_refuse_value(c, e, "ple.heads_per_ngram", canonical_int(c, "ple.heads_per_ngram"),
                                    "%lld heads in all, %lld n-gram orders", (long long)Np, (long long)orders);
    if (!canonical_has_file(c)) return 0;
    rc = check_list(c, "ple.layer_multipliers", orders + 1, "ple.ngram_size", e);
    if (rc == 0) rc = check_list(c, "ple.head_offsets", Np, "heads of a row", e);
    if (rc == 0) rc = check_list(c, "ple.head_vocab_sizes", Np, "heads of a row", e);
    return rc ? rc : check_heads(c, e);
}

static int validate(const struct canonical *c, const struct canonical_options *opt, struct err *e)
{
    int rc = check_widths(c, e);
    if (rc == 0) rc = check_divides(c, "attention.head_count_kv", "attention.head_count", e);
    if (rc == 0) rc = check_divides(c, "ssm.group_count", "ssm.time_step_rank", e);
    if (rc == 0) rc = check_rotation(c, e);
    if (rc == 0) rc = check_blocks(c, e);
    return rc ? rc : check_memory(c, e);
}

/* ---- what a faulty conversion shows (spec dialects 4) */

/* exp(A_log) and -exp(A_log) cannot be told apart by shape, but by sign (R14). */
static int look_at_decays(const struct canonical *c, struct err *e)
{
    double mean, largest;
    for (int l = 0; l < canonical_n_layers(c); l++)
        if (recurrent(c, l) && dialect_values(c, l, "ssm_a", &mean, &largest) && largest >= 0)
            return err_set(e, ERR_MODEL, "blk.%d.ssm_a holds positive values; expected -exp(A_log)", l);
    return 0;
}

/* Gains are stored as 1 + w: those of a file that forgot it lie around 0 (R15). */
static int look_at_gains(const struct canonical *c, struct err *e)
{
    double mean, largest;
    if (!dialect_values(c, 0, "hc_attn_norm", &mean, &largest) || !(mean < 0.3)) return 0;
    return err_set(e, ERR_MODEL,
                   "norm weights of this file are not stored as 1+w: those of blk.0.hc_attn_norm.weight lie around "
                   "0, where 1 is right");
}

static int look(const struct canonical *c, struct err *e)
{
    const int rc = look_at_gains(c, e);
    return rc ? rc : look_at_decays(c, e);
}

const struct family_table dialect_qwen38 = {
    .id = CANONICAL_QWEN38,
    .name = "Qwen3.8 Flash Next",
    .publishers = "llama.cpp's form (unsloth, ggml-org, ISTA-DASLab) or ds4's (ivanfioravanti)",
    .short_name = "qwen4exp",
    .prefix = {"qwen4exp", "qwen4-exp", "qwen4_exp"},
    .published = {{"Qwen3.8 Flash Next", 2560, 48}},
    FAMILY_ROWS(tensors),
    FAMILY_ROWS(splits),
    FAMILY_ROWS(dims),
    FAMILY_ROWS(keys),
    FAMILY_ROWS(arrays),
    .binds_draft = true,
    .key_width = "embedding_length",
    .key_layers = "block_count",
    .key_draft = "nextn_predict_layers",
    .pre = {"qwen35", "qwen2"},
    .eos = "<|im_end|>",
    .router = "ffn_gate_inp",
    .experts = "expert_count",
    .used = "expert_used_count",
    .validate = validate,
    .look = look,
};
