#include "frontier_logits.h"
#include <string.h>
#include "base/file.h"
#include "common/failure.h"
#include "common/json_text.h"
#include "common/token_list.h"

static void put_all(struct str *out, const struct bench *b, const ds4_session *s)
{
    struct ds4_model_info info;
    const float *const logits = ds4_session_logits(s);
    ds4_engine_info(b->engine, &info);
    const int32_t top = token_greedy(logits, info.n_vocab);
    str_puts(out, "{\n  \"source\": \"ds4-bench\",\n  \"model\": ");
    json_string(out, b->o->runtime.model[0], strlen(b->o->runtime.model[0]));
    str_printf(out, ",\n  \"backend\": \"%s\",\n  \"quality\": false,\n  \"quant_bits\": %d,\n", info.backend,
               info.quant_bits);
    str_printf(out, "  \"prompt_tokens\": %zu,\n  \"frontier_tokens\": %d,\n  \"prefill_tokens\": %d,\n", b->text.n,
               ds4_session_length(s), ds4_session_length(s));
    str_printf(out, "  \"ctx\": %d,\n  \"vocab\": %d,\n  \"argmax_id\": %d,\n  \"argmax_logit\": ", b->o->ctx_alloc,
               info.n_vocab, top);
    json_float(out, (double)logits[top]);
    str_puts(out, ",\n  \"logits\": [");
    json_floats(out, logits, info.n_vocab);
    str_puts(out, "]\n}\n");
}

int frontier_logits(const struct bench *b, const ds4_session *s, struct ds4_error *e)
{
    struct str path = {0}, text = {0};
    struct err err = {0};
    struct file_writer *w;
    str_printf(&path, "%s/frontier_%06d.logits.json", b->o->dump_logits_dir, ds4_session_length(s));
    put_all(&text, b, s);
    if (!file_writer_open(str_c(&path), &w, &err)) {
        if (file_writer_put(w, text.p, text.n, &err))
            file_writer_abort(w);
        else
            file_writer_commit(w, &err);
    }
    str_free(&path);
    str_free(&text);
    return err.code ? failure_of(e, &err) : 0;
}
