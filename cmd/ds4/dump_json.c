/* Logits and log-probabilities as JSON. */
#include "dump_json.h"
#include <string.h>
#include "base/file.h"
#include "common/failure.h"
#include "common/json_text.h"
#include "common/token_list.h"

static void put_token(struct str *out, const ds4_engine *g, int32_t id)
{
    const char *bytes;
    const size_t n = ds4_token_bytes(g, id, &bytes);
    str_printf(out, "{\"id\": %d, \"text\": ", id);
    json_string(out, bytes, n);
    str_puts(out, ", \"bytes\": [");
    for (size_t i = 0; i < n; i++) str_printf(out, "%s%d", i ? ", " : "", (unsigned char)bytes[i]);
    str_puts(out, "]}");
}

/* Before the work: a place where nothing can be written is an error then. */
static int begin_file(const char *path, struct file_writer **w, struct ds4_error *e)
{
    struct err err = {0};
    return file_writer_open(path, w, &err) ? failure_of(e, &err) : 0;
}

/* rc: of the work that made the text; returns it, or how writing went. */
static int end_file(struct file_writer *w, const struct str *text, int rc, struct ds4_error *e)
{
    struct err err = {0};
    if (rc || file_writer_put(w, text->p, text->n, &err))
        file_writer_abort(w);
    else
        file_writer_commit(w, &err);
    return err.code ? failure_of(e, &err) : rc;
}

/* ---------------------------------------------------------------- logits */

static void put_logits(struct str *out, const ds4_engine *g, const struct options *o, size_t n_prompt,
                       const float *logits)
{
    struct ds4_model_info info;
    ds4_engine_info(g, &info);
    const int32_t top = token_greedy(logits, info.n_vocab);
    str_puts(out, "{\n  \"source\": \"ds4\",\n  \"model\": ");
    json_string(out, o->runtime.model[0], strlen(o->runtime.model[0]));
    str_printf(out, ",\n  \"backend\": \"%s\",\n  \"quant_bits\": %d,\n", info.backend, info.quant_bits);
    str_printf(out, "  \"prompt_tokens\": %zu,\n  \"ctx\": %d,\n  \"vocab\": %d,\n", n_prompt, o->runtime.ctx,
               info.n_vocab);
    str_puts(out, "  \"argmax_token\": ");
    put_token(out, g, top);
    str_puts(out, ",\n  \"argmax_logit\": ");
    json_float(out, (double)logits[top]);
    str_puts(out, ",\n  \"logits\": [");
    json_floats(out, logits, info.n_vocab);
    str_puts(out, "]\n}\n");
}

int dump_logits(ds4_engine *g, ds4_session *s, const struct options *o, const struct ds4_tokens *prompt,
                struct ds4_error *e)
{
    struct str text = {0};
    struct file_writer *w;
    int rc = begin_file(o->dump_logits, &w, e);
    if (rc) return rc;
    rc = ds4_session_sync(s, prompt->p, (int)prompt->n, NULL, NULL, NULL, e);
    if (!rc) put_logits(&text, g, o, prompt->n, ds4_session_logits(s));
    rc = end_file(w, &text, rc, e);
    str_free(&text);
    return rc;
}

/* ---------------------------------------------------------------- log-probabilities */

static void put_step(struct str *out, const ds4_engine *g, int step, int32_t selected, const float *logits, int top_k)
{
    struct ds4_model_info info;
    struct ds4_logprob top[DUMP_TOP_MAX];
    ds4_engine_info(g, &info);
    const int n = ds4_top_logprobs(logits, info.n_vocab, top_k, top);
    str_printf(out, "%s    {\"step\": %d, \"selected\": ", step ? ",\n" : "\n", step);
    put_token(out, g, selected);
    str_puts(out, ", \"top_logprobs\": [");
    for (int i = 0; i < n; i++) {
        str_puts(out, i ? ",\n      {\"token\": " : "\n      {\"token\": ");
        put_token(out, g, top[i].id);
        str_puts(out, ", \"logit\": ");
        json_float(out, (double)logits[top[i].id]);
        str_puts(out, ", \"logprob\": ");
        json_float(out, (double)top[i].logprob);
        str_puts(out, "}");
    }
    str_puts(out, "]}");
}

static int put_steps(struct str *out, const ds4_engine *g, ds4_session *s, const struct options *o,
                     struct ds4_tokens *t, struct ds4_error *e)
{
    struct ds4_model_info info;
    ds4_engine_info(g, &info);
    for (int step = 0;; step++) {
        const int rc = ds4_session_sync(s, t->p, (int)t->n, NULL, NULL, NULL, e);
        if (rc) return rc;
        const float *logits = ds4_session_logits(s);
        const int32_t id = token_greedy(logits, info.n_vocab);
        put_step(out, g, step, id, logits, o->logprobs_top_k);
        token_list_add(t, id);
        if (ds4_token_is_stop(g, id) || step + 1 == o->n_tokens || t->n >= (size_t)o->runtime.ctx) return 0;
    }
}

int dump_logprobs(ds4_engine *g, ds4_session *s, const struct options *o, struct ds4_tokens *t, struct ds4_error *e)
{
    struct str text = {0};
    struct file_writer *w;
    int rc = begin_file(o->dump_logprobs, &w, e);
    if (rc) return rc;
    str_printf(&text, "{\n  \"source\": \"ds4\",\n  \"prompt_tokens\": %zu,\n  \"ctx\": %d,\n  \"top_k\": %d,\n", t->n,
               o->runtime.ctx, o->logprobs_top_k);
    str_puts(&text, "  \"steps\": [");
    rc = put_steps(&text, g, s, o, t, e);
    str_puts(&text, "\n  ]\n}\n");
    rc = end_file(w, &text, rc, e);
    str_free(&text);
    return rc;
}
