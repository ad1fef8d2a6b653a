/* Random Qwen3.8 models: presets with their parameters (spec qwen38 1), types (spec 8), values, special tokens. */
#include <string.h>
#include "quant/quant.h"
#include "qwen38_layout.h"
#include "synth_family.h"

#define COMMON                                                                                                         \
    .nextn = 1, .dv = PARAM_UNSET, .inner = PARAM_UNSET, .W = PARAM_UNSET, .row_dim = PARAM_UNSET,                     \
    .row_count = PARAM_UNSET, .n_sections = PARAM_UNSET, .n_mul = PARAM_UNSET, .n_off = PARAM_UNSET,                   \
    .n_voc = PARAM_UNSET, .eos = PARAM_UNSET, .image = PARAM_UNSET, .context = 262144, .eps = 1e-6f, .theta = 1e7f,    \
    .yarn_factor = 1, .yarn_context = 262144, .I = 4, .Kc = 4, .Kp = 4, .hc = 4, .G = 3, .P = 8, .n_ratios = 1,        \
    .ratios = {4}, .n_lp = 1, .lp = {1}

static const struct preset {
    const char *name;
    struct qwen38_params p;
} presets[] = {
    /* Every kind of block; rows of down experts do not fill blocks of 256. */
    {"tiny", {COMMON,   .Lall = 5, .E = 256, .V = 1024, .H = 4,   .Hkv = 2,  .D = 64, .Rn = 16, .NE = 8, .K = 2,
              .F = 160, .Fs = 160, .Hk = 2,  .Hv = 6,   .Dl = 32, .rho = 32, .Hi = 4, .Di = 32, .B = 32, .base = 211}},
    {"flash", {COMMON,    .Lall = 49, .E = 2560, .V = 248320, .H = 24,   .Hkv = 2,        .D = 256,
               .Rn = 64,  .NE = 512,  .K = 10,   .F = 640,    .Fs = 640, .Hk = 16,        .Hv = 48,
               .Dl = 128, .rho = 320, .Hi = 4,   .Di = 128,   .B = 2048, .base = 20000000}},
};
enum { N_PRESETS = sizeof presets / sizeof presets[0] };
static const char *const preset_names[] = {"tiny", "flash", NULL};

/* The published id of the first; the order of the others is ours. */
static const struct synth_special special_tokens[] = {
    {248044, TOKEN_CONTROL, "<|endoftext|>"},    {248045, TOKEN_CONTROL, "<|im_start|>"},
    {248046, TOKEN_CONTROL, "<|im_end|>"},       {248047, TOKEN_CONTROL, "<think>"},
    {248048, TOKEN_CONTROL, "</think>"},         {248049, TOKEN_CONTROL, "<tool_call>"},
    {248050, TOKEN_CONTROL, "</tool_call>"},     {248051, TOKEN_CONTROL, "<tool_response>"},
    {248052, TOKEN_CONTROL, "</tool_response>"}, {248053, TOKEN_CONTROL, "<|vision_start|>"},
    {248054, TOKEN_CONTROL, "<|vision_end|>"},   {248055, TOKEN_CONTROL, "<|image_pad|>"},
    {248056, TOKEN_CONTROL, "<|video_pad|>"},    {248057, TOKEN_CONTROL, "<|vision_pad|>"},
};
enum { ENDOFTEXT = 0, IM_END = 2, IMAGE_PAD = 11 };
static const struct synth_specials specials = {
    .pre = "qwen35",
    .published = 248320,
    .n = sizeof special_tokens / sizeof *special_tokens,
    .bos = -1,
    .eos = IM_END,
    .pad = ENDOFTEXT,
    .at = special_tokens,
};

static int shape(const char *preset, const struct synth_settings *s, void *params, struct err *e)
{
    static const struct synth_keys keys = {"qwen4exp", qwen38_keys, qwen38_key_set, NULL};
    struct qwen38_params *const p = params;
    int i = 0;
    while (i < N_PRESETS - 1 && strcmp(presets[i].name, preset)) i++;
    *p = presets[i].p;
    const int rc = synth_settings_apply(s, &keys, p, e);
    if (rc) return rc;
    if (p->eos == PARAM_UNSET) p->eos = synth_special_id(&specials, ENDOFTEXT, p->V);
    if (p->image == PARAM_UNSET) p->image = synth_special_id(&specials, IMAGE_PAD, p->V);
    return qwen38_complete(p, preset, e);
}

static struct synth_numbers numbers(const void *params)
{
    const struct qwen38_params *const p = params;
    return (struct synth_numbers){.tokens = p->V, .layers = qwen38_layers(p), .experts = p->NE, .used = p->K};
}

static const struct synth_recipe recipes[] = {
    {"q2", QT_IQ2_XXS, QT_Q2_K, QT_Q4_K, QT_MXFP4, QT_Q8_0, QT_BF16},
    {"q4", QT_Q4_K, QT_MXFP4, QT_Q4_K, QT_MXFP4, QT_Q8_0, QT_BF16},
    {"q8", QT_Q8_0, QT_Q8_0, QT_Q8_0, QT_Q8_0, QT_Q8_0, QT_BF16},
    {"f16", QT_F16, QT_F16, QT_F16, QT_F16, QT_F16, QT_F16},
    {"mxfp4", QT_MXFP4, QT_MXFP4, QT_MXFP4, QT_MXFP4, QT_Q8_0, QT_BF16},
};

/* Gates that open and close, decays between 0.2 and 1, selections that differ: what of a plain random model would be
 * nearly constant. */
static const struct synth_spread spreads[] = {
    {"token_embd", 0, 1, false},   {"norm", 1, 0.1f, false},      {"ssm_dt.bias", -1, 0.5f, false},
    {"ssm_alpha", 0, 1, true},     {"ssm_a", -0.4f, 0.1f, false}, {"conv1d", 0, 1.5f, true},
    {"_down.weight", 0, 4, true},  {"_up.weight", 0, 3, true},    {"_inject.weight", 0, 4, true},
    {"output.weight", 0, 2, true}, {"ffn_gate_inp.", 0, 4, true}, {NULL},
};

const struct synth_family synth_family_qwen38 = {
    .arch = "qwen4exp",
    .title = "Qwen3.8",
    .params_bytes = sizeof(struct qwen38_params),
    .keys = qwen38_keys,
    .set = qwen38_key_set,
    .presets = preset_names,
    .recipes = recipes,
    .n_recipes = sizeof recipes / sizeof *recipes,
    .specials = &specials,
    .spreads = spreads,
    .pads = true,
    .shape = shape,
    .layout = qwen38_tensors,
    .metadata = qwen38_metadata,
    .numbers = numbers,
};
