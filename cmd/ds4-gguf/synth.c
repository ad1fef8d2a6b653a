/* ds4-gguf synth: valid models of random weights, of any size, written as they are made: for tests, for measurements of
 * speed and memory, and to see whether a machine can hold a model before it is downloaded. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/mem.h"
#include "base/program.h"
#include "commands.h"
#include "deepseek4_layout.h"
#include "model_output.h"
#include "quant/quant.h"
#include "synth_blocks.h"
#include "synth_routing.h"
#include "synth_shape.h"
#include "synth_vocabulary.h"
#include "type_rules.h"

struct synth_options {
    struct model_output_options out;
    const struct synth_preset *preset;
    const struct recipe *recipe;
    struct synth_settings settings;
    enum synth_router router;
    uint64_t seed;
};

/* ---- types ---- */

/* As in the published files (spec gguf-and-quants 6.1). */
static const struct recipe {
    const char *name;
    uint32_t gate_up, down; /* routed experts */
    uint32_t dense;         /* attention projections, shared experts, head */
} recipes[] = {
    {"q2", QT_IQ2_XXS, QT_Q2_K, QT_Q8_0}, {"q4", QT_Q4_K, QT_Q4_K, QT_Q8_0},      {"q8", QT_Q8_0, QT_Q8_0, QT_Q8_0},
    {"f16", QT_F16, QT_F16, QT_F16},      {"mxfp4", QT_MXFP4, QT_MXFP4, QT_Q8_0},
};
enum { N_RECIPES = sizeof recipes / sizeof recipes[0] };

static uint32_t wanted_type(const struct recipe *r, const struct layout_tensor *t)
{
    switch (t->role) {
    case ROLE_VECTOR:
        return QT_F32;
    case ROLE_IDS:
        return QT_I32;
    case ROLE_EXPERTS:
        return strstr(t->name, "down") ? r->down : r->gate_up;
    case ROLE_HEAD:
    case ROLE_ATTENTION:
    case ROLE_SHARED:
        return r->dense;
    case ROLE_EMBEDDING:
    case ROLE_SIDE:
    case ROLE_SMALL:
        break;
    }
    return QT_F16;
}

/* Mean and standard deviation of a tensor's values. Matrices keep the size of what passes through: N(0, 1 / row
 * length). */
static void spread_of(const struct layout_tensor *t, float *mean, float *sigma)
{
    static const struct {
        const char *part;
        float mean, sigma;
    } special[] = {
        {"token_embd", 0, 1},          {"_ape.", 0, 0.5f},    {"norm.", 1, 0.1f},        {"hc_attn_scale", 0.5f, 0.05f},
        {"hc_ffn_scale", 0.5f, 0.05f}, {"hc_scale", 0.5f, 0}, {"hc_attn_base", 0, 0.5f}, {"hc_ffn_base", 0, 0.5f},
        {"hc_base", 0, 0.5f},          {"attn_sinks", 0, 1},  {"exp_probs_b", 0, 0.02f}};
    *mean = 0;
    *sigma = 1 / sqrtf((float)t->ne[0]);
    for (size_t i = 0; i < sizeof special / sizeof special[0]; i++)
        if (strstr(t->name, special[i].part)) {
            *mean = special[i].mean;
            *sigma = special[i].sigma;
            return;
        }
}

/* ---- values ---- */

/* A model at work. */
struct synthesis {
    const struct synth_options *options;
    struct deepseek4_params p;
    struct layout_tensor *tensors;
    uint32_t *types; /* [n_tensors] */
    int n_tensors;
    struct model_output out;
};

struct tensor_job {
    struct synth_filler filler;
    struct synth_routing routing;
    uint64_t row_bytes;
};

static int random_rows(void *arg, int64_t row, int64_t n, uint8_t *out, int thread, struct err *e)
{
    const struct tensor_job *j = arg;
    for (int64_t i = 0; i < n; i++) synth_filler_row(&j->filler, row + i, out + (uint64_t)i * j->row_bytes);
    return 0;
}

static int random_ids(void *arg, int64_t row, int64_t n, uint8_t *out, int thread, struct err *e)
{
    const struct tensor_job *j = arg;
    for (int64_t i = 0; i < n; i++)
        synth_routing_ids(&j->routing, row + i, (int32_t *)(void *)(out + (uint64_t)i * j->row_bytes));
    return 0;
}

