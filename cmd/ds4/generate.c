/* Prefill, the loop of tokens, and SIGINT. */
#include "generate.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "answer.h"
#include "base/clock.h"
#include "failure.h"
#include "token_list.h"

static volatile sig_atomic_t interrupted;
static ds4_session *volatile running; /* what an interrupt cancels */

static void on_interrupt(int signal_number)
{
    (void)signal_number;
    interrupted = 1;
    ds4_session *s = running;
    if (s) ds4_session_cancel(s);
}

void generate_catch_interrupts(void)
{
    struct sigaction now, a = {.sa_handler = on_interrupt};
    if (sigaction(SIGINT, NULL, &now) || now.sa_handler == SIG_IGN) return; /* started in the background */
    sigaction(SIGINT, &a, NULL);
}

bool generate_interrupted(void)
{
    return interrupted;
}

void generate_reset_interrupt(void)
{
    interrupted = 0;
}

enum { PROGRESS_TOKENS = 64 }; /* less is done before it could be read */

static void show_progress(void *arg, int done, int total)
{
    const bool terminal = *(const bool *)arg;
    if (total < PROGRESS_TOKENS) return;
    fprintf(stderr,
            terminal ? "\rprocessing %d input tokens: %d/%d (%d%%)" : "processing %d input tokens: %d/%d (%d%%)\n",
            total, done, total, (int)(100.0 * done / total));
    if (terminal && done == total) fputs("\r\033[K", stderr);
}

/* One token more in the session. */
static int advance(ds4_engine *g, ds4_session *s, int32_t id, struct ds4_error *e)
{
    int rc = ds4_session_submit(s, &id, 1, e);
    while (!rc && (rc = ds4_engine_step(g, e)) > 0) rc = 0;
    const enum ds4_state state = ds4_session_collect(s, NULL, rc ? NULL : e);
    if (rc) return rc;
    return state == DS4_DONE ? 0 : state == DS4_CANCELLED ? DS4_E_CANCELLED : e ? e->code : DS4_E_DEVICE;
}

static int prefill(ds4_session *s, const struct ds4_tokens *history, struct generate_result *r, struct ds4_error *e)
{
    bool terminal = isatty(STDERR_FILENO);
    struct ds4_sync_info info = {0};
    const double t0 = clock_s();
    const int rc = ds4_session_sync(s, history->p, (int)history->n, show_progress, &terminal, &info, e);
    if (rc && terminal && history->n >= PROGRESS_TOKENS) fputc('\n', stderr);
    r->prefilled = info.evaluated;
    r->prefill_s = clock_s() - t0;
    return rc;
}

static int output_error(struct ds4_error *e)
{
    return failure(e, DS4_E_IO, "standard output: cannot write: %s", strerror(errno));
}

int generate_answer(ds4_engine *g, ds4_session *s, const struct options *o, bool thinking, struct ds4_tokens *history,
                    struct generate_result *r, struct ds4_error *e)
{
    struct ds4_model_info info;
    struct answer out;
    ds4_engine_info(g, &info);
    *r = (struct generate_result){0};
    running = s;
    int rc = prefill(s, history, r, e);
    answer_begin(&out, g, stdout, thinking);
    const double t0 = clock_s();
    while (!rc && !interrupted) {
        const int32_t id =
            ds4_sample(ds4_session_logits(s), info.n_vocab, &o->sampling.draw, (uint64_t)ds4_session_length(s));
        if (ds4_token_is_stop(g, id)) break;
        if (!answer_token(&out, id)) {
            rc = output_error(e);
            break;
        }
        token_list_add(history, id);
        r->generated++;
        if (ds4_session_length(s) + 1 >= ds4_session_ctx(s)) break;
        if (r->generated == o->n_tokens) break;
        rc = advance(g, s, id, e);
        r->steps += !rc;
    }
    r->generate_s = clock_s() - t0;
    answer_end(&out);
    running = NULL;
    return rc == DS4_E_CANCELLED ? 0 : rc;
}

void generate_print_speed(const struct generate_result *r)
{
    fprintf(stderr, "prefill: %.2f t/s, generation: %.2f t/s\n", r->prefill_s > 0 ? r->prefilled / r->prefill_s : 0,
            r->generate_s > 0 ? r->steps / r->generate_s : 0);
}
