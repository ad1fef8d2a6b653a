/* Decode against prefill. */
#include "consistency.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/mem.h"
#include "common/failure.h"
#include "common/json_text.h"
#include "common/token_list.h"

enum { TOP = 10 };

/* "   17  "text"" without line end: on one line whatever the token's bytes are. */
static void print_token(const ds4_engine *g, int32_t id)
{
    const char *bytes;
    const size_t n = ds4_token_bytes(g, id, &bytes);
    struct str text = {0};
    json_string(&text, bytes, n);
    printf("%6d  %s", id, str_c(&text));
    str_free(&text);
}

/* The logits behind *t, which takes n_steps greedy steps first. */
static int evaluate(const ds4_engine *g, ds4_session *s, struct ds4_tokens *t, int n_steps, int n_vocab, float *logits,
                    struct ds4_error *e)
{
    int rc = ds4_session_sync(s, t->p, (int)t->n, NULL, NULL, NULL, e);
    for (int i = 0; i < n_steps && !rc; i++) {
        token_list_add(t, token_greedy(ds4_session_logits(s), n_vocab));
        printf("step %d: ", i + 1);
        print_token(g, t->p[t->n - 1]);
        putchar('\n');
        rc = ds4_session_sync(s, t->p, (int)t->n, NULL, NULL, NULL, e);
    }
    if (!rc) memcpy(logits, ds4_session_logits(s), (size_t)n_vocab * sizeof *logits);
    return rc;
}

static void print_difference(const ds4_engine *g, const float *a, const float *b, int n_vocab)
{
    double most = -1, squares = 0;
    int at = 0;
    for (int i = 0; i < n_vocab; i++) {
        const double d = fabs((double)a[i] - (double)b[i]);
        squares += d * d;
        if (d > most || isnan(d)) most = d, at = i;
        if (isnan(d)) break;
    }
    printf("largest difference %.9g at token ", most);
    print_token(g, at);
    printf(": %.9g decoded, %.9g prefilled\nrms difference %.9g\n", (double)a[at], (double)b[at],
           sqrt(squares / n_vocab));
}

static void print_top(const ds4_engine *g, const char *title, const float *logits, int n_vocab)
{
    struct ds4_logprob top[TOP];
    const int n = ds4_top_logprobs(logits, n_vocab, TOP, top);
    printf("top %d, %s:\n", n, title);
    for (int i = 0; i < n; i++) {
        printf("%12.6f  ", (double)logits[top[i].id]);
        print_token(g, top[i].id);
        putchar('\n');
    }
}

static int compare(const ds4_engine *g, const float *a, const float *b, int n_vocab, struct ds4_error *e)
{
    print_difference(g, a, b, n_vocab);
    print_top(g, "decoded", a, n_vocab);
    print_top(g, "prefilled", b, n_vocab);
    const int32_t top_a = token_greedy(a, n_vocab), top_b = token_greedy(b, n_vocab);
    if (top_a == top_b) return 0;
    return failure(e, DS4_E_DEVICE, "decoding and prefill disagree: token %d or %d", top_a, top_b);
}

int consistency_run(ds4_engine *g, ds4_session *s, const struct options *o, struct ds4_tokens *t, struct ds4_error *e)
{
    struct ds4_model_info info;
    ds4_engine_info(g, &info);
    const int n_steps = o->decode_consistency;
    const size_t n_vocab = (size_t)info.n_vocab;
    if (t->n + (size_t)n_steps >= (size_t)o->runtime.ctx)
        return failure(e, DS4_E_LIMIT, "%zu tokens and %d steps do not fit the context %d; give a larger --ctx", t->n,
                       n_steps, o->runtime.ctx);
    float *logits = mem_try(2 * n_vocab * sizeof *logits);
    if (!logits) return failure(e, DS4_E_MEMORY, "no memory for the logits");
    ds4_session *fresh = NULL;
    int rc = evaluate(g, s, t, n_steps, info.n_vocab, logits, e);
    if (!rc) rc = ds4_session_create(g, o->runtime.ctx, &fresh, e);
    if (!rc) rc = evaluate(g, fresh, t, 0, info.n_vocab, logits + n_vocab, e);
    if (!rc) rc = compare(g, logits, logits + n_vocab, info.n_vocab, e);
    ds4_session_free(fresh);
    mem_free(logits);
    return rc;
}
