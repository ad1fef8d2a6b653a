/* DeepSeek V4 as a file: hyper-parameters, the list of tensors that they imply, and the metadata (spec deepseek-v4
 * 1, 2.2, 2.3, 2.6). Used by everything here that writes such a file. */
#ifndef DEEPSEEK4_LAYOUT_H
#define DEEPSEEK4_LAYOUT_H
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"
#include "gguf/gguf.h"
#include "layout.h"
#include "param_keys.h"

enum { DEEPSEEK4_MAX_RATIOS = 4096 };

/* Letters as in spec deepseek-v4; PARAM_UNSET is allowed below. */
struct deepseek4_params {
    int64_t V, D, L, H, d, r, Rq, Ro, G, E, K, F, W, IH, ID, IK, n;
    int64_t n_shared, iters, hash, context, nextn;
    int64_t n_kv, dv;     /* heads and width of values: 1 and d, or it is no such model */
    int64_t gating;       /* scoring function of the router: 4, sqrt(softplus) */
    int64_t norm_weights; /* 1: weights of the chosen experts are normalised */
    int64_t n_ratios;     /* 1: the same in all layers; else >= L: entries behind L belong to draft blocks */
    int32_t ratios[DEEPSEEK4_MAX_RATIOS];
    int64_t n_clamps; /* as n_ratios */
    float clamps[DEEPSEEK4_MAX_RATIOS];
    float hc_eps, rms_eps, scale;
    float theta, compress_theta;
    float yarn_factor, beta_fast, beta_slow; /* factor 1: no scaling */
    int64_t yarn_context;
    /* What published files have no key for; the last are the shared expert's. */
    int64_t overlap, kv_block, index_block, hadamard, n_groups, n_used_groups, Fs;
    float shared_clamp;
};

/* Initialisers: what only one value is known for, and UNSET where a file may be silent. */
#define DEEPSEEK4_PARAMS_USUAL                                                                                         \
    .n_kv = 1, .dv = PARAM_UNSET, .gating = 4, .norm_weights = 1, .overlap = PARAM_UNSET, .kv_block = PARAM_UNSET,     \
    .index_block = PARAM_UNSET, .hadamard = PARAM_UNSET, .n_groups = PARAM_UNSET, .n_used_groups = PARAM_UNSET,        \
    .Fs = PARAM_UNSET, .shared_clamp = PARAM_UNSET

/* 0, or ERR_MODEL with the first parameter that a reader of the file would refuse, by its key; where is put in front.
 * Shapes that the roundings of stored rows cannot block are fine if kv_sim_off. */
int deepseek4_params_check(const struct deepseek4_params *p, bool kv_sim_off, const char *where, struct err *e);

int32_t deepseek4_ratio(const struct deepseek4_params *p, int layer);
int64_t deepseek4_overlap(const struct deepseek4_params *p);      /* the ratio of layers with an indexer */
int64_t deepseek4_shared_width(const struct deepseek4_params *p); /* of the shared experts together */

/* The parameters by their keys. */
extern const struct param_key deepseek4_keys[];
/* param_set, for this family's own kind too. */
int deepseek4_key_set(void *params, const struct param_key *k, const char *text, struct err *e);
/* For the families' tables; params: struct deepseek4_params. The family's metadata; general.* and the vocabulary are
 * the caller's. The tensors do not matter. */
void deepseek4_metadata(struct gguf_writer *w, const void *params, const struct layout_tensor *tensors, int n);
/* The same for all tensors in file order. The caller frees *out with mem_free. The parameters have been checked. */
int deepseek4_tensors(const void *params, struct layout_tensor **out, int *n, struct err *e);

#endif
