/* Random models for tests: a small, complete and valid file of a family, the same bytes on every machine. Values come
 * from an integer generator seeded by the seed and the tensor's name, so a tensor's values depend on neither its type
 * nor the other tensors; only its stored form does. Golden results of other implementations are computed from these
 * files: a change of one byte here makes them worthless. */
#ifndef SYNTH_MODEL_H
#define SYNTH_MODEL_H
#include <stdint.h>
#include "base/err.h"

enum { SYNTH_MAX_LAYERS = 64 };

/* A DeepSeek V4 model in the letters of spec deepseek-v4. */
struct synth_shape {
    int V, D, L, H, d, r, G, Rq, Ro, E, K, F, W, IH, ID, IK, n;
    int iters, hash;              /* Sinkhorn iterations, hash-routed layers */
    int ratios[SYNTH_MAX_LAYERS]; /* 0, 4 or 128 */
    float clamp, scale, eps, base, cbase;
    float logit_std;         /* deviation of the logits; 0: 2 */
    uint32_t embed, dense;   /* enum qtype: token_embd; attention projections, shared experts and output */
    uint32_t gate, up, down; /* routed experts */
    uint32_t rest;           /* hyper-connections, compressors, indexer, router: F32 or F16 */
    int late;                /* the experts of the last `late` layers are of type late_type instead */
    uint32_t late_type;
    uint64_t seed;
};

/* Four layers with every kind of attention, D 64, everything F32: fits all types of blocks of 32. */
struct synth_shape synth_tiny(void);
/* The same with D = F = 256, so that experts may be of the types with blocks of 256. */
struct synth_shape synth_wide(void);

/* Writes the file. 0, or the error of the writer or of a type that cannot store a row. */
int synth_deepseek4(const char *path, const struct synth_shape *shape, struct err *e);

#endif
