/* Qwen3.8 Flash Next as a file: hyper-parameters, the tensors that they imply, the metadata (spec qwen38 1, 2). Used by
 * everything here that writes such a file. */
#ifndef QWEN38_LAYOUT_H
#define QWEN38_LAYOUT_H
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"
#include "gguf/gguf.h"
#include "layout.h"
#include "param_keys.h"

enum { QWEN38_MAX_LAYERS = 1024, QWEN38_MAX_NGRAM = 8, QWEN38_MAX_HEADS = 64 };

/* Letters as in spec qwen38 1; what is PARAM_UNSET is derived by qwen38_complete. */
struct qwen38_params {
    int64_t Lall, nextn, E, V, H, Hkv, D, dv, Rn, context;
    int64_t NE, K, F, Fs, I;
    int64_t Hk, Hv, Dl, Kc, inner;
    int64_t hc, rho, Hi, Di, B;
    int64_t n_lp, G, P, Kp, W, eos, image, row_dim, row_count;
    int32_t lp[2]; /* the layer of the n-gram memory; one */
    float theta, eps;
    float yarn_factor; /* 1: no scaling */
    int64_t yarn_context;
    int64_t n_sections, n_ratios, n_mul, n_off, n_voc;
    int32_t sections[4];
    int32_t ratios[QWEN38_MAX_LAYERS]; /* one entry: of all attention layers */
    uint64_t mul[QWEN38_MAX_NGRAM], off[QWEN38_MAX_HEADS], voc[QWEN38_MAX_HEADS];
    int64_t base; /* the least size of an n-gram head; in no file */
};

/* The parameters by their keys; "ngram_vocab_size_base" is `base`. */
extern const struct param_key qwen38_keys[];
int qwen38_key_set(void *params, const struct param_key *k, const char *text, struct err *e);

int64_t qwen38_layers(const struct qwen38_params *p); /* of the trunk */
bool qwen38_is_attention(const struct qwen38_params *p, int layer);

/* Derives what is not set: widths, rope sections, a ratio per block, hash constants by the generator of spec 3.4. Then
 * checks: ERR_MODEL with the first key that a reader would refuse, `where` in front. */
int qwen38_complete(struct qwen38_params *p, const char *where, struct err *e);

/* For the families' tables; params: struct qwen38_params. The family's metadata; general.* and the vocabulary are the
 * caller's. tensors: for what padding says. */
void qwen38_metadata(struct gguf_writer *w, const void *params, const struct layout_tensor *tensors, int n);
/* The same for all tensors in file order, the n-gram table last. The caller frees *out with mem_free. The parameters
 * are complete. */
int qwen38_tensors(const void *params, struct layout_tensor **out, int *n, struct err *e);

#endif
