/* Presets with their parameters (spec deepseek-v4 1 and 8). */
#include "synth_shape.h"
#include <string.h>
#include "synth_vocabulary.h"

/* Layers of a preset: the first ones have one ratio, those behind them 4 and 128 in turn. */
struct synth_preset {
    const char *name;
    int n_first, first_ratio;
    struct deepseek4_params p; /* without ratios */
};

#define COMMON                                                                                                         \
    DEEPSEEK4_PARAMS_USUAL, .n_shared = 1, .iters = 20, .context = 1048576, .hc_eps = 1e-6f, .rms_eps = 1e-6f,         \
                            .n_clamps = 1, .clamps = {10}, .theta = 10000, .compress_theta = 160000,                   \
                            .yarn_factor = 16, .yarn_context = 65536, .beta_fast = 32, .beta_slow = 1

static const struct synth_preset presets[] = {
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

const struct synth_preset *synth_preset_find(const char *name)
{
    for (int i = 0; i < N_PRESETS; i++)
        if (strcmp(presets[i].name, name) == 0) return &presets[i];
    return NULL;
}

const char *synth_preset_name(const struct synth_preset *p)
{
    return p->name;
}

/* Numbers of layers come first: lists of the preset are made for them. */
static int apply_layers(const struct synth_settings *s, struct deepseek4_params *p, struct err *e)
{
    int rc = 0;
    for (int i = 0; i < s->n && !rc; i++)
        if (!strcmp(s->at[i].key, "block_count")) rc = deepseek4_key_set(p, s->at[i].key, s->at[i].value, e);
    return rc;
}

static void preset_layers(const struct synth_preset *preset, struct deepseek4_params *p)
{
    if (p->hash > p->L) p->hash = p->L;
    p->n_ratios = p->L < DEEPSEEK4_MAX_RATIOS ? p->L : DEEPSEEK4_MAX_RATIOS;
    for (int l = 0; l < (int)p->n_ratios; l++)
        p->ratios[l] = l < preset->n_first ? preset->first_ratio : (l - preset->n_first) % 2 ? 128 : 4;
}

int synth_shape(const struct synth_preset *preset, const struct synth_settings *s, struct deepseek4_params *p,
                struct err *e)
{
    *p = preset->p;
    int rc = apply_layers(s, p, e);
    if (rc) return rc;
    preset_layers(preset, p);
    for (int i = 0; i < s->n && !rc; i++)
        if (synth_setting_is_shape(&s->at[i])) rc = deepseek4_key_set(p, s->at[i].key, s->at[i].value, e);
    if (!rc) rc = deepseek4_params_check(p, false, preset->name, e);
    if (!rc && p->V < SYNTH_VOCABULARY_LEAST)
        rc = err_set(e, ERR_MODEL,
                     "%s: vocab_size = %lld is not supported (only from %d on: bytes, special tokens, a pair)",
                     preset->name, (long long)p->V, SYNTH_VOCABULARY_LEAST);
    return rc;
}
