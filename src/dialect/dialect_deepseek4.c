/* DeepSeek V4, Flash and PRO (spec dialects 6, deepseek-v4 2.2, 2.3 and 8): canonical names, aliases, shapes,
 * parameters and what replaces them. Canonical names are those of ds4's own files. */
#include "dialect/dialect_tables.h"

#define IK    "ik_llama.cpp"
#define EARLY "early fork"

enum { MOST_DRAFT_BLOCKS = 64 };

/* ---- what shapes say */

static bool heads(const struct canonical *c, int l, double *v)
{
    return dialect_say(dialect_ne(c, 0, "attn_sinks", 0), v);
}

static bool head_width(const struct canonical *c, int l, double *v)
{
    return dialect_say(dialect_ne(c, 0, "attn_kv", 1), v);
}

static bool query_rank(const struct canonical *c, int l, double *v)
{
    return dialect_say(dialect_ne(c, 0, "attn_q_a", 1), v);
}

static bool groups(const struct canonical *c, int l, double *v)
{
    const int64_t all = canonical_int(c, "attention.head_count") * canonical_int(c, "attention.key_length");
    const int64_t part = dialect_ne(c, 0, "attn_output_a", 0);
    return part > 0 && all % part == 0 && dialect_say(all / part, v);
}

static bool output_rank(const struct canonical *c, int l, double *v)
{
    const int64_t all = dialect_ne(c, 0, "attn_output_b", 0), G = canonical_int(c, "attention.output_group_count");
    return all % G == 0 && dialect_say(all / G, v);
}

static bool expert_width(const struct canonical *c, int l, double *v)
{
    return dialect_say(dialect_ne(c, l, "ffn_down_exps", 0), v);
}

/* A file without the tensor is refused for that: the usual width, as wide as a routed expert, stands in until then. */
static bool shared_width(const struct canonical *c, int l, double *v)
{
    const int64_t all = dialect_ne(c, 0, "ffn_gate_shexp", 1);
    return dialect_say(all ? all : canonical_int_at(c, "expert_feed_forward_length", 0), v);
}

static bool shared_experts(const struct canonical *c, int l, double *v)
{
    const int64_t F = canonical_int_at(c, "expert_feed_forward_length", 0), all = dialect_ne(c, 0, "ffn_gate_shexp", 1);
    return all % F == 0 && dialect_say(all / F, v);
}

/* Leading blocks with a table. Where the first block without one has no selection bias either, though others do, a
 * table is missing: nothing is derived, and the key names the hole. */
static bool hash_layers(const struct canonical *c, int l, double *v)
{
    int n = 0;
    while (n < canonical_n_layers(c) && dialect_ne(c, n, "ffn_gate_tid2eid", 0) > 0) n++;
    *v = n;
    return n == canonical_n_layers(c) || dialect_ne(c, n, "exp_probs_b", 0) > 0 ||
           dialect_first_with(c, "exp_probs_b") < 0;
}

static bool used_experts(const struct canonical *c, int l, double *v)
{
    return dialect_say(dialect_ne(c, 0, "ffn_gate_tid2eid", 0), v);
}

static bool index_heads(const struct canonical *c, int l, double *v)
{
    const int i = dialect_first_with(c, "indexer.proj");
    return i >= 0 && dialect_say(dialect_ne(c, i, "indexer.proj", 1), v);
}

static bool index_width(const struct canonical *c, int l, double *v)
{
    const int i = dialect_first_with(c, "indexer.proj");
    return i >= 0 && dialect_say(dialect_ne(c, i, "indexer_compressor_norm", 0), v);
}

/* A compressor without its position biases is a hole in the file: nothing is derived and the missing tensor refused. */
static bool ratio(const struct canonical *c, int l, double *v)
{
    static const char *const others[] = {"attn_compressor_kv", "attn_compressor_gate", "attn_compressor_norm"};
    *v = (double)dialect_ne(c, l, "attn_compressor_ape", 1);
    for (int i = 0; *v <= 0 && i < 3; i++)
        if (dialect_ne(c, l, others[i], 0) > 0) return false;
    return true;
}

