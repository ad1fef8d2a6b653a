/* Random Qwen3.8 models for tests, as synth_model.h makes DeepSeek V4's: small, complete, the same bytes on every
 * machine; golden results depend on them. */
#ifndef SYNTH_QWEN38_H
#define SYNTH_QWEN38_H
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"

/* In the letters of spec qwen38 1. */
struct synth_qwen38 {
    int V, E, L, H, Hkv, D, Rn, NE, K, F, Fs, I, Hk, Hv, Dl, Kc, hc, rho, Hi, Di, B, q, lp, G, P, Kp;
    int eos, primes_from;          /* separator; heads have so many rows or more */
    float base, yarn;              /* yarn: 0 or the factor */
    bool draft, tied, big, dense;  /* MTP block; no output matrix; multipliers whose products wrap; no indexer */
    uint32_t type, experts, table; /* enum qtype: matrices, routed experts, n-gram table */
    uint64_t seed;
};

/* Four layers, the last one attention, everything F32. */
struct synth_qwen38 synth_qwen38_tiny(void);
int synth_qwen38_write(const char *path, const struct synth_qwen38 *shape, struct err *e);

/* Shapes with golden results of an independent implementation (tests/golden/qwen38_NAME.bin). */
struct qwen38_case {
    const char *name;
    struct synth_qwen38 shape;
    int n_ids;
    struct {
        int first, rows, columns;
    } grid[2]; /* tokens that have positions in a grid (spec 3.9); rows 0: none */
};
int qwen38_case_count(void);
struct qwen38_case qwen38_case_at(int i);
void qwen38_case_ids(const struct qwen38_case *c, int32_t *ids); /* [n_ids], separators among them */

/* Rope positions of every token, three each. */
void qwen38_case_positions(const struct qwen38_case *c, int32_t *rope);

#endif
