/* Cases are counted through the lists: faults of numbers times keys, then of lists, then of tensors. */
#include "hostile_qwen38.h"
#include <stdio.h>
#include <string.h>
#include "gguf/gguf.h"
#include "quant/quant.h"
#include "synth_qwen38.h"

#define P(n)     (UINT64_C(1) << (n))
#define COUNT(x) (int)(sizeof(x) / sizeof *(x))

/* What else tells a key's value. */
enum told { BY_TENSORS, BY_LIST, BY_CONSTANT, BY_NOTHING };

static const struct number {
    const char *name;
    enum told told;
    bool real; /* a fraction is a value */
    bool zero; /* 0 is one */
} numbers[] = {
    {"block_count", BY_TENSORS},
    {"nextn_predict_layers", BY_TENSORS, .zero = true},
    {"embedding_length", BY_TENSORS},
    {"vocab_size", BY_TENSORS},
    {"context_length", BY_CONSTANT},
    {"full_attention_interval", BY_CONSTANT},
    {"attention.key_length", BY_TENSORS},
    {"attention.value_length", BY_TENSORS},
    {"attention.head_count", BY_TENSORS},
    {"attention.head_count_kv", BY_TENSORS, .zero = true},
    {"rope.dimension_count", BY_NOTHING},
    {"rope.freq_base", BY_CONSTANT, .real = true},
    {"attention.layer_norm_rms_epsilon", BY_CONSTANT, .real = true, .zero = true},
    {"ssm.time_step_rank", BY_TENSORS},
    {"ssm.state_size", BY_TENSORS},
    {"ssm.group_count", BY_TENSORS},
    {"ssm.inner_size", BY_TENSORS},
    {"ssm.conv_kernel", BY_TENSORS},
    {"hyper_connection.count", BY_TENSORS},
    {"hyper_connection.low_rank", BY_TENSORS},
    {"attention.indexer.key_length", BY_TENSORS},
    {"attention.indexer.head_count", BY_TENSORS},
    {"attention.indexer.top_k", BY_NOTHING},
    {"expert_count", BY_TENSORS},
    {"expert_used_count", BY_NOTHING},
    {"expert_feed_forward_length", BY_TENSORS},
    {"expert_shared_feed_forward_length", BY_TENSORS},
    {"ple.ngram_size", BY_LIST},
    {"embedding_length_per_layer_input", BY_TENSORS},
    {"ple.heads_per_ngram", BY_TENSORS},
    {"ple.conv_kernel", BY_TENSORS},
    {"ple.eos_token_id", BY_NOTHING, .zero = true},
};

enum fault {
    MISSING,
    A_TEXT,
    A_FRACTION,
    NOT_A_NUMBER,
    NEGATIVE,
    HUGE_COUNT,
    ZERO,
    ONE_MORE,
    TEXTS,
    NO_ENTRIES,
    FAULTS
};
static const char *const fault_names[] = {"missing", "text", "fraction", "nan",   "negative",
                                          "huge",    "zero", "one_more", "texts", "no_entries"};

static struct forge_edit number_edit(enum fault f, const struct number *k)
{
    switch (f) {
    case MISSING:
        return (struct forge_edit){KEY_DROP};
    case A_TEXT:
        return (struct forge_edit){KEY_TEXT, .text = "many"};
    case A_FRACTION:
        return (struct forge_edit){KEY_REAL, .type = GGUF_F32, .real = 2.5};
    case NOT_A_NUMBER:
        return (struct forge_edit){KEY_REAL, .type = GGUF_F32, .real = 0.0 / 0.0};
    case NEGATIVE:
        return (struct forge_edit){KEY_NUM, .type = GGUF_I32, .v = UINT32_MAX};
    case HUGE_COUNT:
        return (struct forge_edit){KEY_NUM, .type = GGUF_U64, .v = P(60)};
    case ZERO:
        return (struct forge_edit){KEY_NUM, .type = GGUF_U32};
    case ONE_MORE: /* than any that the tensors tell */
        return (struct forge_edit){KEY_NUM, .type = GGUF_U32, .v = k->told == BY_TENSORS ? 63 : 2};
    case TEXTS:
        return (struct forge_edit){KEY_TEXTS, .text = "x", .n = 4};
    default:
        return (struct forge_edit){KEY_ARRAY, .type = GGUF_I32};
    }
}