static bool streams(const struct canonical *c, int l, double *v)
{
    return dialect_say(dialect_ne(c, 0, "hc_attn_fn", 0) / canonical_int(c, "embedding_length"), v);
}

static bool shared_clamp(const struct canonical *c, int l, double *v)
{
    *v = canonical_float_at(c, "swiglu_clamp_exp", l);
    return true;
}

static bool draft_blocks(const struct canonical *c, int l, double *v)
{
    int n = 0;
    const int L = canonical_n_layers(c);
    while (n < MOST_DRAFT_BLOCKS && (dialect_has(c, L + n, "nextn.") || dialect_has(c, L + n, "mtp."))) n++;
    *v = n;
    return true;
}

static int64_t ratio_of(const struct canonical *c, int l)
{
    return canonical_int_at(c, "attention.compress_ratios", l);
}

static bool compressed(const struct canonical *c, int l)
{
    return ratio_of(c, l) != 0;
}

static bool indexed(const struct canonical *c, int l)
{
    return ratio_of(c, l) == canonical_int(c, "attention.overlap_ratio");
}

static bool any_indexed(const struct canonical *c)
{
    for (int l = 0; l < canonical_n_layers(c); l++)
        if (indexed(c, l)) return true;
    return false;
}

static bool hashed(const struct canonical *c, int l)
{
    return l < canonical_int(c, "hash_layer_count");
}

static bool scored(const struct canonical *c, int l)
{
    return !hashed(c, l);
}

/* ---- parameters (spec dialects 6.2, deepseek-v4 8) */