static int zipf_biases(void *arg, int64_t row, int64_t n, uint8_t *out, int thread, struct err *e)
{
    const struct tensor_job *j = arg;
    synth_routing_biases(&j->routing, (float *)(void *)out);
    return 0;
}

static int write_tensor(struct synthesis *s, int at, struct err *e)
{
    const struct layout_tensor *t = &s->tensors[at];
    const uint64_t seed = synth_seed(s->options->seed, (uint64_t)at);
    struct tensor_job j = {.row_bytes = quant_row_bytes(s->types[at], (int64_t)t->ne[0])};
    const bool biases = strstr(t->name, "exp_probs_b") && s->options->router == SYNTH_ZIPF;
    tensor_rows_fn *rows = t->role == ROLE_IDS ? random_ids : biases ? zipf_biases : random_rows;
    float mean, sigma;
    int rc;
    work_progress_add(&s->out.progress, t->name, 0);
    spread_of(t, &mean, &sigma);
    if (rows == random_rows)
        rc = synth_filler_init(&j.filler, s->types[at], (int64_t)t->ne[0], mean, sigma, seed, e);
    else
        rc = synth_routing_init(&j.routing, s->options->router, s->p.E, s->p.K, seed, e);
    if (!rc) rc = model_output_rows(&s->out, t->name, (int64_t)(t->ne[1] * t->ne[2]), j.row_bytes, rows, &j, e);
    synth_routing_free(&j.routing);
    return rc;
}

/* ---- the file ---- */

static int write_header(struct synthesis *s, struct err *e)
{
    const struct synth_options *o = s->options;
    struct vocabulary v;
    char made_up[64];
    snprintf(made_up, sizeof made_up, "Synthetic %s %s, %d layers%s", synth_preset_name(o->preset), o->recipe->name,
             (int)s->p.L, o->router == SYNTH_ZIPF ? ", zipf" : "");
    const char *name = synth_settings_name(&o->settings) ? synth_settings_name(&o->settings) : made_up;
    model_output_general(&s->out, "deepseek4", name, strlen(name));
    deepseek4_metadata(s->out.w, &s->p);
    synth_settings_put(&o->settings, s->out.w);
    int rc = synth_vocabulary(s->p.V, &v, e);
    if (!rc) rc = vocabulary_put(s->out.w, &v, e);
    vocabulary_free(&v);
    for (int i = 0; i < s->n_tensors; i++)
        model_output_declare(&s->out, s->tensors[i].name, s->types[i], s->tensors[i].n_dims, s->tensors[i].ne);
    return rc ? rc : model_output_start(&s->out, false, e);
}

static int write_file(struct synthesis *s, struct err *e)
{
    int rc = model_output_open(&s->out, &s->options->out, e);
    if (!rc) rc = write_header(s, e);
    for (int i = 0; i < s->n_tensors && !rc; i++) rc = write_tensor(s, i, e);
    return model_output_close(&s->out, rc, e);
}

static void pick_types(struct synthesis *s)
{
    bool *noted = mem_alloc((size_t)s->n_tensors * sizeof *noted);
    s->types = mem_alloc((size_t)s->n_tensors * sizeof *s->types);
    for (int i = 0; i < s->n_tensors; i++) {
        const uint32_t wanted = wanted_type(s->options->recipe, &s->tensors[i]);
        s->types[i] = type_rules_fit(wanted, &s->tensors[i]);
        if (s->types[i] != wanted) type_rules_note(s->tensors, i, wanted, s->types[i], noted);
    }
    mem_free(noted);
}

static int synth(const struct synth_options *o, struct err *e)
{
    struct synthesis s = {.options = o};
    int rc = model_output_check(&o->out, e);
    if (!rc) rc = synth_shape(o->preset, &o->settings, &s.p, e);
    if (!rc) rc = deepseek4_layout(&s.p, &s.tensors, &s.n_tensors, e);
    if (rc) return rc;
    pick_types(&s);
    rc = write_file(&s, e);
    mem_free(s.types);
    mem_free(s.tensors);
    return rc;
}

/* ---- command line ---- */

static const struct recipe *find_recipe(const char *name)
{
    for (int i = 0; i < N_RECIPES; i++)
        if (strcmp(recipes[i].name, name) == 0) return &recipes[i];
    return NULL;
}

static void take_arch(struct args *a, const char *option, void *to)
{
    const char *name = args_value(a, option);
    if (name && strcmp(name, "deepseek4")) args_mistake(a, "%s: '%s' is not deepseek4", option, name);
}

