/* libedit reads characters through next_character, which waits for keys and signals alike; so signals are met between
 * two characters, where the editor can be told about them. */
#include "line_input.h"
#include <errno.h>
#include <histedit.h>
#include <langinfo.h>
#include <locale.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>
#include "base/mem.h"
#include "common/tty.h"
#include "line_history.h"
#include "terminal.h"
#include "text/utf8.h"

/* libedit writes past its buffers where a line has room for a few characters only: below this width lines are read
 * without it, and a window that shrinks while it reads is not told to it. */
enum { NARROWEST = 20 };

struct line_input {
    EditLine *el; /* NULL: this terminal is not for editing */
    struct line_history history;
    const char *prompt;
    int columns; /* what libedit has been told */
    bool cancelled;
    char bytes[4096]; /* read, from at to n */
    size_t at, n;
};

static struct line_input *input_of(EditLine *el)
{
    void *in = NULL;
    el_get(el, EL_CLIENTDATA, &in);
    return in;
}

/* ---------------------------------------------------------------- signals while editing */

/* Rows of prompt and text above the cursor. */
static int rows_above(const struct line_input *in, int columns)
{
    const LineInfoW *line = el_wline(in->el);
    int row = 0, column = (int)strlen(in->prompt);
    for (const wchar_t *p = line->buffer; p < line->cursor; p++) {
        const int width = *p == L'\t' ? 8 - column % 8 : *p < 32 ? 2 : wcwidth(*p);
        column += width > 0 ? width : 0;
        if (*p == L'\n' || column > columns) {
            row++;
            column = *p == L'\n' ? 0 : width;
        }
    }
    return row + column / columns;
}

/* Draws prompt and text anew from where the prompt was. Some terminals keep the rows of a longer text when they change
 * their width, some do not: rather leave a row that is ours than erase one that is not. */
static void redraw_resized(struct line_input *in)
{
    const int columns = tty_width(stdout);
    if (columns < NARROWEST) return;
    const int before = rows_above(in, in->columns), after = rows_above(in, columns);
    const int up = before < after ? before : after;
    in->columns = columns;
    if (up) printf("\033[%dA", up);
    fputs("\r\033[J", stdout);
    el_resize(in->el);
    el_set(in->el, EL_REFRESH);
}

/* Another program has had the terminal. libedit believes that its modes are still in force. */
static void redraw_resumed(struct line_input *in)
{
    el_set(in->el, EL_PREP_TERM, 0);
    el_set(in->el, EL_PREP_TERM, 1);
    terminal_paste(true);
    putchar('\r');
    in->columns = tty_width(stdout);
    if (in->columns >= NARROWEST) el_resize(in->el);
    el_set(in->el, EL_REFRESH);
}

/* ---------------------------------------------------------------- characters */

static bool fill(struct line_input *in)
{
    if (in->at) memmove(in->bytes, in->bytes + in->at, in->n - in->at);
    in->n -= in->at;
    in->at = 0;
    ssize_t n;
    while ((n = read(STDIN_FILENO, in->bytes + in->n, sizeof in->bytes - in->n)) < 0 && errno == EINTR) continue;
    in->n += n > 0 ? (size_t)n : 0;
    return n > 0;
}