static const struct key_row keys[] = {
    {"nextn_predict_layers", KEY_INT, KEY_WINS, "0..64", .derive = draft_blocks, .from = "tensors",
     .matters = dialect_nowhere},
    {"block_count", KEY_INT, 0, "1..4096", .derive = dialect_layers, .from = "blocks"},
    {"embedding_length", KEY_INT, 0, "1..16777216", .derive = dialect_width, .from = "token_embd"},
    {"vocab_size", KEY_INT, 0, "1..16777216", .derive = dialect_vocabulary, .from = "token_embd"},
    {"context_length", KEY_INT, 0, "1..16777216", .rule = RULE_ANY, .constant = {1048576}, .matters = dialect_nowhere},
    {"attention.head_count", KEY_INT, 0, "1..65536", .derive = heads, .from = "attn_sinks"},
    {"attention.head_count_kv", KEY_INT, KEY_PER_LAYER, "1", .rule = RULE_DEFAULT, .constant = {1}},
    {"attention.key_length", KEY_INT, 0, "1..65536", .derive = head_width, .from = "attn_kv"},
    {"attention.value_length", KEY_INT, 0, "1..65536", .derive = head_width, .from = "attn_kv"},
    {"rope.dimension_count", KEY_INT, 0, "2..65536", .rule = RULE_PUBLISHED, .constant = {64, 64}},
    {"attention.q_lora_rank", KEY_INT, 0, "1..16777216", .derive = query_rank, .from = "attn_q_a"},
    {"attention.output_group_count", KEY_INT, 0, "1..65536", .derive = groups, .from = "attn_output_a",
     .also = {"attention.o_groups"}},
    {"attention.output_lora_rank", KEY_INT, 0, "1..16777216", .derive = output_rank, .from = "attn_output_b",
     .also = {"attention.o_lora_rank"}},
    {"attention.sliding_window", KEY_INT, 0, "1..16777216", .rule = RULE_PUBLISHED, .constant = {128, 128}},
    {"attention.overlap_ratio", KEY_INT, 0, "4 128", .rule = RULE_QUIET, .constant = {4}},
    {"attention.compress_ratios", KEY_INT, KEY_PER_LAYER, "0 4 128", .derive = ratio, .from = "attn_compressor_ape"},
    {"attention.indexer.head_count", KEY_INT, 0, "1..65536", .derive = index_heads, .from = "indexer.proj",
     .needed = any_indexed},
    {"attention.indexer.key_length", KEY_INT, 0, "1..65536", .derive = index_width, .from = "indexer_compressor_norm",
     .needed = any_indexed},
    {"attention.indexer.top_k", KEY_INT, 0, "1..16777216", .rule = RULE_PUBLISHED, .constant = {512, 1024},
     .needed = any_indexed},
    {"attention.compress_rope_freq_base", KEY_FLOAT, 0, "1..1e15", .rule = RULE_ANY, .constant = {160000},
     .also = {"rope.freq_base_swa"}},
    {"rope.freq_base", KEY_FLOAT, 0, "1..1e15", .rule = RULE_ANY, .constant = {10000}},
    {"rope.scaling.factor", KEY_FLOAT, 0, "1..1e6", .rule = RULE_ANY, .constant = {16}},
    {"rope.scaling.original_context_length", KEY_INT, 0, "1..16777216", .rule = RULE_ANY, .constant = {65536}},
    {"rope.scaling.yarn_beta_fast", KEY_FLOAT, 0, "1e-6..1e6", .rule = RULE_ANY, .constant = {32}},
    {"rope.scaling.yarn_beta_slow", KEY_FLOAT, 0, "1e-6..1e6", .rule = RULE_ANY, .constant = {1}},
    {"attention.layer_norm_rms_epsilon", KEY_FLOAT, 0, "0..0.1", .rule = RULE_ANY, .constant = {1e-6f}},
    {"hyper_connection.count", KEY_INT, 0, "1..64", .derive = streams, .from = "hc_attn_fn",
     .also = {"hyperconnections.mult"}},
    {"hyper_connection.sinkhorn_iterations", KEY_INT, 0, "1..1000", .rule = RULE_ANY, .constant = {20},
     .also = {"hyperconnections.sinkhorn_iters"}},
    {"hyper_connection.epsilon", KEY_FLOAT, 0, "0..0.1", .rule = RULE_ANY, .constant = {1e-6f},
     .also = {"hyperconnections.eps"}},
    {"expert_count", KEY_INT, KEY_PER_LAYER, "1..65536", .derive = dialect_experts, .from = "ffn_gate_inp"},
    {"expert_used_count", KEY_INT, KEY_PER_LAYER | KEY_WINS, "1..65536", .derive = used_experts,
     .from = "ffn_gate_tid2eid", .rule = RULE_PUBLISHED, .constant = {6, 6}},
    {"expert_feed_forward_length", KEY_INT, KEY_PER_LAYER, "1..16777216", .derive = expert_width,
     .from = "ffn_down_exps"},
    {"expert_shared_feed_forward_length", KEY_INT, 0, "1..16777216", .derive = shared_width, .from = "ffn_gate_shexp"},
    {"expert_shared_count", KEY_INT, 0, "0..65536", .derive = shared_experts, .from = "ffn_gate_shexp",
     .rule = RULE_DEFAULT, .constant = {1}},
    {"hash_layer_count", KEY_INT, 0, "0..4096", .derive = hash_layers, .from = "ffn_gate_tid2eid",
     .also = {"n_hash_layers"}},
    {"expert_weights_scale", KEY_FLOAT, 0, "1e-6..1e6", .rule = RULE_PUBLISHED, .constant = {1.5, 2.5}},
    {"expert_weights_norm", KEY_BOOL, 0, "1", .rule = RULE_DEFAULT, .constant = {1}},
    {"expert_gating_func", KEY_INT, 0, "4", .rule = RULE_DEFAULT, .constant = {4}, .also = {"expert_score_func"}},
    {"expert_group_count", KEY_INT, 0, "0 1", .rule = RULE_QUIET},
    {"expert_group_used_count", KEY_INT, 0, "0 1", .rule = RULE_QUIET},
    {"swiglu_clamp_exp", KEY_FLOAT, KEY_PER_LAYER, "0..3.5e38", .rule = RULE_ANY, .constant = {10}},
    {"swiglu_clamp_shexp", KEY_FLOAT, KEY_PER_LAYER | KEY_WINS, "0..3.5e38", .derive = shared_clamp,
     .from = "swiglu_clamp_exp"},
    {"attention.kv_sim_block", KEY_INT, 0, "0..65536", .rule = RULE_QUIET, .constant = {64}},
    {"attention.indexer.sim_block", KEY_INT, 0, "0..65536", .rule = RULE_QUIET, .constant = {32}},
    {"attention.indexer.hadamard", KEY_BOOL, 0, "0 1", .rule = RULE_QUIET, .constant = {1}},
};

