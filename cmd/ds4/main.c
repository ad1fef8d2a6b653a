/* ds4: one answer, a chat, or a look at a model. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/file.h"
#include "base/mem.h"
#include "base/program.h"
#include "consistency.h"
#include "diagnose.h"
#include "doctor.h"
#include "dump_json.h"
#include "common/check_file.h"
#include "common/failure.h"
#include "generate.h"
#include "options.h"
#include "perplexity.h"
#include "resume.h"
#include "talk.h"
#include "terminal.h"
#include "common/token_list.h"
#include "turn.h"

/* Appends the tokens of the prompt as they are sent: plain, rendered already, or put into the chat frame. */
static int prompt_tokens(const ds4_engine *g, const struct options *o, const char *text, size_t n,
                         struct ds4_tokens *out, bool *thinking, struct ds4_error *e)
{
    *thinking = false;
    if (o->raw) return ds4_tokenize(g, text, n, false, out, e);
    if (ds4_is_rendered_chat(g, text, n)) {
        const int rc = ds4_tokenize(g, text, n, true, out, e);
        *thinking = out->n && out->p[out->n - 1] == ds4_token_think_begin(g);
        return rc;
    }
    enum ds4_think used;
    const int rc = turn_tokens(g, o, text, n, out, &used, e);
    if (!rc) options_note_thinking(o, used);
    *thinking = !rc && used != DS4_THINK_OFF;
    return rc;
}

/* Answers the tokens. One that is interrupted is saved too, as far as it went. */
static int answer_prompt(ds4_engine *g, const struct options *o, ds4_session *s, struct ds4_tokens *t, bool thinking,
                         struct ds4_error *e)
{
    struct generate_result r;
    terminal_begin();
    int rc = generate_answer(g, s, o, thinking, t, &r, e);
    if (rc) return rc;
    const bool interrupted = r.end == GENERATE_INTERRUPTED;
    if (interrupted && !r.generated)
        return failure(e, DS4_E_CANCELLED, "interrupted before the answer began%s",
                       o->session ? "; nothing is saved" : "");
    generate_print_speed(&r);
    fputc('\n', stderr);
    if (r.end == GENERATE_FULL)
        program_say("ds4", "the answer ends here: the context of %d tokens is full; give a larger --ctx",
                    o->runtime.ctx);
    terminal_forget_interrupt();
    if (o->session && r.generated) rc = resume_save(s, o->session, t, e);
    if (o->session && !r.generated) program_say("ds4", "session %s: there was no answer, nothing is saved", o->session);
    return !rc && interrupted ? failure(e, DS4_E_CANCELLED, "interrupted") : rc;
}

/* Everything that starts from a given list of tokens; s has the first `before`, and is NULL for --dump-tokens. */
static int run_tokens(ds4_engine *g, const struct options *o, ds4_session *s, struct ds4_tokens *t, size_t before,
                      bool thinking, struct ds4_error *e)
{
    if (o->dump_tokens) return diagnose_tokens(g, t), 0;
    if (t->n >= (size_t)o->runtime.ctx)
        return failure(e, DS4_E_LIMIT, "the prompt has %zu tokens%s, the context %d; give a larger --ctx", t->n,
                       before ? " with the session before it" : "", o->runtime.ctx);
    if (o->logits_out) return diagnose_logits(g, s, t, before, o->logits_out, e);
    if (o->dump_logits) return dump_logits(g, s, o, t, e);
    if (o->dump_logprobs) return dump_logprobs(g, s, o, t, e);
    if (o->decode_consistency >= 0) return consistency_run(g, s, o, t, e);
    return answer_prompt(g, o, s, t, thinking, e);
}

static int read_prompt(const struct options *o, char **text, size_t *n, struct ds4_error *e)
{
    struct err err = {0};
    if (o->prompt) {
        *text = mem_strdup(o->prompt);
        *n = strlen(*text);
        return 0;
    }
    file_read(o->prompt_file ? o->prompt_file : "-", UINT64_C(1) << 30, text, n, &err);
    if (!err.code && !*n && !o->prompt_file)
        err_set(&err, ERR_ARG, "no prompt: standard input is empty; give -p TEXT or --prompt-file FILE");
    snprintf(e->message, sizeof e->message, "%s", err.msg);
    return e->code = err.code;
}

/* A text whose tokens cannot fit is refused before it is cut into them: that takes long, and memory several times its
 * size. */
static int check_length(const ds4_engine *g, const struct options *o, size_t n, struct ds4_error *e)
{
    const size_t longest = token_longest(g);
    if (o->dump_tokens || n / longest < (size_t)o->runtime.ctx) return 0;
    return failure(e, DS4_E_LIMIT, "the prompt has at least %zu tokens, the context %d; give a larger --ctx",
                   n / longest, o->runtime.ctx);
}

