/* Log-probabilities of a text, summed. */
#include "perplexity.h"
#include <math.h>
#include <stdio.h>
#include "base/file.h"
#include "base/mem.h"
#include "common/failure.h"

enum { CONTEXT = 32, PROGRESS = 256 };

struct scoring {
    ds4_session *session;
    int n_vocab, block; /* tokens that are evaluated together */
    float *logits;      /* [block][n_vocab] */
    double nll;
    int scored, total;
};

static void score(struct scoring *c, const float *logits, int32_t id)
{
    c->nll -= (double)ds4_token_logprob(logits, c->n_vocab, id);
    if (++c->scored % PROGRESS == 0) fprintf(stderr, "perplexity: %d of %d tokens\n", c->scored, c->total);
}

/* Scores t[CONTEXT .. CONTEXT+total); the last of them is not evaluated. A block goes the way of drafts, which gives
 * the logits of all its rows, the same bits as one by one. */
static int score_all(struct scoring *c, const int32_t *t, struct ds4_error *e)
{
    int at = CONTEXT;
    const int end = CONTEXT + c->total;
    int rc = ds4_session_sync(c->session, t, CONTEXT, NULL, NULL, NULL, e);
    if (!rc) score(c, ds4_session_logits(c->session), t[at]);
    while (!rc && at + 1 < end) {
        const int n = end - 1 - at < c->block ? end - 1 - at : c->block;
        rc = ds4_session_draft(c->session, t + at, n, c->logits, e);
        if (rc) break;
        for (int i = 0; i < n; i++) score(c, c->logits + (size_t)i * (size_t)c->n_vocab, t[at + 1 + i]);
        rc = ds4_session_commit(c->session, n, e);
        at += n;
    }
    return rc;
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

static int run(ds4_engine *g, const struct options *o, const struct ds4_tokens *t, struct ds4_error *e)
{
    struct ds4_model_info info;
    ds4_engine_info(g, &info);
    if (t->n <= CONTEXT)
        return failure(e, DS4_E_LIMIT, "%s has %zu tokens; more than %d are needed, the first %d are only context",
                       o->perplexity_file, t->n, CONTEXT, CONTEXT);
    if (o->runtime.ctx <= CONTEXT)
        return failure(e, DS4_E_LIMIT, "a context of %d tokens; more than %d are needed", o->runtime.ctx, CONTEXT);
    struct scoring c = {.n_vocab = info.n_vocab, .block = info.draft_max};
    const size_t rest = t->n - CONTEXT;
    c.total = least(least(rest > INT32_MAX ? INT32_MAX : (int)rest, o->n_tokens), o->runtime.ctx - CONTEXT);
    c.logits = mem_try((size_t)c.block * (size_t)c.n_vocab * sizeof(float));
    if (!c.logits) return failure(e, DS4_E_MEMORY, "no memory for the logits of %d tokens", c.block);
    int rc = ds4_session_create(g, o->runtime.ctx, &c.session, e);
    if (!rc) {
        rc = score_all(&c, t->p, e);
        ds4_session_free(c.session);
    }
    mem_free(c.logits);
    if (rc) return rc;
    const double mean = c.nll / c.scored;
    printf("tokens=%zu scored=%d nll=%.9f avg_nll=%.9f ppl=%.9f\n", t->n, c.scored, c.nll, mean, exp(mean));
    return 0;
}

int perplexity_run(ds4_engine *g, const struct options *o, struct ds4_error *e)
{
    struct err err = {0};
    struct ds4_tokens t = {0};
    char *text;
    size_t n;
    if (file_read(o->perplexity_file, UINT64_C(1) << 30, &text, &n, &err)) return failure_of(e, &err);
    int rc = ds4_tokenize(g, text, n, false, &t, e);
    mem_free(text);
    if (!rc) rc = run(g, o, &t, e);
    ds4_tokens_free(&t);
    return rc;
}
