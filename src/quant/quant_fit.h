/* The two scale searches of the K and IQ2 encoders (spec gguf-and-quants 4.3, 4.4). Their order of operations is part
 * of the formats' published bytes. */
#ifndef QUANT_QUANT_FIT_H
#define QUANT_QUANT_FIT_H
#include <stdbool.h>
#include <stdint.h>

/* Nearest integer, ties to even. Beyond +-4194303 (reached by blocks of subnormal values only) it saturates; NaN gives
 * 0. */
int fit_nearest(float v);

static inline int fit_clamp(int v, int lo, int hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}

enum { FIT_MAX = 32 }; /* most values of one search */

struct fit_steps { /* inverse scales that are tried: (first + step*s + n_max) / range, s = 0..n */
    float first, step;
    int n;
    bool abs_error; /* minimise the sum of w*|error| instead of w*error^2 */
};

/* x_i ~ scale * level_i - min, levels 0..n_max, min >= 0. Returns the scale. */
float fit_affine(int n, int n_max, const float *x, const float *w, const struct fit_steps *steps, uint8_t *levels,
                 float *min);

/* x_i ~ scale * level_i, levels up to n_max; a negative level wraps to a byte, as in the reference. Returns the scale.
 */
float fit_scale(int n, int n_max, const float *x, const float *w, uint8_t *levels);

#endif
