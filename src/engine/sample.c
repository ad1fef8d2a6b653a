/* Choosing the next token. Filters are cuts in the order of logits (ties: the lower id first). "The k highest" and "the
 * highest with this share of the mass" are found by adding up, byte by byte of a sortable bit pattern, so that nothing
 * is sorted and nothing allocated. A NaN counts as impossible, like minus infinity. */
#include "ds4.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---------------------------------------------------------------- order */

/* A number that orders like the value; 0: impossible. */
static uint32_t order_key(float x)
{
    uint32_t u;
    if (isnan(x) || x == -INFINITY) return 0;
    x += 0.0f; /* -0 becomes +0 */
    memcpy(&u, &x, sizeof u);
    return u >> 31 ? ~u : u | 0x80000000u;
}

static float key_value(uint32_t key)
{
    const uint32_t u = key >> 31 ? key & 0x7fffffffu : ~key;
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

static int32_t highest(const float *logits, int n_vocab)
{
    int32_t best = 0;
    uint32_t key = 0;
    for (int32_t i = 0; i < n_vocab; i++) {
        const uint32_t k = order_key(logits[i]);
        if (k > key) best = i, key = k;
    }
    return best;
}

int ds4_logits_check(const float *logits, int n_vocab, struct ds4_error *e)
{
    int i = 0;
    while (i < n_vocab && isfinite(logits[i])) i++;
    if (i == n_vocab) return 0;
    if (e) {
        e->code = DS4_E_MODEL;
        snprintf(
            e->message, sizeof e->message,
            "the model says %s of token %d, which is no number to choose by: weights of its file are damaged; get the "
            "file again",
            isnan(logits[i]) ? "nan" : "inf", i);
    }
    return DS4_E_MODEL;
}

/* ---------------------------------------------------------------- weights and cuts */

struct softmax {
    const float *logits;
    int n;
    double max, scale;
};

/* e^((logit - max) * scale): 1 for the highest. Beside an infinite one nothing else has weight, at any temperature. */
static double weight_of(const struct softmax *s, float logit)
{
    if ((double)logit == s->max) return 1;
    return isinf(s->max) ? 0 : exp(((double)logit - s->max) * s->scale);
}

/* What is in: all keys above key, and of those equal to it the first `ties` ids. */
struct cut {
    uint32_t key;
    int64_t ties;
};

/* Visits what is in, by id. */
struct walk {
    int32_t i;
    int64_t ties;
    uint32_t key; /* of token i */
};

static struct walk walk_begin(const struct cut *c)
{
    return (struct walk){-1, c->ties, 0};
}

static bool walk_next(const struct softmax *s, const struct cut *c, struct walk *w)
{
    while (++w->i < s->n) {
        w->key = order_key(s->logits[w->i]);
        if (w->key > c->key) return true;
        if (w->key == c->key && w->key && w->ties-- > 0) return true;
    }
    return false;
}

enum { RADIX = 256, KEY_BITS = 32 };

/* Adds up, by the byte of the key at `shift`, the tokens whose higher bytes are `prefix`. */
static void byte_sums(const struct softmax *s, const struct cut *c, bool mass, int shift, uint32_t prefix, double *sum)
{
    struct walk w = walk_begin(c);
    memset(sum, 0, RADIX * sizeof *sum);
    while (walk_next(s, c, &w)) {
        if (shift + 8 < KEY_BITS && w.key >> (shift + 8) != prefix) continue;
        sum[w.key >> shift & (RADIX - 1)] += mass ? weight_of(s, s->logits[w.i]) : 1;
    }
}

/* The fewest highest tokens of c that together reach target (all, if c does not): each counts 1, or with mass its
 * weight. */
static struct cut cut_at(const struct softmax *s, const struct cut *c, bool mass, double target)
{
    uint32_t prefix = 0;
    double above = 0; /* of all higher keys */
    for (int shift = KEY_BITS - 8; shift >= 0; shift -= 8) {
        double sum[RADIX];
        byte_sums(s, c, mass, shift, prefix, sum);
        int digit = RADIX, last = 0;
        while (last < RADIX - 1 && sum[last] == 0) last++;
        while (--digit > last && (sum[digit] == 0 || above + sum[digit] < target)) above += sum[digit];
        prefix = prefix << 8 | (uint32_t)digit;
    }
    const double each = mass ? weight_of(s, key_value(prefix)) : 1;
    const double ties = each > 0 ? ceil((target - above) / each) : s->n;
    return (struct cut){prefix, ties < 1 ? 1 : ties < s->n ? (int64_t)ties : s->n};
}

static double mass_of(const struct softmax *s, const struct cut *c, double floor)
{
    double sum = 0;
    struct walk w = walk_begin(c);
    while (walk_next(s, c, &w)) {
        const double v = weight_of(s, s->logits[w.i]);
        if (v >= floor) sum += v;
    }
    return sum;
}

/* ---------------------------------------------------------------- drawing */

static uint64_t splitmix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* In [0, 1), from seed and position alone. */
static double uniform(uint64_t seed, uint64_t position)
{
    return (double)(splitmix(splitmix(seed) ^ position) >> 11) * 0x1p-53;
}

int32_t ds4_sample(const float *logits, int n_vocab, const struct ds4_sampling *p, uint64_t position)
{
    const int32_t top = highest(logits, n_vocab);
    if (!(p->temperature > 0) || order_key(logits[top]) == 0) return top;
    const struct softmax s = {logits, n_vocab, (double)logits[top], 1 / (double)p->temperature};
    struct cut c = {0, 0};
    if (p->top_k > 0 && p->top_k < n_vocab) c = cut_at(&s, &c, false, p->top_k);
    if (p->top_p < 1) c = cut_at(&s, &c, true, (double)p->top_p * mass_of(&s, &c, 0));
    const double floor = p->min_p > 1 ? 1 : p->min_p > 0 ? (double)p->min_p : 0;
    const double target = uniform(p->seed, position) * mass_of(&s, &c, floor);
    double sum = 0;
    int32_t drawn = top;
    struct walk w = walk_begin(&c);
    while (walk_next(&s, &c, &w)) {
        const double v = weight_of(&s, logits[w.i]);
        if (v < floor || v == 0) continue;
        drawn = w.i;
        sum += v;
        if (sum > target) break;
    }
    return drawn;
}

/* ---------------------------------------------------------------- probabilities */

/* The softmax of all logits, as logarithms: top is the highest logit (-infinity: nothing is possible), sum the
 * logarithm of the others' weight relative to it. */
struct log_softmax {
    double top, sum;
};

static struct log_softmax log_softmax_of(const float *logits, int n_vocab)
{
    const float top = n_vocab > 0 ? logits[highest(logits, n_vocab)] : -INFINITY;
    if (order_key(top) == 0) return (struct log_softmax){-INFINITY, 0};
    const struct softmax s = {logits, n_vocab, (double)top, 1};
    const struct cut all = {0, 0};
    return (struct log_softmax){(double)top, log(mass_of(&s, &all, 0))};
}

static float log_prob(float logit, struct log_softmax s)
{
    if (order_key(logit) == 0) return -INFINITY;
    return (float)((double)logit == s.top ? -s.sum : (double)logit - (s.top + s.sum));
}

float ds4_token_logprob(const float *logits, int n_vocab, int32_t id)
{
    if (id < 0 || id >= n_vocab) return -INFINITY;
    return log_prob(logits[id], log_softmax_of(logits, n_vocab));
}

int ds4_top_logprobs(const float *logits, int n_vocab, int k, struct ds4_logprob *out)
{
    int n = 0;
    for (int32_t i = 0; i < n_vocab && k > 0; i++) {
        const uint32_t key = order_key(logits[i]);
        if (key == 0 || (n == k && key <= order_key(logits[out[n - 1].id]))) continue;
        int at = n < k ? n++ : n - 1;
        for (; at > 0 && order_key(logits[out[at - 1].id]) < key; at--) out[at] = out[at - 1];
        out[at].id = i;
    }
    const struct log_softmax s = log_softmax_of(logits, n_vocab);
    for (int i = 0; i < n; i++) out[i].logprob = log_prob(logits[out[i].id], s);
    return n;
}
