#include "resume.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "base/file.h"
#include "base/mem.h"
#include "base/program.h"
#include "common/failure.h"
#include "generate.h"

/* Whether there is something by that name; what cannot be looked at is an error of opening it. */
static bool is_there(const char *path)
{
    struct stat st;
    return !stat(path, &st) || errno != ENOENT;
}

static int check_writable(const char *path, struct ds4_error *e)
{
    struct err err = {0};
    struct file_writer *w;
    if (!file_writer_open(path, &w, &err)) return file_writer_abort(w), 0;
    return failure_of(e, &err);
}

void resume_take(const ds4_session *s, struct ds4_tokens *history)
{
    history->n = history->cap = (size_t)ds4_session_length(s);
    history->p = mem_grow(history->p, (history->n + 1) * sizeof *history->p);
    memcpy(history->p, ds4_session_tokens(s), history->n * sizeof *history->p);
}

static int resume(ds4_session *s, const struct options *o, struct ds4_tokens *history, struct ds4_error *e)
{
    const char *path = o->session;
    const bool look = options_look(o), there = look || is_there(path);
    int rc = there ? ds4_session_load(s, path, e) : 0;
    if (!rc && !look) rc = check_writable(path, e);
    if (rc || !there) return rc;
    resume_take(s, history);
    program_say("ds4", "session %s: going on behind %zu tokens", path, history->n);
    if (o->system_given && history->n) program_say("ds4", "--system has no effect: the session has begun already");
    return 0;
}

int resume_begin(ds4_engine *g, const struct options *o, ds4_session **out, struct ds4_tokens *history,
                 struct ds4_error *e)
{
    int rc = ds4_session_create(g, o->runtime.ctx, out, e);
    if (!rc && o->session) rc = resume(*out, o, history, e);
    if (!rc) return 0;
    ds4_session_free(*out);
    *out = NULL;
    return rc;
}

/* The last token of an answer is often not evaluated, and a turn that failed is still in the session. Where the answer
 * fills the context there is no room for its last token. */
static int bring_up(ds4_session *s, const struct ds4_tokens *history, struct ds4_error *e)
{
    int n = (int)history->n;
    if (n >= ds4_session_ctx(s)) n = ds4_session_ctx(s) - 1;
    return generate_prefill(s, history->p, n, NULL, e);
}

int resume_save(ds4_session *s, const char *path, const struct ds4_tokens *history, struct ds4_error *e)
{
    int rc = bring_up(s, history, e);
    if (!rc) rc = ds4_session_save(s, path, e);
    if (!rc) program_say("ds4", "session %s: %d tokens saved", path, ds4_session_length(s));
    return rc;
}