static wchar_t decode(const char *p, int length)
{
    static const unsigned char masks[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    wchar_t c = (unsigned char)*p & masks[length];
    for (int i = 1; i < length; i++) c = c << 6 | ((unsigned char)p[i] & 0x3F);
    return c;
}

/* Takes a character from the bytes that were read; broken ones become U+FFFD. */
static bool take_character(struct line_input *in, wchar_t *c)
{
    const size_t n = in->n - in->at;
    const int length = n ? utf8_at(in->bytes + in->at, n) : 0;
    if (!length) return false;
    *c = length > 0 ? decode(in->bytes + in->at, length) : 0xFFFD;
    in->at += (size_t)(length > 0 ? length : -length);
    return true;
}

/* What libedit's own function promises: 1, or 0 at the end. A cancelled line is ended by Enter, as often as it takes
 * (a key sequence may swallow one). */
static int next_character(EditLine *el, wchar_t *c)
{
    struct line_input *in = input_of(el);
    for (;;) {
        *c = L'\r';
        if (in->cancelled || take_character(in, c)) return 1;
        switch (terminal_wait()) {
        case TERMINAL_KEYS:
            if (!fill(in)) return 0;
            break;
        case TERMINAL_INTERRUPT:
            in->cancelled = true;
            in->at = in->n = 0;
            break;
        case TERMINAL_RESIZED:
            redraw_resized(in);
            break;
        case TERMINAL_RESUMED:
            redraw_resumed(in);
            break;
        }
    }
}

/* ---------------------------------------------------------------- keys of our own */

#define PASTE_BEGIN "\\e[200~"
static const wchar_t paste_end[] = L"\033[201~";
enum { PASTE_END = sizeof paste_end / sizeof *paste_end - 1 };

struct wide {
    wchar_t *p;
    size_t n, cap;
};

static void wide_add(struct wide *w, wchar_t c)
{
    if (w->n + 1 >= w->cap) {
        w->cap = w->cap ? 2 * w->cap : 1024;
        w->p = mem_grow(w->p, w->cap * sizeof *w->p);
    }
    w->p[w->n++] = c;
    w->p[w->n] = 0;
}

/* A line end is either byte, or both in any order: the terminal's modes exchange them. */
static unsigned char on_paste(EditLine *el, int key)
{
    struct wide w = {0};
    wchar_t before = 0; /* a line end whose other half may follow */
    bool ended = false;
    (void)key;
    for (wchar_t c; !ended && next_character(el, &c) == 1 && !input_of(el)->cancelled;) {
        const bool line_end = c == L'\r' || c == L'\n', half = line_end && before && before != c;
        if (c && !half) wide_add(&w, line_end ? L'\n' : c);
        before = line_end && !half ? c : 0;
        ended = w.n >= PASTE_END && !wmemcmp(w.p + w.n - PASTE_END, paste_end, PASTE_END);
    }
    if (ended) w.p[w.n - PASTE_END] = 0;
    if (w.n) el_winsertstr(el, w.p);
    mem_free(w.p);
    return CC_REFRESH;
}

/* Alt-Enter */
static unsigned char on_new_line(EditLine *el, int key)
{
    (void)key;
    return el_winsertstr(el, L"\n") ? CC_ERROR : CC_REFRESH;
}

static const wchar_t *line_begin(const LineInfoW *line, const wchar_t *p)
{
    while (p > line->buffer && p[-1] != L'\n') p--;
    return p;
}

/* In a text of several lines the arrows go from line to line, at its ends to other entries. */
static unsigned char on_up(EditLine *el, int key)
{
    (void)key;
    const LineInfoW *line = el_wline(el);
    const wchar_t *begin = line_begin(line, line->cursor);
    if (begin == line->buffer) return el_push(el, "\020"), CC_NORM;
    const wchar_t *above = line_begin(line, begin - 1), *to = above + (line->cursor - begin);
    el_cursor(el, (int)((to < begin ? to : begin - 1) - line->cursor));
    return CC_CURSOR;
}

static unsigned char on_down(EditLine *el, int key)
{
    (void)key;
    const LineInfoW *line = el_wline(el);
    const wchar_t *begin = line_begin(line, line->cursor), *below = line->cursor;
    while (below < line->lastchar && *below != L'\n') below++;
    if (below == line->lastchar) return el_push(el, "\016"), CC_NORM;
    const wchar_t *to = ++below;
    while (to < line->lastchar && *to != L'\n' && to - below < line->cursor - begin) to++;
    el_cursor(el, (int)(to - line->cursor));
    return CC_CURSOR;
}

/* Names of files behind a command; elsewhere a tab is text. */
static unsigned char on_tab(EditLine *el, int key)
{
    const LineInfoW *line = el_wline(el);
    const size_t n = (size_t)(line->cursor - line->buffer);
    if (n && *line->buffer == L'/' && wmemchr(line->buffer, L' ', n)) return _el_fn_complete(el, key);
    return el_winsertstr(el, L"\t") ? CC_ERROR : CC_REFRESH;
}

static void bind_keys(EditLine *el)
{
    el_set(el, EL_EDITOR, "emacs");
    el_wset(el, EL_ADDFN, L"ds4-paste", L"insert what is pasted", on_paste);
    el_wset(el, EL_ADDFN, L"ds4-new-line", L"insert a line end", on_new_line);
    el_wset(el, EL_ADDFN, L"ds4-up", L"line above or older entry", on_up);
    el_wset(el, EL_ADDFN, L"ds4-down", L"line below or newer entry", on_down);
    el_wset(el, EL_ADDFN, L"ds4-tab", L"complete a file name", on_tab);
    el_set(el, EL_BIND, PASTE_BEGIN, "ds4-paste", NULL);
    el_set(el, EL_BIND, "\\e^M", "ds4-new-line", NULL);
    el_set(el, EL_BIND, "\\e^J", "ds4-new-line", NULL); /* what the terminal's modes make of it */
    el_set(el, EL_BIND, "\\e[A", "ds4-up", NULL);
    el_set(el, EL_BIND, "\\eOA", "ds4-up", NULL);
    el_set(el, EL_BIND, "\\e[B", "ds4-down", NULL);
    el_set(el, EL_BIND, "\\eOB", "ds4-down", NULL);
    el_set(el, EL_BIND, "^I", "ds4-tab", NULL);
    el_set(el, EL_BIND, "^R", "em-inc-search-prev", NULL);
    el_set(el, EL_BIND, "^@", "em-delete-or-list", NULL); /* a Ctrl-D that came while the model was loaded */
}

/* ---------------------------------------------------------------- opening */

static char *prompt_text(EditLine *el)
{
    return (char *)(uintptr_t)input_of(el)->prompt;
}

/* Typed text is UTF-8, whatever the locale says: libedit drops what the locale has no character for. */
static void use_utf8(void)
{
    if (setlocale(LC_CTYPE, "") && !strcmp(nl_langinfo(CODESET), "UTF-8")) return;
    if (!setlocale(LC_CTYPE, "C.UTF-8")) setlocale(LC_CTYPE, "UTF-8");
}

struct line_input *line_input_open(void)
{
    struct line_input *in = mem_alloc(sizeof *in);
    *in = (struct line_input){.prompt = ""};
    use_utf8();
    line_history_open(&in->history);
    if (tty_escapes(stdout)) in->el = el_init("ds4", stdin, stdout, stderr);
    terminal_mode(TERMINAL_QUIET);
    if (!in->el) return in;
    el_set(in->el, EL_CLIENTDATA, in);
    el_set(in->el, EL_PROMPT, prompt_text);
    el_set(in->el, EL_HIST, history, in->history.entries);
    el_set(in->el, EL_GETCFN, next_character);
    bind_keys(in->el);
    return in;
}

void line_input_close(struct line_input *in)
{
    if (in->el) el_end(in->el);
    terminal_mode(TERMINAL_AS_FOUND);
    line_history_close(&in->history);
    mem_free(in);
}

void line_input_remember(struct line_input *in, const char *text)
{
    line_history_add(&in->history, text);
}

/* ---------------------------------------------------------------- lines */

/* The terminal itself shows and edits the line. */
static enum line_result read_plain(struct line_input *in, struct str *text)
{
    FILE *f = isatty(STDOUT_FILENO) ? stdout : stderr;
    fputs(in->prompt, f);
    fflush(f);
    for (;;) {
        const char *end = memchr(in->bytes + in->at, '\n', in->n - in->at);
        const size_t n = end ? (size_t)(end - (in->bytes + in->at)) : in->n - in->at;
        str_add(text, in->bytes + in->at, n);
        in->at += n + (end != NULL);
        if (end) return LINE_TEXT;
        if (text->n && *text->p == '\004') return LINE_END; /* typed while keys were not shown */
        const enum terminal_event event = terminal_wait();
        if (event == TERMINAL_INTERRUPT) return in->at = in->n = 0, fputc('\n', f), LINE_CANCELLED;
        if (event == TERMINAL_KEYS && !fill(in)) return text->n ? LINE_TEXT : LINE_END;
    }
}

static enum line_result read_edited(struct line_input *in, struct str *text)
{
    int n = 0;
    in->columns = tty_width(stdout);
    el_set(in->el, EL_PREP_TERM, 1); /* before there is a prompt; libedit itself does it afterwards */
    terminal_paste(true);
    const char *line = el_gets(in->el, &n);
    terminal_paste(false);
    if (!line || n <= 0) return putchar('\n'), LINE_END;
    str_add(text, line, strlen(line));
    if (text->n && text->p[text->n - 1] == '\n') text->p[--text->n] = 0;
    return in->cancelled ? LINE_CANCELLED : LINE_TEXT;
}

enum line_result line_input_read(struct line_input *in, const char *prompt, struct str *text)
{
    enum line_result result;
    bool more;
    str_clear(text);
    terminal_forget_interrupt();
    in->cancelled = false;
    in->prompt = prompt;
    do {
        const bool edit = in->el && tty_width(stdout) >= NARROWEST;
        terminal_mode(edit ? TERMINAL_EDITED : TERMINAL_AS_FOUND);
        result = (edit ? read_edited : read_plain)(in, text);
        more = result == LINE_TEXT && text->n && text->p[text->n - 1] == '\\';
        if (more) text->p[text->n - 1] = '\n';
        in->prompt = "...> ";
    } while (more);
    terminal_mode(TERMINAL_QUIET);
    return result;
}
