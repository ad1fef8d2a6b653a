/* Encoders of Q4_K, Q5_K and Q2_K (spec gguf-and-quants 4.5, 4.6). */
#include <math.h>
#include "quant/quant_blocks.h"
#include "quant/quant_fit.h"
#include "quant/quant_internal.h"

enum { SUB_MAX = 16 }; /* sub-blocks of a block: 8 (Q4_K, Q5_K) or 16 (Q2_K) */

/* What a block becomes before it is packed. */
struct block {
    uint8_t level[256];
    uint8_t scale[SUB_MAX], min[SUB_MAX]; /* codes of the sub-blocks */
    uint16_t d, dmin;                     /* f16 */
};

struct format {
    int sub, n_max; /* values per sub-block, largest level */
    int scale_max;  /* largest scale or minimum code */
    struct fit_steps plain, weighted;
    float sigma_factor;
};

static const struct format q4_k = {32, 15, 63, {-1.0f, 0.1f, 20, false}, {-0.9f, 0.05f, 36, false}, 2};
static const struct format q5_k = {32, 31, 63, {-0.5f, 0.1f, 15, false}, {-0.9f, 0.05f, 36, false}, 2};
static const struct format q2_k = {16, 3, 15, {-0.5f, 0.1f, 15, true}, {-0.9f, 0.05f, 36, false}, 1};

static float square_sum(const float *x, int n)
{
    float sum = 0;
    for (int i = 0; i < n; i++) sum += x[i] * x[i];
    return sum;
}

/* Scales or minimums of the sub-blocks to codes, the largest getting the largest code; returns the block's f16 scale.
 */
static uint16_t code_plain(const struct format *f, const float *v, uint8_t *code)
{
    const int n_sub = 256 / f->sub;
    float max = 0;
    for (int j = 0; j < n_sub; j++)
        if (v[j] > max) max = v[j];
    const float inv = max > 0 ? (float)f->scale_max / max : 0;
    for (int j = 0; j < n_sub; j++) code[j] = (uint8_t)fit_clamp((uint8_t)fit_nearest(inv * v[j]), 0, f->scale_max);
    return f32_to_f16(max / (float)f->scale_max);
}

static void fit_plain(const struct format *f, const float *x, struct block *b)
{
    float scale[SUB_MAX], min[SUB_MAX], w[FIT_MAX];
    for (int j = 0; j < 256 / f->sub; j++) {
        const float *xs = x + j * f->sub;
        /* Q2_K weighs by |x|, the others by root mean square + |x|. */
        const float rms = f != &q2_k ? sqrtf(square_sum(xs, f->sub) / (float)f->sub) : 0;
        for (int i = 0; i < f->sub; i++) w[i] = rms + fabsf(xs[i]);
        scale[j] = fit_affine(f->sub, f->n_max, xs, w, &f->plain, b->level + j * f->sub, &min[j]);
    }
    b->d = code_plain(f, scale, b->scale);
    b->dmin = code_plain(f, min, b->min);
}

static void fit_weighted(const struct format *f, const float *x, const float *importance, struct block *b)
{
    const float sigma2 = f->sigma_factor * square_sum(x, 256) / 256;
    const int n_sub = 256 / f->sub;
    float scale[SUB_MAX], min[SUB_MAX], weight[SUB_MAX], w[FIT_MAX];
    for (int j = 0; j < n_sub; j++) {
        const float *xs = x + j * f->sub;
        weight[j] = 0;
        for (int i = 0; i < f->sub; i++) {
            w[i] = importance[j * f->sub + i] * sqrtf(sigma2 + xs[i] * xs[i]);
            weight[j] += w[i];
        }
        scale[j] = fit_affine(f->sub, f->n_max, xs, w, &f->weighted, b->level + j * f->sub, &min[j]);
    }
    b->d = f32_to_f16(fit_scale(n_sub, f->scale_max, scale, weight, b->scale));
    b->dmin = f32_to_f16(fit_scale(n_sub, f->scale_max, min, weight, b->min));
}

