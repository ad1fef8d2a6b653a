/* DeepSeek V4 as a file: hyper-parameters, the list of tensors that they imply, and the metadata (spec deepseek-v4
 * 1, 2.2, 2.3, 2.6). Used by everything here that writes such a file. */
#ifndef DEEPSEEK4_LAYOUT_H
#define DEEPSEEK4_LAYOUT_H
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"
#include "gguf/gguf.h"

enum { DEEPSEEK4_MAX_RATIOS = 1024 };

/* Letters as in spec deepseek-v4. */
struct deepseek4_params {
    int64_t V, D, L, H, d, r, Rq, Ro, G, E, K, F, W, IH, ID, IK, n;
    int64_t n_shared, iters, hash, context, nextn;
    int64_t n_ratios; /* >= L: entries behind L belong to draft blocks */
    int32_t ratios[DEEPSEEK4_MAX_RATIOS];
    float hc_eps, rms_eps, clamp, scale;
    bool norm_weights; /* weights of the chosen experts are normalised */
    float theta, compress_theta;
    float yarn_factor, beta_fast, beta_slow; /* factor 1: no scaling */
    int64_t yarn_context;
};

/* 0, or ERR_MODEL with the first parameter that contradicts another one; where is put in front. */
int deepseek4_params_check(const struct deepseek4_params *p, const char *where, struct err *e);

/* What a tensor is for: decides which types it may take. */
enum layout_role {
    ROLE_EMBEDDING, /* token_embd */
    ROLE_HEAD,      /* output */
    ROLE_ATTENTION, /* attention projections */
    ROLE_SHARED,    /* shared experts */
    ROLE_EXPERTS,   /* routed experts, [in, out, E] */
    ROLE_SIDE,      /* compressors and the indexer's query projection */
    ROLE_SMALL,     /* matrices that stay exact: hyper-connections, router, position biases, indexer.proj */
    ROLE_VECTOR,    /* one-dimensional, F32 */
    ROLE_IDS        /* tid2eid, I32 */
};

struct layout_tensor {
    char name[80];           /* in GGUF */
    char source[80];         /* in the source checkpoint; experts: the part before the expert's number */
    const char *source_tail; /* experts: the part behind it; else NULL */
    enum layout_role role;
    int layer; /* -1: none */
    int n_dims;
    uint64_t ne[3]; /* ne[0] = row length */
};

/* All tensors in file order. The caller frees *out with mem_free. p has been checked. */
int deepseek4_layout(const struct deepseek4_params *p, struct layout_tensor **out, int *n, struct err *e);

/* The family's metadata; general.* and the vocabulary are the caller's. */
void deepseek4_metadata(struct gguf_writer *w, const struct deepseek4_params *p);

#endif
