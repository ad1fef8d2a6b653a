/* Answers as they come. */
#include "answer.h"
#include <unistd.h>
#include "common/tty.h"
#include "terminal.h"

void answer_begin(struct answer *w, const ds4_engine *g, FILE *out, bool thinking)
{
    *w = (struct answer){.engine = g,
                         .out = out,
                         .terminal = isatty(fileno(out)),
                         .colours = tty_colour(out),
                         .thinking = thinking,
                         .resumes = terminal_resumes()};
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

/* ---------------------------------------------------------------- colours */

static void dim(struct answer *w, bool on)
{
    if (!w->colours || w->dimmed == on) return;
    fputs(on ? "\033[90m" : "\033[0m", w->out);
    w->dimmed = on;
}

/* After a stop the terminal has no colour on. */
static void look_for_stop(struct answer *w)
{
    if (w->resumes == terminal_resumes()) return;
    w->resumes = terminal_resumes();
    w->dimmed = false;
    markdown_forgotten(&w->markdown);
}

/* The signal handlers must know of a colour before it is written. */
static void write_coloured(struct answer *w, const char *p, size_t n)
{
    terminal_coloured(true);
    look_for_stop(w);
    dim(w, w->thinking);
    str_clear(&w->coloured);
    if (w->thinking)
        str_add(&w->coloured, p, n);
    else
        markdown_feed(&w->markdown, p, n, &w->coloured);
    fwrite(str_c(&w->coloured), 1, w->coloured.n, w->out);
}

/* ---------------------------------------------------------------- text */

static void write_text(struct answer *w, const char *p, size_t n)
{
    if (!n) return;
    if (w->colours)
        write_coloured(w, p, n);
    else
        fwrite(p, 1, n, w->out);
    for (size_t i = 0; i < n; i++) w->line_ends = p[i] == '\n' ? w->line_ends + 1 : 0;
    w->written = true;
}

/* The blank line behind thinking, of which the answer may bring a part itself. */
static void separate(struct answer *w)
{
    size_t own = 0;
    while (own < w->text.n && w->text.p[own] == '\n') own++;
    for (; w->missing > (int)own; w->missing--) write_text(w, "\n", 1);
    w->missing = own < w->text.n || w->missing < (int)own ? 0 : w->missing - (int)own;
}

static void put(struct answer *w)
{
    if (!w->text.n) return;
    if (w->terminal) hide_controls(&w->text);
    if (w->missing) separate(w);
    write_text(w, w->text.p, w->text.n);
    str_clear(&w->text);
}

/* The tags are not shown on a terminal. */
static bool take_tag(struct answer *w, int32_t id)
{
    const bool begin = id == ds4_token_think_begin(w->engine), end = id == ds4_token_think_end(w->engine);
    if ((!begin && !end) || id < 0) return false;
    if (!w->terminal) return w->thinking = begin, false;
    utf8_end(&w->utf8, &w->text);
    put(w);
    dim(w, false);
    if (end && w->thinking && w->written && w->line_ends < 2) w->missing = 2 - w->line_ends;
    w->thinking = begin;
    return true;
}

bool answer_token(struct answer *w, int32_t id)
{
    const char *bytes;
    if (!take_tag(w, id)) {
        const size_t n = ds4_token_bytes(w->engine, id, &bytes);
        utf8_feed(&w->utf8, bytes, n, &w->text);
        put(w);
    }
    return !fflush(w->out) && !ferror(w->out);
}

void answer_end(struct answer *w)
{
    utf8_end(&w->utf8, &w->text);
    put(w);
    look_for_stop(w);
    dim(w, false);
    str_clear(&w->coloured);
    markdown_end(&w->markdown, &w->coloured);
    fwrite(str_c(&w->coloured), 1, w->coloured.n, w->out);
    if (w->written && !w->line_ends) fputc('\n', w->out);
    fflush(w->out);
    terminal_coloured(false);
    str_free(&w->text);
    str_free(&w->coloured);
}
