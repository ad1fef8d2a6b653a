/* Walks over the rows of a session in order: the short convolution and the gated delta rule (spec qwen38 3.4, 3.5). */
#include "device/ref/ref_internal.h"
#include <math.h>
#include <string.h>
#include "base/mem.h"

/* ---------------------------------------------------------------- convolution */

/* The input of position pos: of this step, of an earlier one, or NULL for zeros before the first. */
static const double *conv_row(const struct conv_args *a, const struct segment *g, int index, int64_t pos)
{
    if (pos < 0) return NULL;
    if (pos < g->pos0) return ref_ring_row(a->ring[index], (int32_t)pos);
    return ref_row(a->x, g->row0 + pos - g->pos0);
}

static void conv_segment(const struct conv_args *a, const struct segment *g, int index, const double *weight)
{
    const int64_t width = buf_row_values(&a->out->desc);
    for (int i = 0; i < g->n; i++) {
        double *out = ref_row(a->out, g->row0 + i);
        memset(out, 0, (size_t)width * sizeof *out);
        for (int k = 0; k < a->taps; k++) {
            const double *x = conv_row(a, g, index, (int64_t)g->pos0 + i - (int64_t)(a->taps - 1 - k) * a->dilation);
            for (int64_t c = 0; x && c < width; c++) out[c] += weight[c * a->taps + k] * x[c];
        }
        for (int64_t c = 0; a->silu && c < width; c++) out[c] = ref_silu(out[c]);
    }
}

void ref_conv(struct dev_stream *s, const struct conv_args *a)
{
    for (int i = 0; i < s->rows->n_segments; i++) {
        if (!ref_begin(s)) return;
        const struct segment *g = &s->rows->segments[i];
        const double *weight = ref_vector(s, a->weight, a->weight->view.ne[1]);
        if (!weight) return;
        conv_segment(a, g, i, weight);
        if (a->ring[i])
            ref_ring_write_segment(s, a->ring[i], g, ref_row(a->x, g->row0), a->x->row_bytes / sizeof(double));
    }
}

/* ---------------------------------------------------------------- state */

static size_t bank_values(const struct scan_desc *d)
{
    return (size_t)d->value_heads * (size_t)d->width * (size_t)d->width;
}

/* What a row brings: keys [key_heads][width], values [value_heads][width], decay and beta [value_heads]. */
static size_t kept_values(const struct scan_desc *d)
{
    return (size_t)(d->key_heads + d->value_heads) * (size_t)d->width + 2 * (size_t)d->value_heads;
}

size_t ref_scan_state_bytes(const struct dev *d, const struct scan_desc *desc)
{
    (void)d;
    return bank_values(desc) * sizeof(double);
}

size_t ref_scan_bytes(const struct dev *d, const struct scan_desc *desc)
{
    return 2 * ref_scan_state_bytes(d, desc) + (size_t)desc->slack * kept_values(desc) * sizeof(double);
}

struct dev_scan *ref_scan_create(struct dev *d, const struct scan_desc *desc)
{
    (void)d;
    struct dev_scan *c = mem_try(sizeof *c);
    if (!c) return NULL;
    c->desc = *desc;
    for (int b = 0; b < 2; b++) c->bank[b] = mem_try(bank_values(desc) * sizeof(double));
    c->kept = mem_try((size_t)desc->slack * kept_values(desc) * sizeof(double) + 1);
    if (c->bank[0] && c->bank[1] && c->kept) return c;
    ref_scan_free(c);
    return NULL;
}

void ref_scan_free(struct dev_scan *c)
{
    if (!c) return;
    mem_free(c->bank[0]);
    mem_free(c->bank[1]);
    mem_free(c->kept);
    mem_free(c);
}

void ref_scan_flip(struct dev_scan *c)
{
    c->current ^= 1;
}

int ref_scan_copy(struct dev_scan *dst, const struct dev_scan *src)
{
    if (memcmp(&dst->desc, &src->desc, sizeof dst->desc) != 0) return ERR_ARG;
    memmove(dst->bank[dst->current], src->bank[src->current], bank_values(&src->desc) * sizeof(double));
    return 0;
}

void ref_scan_get(const struct dev_scan *c, void *dst)
{
    memcpy(dst, c->bank[c->current], bank_values(&c->desc) * sizeof(double));
}

