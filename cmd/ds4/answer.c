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

/* A model may say escape sequences; the terminal must not obey them. Whole characters are given, so a byte of 128 or
 * more is never a control character, except for those behind 0xC2. */
static void hide_controls(struct str *text)
{
    for (size_t i = 0; i < text->n; i++) {
        const unsigned char c = (unsigned char)text->p[i];
        if ((c < 32 && c != '\n' && c != '\t') || c == 127) text->p[i] = '?';
        if (c == 0xC2 && i + 1 < text->n && (unsigned char)text->p[i + 1] < 0xA0) text->p[i] = text->p[i + 1] = '?';
    }
}

static void put(struct answer *w)
{
    if (!w->text.n) return;
    if (w->terminal) hide_controls(&w->text);
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

bool answer_token(struct answer *w, int32_t id)
{
    const char *bytes;
    if (take_tag(w, id)) return true;
    const size_t n = ds4_token_bytes(w->engine, id, &bytes);
    utf8_feed(&w->utf8, bytes, n, &w->text);
    put(w);
    return !fflush(w->out) && !ferror(w->out);
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