/* Appends the prompt's tokens. */
static int take_prompt(const ds4_engine *g, const struct options *o, struct ds4_tokens *t, bool *thinking,
                       struct ds4_error *e)
{
    char *text = NULL;
    size_t n = 0;
    if (o->token_ids) {
        struct ds4_model_info info;
        ds4_engine_info(g, &info);
        return diagnose_ids(o->token_ids, info.n_vocab, t, e);
    }
    if (!o->prompt && !o->prompt_file && isatty(STDIN_FILENO))
        return failure(e, DS4_E_ARG, "no prompt; give -p TEXT, --prompt-file FILE or --token-ids LIST");
    int rc = read_prompt(o, &text, &n, e);
    if (!rc) rc = check_length(g, o, n, e);
    if (!rc) rc = prompt_tokens(g, o, text, n, t, thinking, e);
    mem_free(text);
    return rc;
}

/* What is written must not be what is read; the writer itself looks after the model's files. */
static int check_outputs(const struct options *o, struct ds4_error *e)
{
    const char *const inputs[] = {o->prompt_file, o->session}, *const outputs[] = {o->logits_out, o->dump_logits,
                                                                                   o->dump_logprobs};
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 3; k++)
            if (inputs[i] && outputs[k] && file_same(inputs[i], outputs[k]))
                return failure(e, DS4_E_ARG, "%s is to be read and to be written; give another name to write to",
                               outputs[k]);
    return 0;
}

static int run(ds4_engine *g, const struct options *o, struct ds4_error *e)
{
    struct ds4_tokens t = {0};
    ds4_session *s = NULL;
    const bool look = options_look(o);
    const bool prompt = o->token_ids || o->prompt || o->prompt_file || !isatty(STDIN_FILENO);
    bool thinking = false;
    if (o->inspect && !o->dump_tokens) return fputs(ds4_engine_report(g), stdout), 0;
    if (o->perplexity_file && !o->dump_tokens) return perplexity_run(g, o, e);
    if (!look && !prompt) return talk_run(g, o, e);
    int rc = check_outputs(o, e);
    if (!rc && !o->runtime.engine.report_only) rc = resume_begin(g, o, &s, &t, e);
    const size_t before = t.n;
    if (!rc) rc = take_prompt(g, o, &t, &thinking, e);
    if (!rc) rc = run_tokens(g, o, s, &t, before, thinking, e);
    ds4_session_free(s);
    ds4_tokens_free(&t);
    return rc;
}

enum { INTERRUPTED = 130 }; /* what a shell makes of SIGINT */

/* Opens the model and does what the options say; returns the exit status. */
static int start(struct options *o)
{
    struct ds4_error e = {0};
    struct ds4_memory_plan plan;
    struct ds4_model_info info;
    ds4_engine *g;
    runtime_prepare(&o->runtime, "ds4");
    o->runtime.engine.draft = o->n_draft > 0;
    o->runtime.engine.report_only = o->inspect || (o->dump_tokens && !o->session);
    int rc = o->doctor ? doctor_run(o, &e) : ds4_engine_open(&o->runtime.engine, &g, &e);
    if (!rc && !o->doctor) {
        ds4_engine_plan(g, &plan);
        o->runtime.ctx = plan.ctx;
        ds4_engine_info(g, &info);
        if (o->n_draft && !info.draft) program_say("ds4", "the model has no draft block: --draft has no effect");
        rc = run(g, o, &e);
        ds4_engine_close(g);
    }
    if (rc) program_say("ds4", "%s", e.message);
    return rc == DS4_E_ARG ? 2 : rc == DS4_E_CANCELLED ? INTERRUPTED : rc ? 1 : 0;
}

static int check(const struct options *o)
{
    const struct check_options co = {.paths = o->check_file,
                                     .n_paths = o->n_check_files,
                                     .ctx = o->runtime.ctx,
                                     .threads = o->runtime.engine.threads,
                                     .memory = o->runtime.engine.memory_limit,
                                     .page_weights = o->runtime.engine.page_weights,
                                     .json = o->json};
    return check_file(&co) ? 0 : 1;
}

int main(int argc, char **argv)
{
    struct options o;
    int status;
    program_begin("ds4");
    if (options_parse(argc, argv, &o, &status)) status = o.n_check_files ? check(&o) : start(&o);
    status = program_end("ds4", status);
    if (status == INTERRUPTED) terminal_die_of_interrupt();
    return status;
}
