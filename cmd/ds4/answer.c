/* Answers as they come. */
#include "answer.h"
#include <unistd.h>

void answer_begin(struct answer *w, const ds4_engine *g, FILE *out, bool thinking)
{
    *w = (struct answer){.engine = g, .out = out, .terminal = isatty(fileno(out)), .thinking = thinking};
}

static void dim(struct answer *w, bool on)
{
    if (!w->terminal || w->dimmed == on) return;
    fputs(on ? "\033[90m" : "\033[0m", w->out);
    w->dimmed = on;
}

static void put(struct answer *w)
{
    if (!w->text.n) return;
    dim(w, w->thinking);
    fwrite(w->text.p, 1, w->text.n, w->out);
    w->last = w->text.p[w->text.n - 1];
    str_clear(&w->text);
}

/* The tags are not shown on a terminal; a blank line stands where thinking ends. */
static bool take_tag(struct answer *w, int32_t id)
{
    const bool begin = id == ds4_token_think_begin(w->engine), end = id == ds4_token_think_end(w->engine);
    if ((!begin && !end) || id < 0) return false;
    if (!w->terminal) return w->thinking = begin, false;
    dim(w, false);
    if (end && w->thinking) fputs("\n\n", w->out), w->last = '\n';
    w->thinking = begin;
    return true;
}

void answer_token(struct answer *w, int32_t id)
{
    const char *bytes;
    if (take_tag(w, id)) return;
    const size_t n = ds4_token_bytes(w->engine, id, &bytes);
    utf8_feed(&w->utf8, bytes, n, &w->text);
    put(w);
    fflush(w->out);
}

void answer_end(struct answer *w)
{
    utf8_end(&w->utf8, &w->text);
    put(w);
    dim(w, false);
    if (w->last && w->last != '\n') fputc('\n', w->out);
    fflush(w->out);
    str_free(&w->text);
}
