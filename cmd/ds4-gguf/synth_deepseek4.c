/* Random DeepSeek V4 models: presets with their parameters (spec deepseek-v4 1 and 8), types, values, special tokens.
 */
#include <string.h>
#include "deepseek4_layout.h"
#include "quant/quant.h"
#include "synth_family.h"

/* Layers of a preset: the first ones have one ratio, those behind them 4 and 128 in turn. */
struct preset {
    const char *name;
    int n_first, first_ratio;
    struct deepseek4_params p; /* without ratios */
};

#define COMMON                                                                                                         \
    DEEPSEEK4_PARAMS_USUAL, .n_shared = 1, .iters = 20, .context = 1048576, .hc_eps = 1e-6f, .rms_eps = 1e-6f,         \
                            .n_clamps = 1, .clamps = {10}, .theta = 10000, .compress_theta = 160000,                   \
                            .yarn_factor = 16, .yarn_context = 65536, .beta_fast = 32, .beta_slow = 1

static const struct preset presets[] = {
    /* Every kind of layer among the first three. */
    {"tiny", 1, 0, {COMMON,   .V = 1024, .D = 256, .L = 4, .H = 4,    .d = 80,      .r = 16,
                    .Rq = 64, .Ro = 32,  .G = 2,   .E = 8, .K = 2,    .F = 256,     .W = 8,
                    .IH = 2,  .ID = 32,  .IK = 4,  .n = 4, .hash = 1, .scale = 1.5f}},
    {"flash", 2, 0, {COMMON,     .V = 129280, .D = 4096, .L = 43,  .H = 64,   .d = 512,     .r = 64,
                     .Rq = 1024, .Ro = 1024,  .G = 8,    .E = 256, .K = 6,    .F = 2048,    .W = 128,
                     .IH = 64,   .ID = 128,   .IK = 512, .n = 4,   .hash = 3, .scale = 1.5f}},
    {"pro", 2, 128, {COMMON,     .V = 129280, .D = 7168,  .L = 61,  .H = 128,  .d = 512,     .r = 64,
                     .Rq = 1536, .Ro = 1024,  .G = 16,    .E = 384, .K = 6,    .F = 3072,    .W = 128,
                     .IH = 64,   .ID = 128,   .IK = 1024, .n = 4,   .hash = 3, .scale = 2.5f}},
};
enum { N_PRESETS = sizeof presets / sizeof presets[0] };

static const char *const preset_names[] = {"tiny", "flash", "pro", NULL};

/* Numbers of layers come first: lists of the preset are made for them. */
static int apply_layers(const struct synth_settings *s, struct deepseek4_params *p, struct err *e)
{
    int rc = 0;
    for (int i = 0; i < s->n && !rc; i++)
        if (!strcmp(s->at[i].key, "block_count"))
            rc = param_set(p, param_find(deepseek4_keys, s->at[i].key), s->at[i].value, e);
    return rc;
}

static void preset_layers(const struct preset *preset, struct deepseek4_params *p)
{
    if (p->hash > p->L) p->hash = p->L;
    p->n_ratios = p->L < DEEPSEEK4_MAX_RATIOS ? p->L : DEEPSEEK4_MAX_RATIOS;
    for (int l = 0; l < (int)p->n_ratios; l++)
        p->ratios[l] = l < preset->n_first ? preset->first_ratio : (l - preset->n_first) % 2 ? 128 : 4;
}

static int shape(const char *preset, const struct synth_settings *s, void *params, struct err *e)
{
    static const struct synth_keys keys = {"deepseek4", deepseek4_keys, deepseek4_key_set, NULL};
    struct deepseek4_params *const p = params;
    int i = 0;
    while (i < N_PRESETS - 1 && strcmp(presets[i].name, preset)) i++;
    *p = presets[i].p;
    int rc = apply_layers(s, p, e);
    if (rc) return rc;
    preset_layers(&presets[i], p);
    rc = synth_settings_apply(s, &keys, p, e);
    return rc ? rc : deepseek4_params_check(p, false, preset, e);
}

