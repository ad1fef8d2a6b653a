#include "serve/prefix.h"

/* A walk over the bytes of some tokens. */
struct walk {
    const int32_t *token;
    int n, at;         /* the token whose bytes are being compared */
    const char *bytes; /* its rest */
    size_t left;
};

/* At a byte, or at the end; false: at the end. */
static bool walk_fill(const struct served *m, struct walk *w)
{
    while (!w->left && w->at < w->n) {
        w->left = m->ops->token_bytes(m->model, w->token[w->at], &w->bytes);
        if (!w->left) w->at++;
    }
    return w->left > 0;
}

static void walk_skip(struct walk *w, size_t n)
{
    w->bytes += n;
    w->left -= n;
    if (!w->left) w->at++;
}

/* A control token of one side may meet text of the other only if that text is the model's. */
static bool may_meet(const struct served *m, const struct history *h, int i, int32_t wanted)
{
    const bool have = m->ops->token_is_control(m->model, h->token[i]),
               want = m->ops->token_is_control(m->model, wanted);
    return have == want || (want && h->sampled[i]);
}

/* Steps over tokens that differ but spell the same, up to where borders meet; false: they do not. */
static bool respelt(const struct served *m, const struct history *h, int *i, const int32_t *prompt, int n, int *j)
{
    struct walk a = {.token = h->token, .n = h->n, .at = *i}, b = {.token = prompt, .n = n, .at = *j};
    do {
        if (!walk_fill(m, &a) || !walk_fill(m, &b) || !may_meet(m, h, a.at, prompt[b.at])) return false;
        size_t k = 0;
        const size_t most = a.left < b.left ? a.left : b.left;
        while (k < most && a.bytes[k] == b.bytes[k]) k++;
        if (k < most) return false;
        walk_skip(&a, k);
        walk_skip(&b, k);
    } while (a.left || b.left);
    *i = a.at;
    *j = b.at;
    return true;
}

struct prefix prefix_find(const struct served *m, const struct history *h, const int32_t *prompt, int n)
{
    struct prefix p = {0};
    while (p.reused < h->n && p.from < n) {
        if (h->token[p.reused] == prompt[p.from])
            p.reused++, p.from++;
        else if (respelt(m, h, &p.reused, prompt, n, &p.from))
            p.respelt = true;
        else
            break;
    }
    return p;
}