static enum hostile_end number_end(enum fault f, const struct number *k)
{
    const bool counts_one = !strcmp(k->name, "nextn_predict_layers"); /* 63 is out of its range */
    const bool partial = !strcmp(k->name, "block_count");             /* the file has some of 63 blocks */
    switch (f) {
    case MISSING:
        return k->told == BY_NOTHING ? END_REFUSED : k->told == BY_CONSTANT ? END_EITHER : END_SAME;
    case A_FRACTION:
        return k->real ? END_EITHER : END_REFUSED;
    case ZERO:
        return k->told == BY_TENSORS && k->zero ? END_SAME : k->zero ? END_EITHER : END_REFUSED;
    case ONE_MORE:
        return counts_one || partial || k->told == BY_LIST ? END_REFUSED
               : k->told == BY_TENSORS                     ? END_SAME
                                                           : END_EITHER;
    default:
        return END_REFUSED;
    }
}

static void number_case(int i, struct hostile_qwen38 *c)
{
    const struct number *k = &numbers[i / FAULTS];
    const enum fault f = (enum fault)(i % FAULTS);
    snprintf(c->key, sizeof c->key, "qwen4exp.%s", k->name);
    snprintf(c->about, sizeof c->about, "%s", k->name);
    snprintf(c->name, sizeof c->name, "%s_%s", k->name, fault_names[f]);
    c->edit = number_edit(f, k);
    c->end = number_end(f, k);
}

/* ---- lists */

static const struct list {
    const char *name;
    bool needed, summed; /* its entries are; it follows from sizes all the same */
} lists[] = {{"ple.layer_multipliers", true},
             {"ple.head_offsets", true, true},
             {"ple.head_vocab_sizes", true},
             {"ple.layers", false},
             {"attention.compress_ratios", false}};

static const struct list_fault {
    const char *name;
    struct forge_edit edit;
} list_faults[] = {
    {"missing", {KEY_DROP}},
    {"text", {KEY_TEXT, .text = "many"}},
    {"texts", {KEY_TEXTS, .text = "x", .n = 8}},
    {"no_entries", {KEY_ARRAY, .type = GGUF_U64}},
    {"two_entries", {KEY_ARRAY, .type = GGUF_U64, .n = 2, .v = 1}},
    {"many_entries", {KEY_ARRAY, .type = GGUF_U64, .n = 70000, .v = 1}},
    {"fractions", {KEY_REALS, .type = GGUF_F32, .n = 8, .real = 1.5}},
    {"negative", {KEY_ARRAY, .type = GGUF_I64, .n = 8, .v = UINT64_MAX}},
    {"huge", {KEY_ARRAY, .type = GGUF_U64, .n = 8, .v = UINT64_MAX}},
    {"count_past_the_file", {KEY_COUNT, .v = P(61)}},
    {"elements_of_type_99", {KEY_ELEM, .v = 99}},
};

static void list_case(int i, struct hostile_qwen38 *c)
{
    const struct list *k = &lists[i / COUNT(list_faults)];
    const struct list_fault *f = &list_faults[i % COUNT(list_faults)];
    const bool missing = f->edit.kind == KEY_DROP;
    snprintf(c->key, sizeof c->key, "qwen4exp.%s", k->name);
    snprintf(c->about, sizeof c->about, "%s", k->name);
    snprintf(c->name, sizeof c->name, "%s_%s", k->name, f->name);
    c->edit = f->edit;
    const bool told =
        !k->needed && strcmp(k->name, "attention.compress_ratios"); /* those by a constant for all blocks */
    c->end = missing && (told || k->summed) ? END_SAME : k->needed ? END_REFUSED : END_EITHER;
}

/* ---- tensors */

