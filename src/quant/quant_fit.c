/* Scale searches; the names of the sums follow spec gguf-and-quants 4.3 and 4.4. */
#include <math.h>
#include "quant/quant_fit.h"

int fit_nearest(float v)
{
    const float limit = 4194303;
    if (v > limit) return (int)limit;
    if (v < -limit) return -(int)limit;
    return v == v ? (int)lrintf(v) : 0;
}

struct sums {
    float w, x;      /* of w; of w*x */
    float l, l2, xl; /* of w*level; w*level^2; w*level*x */
};

static float affine_error(int n, const float *x, const float *w, const uint8_t *levels, float scale, float lo,
                          bool absolute)
{
    float sum = 0;
    for (int i = 0; i < n; i++) {
        const float t = scale * (float)levels[i] + lo - x[i];
        sum += w[i] * (absolute ? fabsf(t) : t * t);
    }
    return sum;
}

static void affine_levels(int n, int n_max, const float *x, float inv, float lo, uint8_t *levels)
{
    for (int i = 0; i < n; i++) levels[i] = (uint8_t)fit_clamp(fit_nearest(inv * (x[i] - lo)), 0, n_max);
}

static void level_sums(int n, const float *x, const float *w, const uint8_t *levels, struct sums *s)
{
    s->l = s->l2 = s->xl = 0;
    for (int i = 0; i < n; i++) {
        const float l = (float)levels[i];
        s->l += w[i] * l;
        s->l2 += w[i] * l * l;
        s->xl += w[i] * l * x[i];
    }
}

/* Least squares for given levels with the offset kept <= 0. False if it has no solution. */
static bool affine_solve(const struct sums *s, float *scale, float *lo)
{
    const float det = s->w * s->l2 - s->l * s->l;
    if (!(det > 0)) return false;
    *scale = (s->w * s->xl - s->x * s->l) / det;
    *lo = (s->l2 * s->x - s->l * s->xl) / det;
    if (*lo > 0) {
        *lo = 0;
        *scale = s->xl / s->l2;
    }
    return true;
}

float fit_affine(int n, int n_max, const float *x, const float *w, const struct fit_steps *steps, uint8_t *levels,
                 float *min)
{
    float lo = x[0], hi = x[0];
    struct sums s = {.w = w[0], .x = w[0] * x[0]};
    for (int i = 1; i < n; i++) {
        if (x[i] < lo) lo = x[i];
        if (x[i] > hi) hi = x[i];
        s.w += w[i];
        s.x += w[i] * x[i];
    }
    if (lo > 0) lo = 0;
    if (hi <= lo) {
        for (int i = 0; i < n; i++) levels[i] = 0;
        *min = -lo;
        return 0;
    }
    const float inv = (float)n_max / (hi - lo);
    float scale = 1 / inv;
    affine_levels(n, n_max, x, inv, lo, levels);
    float best = affine_error(n, x, w, levels, scale, lo, steps->abs_error);
    for (int k = 0; k <= steps->n; k++) {
        uint8_t tried[FIT_MAX];
        float a, b;
        /* lo moves with the best fit found so far; the published bytes depend on that. */
        affine_levels(n, n_max, x, (steps->first + steps->step * (float)k + (float)n_max) / (hi - lo), lo, tried);
        level_sums(n, x, w, tried, &s);
        if (!affine_solve(&s, &a, &b)) continue;
        const float error = affine_error(n, x, w, tried, a, b, steps->abs_error);
        if (!(error < best)) continue;
        for (int i = 0; i < n; i++) levels[i] = tried[i];
        best = error;
        scale = a;
        lo = b;
    }
    *min = -lo;
    return scale;
}

static int scale_level(int n_max, float v)
{
    const int l = fit_nearest(v);
    return l < n_max ? l : n_max;
}

/* The inverse scale with the least weighted square error among nine around n_max / max. */
static float scale_start(int n, int n_max, const float *x, const float *w, float max)
{
    float inv = (float)n_max / max, best = 0;
    for (int i = 0; i < n; i++) {
        const float diff = x[i] - 1 / inv * (float)(uint8_t)fit_nearest(inv * x[i]);
        best += w[i] * diff * diff;
    }
    for (int s = -4; s <= 4; s++) {
        if (s == 0) continue;
        const float tried = (0.1f * (float)s + (float)n_max) / max;
        float error = 0;
        for (int i = 0; i < n; i++) {
            const float diff = x[i] - 1 / tried * (float)scale_level(n_max, tried * x[i]);
            error += w[i] * diff * diff;
        }
        if (error < best) {
            best = error;
            inv = tried;
        }
    }
    return inv;
}

/* One pass of single-level moves; returns how many were made. */
static int scale_improve(int n, int n_max, const float *x, const float *w, uint8_t *levels, float *sum_xl,
                         float *sum_l2)
{
    int changed = 0;
    for (int i = 0; i < n; i++) {
        const float old = (float)levels[i];
        float xl = *sum_xl - w[i] * x[i] * old, l2 = *sum_l2 - w[i] * old * old;
        if (!(xl > 0 && l2 > 0)) continue;
        const int l = scale_level(n_max, x[i] * l2 / xl);
        if (l == levels[i]) continue;
        xl += w[i] * x[i] * (float)l;
        l2 += w[i] * (float)l * (float)l;
        if (!(xl * xl * *sum_l2 > *sum_xl * *sum_xl * l2)) continue;
        levels[i] = (uint8_t)l;
        *sum_xl = xl;
        *sum_l2 = l2;
        changed++;
    }
    return changed;
}

float fit_scale(int n, int n_max, const float *x, const float *w, uint8_t *levels)
{
    float max = 0;
    for (int i = 0; i < n; i++)
        if (x[i] > max) max = x[i];
    if (max < 1e-15f) {
        for (int i = 0; i < n; i++) levels[i] = 0;
        return 0;
    }
    const float inv = scale_start(n, n_max, x, w, max);
    float sum_xl = 0, sum_l2 = 0;
    for (int i = 0; i < n; i++) {
        const int l = scale_level(n_max, inv * x[i]);
        levels[i] = (uint8_t)l;
        sum_xl += w[i] * x[i] * (float)l;
        sum_l2 += w[i] * (float)l * (float)l;
    }
    for (int pass = 0; pass < 5; pass++)
        if (scale_improve(n, n_max, x, w, levels, &sum_xl, &sum_l2) == 0) break;
    return sum_l2 > 0 ? sum_xl / sum_l2 : 0;
}
