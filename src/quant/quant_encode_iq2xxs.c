/* Encoder of IQ2_XXS (spec gguf-and-quants 4.7). Levels t = 0, 1, 2 stand for the odd integers g = 1, 3, 5 of the
 * search and for the magnitudes 8, 25, 43 of the decoder. */
#include <math.h>
#include <pthread.h>
#include "quant/quant_blocks.h"
#include "quant/quant_fit.h"
#include "quant/quant_internal.h"

enum {
    TERNARY = 6561,      /* 3^8 patterns of eight levels */
    LIST_BYTES = 119462, /* lists of the patterns that are not in the code book, each with its length in front */
};

/* For a pattern (digit i of the index to base 3 = level i): its entry in the code book if at >= 0, else list -1 - at of
 * candidates: all entries at the least distance, then all at the second least, by index. Made once, constant
 * afterwards. */
static struct {
    int32_t at[TERNARY];
    uint8_t lists[LIST_BYTES];
    float odd[256][8]; /* of the entries, as the search sees them */
} nearby;
static pthread_once_t nearby_once = PTHREAD_ONCE_INIT;

/* Sum of squared differences of two packed patterns of levels 0..2. */
static int distance(uint32_t a, uint32_t b)
{
    const uint32_t differ = a ^ b, one = differ & 0x5555, two = differ >> 1 & ~differ & 0x5555;
    return __builtin_popcount(one) + 4 * __builtin_popcount(two);
}

static uint32_t packed_pattern(int index)
{
    uint32_t code = 0;
    for (int i = 0; i < 8; i++, index /= 3) code |= (uint32_t)(index % 3) << 2 * i;
    return code;
}

static void nearby_make(void)
{
    int32_t used = 0;
    for (int e = 0; e < 256; e++)
        for (int i = 0; i < 8; i++) nearby.odd[e][i] = (float)(2 * (iq2xxs_codes[e] >> 2 * i & 3) + 1);
    for (int p = 0; p < TERNARY; p++) {
        const uint32_t code = packed_pattern(p);
        int first = 99, second = 99, d[256];
        for (int e = 0; e < 256; e++) {
            d[e] = distance(code, iq2xxs_codes[e]);
            if (d[e] == 0) nearby.at[p] = e;
            if (d[e] < first)
                second = first, first = d[e];
            else if (d[e] > first && d[e] < second)
                second = d[e];
        }
        if (first == 0) continue;
        nearby.at[p] = -1 - used;
        uint8_t *const list = nearby.lists + used;
        list[0] = 0;
        for (int pass = 0; pass < 2; pass++)
            for (int e = 0; e < 256; e++)
                if (d[e] == (pass ? second : first)) list[++list[0]] = (uint8_t)e;
        used += 1 + list[0];
    }
}

/* Code book entry for eight magnitudes v at a scale, inv = 1/scale; a: square roots of the weights. */
static int nearest_entry(const float *v, const float *a, float scale, float inv)
{
    int pattern = 0;
    for (int i = 7; i >= 0; i--) pattern = 3 * pattern + fit_clamp(fit_nearest(0.5f * (inv * v[i] - 1)), 0, 2);
    if (nearby.at[pattern] >= 0) return nearby.at[pattern];
    const uint8_t *const list = nearby.lists + (-1 - nearby.at[pattern]);
    float best = INFINITY;
    int entry = list[1];
    for (int c = 1; c <= list[0]; c++) {
        const float *const odd = nearby.odd[list[c]];
        float sum = 0;
        for (int i = 0; i < 8; i++) {
            const float diff = scale * odd[i] - v[i];
            sum += a[i] * diff * diff;
        }
        if (sum < best) {
            best = sum;
            entry = list[c];
        }
    }
    return entry;
}

struct group {
    float v[32], w[32], a[32]; /* magnitudes, weights, their square roots */
    uint8_t sign[4], entry[4];
    float scale;
};

/* Magnitudes and sign bits of eight values. Where the number of minus signs is odd, the cheapest value changes its
 * sign. */
