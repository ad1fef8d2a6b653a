/* Prefill and the loop of tokens. */
#include "generate.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "answer.h"
#include "base/clock.h"
#include "common/failure.h"
#include "lookahead.h"
#include "progress.h"
#include "terminal.h"
#include "common/token_list.h"

/* A prefill that can be interrupted: also by a SIGINT that came before there was something to cancel. */
struct watched {
    struct progress progress;
    ds4_session *s;
};

static void watch(void *arg, int done, int total)
{
    struct watched *w = arg;
    if (terminal_interrupted()) ds4_session_cancel(w->s);
    progress_show(&w->progress, done, total);
}

int generate_prefill(ds4_session *s, const int32_t *tokens, int n, struct ds4_sync_info *info, struct ds4_error *e)
{
    struct watched w = {.s = s};
    progress_begin(&w.progress);
    terminal_interrupt_cancels(s);
    const int rc = ds4_session_sync(s, tokens, n, watch, &w, info, e);
    terminal_interrupt_cancels(NULL);
    progress_end(&w.progress);
    return rc;
}

static int output_error(struct ds4_error *e)
{
    return failure(e, DS4_E_IO, "standard output: cannot write: %s", strerror(errno));
}

/* The tokens of an answer, one after the other. */
static int generate(ds4_engine *g, struct lookahead *l, const struct options *o, struct answer *out,
                    struct ds4_tokens *history, struct generate_result *r, struct ds4_error *e)
{
    for (;;) {
        if (terminal_interrupted()) return r->end = GENERATE_INTERRUPTED, 0;
        const float *logits = lookahead_logits(l);
        int rc = ds4_logits_check(logits, l->n_vocab, e);
        if (rc) return rc;
        const int32_t id = ds4_sample(logits, l->n_vocab, &o->sampling.draw, (uint64_t)lookahead_length(l));
        if (ds4_token_is_stop(g, id)) return 0;
        if (!answer_token(out, id)) return output_error(e);
        token_list_add(history, id);
        r->generated++;
        if (r->generated == o->n_tokens) return r->end = GENERATE_LIMIT, 0;
        if (lookahead_length(l) + 1 >= ds4_session_ctx(l->session)) return r->end = GENERATE_FULL, 0;
        rc = lookahead_next(l, id, e);
        if (rc) return rc;
        r->steps++;
    }
}

int generate_answer(ds4_engine *g, ds4_session *s, const struct options *o, bool thinking, struct ds4_tokens *history,
                    struct generate_result *r, struct ds4_error *e)
{
    struct answer out;
    struct lookahead l;
    struct ds4_sync_info info = {0};
    *r = (struct generate_result){0};
    double begun = clock_s();
    int rc = generate_prefill(s, history->p, (int)history->n, &info, e);
    r->prefilled = info.evaluated;
    r->prefill_s = clock_s() - begun;
    answer_begin(&out, g, stdout, thinking);
    begun = clock_s();
    terminal_interrupt_cancels(s);
    lookahead_begin(&l, g, s, &o->sampling.draw, o->n_draft);
    if (!rc) rc = generate(g, &l, o, &out, history, r, e);
    rc = lookahead_end(&l, rc, e);
    terminal_interrupt_cancels(NULL);
    r->generate_s = clock_s() - begun;
    answer_end(&out);
    if (rc != DS4_E_CANCELLED) return rc;
    r->end = GENERATE_INTERRUPTED;
    return 0;
}

void generate_print_speed(const struct generate_result *r)
{
    fprintf(stderr, "prefill: %.2f t/s, generation: %.2f t/s", r->prefill_s > 0 ? r->prefilled / r->prefill_s : 0,
            r->generate_s > 0 ? r->steps / r->generate_s : 0);
}
