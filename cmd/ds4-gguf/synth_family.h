/* What ds4-gguf synth has to know of a family: keys and presets, tensors, types and values. */
#ifndef SYNTH_FAMILY_H
#define SYNTH_FAMILY_H
#include "layout.h"
#include "synth_settings.h"
#include "synth_vocabulary.h"

/* Types as in the published files. */
struct synth_recipe {
    const char *name;
    uint32_t gate_up, down;             /* routed experts */
    uint32_t draft_gate_up, draft_down; /* those of blocks behind the trunk */
    uint32_t dense;                     /* attention projections, shared experts, head */
    uint32_t side;
};

/* Mean and standard deviation of the tensors whose names have `part`. relative: the deviation is in units of
 * 1 / sqrt(row length), with which a matrix keeps the size of what passes through. */
struct synth_spread {
    const char *part; /* NULL behind the last */
    float mean, sigma;
    bool relative;
};

struct synth_numbers {
    int64_t tokens, layers, experts, used; /* layers: of the trunk */
};

struct synth_family {
    const char *arch;
    const char *title; /* "DeepSeek V4" */
    size_t params_bytes;
    const struct param_key *keys;
    int (*set)(void *params, const struct param_key *k, const char *text, struct err *e);
    const char *const *presets; /* NULL behind the last */
    const struct synth_recipe *recipes;
    int n_recipes;
    const struct synth_specials *specials;
    const struct synth_spread *spreads; /* the first that fits counts; else a matrix of mean 0 that keeps sizes */
    bool routes;                        /* hash tables or selection biases say which experts are used */
    bool pads;                          /* rows of routed experts that do not fill the blocks of Q2_K are padded */
    /* A preset's parameters as changed by the settings, checked. */
    int (*shape)(const char *preset, const struct synth_settings *s, void *params, struct err *e);
    int (*layout)(const void *params, struct layout_tensor **out, int *n, struct err *e);
    /* The family's metadata. tensors: with the types' padding. */
    void (*metadata)(struct gguf_writer *w, const void *params, const struct layout_tensor *tensors, int n);
    struct synth_numbers (*numbers)(const void *params);
};

/* Mean and standard deviation of a tensor's values: by the first entry of the list that fits (NULL: none), else those
 * of a matrix with such rows. */
void synth_spread_of(const struct synth_spread *list, const char *name, uint64_t row, float *mean, float *sigma);

extern const struct synth_family synth_family_deepseek4, synth_family_qwen38;

#endif
