/* Random models of both families with types as mixed as in published files, in the form that other engines read, made
 * by ds4-gguf synth beside this program (random_models.h says what it prints). Every class of types that share their
 * activations' form has files of its own, in which each matrix gets one of the class by chance. */
#include <stdlib.h>
#include "../support/shell_run.h"
#include "base/str.h"
#include "random_models.h"

enum { N_SHAPES = 3, MAX_TYPES = 10, V = 512 };

/* Rows of every matrix fill whole blocks of 256. What the other engine asks of the shapes, and why models with rounded
 * activations are shallow, is said in write_deepseek4.c; a recurrent layer and one with attention of Qwen3.8. */
static const char deepseek4[] =
    "--set block_count=2 --set attention.compress_ratios=4,128 --set hash_layer_count=1 --set vocab_size=512"
    " --set attention.key_length=128 --set rope.dimension_count=64 --set attention.q_lora_rank=256"
    " --set attention.output_lora_rank=128 --set attention.output_group_count=2 --set attention.head_count=4"
    " --set attention.indexer.head_count=8 --set attention.indexer.key_length=128 --set attention.indexer.top_k=512"
    " --set attention.sliding_window=32";
static const char qwen38[] =
    "--arch qwen4exp --set block_count=2 --set nextn_predict_layers=0 --set full_attention_interval=2 --set "
    "ple.layers=0"
    " --set ple.heads_per_ngram=1 --set vocab_size=512 --set ssm.time_step_rank=8 --set attention.indexer.top_k=1024"
    " --set expert_feed_forward_length=256 --set expert_shared_feed_forward_length=256";

/* Matrices that get a type of the class, each another one; what decides (router, hyper-connections, indexer) is F32, as
 * in published files. */
static const char *const deepseek4_names[] = {"attn_q_a",       "attn_q_b",      "attn_kv\\.",     "attn_output_a",
                                              "attn_output_b",  "ffn_gate_exps", "ffn_up_exps",    "ffn_down_exps",
                                              "ffn_gate_shexp", "ffn_up_shexp",  "ffn_down_shexp", NULL};
static const char *const qwen38_names[] = {
    "attn_[qkvg]", "(ssm_out|attn_output)", "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps", "ffn_.*_shexp", NULL};

static const struct type_class {
    const char *name;
    const char *types[MAX_TYPES];
} classes[] = {
    {"rows", {"f32"}}, /* only rows that are looked up are of another type: nothing is rounded */
    {"32", {"q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "iq4_nl"}},
    {"mxfp4", {"mxfp4"}},
    {"k", {"q2_k", "q3_k", "q4_k", "q5_k", "q6_k"}},
    {"iq", {"iq2_xxs", "iq2_xs", "iq2_s", "iq3_xxs", "iq3_s", "iq4_xs"}},
    {"iq1", {"iq1_s", "iq1_m"}},
    {"rare", {"tq1_0", "tq2_0", "q1_0", "q2_0", "nvfp4"}},
    {"nine", {"mxfp4", "q8_0", "q6_k", "q5_k", "q3_k", "iq4_nl", "iq3_xxs", "iq2_xs", "iq1_m"}},
};
enum { N_CLASSES = sizeof classes / sizeof *classes };

static const struct family {
    const char *name, *options;
    const char *const *matrices;
    int layers;
    const char *table; /* looked up by n-grams, rows of 128; NULL: none */
    int separator;
} families[] = {
    {"v4", deepseek4, deepseek4_names, 2, NULL, -1},
    {"qwen", qwen38, qwen38_names, 2, "per_layer_token_embd", 498},
};

static const char *one_of(struct rng *r, const struct type_class *c)
{
    int n = 0;
    while (n < MAX_TYPES && c->types[n]) n++;
    return c->types[rng_next(r) % (uint64_t)n];
}

static void add_types(struct str *command, struct rng *r, const struct family *f, const struct type_class *c)
{
    for (int l = 0; l < f->layers; l++)
        for (int i = 0; f->matrices[i]; i++)
            str_printf(command, " --types 'blk\\.%d\\.%s=%s'", l, f->matrices[i], one_of(r, c));
}

/* Tables whose rows are looked up get the types in turn: these rows are decoded and never rounded. */
static void add_tables(struct str *command, int shape, const struct family *f, const struct type_class *c)
{
    static const char *const types[] = {"q4_0",  "q4_1",    "q5_0",   "q5_1",    "q8_0",  "iq4_nl", "mxfp4",
                                        "q2_k",  "q3_k",    "q4_k",   "q5_k",    "q6_k",  "iq1_s",  "iq1_m",
                                        "iq2_s", "iq2_xxs", "iq2_xs", "iq3_xxs", "iq3_s", "iq4_xs"};
    enum { N_TYPES = sizeof types / sizeof *types, N_SMALL = 7 };
    const int turn = shape * N_CLASSES + (int)(c - classes);
    if (f->table) str_printf(command, " --types %s=%s", f->table, types[turn % N_SMALL]);
    str_printf(command, " --types token_embd=%s", types[turn % N_TYPES]);
}

static int write_file(const char *folder, const char *name, int shape, const struct family *f,
                      const struct type_class *c)
{
    struct str command = {0}, said = {0};
    struct rng r = {7000 + (uint64_t)(shape * N_CLASSES + (c - classes))};
    str_printf(&command, TEST_BUILD "/ds4-gguf synth --preset tiny --quant q8 --dialect llama.cpp --seed %d %s",
               shape + 1, f->options);
    add_tables(&command, shape, f, c);
    add_types(&command, &r, f, c);
    str_printf(&command, " --types .=f32 -t 1 --overwrite -o %s/%s.gguf 2>&1", folder, name);
    const int rc = shell_run(str_c(&command), &said);
    if (rc) fprintf(stderr, "%s: %s\n", name, str_c(&said));
    str_free(&command);
    str_free(&said);
    return rc;
}

int main(int argc, char **argv)
{
    if (argc == 1) return printf("%d\n", N_SHAPES), 0;
    if (argc != 3) return fprintf(stderr, "usage: write_types [SHAPE FOLDER]\n"), 2;
    const int i = atoi(argv[1]);
    for (size_t f = 0; f < sizeof families / sizeof *families; f++) {
        for (size_t c = 0; c < N_CLASSES; c++) {
            char name[48], kind[32];
            snprintf(kind, sizeof kind, "%s-%s", families[f].name, classes[c].name);
            snprintf(name, sizeof name, "t%02d-%s", i, kind);
            if (write_file(argv[2], name, i, &families[f], &classes[c])) return 1;
            print_prompts(&(struct peer_file){name, kind, V, 5000 + (uint64_t)i, MAX_PROMPT, 1, families[f].separator});
        }
    }
    return 0;
}