static void take_preset(struct args *a, const char *option, void *to)
{
    const char *name = args_value(a, option);
    const struct synth_preset *preset = name ? synth_preset_find(name) : NULL;
    if (name && !preset) args_mistake(a, "%s: '%s' is not tiny, flash or pro", option, name);
    *(const struct synth_preset **)to = preset;
}

static void take_recipe(struct args *a, const char *option, void *to)
{
    const char *name = args_value(a, option);
    const struct recipe *recipe = name ? find_recipe(name) : NULL;
    if (name && !recipe) args_mistake(a, "%s: '%s' is not q2, q4, q8, mxfp4 or f16", option, name);
    *(const struct recipe **)to = recipe;
}

static void take_setting(struct args *a, const char *option, void *settings)
{
    struct err e = {0};
    const char *text = args_value(a, option);
    if (text && synth_settings_add(settings, text, &e)) args_mistake(a, "%s: %s", option, e.msg);
}

static void take_layers(struct args *a, const char *option, void *settings)
{
    struct err e = {0};
    const char *text = args_value(a, option);
    if (text && synth_settings_add_pair(settings, "block_count", text, &e)) args_mistake(a, "%s: %s", option, e.msg);
}

static const struct option rows[] = {
    MODEL_OUTPUT_ROWS(struct synth_options, out),
    {"--arch", NULL, "NAME", "deepseek4 (default)", OPTION_CALL(struct synth_options, out, take_arch)},
    {"--preset", NULL, "NAME", "tiny: 4 layers of width 256; flash, pro: the shapes of DeepSeek V4",
     OPTION_CALL(struct synth_options, preset, take_preset)},
    {"--layers", NULL, "N", "that many layers instead of the preset's (as --set block_count=N)",
     OPTION_CALL(struct synth_options, settings, take_layers)},
    {"--set", NULL, "KEY=VALUE",
     "another value for a key of the model, with or without its prefix \"deepseek4.\"; tensors follow. Lists are "
     "0,4,128; "
     "one entry stands for all layers. KEY=TYPE:VALUE adds a key that the model does not use (u32, i32, u64, f32, "
     "bool, "
     "str). May be repeated; the last value of a key counts",
     OPTION_CALL(struct synth_options, settings, take_setting)},
    {"--quant", NULL, "NAME",
     "q2: experts IQ2_XXS and Q2_K; q4: Q4_K; q8: Q8_0; mxfp4: MXFP4; each with the other matrices in Q8_0 and F16; "
     "f16: "
     "everything",
     OPTION_CALL(struct synth_options, recipe, take_recipe)},
    {"--router", NULL, "uniform|zipf",
     "experts are used alike, or the one of rank r in its layer in proportion to 1/r, as far as a token can",
     OPTION_CHOICE(struct synth_options, router), .initial = "uniform"},
    {"--seed", NULL, "N", "another seed, another model", OPTION_SEED(struct synth_options, seed), .initial = "1"},
};

const struct help_section synth_section = {
    .topic = "synth",
    .title = "a valid model of random weights, for tests and measurements",
    .usage = "--preset NAME --quant NAME [options] -o OUT.gguf",
    .text =
        "The same options give the same bytes. The model can be run, what it says means nothing. As q2, Flash takes "
        "2.0 GB per layer and 1.6 GB for the rest, PRO 7.6 and 2.8. Where a row does not fill whole blocks of a "
        "type, Q8_0 or F16 is taken.",
    HELP_ROWS(rows)};

static void check(struct args *a, const struct synth_options *o)
{
    if (!o->preset)
        args_mistake(a, "no --preset given (tiny, flash or pro)");
    else if (!o->recipe)
        args_mistake(a, "no --quant given (q2, q4, q8, mxfp4 or f16)");
    model_output_require(a, &o->out);
}

int command_synth(int argc, char **argv)
{
    struct args a = {.program = "ds4-gguf synth", .argv = argv, .argc = argc};
    struct synth_options *o = mem_alloc(sizeof *o);
    struct err e = {0};
    int status;
    if (option_scan(&a, &gguf_program, &synth_section, o, &status)) {
        check(&a, o);
        status = a.bad ? 2 : synth(o, &e) ? program_failed(a.program, &e) : 0;
    }
    mem_free(o);
    return status;
}