static struct synth_numbers numbers(const void *params)
{
    const struct deepseek4_params *const p = params;
    return (struct synth_numbers){.tokens = p->V, .layers = p->L, .experts = p->E, .used = p->K};
}

/* Spec gguf-and-quants 6.1. */
static const struct synth_recipe recipes[] = {
    {"q2", QT_IQ2_XXS, QT_Q2_K, QT_IQ2_XXS, QT_Q2_K, QT_Q8_0, QT_F16},
    {"q4", QT_Q4_K, QT_Q4_K, QT_Q4_K, QT_Q4_K, QT_Q8_0, QT_F16},
    {"q8", QT_Q8_0, QT_Q8_0, QT_Q8_0, QT_Q8_0, QT_Q8_0, QT_F16},
    {"f16", QT_F16, QT_F16, QT_F16, QT_F16, QT_F16, QT_F16},
    {"mxfp4", QT_MXFP4, QT_MXFP4, QT_MXFP4, QT_MXFP4, QT_Q8_0, QT_F16},
};

static const struct synth_spread spreads[] = {
    {"token_embd", 0, 1, false},
    {"_ape.", 0, 0.5f, false},
    {"norm.", 1, 0.1f, false},
    {"hc_attn_scale", 0.5f, 0.05f, false},
    {"hc_ffn_scale", 0.5f, 0.05f, false},
    {"hc_scale", 0.5f, 0, false},
    {"hc_attn_base", 0, 0.5f, false},
    {"hc_ffn_base", 0, 0.5f, false},
    {"hc_base", 0, 0.5f, false},
    {"attn_sinks", 0, 1, false},
    {"exp_probs_b", 0, 0.02f, false},
    {NULL},
};

/* Spec deepseek-v4 1. */
static const struct synth_special special_tokens[] = {
    {0, TOKEN_CONTROL, "<｜begin▁of▁sentence｜>"},
    {1, TOKEN_CONTROL, "<｜end▁of▁sentence｜>"},
    {2, TOKEN_CONTROL, "<｜▁pad▁｜>"},
    {128803, TOKEN_USER_DEFINED, "<｜User｜>"},
    {128804, TOKEN_USER_DEFINED, "<｜Assistant｜>"},
    {128821, TOKEN_USER_DEFINED, "<think>"},
    {128822, TOKEN_USER_DEFINED, "</think>"},
    {128825, TOKEN_USER_DEFINED, "｜DSML｜"},
    {128828, TOKEN_USER_DEFINED, "<｜latest_reminder｜>"},
    {128829, TOKEN_USER_DEFINED, "<｜action｜>"},
    {128830, TOKEN_USER_DEFINED, "<｜query｜>"},
    {128831, TOKEN_USER_DEFINED, "<｜authority｜>"},
    {128832, TOKEN_USER_DEFINED, "<｜domain｜>"},
    {128836, TOKEN_USER_DEFINED, "<｜title｜>"},
    {128844, TOKEN_USER_DEFINED, "<｜extracted_url｜>"},
    {128845, TOKEN_USER_DEFINED, "<｜read_url｜>"},
};
static const struct synth_specials specials = {
    .pre = "joyai-llm",
    .published = 129280,
    .n_front = 3,
    .n = sizeof special_tokens / sizeof *special_tokens,
    .bos = 0,
    .eos = 1,
    .pad = 2,
    .at = special_tokens,
};

const struct synth_family synth_family_deepseek4 = {
    .arch = "deepseek4",
    .title = "DeepSeek V4",
    .params_bytes = sizeof(struct deepseek4_params),
    .keys = deepseek4_keys,
    .set = deepseek4_key_set,
    .presets = preset_names,
    .recipes = recipes,
    .n_recipes = sizeof recipes / sizeof *recipes,
    .specials = &specials,
    .spreads = spreads,
    .routes = true,
    .shape = shape,
    .layout = deepseek4_tensors,
    .metadata = deepseek4_metadata,
    .numbers = numbers,
};