/* ---- tensors (spec deepseek-v4 2.3, dialects 6.1) */

/* Streams are mixed by 2n + n^2 controls; overlapping compressors (the indexed ones) have two halves. */
static int64_t controls(const struct canonical *c, int l)
{
    const int64_t n = canonical_int(c, "hyper_connection.count");
    return 2 * n + n * n;
}

static int64_t halves(const struct canonical *c, int l)
{
    return indexed(c, l) ? 2 : 1;
}

static const struct tensor_dim dims[] = {
    {"V", "vocab_size", NULL},
    {"D", "embedding_length", NULL},
    {"H", "attention.head_count", NULL},
    {"d", "attention.key_length", NULL},
    {"G", "attention.output_group_count", NULL},
    {"Rq", "attention.q_lora_rank", NULL},
    {"Ro", "attention.output_lora_rank", NULL},
    {"E", "expert_count", NULL},
    {"K", "expert_used_count", NULL},
    {"F", "expert_feed_forward_length", NULL},
    {"Fs", "expert_shared_feed_forward_length", NULL},
    {"IH", "attention.indexer.head_count", NULL},
    {"ID", "attention.indexer.key_length", NULL},
    {"n", "hyper_connection.count", NULL},
    {"ratio", "attention.compress_ratios", NULL},
    {"B", NULL, controls},
    {"c", NULL, halves},
};