/* Levels once more, now against the scales as they are stored. A sub-block of scale 0 keeps those of the search. */
static void requantise(const struct format *f, const float *x, struct block *b)
{
    const float d = f16_to_f32(b->d), dmin = f16_to_f32(b->dmin);
    for (int i = 0; i < 256; i++) {
        const float scale = d * (float)b->scale[i / f->sub], min = dmin * (float)b->min[i / f->sub];
        if (scale != 0) b->level[i] = (uint8_t)fit_clamp(fit_nearest((x[i] + min) / scale), 0, f->n_max);
    }
}

static void quantise(const struct format *f, const float *x, const float *importance, struct block *b)
{
    if (importance)
        fit_weighted(f, x, importance, b);
    else
        fit_plain(f, x, b);
    requantise(f, x, b);
}

/* Scales and minimums of Q4_K and Q5_K: six bits each. */
static void pack_scales(const struct block *b, uint8_t *s)
{
    for (int j = 0; j < 4; j++) {
        s[j] = (uint8_t)(b->scale[j] | b->scale[j + 4] >> 4 << 6);
        s[j + 4] = (uint8_t)(b->min[j] | b->min[j + 4] >> 4 << 6);
        s[j + 8] = (uint8_t)((b->scale[j + 4] & 15) | (b->min[j + 4] & 15) << 4);
    }
}

/* Low nibbles of the levels. */
static void pack_nibbles(const struct block *b, uint8_t *qs)
{
    for (int i = 0; i < 128; i++) {
        const uint8_t *const l = b->level + 64 * (i / 32) + i % 32;
        qs[i] = (uint8_t)((l[0] & 15) | (l[32] & 15) << 4);
    }
}

static void pack_q4_k(const struct block *b, uint8_t *out)
{
    store_u16(out + Q4_K_D, b->d);
    store_u16(out + Q4_K_DMIN, b->dmin);
    pack_scales(b, out + Q4_K_SCALES);
    pack_nibbles(b, out + Q4_K_QS);
}

static void pack_q5_k(const struct block *b, uint8_t *out)
{
    store_u16(out + Q4_K_D, b->d);
    store_u16(out + Q4_K_DMIN, b->dmin);
    pack_scales(b, out + Q4_K_SCALES);
    pack_nibbles(b, out + Q5_K_QS);
    memset(out + Q5_K_QH, 0, 32);
    for (int i = 0; i < 256; i++) out[Q5_K_QH + i % 32] |= (uint8_t)(b->level[i] >> 4 << i / 32);
}

static void pack_q2_k(const struct block *b, uint8_t *out)
{
    for (int j = 0; j < 16; j++) out[Q2_K_SCALES + j] = (uint8_t)(b->scale[j] | b->min[j] << 4);
    for (int i = 0; i < 64; i++) {
        const uint8_t *const l = b->level + 128 * (i / 32) + i % 32;
        out[Q2_K_QS + i] = (uint8_t)(l[0] | l[32] << 2 | l[64] << 4 | l[96] << 6);
    }
    store_u16(out + Q2_K_D, b->d);
    store_u16(out + Q2_K_DMIN, b->dmin);
}

static void encode(const struct format *f, void (*pack)(const struct block *, uint8_t *), size_t block_bytes,
                   const float *x, int64_t n, const float *importance, uint8_t *out)
{
    struct block b;
    for (int64_t i = 0; i < n; i += 256, out += block_bytes) {
        quantise(f, x + i, importance ? importance + i : NULL, &b);
        pack(&b, out);
    }
}

void quant_encode_q4_k(const float *x, int64_t n, const float *importance, uint8_t *out)
{
    encode(&q4_k, pack_q4_k, Q4_K_BYTES, x, n, importance, out);
}

void quant_encode_q5_k(const float *x, int64_t n, const float *importance, uint8_t *out)
{
    encode(&q5_k, pack_q5_k, Q5_K_BYTES, x, n, importance, out);
}

void quant_encode_q2_k(const float *x, int64_t n, const float *importance, uint8_t *out)
{
    encode(&q2_k, pack_q2_k, Q2_K_BYTES, x, n, importance, out);
}