static void split_signs(const float *x, const float *w, float *v, uint8_t *sign)
{
    uint32_t bits = 0;
    int cheapest = 0;
    for (int i = 0; i < 8; i++) {
        v[i] = x[i] >= 0 ? x[i] : -x[i];
        if (!(x[i] >= 0)) bits |= 1u << i;
        if (w[i] * x[i] * x[i] < w[cheapest] * x[cheapest] * x[cheapest]) cheapest = i;
    }
    if (__builtin_popcount(bits) % 2) {
        v[cheapest] = -v[cheapest];
        bits ^= 1u << cheapest;
    }
    *sign = bits & 127;
}

/* Entries for the whole group at a scale, and the sums of w*v*g and w*g*g. */
static void match(const struct group *g, float scale, float inv, uint8_t entry[4], float *vg, float *gg)
{
    *vg = *gg = 0;
    for (int r = 0; r < 4; r++) entry[r] = (uint8_t)nearest_entry(g->v + 8 * r, g->a + 8 * r, scale, inv);
    for (int i = 0; i < 32; i++) {
        const float l = nearby.odd[entry[i / 8]][i % 8];
        *vg += g->w[i] * g->v[i] * l;
        *gg += g->w[i] * l * l;
    }
}

static void search(struct group *g)
{
    uint8_t rough[FIT_MAX];
    float max = g->v[0], vg, gg, best = 0;
    for (int i = 1; i < 32; i++)
        if (g->v[i] > max) max = g->v[i];
    const float start = max < 1e-15f ? 0 : fit_scale(32, 4, g->v, g->w, rough) * 3;
    if (!(start > 0)) {
        memset(g->sign, 0, sizeof g->sign);
        return;
    }
    for (int s = -6; s <= 6; s++) {
        uint8_t entry[4];
        const float inv = (5 + (float)s * 0.1f) / start;
        match(g, 1 / inv, inv, entry, &vg, &gg);
        if (!(gg > 0 && vg * vg > best * gg)) continue;
        g->scale = vg / gg;
        best = g->scale * vg;
        memcpy(g->entry, entry, sizeof entry);
    }
    if (g->scale > 0) {
        match(g, g->scale, 1 / g->scale, g->entry, &vg, &gg);
        if (gg > 0) g->scale = vg / gg;
    }
    if (g->scale < 0) {
        g->scale = -g->scale;
        for (int r = 0; r < 4; r++) g->sign[r] = ~g->sign[r] & 127;
    }
}

static void fit_group(const float *x, const float *importance, float sigma2, struct group *g)
{
    memset(g, 0, sizeof *g);
    for (int i = 0; i < 32; i++) {
        g->w[i] = importance[i] * sqrtf(sigma2 + x[i] * x[i]);
        g->a[i] = sqrtf(g->w[i]);
    }
    for (int r = 0; r < 4; r++) split_signs(x + 8 * r, g->w + 8 * r, g->v + 8 * r, &g->sign[r]);
    search(g);
}

static void encode_block(const float *x, const float *importance, uint8_t *out)
{
    struct group groups[8];
    float sigma2 = 0, max = 0;
    for (int i = 0; i < 256; i++) sigma2 += x[i] * x[i];
    for (int g = 0; g < 8; g++) {
        fit_group(x + 32 * g, importance + 32 * g, sigma2 / 256, &groups[g]);
        if (groups[g].scale > max) max = groups[g].scale;
    }
    memset(out, 0, IQ2_XXS_BYTES);
    if (max == 0) return;
    const float d = max / 31, inv = 1 / d;
    store_u16(out, f32_to_f16(d));
    for (int g = 0; g < 8; g++) {
        uint8_t *const to = out + IQ2_XXS_GROUPS + 8 * g;
        uint32_t signs = (uint32_t)fit_clamp(fit_nearest(0.5f * (inv * groups[g].scale - 1)), 0, 15) << 28;
        for (int r = 0; r < 4; r++) signs |= (uint32_t)groups[g].sign[r] << 7 * r;
        memcpy(to, groups[g].entry, 4);
        memcpy(to + 4, &signs, sizeof signs);
    }
}

void quant_encode_iq2_xxs(const float *x, int64_t n, const float *importance, uint8_t *out)
{
    pthread_once(&nearby_once, nearby_make);
    for (int64_t i = 0; i < n; i += 256, out += IQ2_XXS_BYTES) encode_block(x + i, importance + i, out);
}