static const struct tensor_row tensors[] = {
    {"token_embd", "D V", OWN, .class = CLASS_EDGE},
    {"output_norm", "D", OWN, VECTOR},
    {"output", "D V", OWN, .class = CLASS_EDGE},
    {"output_hc_fn", "n*D n", OWN, .class = CLASS_HYPER, .flags = TENSOR_SMALL,
     .also = {{"hc_head_fn", IK}, {"output.hc_head.fn", EARLY}}},
    {"output_hc_base", "n", OWN, VECTOR, .also = {{"hc_head_base", IK}, {"output.hc_head.base", EARLY}}},
    {"output_hc_scale", "1", OWN, VECTOR, .also = {{"hc_head_scale", IK}, {"output.hc_head.scale", EARLY}}},
    {"hc_attn_fn", "n*D B", BLOCK, .class = CLASS_HYPER, .flags = TENSOR_SMALL, .also = {{"hc_attn.fn", EARLY}}},
    {"hc_attn_base", "B", BLOCK, VECTOR, .also = {{"hc_attn.base", EARLY}}},
    {"hc_attn_scale", "3", BLOCK, VECTOR, .also = {{"hc_attn.scale", EARLY}}},
    {"hc_ffn_fn", "n*D B", BLOCK, .class = CLASS_HYPER, .flags = TENSOR_SMALL, .also = {{"hc_ffn.fn", EARLY}}},
    {"hc_ffn_base", "B", BLOCK, VECTOR, .also = {{"hc_ffn.base", EARLY}}},
    {"hc_ffn_scale", "3", BLOCK, VECTOR, .also = {{"hc_ffn.scale", EARLY}}},
    {"attn_norm", "D", BLOCK, VECTOR},
    {"ffn_norm", "D", BLOCK, VECTOR},
    {"attn_q_a", "D Rq", BLOCK, MATRIX},
    {"attn_q_a_norm", "Rq", BLOCK, VECTOR},
    {"attn_q_b", "Rq H*d", BLOCK, MATRIX},
    {"attn_kv", "D d", BLOCK, MATRIX, .also = {{"attn_kv_latent", IK}, {"attn_kv_a_mqa", IK}}},
    {"attn_kv_a_norm", "d", BLOCK, VECTOR, .also = {{"attn_kv_norm", EARLY}}},
    {"attn_sinks", "H", BLOCK, VECTOR},
    {"attn_output_a", "H*d/G G*Ro", BLOCK, MATRIX, .also = {{"attn_o_a", EARLY}}},
    {"attn_output_b", "G*Ro D", BLOCK, MATRIX, .also = {{"attn_o_b", EARLY}}},
    {"attn_compressor_kv", "D c*d", BLOCK, .class = CLASS_INDEX, .when = compressed,
     .also = {{"attn_compress_kv", IK}, {"compressor.wkv", EARLY}}},
    {"attn_compressor_gate", "D c*d", BLOCK, .class = CLASS_INDEX, .when = compressed,
     .also = {{"attn_compress_gate", IK}, {"compressor.wgate", EARLY}}},
    {"attn_compressor_ape", "c*d ratio", BLOCK, VECTOR, .when = compressed,
     .also = {{"attn_compress_ape", IK}, {"compressor.ape", EARLY}}},
    {"attn_compressor_norm", "d", BLOCK, VECTOR, .when = compressed,
     .also = {{"attn_compress_norm", IK}, {"compressor.norm", EARLY}}},
    {"indexer.attn_q_b", "Rq IH*ID", BLOCK, .class = CLASS_INDEX, .when = indexed},
    {"indexer.proj", "D IH", BLOCK, .class = CLASS_INDEX, .flags = TENSOR_SMALL, .when = indexed,
     .also = {{"indexer.weights_proj", EARLY}}},
    {"indexer_compressor_kv", "D 2*ID", BLOCK, .class = CLASS_INDEX, .when = indexed,
     .also = {{"indexer.compress_kv", IK}, {"indexer.compressor.wkv", EARLY}}},
    {"indexer_compressor_gate", "D 2*ID", BLOCK, .class = CLASS_INDEX, .when = indexed,
     .also = {{"indexer.compress_gate", IK}, {"indexer.compressor.wgate", EARLY}}},
    {"indexer_compressor_ape", "2*ID ratio", BLOCK, VECTOR, .when = indexed,
     .also = {{"indexer.compress_ape", IK}, {"indexer.compressor.ape", EARLY}}},
    {"indexer_compressor_norm", "ID", BLOCK, VECTOR, .when = indexed,
     .also = {{"indexer.compress_norm", IK}, {"indexer.compressor.norm", EARLY}}},
    {"ffn_gate_inp", "D E", BLOCK, .class = CLASS_ROUTER, .flags = TENSOR_SMALL},
    {"exp_probs_b", "E", BLOCK, .class = CLASS_VECTOR, .flags = TENSOR_SMALL | TENSOR_ALL_OR_NONE, .when = scored,
     .suffix = ".bias"},
    {"exp_probs_b_vl", "E", BLOCK, .class = CLASS_VECTOR, .flags = TENSOR_SMALL | TENSOR_OPTIONAL, .when = scored,
     .suffix = ".bias"},
    {"ffn_gate_tid2eid", "K V", BLOCK, .class = CLASS_PLAIN, .flags = TENSOR_IDS | TENSOR_WIDER, .when = hashed},
    {"ffn_gate_exps", "D F E", BLOCK, .class = CLASS_EXPERT},
    {"ffn_up_exps", "D F E", BLOCK, .class = CLASS_EXPERT},
    {"ffn_down_exps", "F D E", BLOCK, .class = CLASS_EXPERT},
    {"ffn_gate_shexp", "D Fs", BLOCK, MATRIX},
    {"ffn_up_shexp", "D Fs", BLOCK, MATRIX},
    {"ffn_down_shexp", "Fs D", BLOCK, MATRIX},
};

static const struct tensor_split splits[] = {GATE_AND_UP, GATE_AND_UP_SHARED};

/* ---- relations (spec deepseek-v4 8) */

/* Rows of n parts of the given width: their length is counted in an int. */
static int check_width(const struct canonical *c, const char *parts, const char *width, struct err *e)
{
    const int64_t n = canonical_int(c, parts), w = canonical_int(c, width);
    if (w <= INT32_MAX / n) return 0;
    return dialect_refuse_value(c, e, width, w, "up to %lld with %lld of them in a row", (long long)(INT32_MAX / n),
                                (long long)n);
}