void ref_scan_put(struct dev_scan *c, const void *src)
{
    memcpy(c->bank[c->current], src, bank_values(&c->desc) * sizeof(double));
}

/* ---------------------------------------------------------------- the rule */

static void unit(const double *x, int n, double eps, double *out)
{
    const double length = sqrt(ref_dot(x, x, n) + eps);
    for (int i = 0; i < n; i++) out[i] = x[i] / length;
}

/* One row into the matrix of one head. */
static void absorb(double *S, int n, const double *k, const double *v, double decay, double beta)
{
    for (int i = 0; i < n * n; i++) S[i] *= decay;
    for (int j = 0; j < n; j++) {
        double seen = 0;
        for (int i = 0; i < n; i++) seen += S[i * n + j] * k[i];
        const double delta = (v[j] - seen) * beta;
        for (int i = 0; i < n; i++) S[i * n + j] += k[i] * delta;
    }
}

/* A kept row into every head's matrix. */
static void absorb_row(const struct scan_desc *d, const double *kept, double *bank)
{
    const int w = d->width;
    const double *v = kept + (size_t)d->key_heads * w, *decay = v + (size_t)d->value_heads * w;
    const double *beta = decay + d->value_heads;
    for (int j = 0; j < d->value_heads; j++)
        absorb(bank + (size_t)j * w * w, w, kept + (size_t)(j % d->key_heads) * w, v + (size_t)j * w, decay[j],
               beta[j]);
}

void ref_scan_replay(struct dev_stream *s, struct dev_scan *c, int from, int to)
{
    if (!ref_begin(s)) return;
    for (int i = from; i < to; i++)
        absorb_row(&c->desc, c->kept + (size_t)i * kept_values(&c->desc), c->bank[c->current]);
}

/* Row i of the step -> what it brings. */
static void keep_row(const struct delta_scan_args *a, const struct scan_desc *d, int i, double *kept)
{
    const int w = d->width;
    const double *k = ref_row(a->x, i) + (size_t)d->key_heads * w;
    for (int h = 0; h < d->key_heads; h++) unit(k + (size_t)h * w, w, a->eps, kept + (size_t)h * w);
    double *to = kept + (size_t)d->key_heads * w;
    memcpy(to, k + (size_t)d->key_heads * w, (size_t)d->value_heads * w * sizeof *to);
    to += (size_t)d->value_heads * w;
    memcpy(to, ref_row(a->decay, i), (size_t)d->value_heads * sizeof *to);
    memcpy(to + d->value_heads, ref_row(a->beta, i), (size_t)d->value_heads * sizeof *to);
}

/* out = scale * q . S, per value head. q: scratch [width]. */
static void read_state(const struct delta_scan_args *a, const struct scan_desc *d, int i, const double *bank, double *q)
{
    const int w = d->width;
    for (int j = 0; j < d->value_heads; j++) {
        const double *S = bank + (size_t)j * w * w;
        double *out = ref_row(a->out, i) + (size_t)j * w;
        unit(ref_row(a->x, i) + (size_t)(j % d->key_heads) * w, w, a->eps, q);
        for (int n = 0; n < w; n++) {
            double sum = 0;
            for (int k = 0; k < w; k++) sum += S[k * w + n] * q[k];
            out[n] = sum * a->scale;
        }
    }
}

void ref_delta_scan(struct dev_stream *s, const struct delta_scan_args *a)
{
    for (int i = 0; i < s->rows->n_segments; i++) {
        if (!ref_begin(s)) return;
        const struct segment *g = &s->rows->segments[i];
        struct dev_scan *c = a->scan[i];
        const size_t kept_n = kept_values(&c->desc);
        double *row = ref_take(s, kept_n), *q = ref_take(s, (size_t)c->desc.width);
        if (!row || !q) return;
        if (!g->bulk && g->n > c->desc.slack) {
            dev_fail(s, ERR_ARG, "ref: a step of %d rows where %d can be kept", g->n, c->desc.slack);
            return;
        }
        double *bank = c->bank[!c->current];
        memcpy(bank, c->bank[c->current], bank_values(&c->desc) * sizeof(double));
        for (int r = 0; r < g->n; r++) {
            double *kept = g->bulk ? row : c->kept + (size_t)r * kept_n;
            keep_row(a, &c->desc, g->row0 + r, kept);
            absorb_row(&c->desc, kept, bank);
            read_state(a, &c->desc, g->row0 + r, bank, q);
        }
    }
}
