/* Tokens and logits for tests and bug reports. */
#include "diagnose.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "common/failure.h"
#include "common/token_list.h"

void diagnose_tokens(const ds4_engine *g, const struct ds4_tokens *t)
{
    putchar('[');
    for (size_t i = 0; i < t->n; i++) printf("%s%d", i ? ", " : "", t->p[i]);
    puts("]");
    for (size_t i = 0; i < t->n; i++) {
        const char *bytes;
        const size_t n = ds4_token_bytes(g, t->p[i], &bytes);
        printf("%6d  ", t->p[i]);
        fwrite(bytes, 1, n, stdout); /* zero bytes too */
        putchar('\n');
    }
}

int diagnose_ids(const char *list, int n_vocab, struct ds4_tokens *out, struct ds4_error *e)
{
    for (const char *p = list; *p;) {
        char *end;
        const long v = strtol(p, &end, 10);
        if (end == p || (*end && *end != ',') || v < 0 || v >= n_vocab)
            return failure(e, DS4_E_ARG, "--token-ids: '%.20s' is not an id from 0 to %d", p, n_vocab - 1);
        token_list_add(out, (int32_t)v);
        p = *end ? end + 1 : end;
    }
    return *list ? 0 : failure(e, DS4_E_ARG, "--token-ids: the list is empty");
}

static int write_rows(ds4_engine *g, ds4_session *s, const struct ds4_tokens *t, size_t first, struct file_writer *w,
                      struct ds4_error *e)
{
    struct ds4_model_info info;
    struct err err = {0};
    ds4_engine_info(g, &info);
    for (size_t i = first; i < t->n; i++) {
        const int rc = ds4_session_sync(s, t->p, (int)i + 1, NULL, NULL, NULL, e);
        if (rc) return rc;
        if (file_writer_put(w, ds4_session_logits(s), (size_t)info.n_vocab * sizeof(float), &err))
            return failure_of(e, &err);
    }
    return 0;
}

int diagnose_logits(ds4_engine *g, ds4_session *s, const struct ds4_tokens *t, size_t before, const char *path,
                    struct ds4_error *e)
{
    struct file_writer *w;
    struct err err = {0};
    if (!t->n) return failure(e, DS4_E_ARG, "an empty prompt");
    if (file_writer_open(path, &w, &err)) return failure_of(e, &err);
    const int rc = write_rows(g, s, t, before < t->n ? before : t->n - 1, w, e);
    if (!rc) return file_writer_commit(w, &err) ? failure_of(e, &err) : 0;
    file_writer_abort(w);
    return rc;
}