static int check_widths(const struct canonical *c, struct err *e)
{
    int rc = check_width(c, "attention.head_count", "attention.key_length", e);
    if (rc == 0) rc = check_width(c, "attention.output_group_count", "attention.output_lora_rank", e);
    if (rc == 0 && any_indexed(c))
        rc = check_width(c, "attention.indexer.head_count", "attention.indexer.key_length", e);
    return rc;
}

static int check_attention(const struct canonical *c, struct err *e)
{
    const int64_t H = canonical_int(c, "attention.head_count"), d = canonical_int(c, "attention.key_length");
    const int64_t G = canonical_int(c, "attention.output_group_count"), r = canonical_int(c, "rope.dimension_count");
    if (H % G != 0)
        return dialect_refuse_value(c, e, "attention.output_group_count", G, "a divisor of the %lld heads",
                                    (long long)H);
    if (r % 2 != 0 || r > d)
        return dialect_refuse_value(c, e, "rope.dimension_count", r, "an even number up to the head width %lld",
                                    (long long)d);
    return 0;
}

static int check_indexer(const struct canonical *c, struct err *e)
{
    const int64_t ID = canonical_int(c, "attention.indexer.key_length"), r = canonical_int(c, "rope.dimension_count");
    if (r > ID)
        return dialect_refuse_value(c, e, "rope.dimension_count", r, "numbers up to the indexer's width %lld",
                                    (long long)ID);
    if (canonical_bool(c, "attention.indexer.hadamard") && (ID & (ID - 1)) != 0)
        return dialect_refuse_value(c, e, "attention.indexer.key_length", ID,
                                    "a power of two, for its Hadamard rotation");
    return 0;
}

/* Roundings work on whole blocks of the part that is not rotated, and of the index row. */
static int check_simulation(const struct canonical *c, struct err *e)
{
    const int64_t d = canonical_int(c, "attention.key_length"), r = canonical_int(c, "rope.dimension_count");
    const int64_t kv = canonical_int(c, "attention.kv_sim_block"), ix = canonical_int(c, "attention.indexer.sim_block");
    const int64_t ID = canonical_int(c, "attention.indexer.key_length");
    if (kv > 0 && (d - r) % kv != 0)
        return dialect_refuse_value(c, e, "attention.key_length", d,
                                    "%lld plus a multiple of %lld, unless the KV rounding is switched off",
                                    (long long)r, (long long)kv);
    if (ix > 0 && any_indexed(c) && ID % ix != 0)
        return dialect_refuse_value(c, e, "attention.indexer.key_length", ID,
                                    "multiples of %lld, unless the KV rounding is switched off", (long long)ix);
    return 0;
}

static int validate(const struct canonical *c, const struct canonical_options *opt, struct err *e)
{
    int rc = check_widths(c, e);
    if (rc == 0) rc = check_attention(c, e);
    if (rc == 0 && any_indexed(c)) rc = check_indexer(c, e);
    if (rc == 0 && !opt->kv_sim_off) rc = check_simulation(c, e);
    return rc;
}

const struct family_table dialect_deepseek4 = {
    .id = CANONICAL_DEEPSEEK4,
    .name = "DeepSeek V4",
    .publishers = "llama.cpp's form (unsloth, bartowski, ggml-org, AtomicChat) or ds4's (antirez)",
    .short_name = "deepseek4",
    .prefix = {"deepseek4", "deepseek-v4", "deepseek-v4-flash"},
    .published = {{"DeepSeek V4 Flash", 4096, 43}, {"DeepSeek V4 PRO", 7168, 61}},
    FAMILY_ROWS(tensors),
    FAMILY_ROWS(splits),
    FAMILY_ROWS(dims),
    FAMILY_ROWS(keys),
    .key_width = "embedding_length",
    .key_layers = "block_count",
    .key_draft = "nextn_predict_layers",
    .pre = {"joyai-llm", "deepseek-v3"},
    .bos = "<｜begin▁of▁sentence｜>",
    .eos = "<｜end▁of▁sentence｜>",
    .router = "ffn_gate_inp",
    .experts = "expert_count",
    .used = "expert_used_count",
    .validate = validate,
};