static const char *const stems[] = {
    "token_embd.weight",
    "output_hc_norm.weight",
    "output_hc_down.weight",
    "output_hc_up.weight",
    "blk.0.hc_attn_norm.weight",
    "blk.0.hc_attn_down.weight",
    "blk.0.hc_attn_up.weight",
    "blk.0.hc_attn_inject.weight",
    "blk.2.hc_ffn_norm.weight",
    "blk.2.hc_ffn_down.weight",
    "blk.2.hc_ffn_up.weight",
    "blk.2.hc_ffn_inject.weight",
    "blk.0.attn_qkv.weight",
    "blk.0.attn_gate.weight",
    "blk.0.ssm_conv1d.weight",
    "blk.0.ssm_dt.bias",
    "blk.0.ssm_beta.weight",
    "blk.0.ssm_alpha.weight",
    "blk.0.ssm_norm.weight",
    "blk.0.ssm_out.weight",
    "blk.3.attn_q.weight",
    "blk.3.attn_k.weight",
    "blk.3.attn_v.weight",
    "blk.3.attn_output.weight",
    "blk.3.attn_k_norm.weight",
    "blk.3.indexer.q_proj.weight",
    "blk.3.indexer.q_norm.weight",
    "blk.1.ple_key.weight",
    "blk.1.ple_value.weight",
    "blk.1.ple_norm_key.weight",
    "blk.1.ple_norm_query.weight",
    "blk.1.ple_norm_conv.weight",
    "blk.1.ple_conv1d.weight",
    "blk.2.ffn_gate_inp.weight",
    "blk.2.ffn_gate_exps.weight",
    "blk.2.ffn_up_exps.weight",
    "blk.2.ffn_down_exps.weight",
    "blk.2.ffn_gate_inp_shexp.weight",
    "blk.2.ffn_gate_shexp.weight",
    "blk.2.ffn_up_shexp.weight",
    "blk.2.ffn_down_shexp.weight",
    "blk.4.nextn.eh_proj.weight",
    "blk.4.nextn.enorm.weight",
    "blk.4.nextn.hnorm.weight",
    "blk.4.nextn.hc_head_norm.weight",
    "blk.4.nextn.hc_head_down.weight",
    "blk.4.nextn.hc_head_up.weight",
    "blk.4.attn_q.weight",
    "blk.4.ffn_up_exps.weight",
};

static const struct tensor_fault {
    const char *name;
    struct forge_edit edit;
} tensor_faults[] = {
    {"missing", {T_DROP}},
    {"narrow", {T_DIM, .at = 0, .v = 1}},
    {"no_width", {T_DIM, .at = 0}},
    {"huge", {T_DIM, .at = 0, .v = P(60)}},
    {"of_bytes", {T_TYPE, .v = QT_I8}},
    {"of_type_99", {T_TYPE, .v = 99}},
    {"past_the_file", {T_OFFSET, .v = P(50)}},
    {"twice", {T_AGAIN}},
};

/* What no rule of the container forbids only costs a draft. */
static bool only_of_draft(const char *stem, const char *fault)
{
    return !strncmp(stem, "blk.4.", 6) && strcmp(fault, "no_width") && strcmp(fault, "huge") &&
           strcmp(fault, "past_the_file") && strcmp(fault, "twice");
}

static void tensor_case(int i, struct hostile_qwen38 *c)
{
    const char *stem = stems[i / COUNT(tensor_faults)];
    const struct tensor_fault *f = &tensor_faults[i % COUNT(tensor_faults)];
    snprintf(c->key, sizeof c->key, "%s", stem);
    if (strcmp(f->name, "narrow")) snprintf(c->about, sizeof c->about, "%s", stem); /* else a width that follows */
    snprintf(c->name, sizeof c->name, "%s_%s", stem, f->name);
    c->edit = f->edit;
    const bool taps = strstr(stem, "ple_conv1d") && !strcmp(f->name, "narrow"); /* shapes count more than keys */
    c->end = taps ? END_EITHER : only_of_draft(stem, f->name) ? END_ALONE : END_REFUSED;
}

enum {
    NUMBER_CASES = COUNT(numbers) * FAULTS,
    LIST_CASES = COUNT(lists) * COUNT(list_faults),
    TENSOR_CASES = COUNT(stems) * COUNT(tensor_faults)
};

int hostile_qwen38_count(void)
{
    return NUMBER_CASES + LIST_CASES + TENSOR_CASES;
}

void hostile_qwen38_at(int i, struct hostile_qwen38 *c)
{
    memset(c, 0, sizeof *c);
    if (i < NUMBER_CASES)
        number_case(i, c);
    else if (i < NUMBER_CASES + LIST_CASES)
        list_case(i - NUMBER_CASES, c);
    else
        tensor_case(i - NUMBER_CASES - LIST_CASES, c);
    c->edit.name = c->key;
}

int hostile_qwen38_base(const char *path, bool small, struct err *e)
{
    struct synth_qwen38 s = synth_qwen38_tiny();
    s.draft = true;
    s.type = s.experts = QT_F16;
    if (small) s.V = 40, s.eos = 7;
    return synth_qwen38_write(path, &s, e);
}
