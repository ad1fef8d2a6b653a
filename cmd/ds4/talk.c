#include "talk.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <langinfo.h>
#include <locale.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <histedit.h>
#include "generate.h"

/* The transcript is an exact list of tokens: a turn only ever adds to it. */
struct talk {
    ds4_engine *g;
    ds4_session *s;
    const struct options *o;
    struct ds4_tokens history;
    bool closed; /* the history ends in a finished answer */
};

/* libedit writes past its buffers where a line has room for a few characters only: below this width lines are read
 * without editing, and a window that shrinks is noticed between two lines (talk_run blocks the signal). */
enum { NARROWEST = 20 };

static bool is_narrow(void)
{
    struct winsize size;
    return !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col && size.ws_col < NARROWEST;
}

static char *prompt_text(EditLine *el)
{
    static char text[] = "ds4> ", none[] = "";
    int editing = 0;
    return !el_get(el, EL_EDITMODE, &editing) && editing ? text : none;
}

static const char *read_line(EditLine *el, int *n)
{
    const bool narrow = is_narrow();
    el_set(el, EL_EDITMODE, !narrow);
    generate_reset_interrupt();
    return el_gets(el, n);
}

/* Typed text is UTF-8, whatever the locale says: libedit drops what the locale has no character for. */
static void use_utf8(void)
{
    if (setlocale(LC_CTYPE, "") && !strcmp(nl_langinfo(CODESET), "UTF-8")) return;
    if (!setlocale(LC_CTYPE, "C.UTF-8")) setlocale(LC_CTYPE, "UTF-8");
}

/* Adds a user turn; the first one brings the system text along. */
static int turn_begin(struct talk *c, const char *text, size_t n, bool *thinking, struct ds4_error *e)
{
    const struct options *o = c->o;
    struct ds4_message m[2];
    size_t k = 0;
    enum ds4_think used = o->think;
    if (!c->closed && *o->system)
        m[k++] = (struct ds4_message){.role = DS4_SYSTEM, .text = o->system, .n_text = strlen(o->system)};
    m[k++] = (struct ds4_message){.role = DS4_USER, .text = text, .n_text = n};
    const int rc = c->closed ? ds4_chat_next_tokens(c->g, m, k, o->think, o->ctx, &c->history, &used, e)
                             : ds4_chat_tokens(c->g, m, k, o->think, o->ctx, &c->history, &used, e);
    if (!rc && !c->closed) options_note_thinking(o, used);
    *thinking = used != DS4_THINK_OFF;
    return rc;
}

/* A turn that fails leaves the transcript as it was. */
static void turn(struct talk *c, const char *text, size_t n)
{
    struct ds4_error e = {0};
    struct generate_result r = {0};
    const size_t before = c->history.n;
    bool thinking = false;
    generate_reset_interrupt();
    int rc = turn_begin(c, text, n, &thinking, &e);
    if (!rc && c->history.n >= (size_t)c->o->ctx) {
        rc = DS4_E_LIMIT;
        snprintf(e.message, sizeof e.message, "the conversation does not fit into %d tokens; start with a larger --ctx",
                 c->o->ctx);
    }
    if (!rc) rc = generate_answer(c->g, c->s, c->o, thinking, &c->history, &r, &e);
    if (rc || !r.generated) {
        c->history.n = before;
        if (rc) fprintf(stderr, "ds4: %s\n", e.message);
        return;
    }
    c->closed = true;
    generate_print_speed(&r);
}

int talk_run(ds4_engine *g, const struct options *o, struct ds4_error *e)
{
    struct talk c = {.g = g, .o = o};
    const int rc = ds4_session_create(g, o->ctx, &c.s, e);
    if (rc) return rc;
    use_utf8();
    EditLine *el = el_init("ds4", stdin, stdout, stderr);
    History *lines = history_init();
    HistEvent event;
    history(lines, &event, H_SETSIZE, 512);
    el_set(el, EL_PROMPT, prompt_text);
    el_set(el, EL_EDITOR, "emacs");
    el_set(el, EL_HIST, history, lines);
    el_set(el, EL_BIND, "^@", "em-delete-or-list", NULL); /* a Ctrl-D that came before the line was read */
    el_set(el, EL_SIGNAL, 1);
    generate_catch_interrupts();
    sigset_t resizes;
    sigemptyset(&resizes);
    sigaddset(&resizes, SIGWINCH);
    sigprocmask(SIG_BLOCK, &resizes, NULL);
    puts("Type a question; the end of input (Ctrl-D) leaves, Ctrl-C stops an answer.");
    const char *line;
    int n;
    while ((line = read_line(el, &n)) || generate_interrupted()) {
        if (!line) putchar('\n');
        if (!line) continue;
        while (n > 0 && (line[n - 1] == '\n' || line[n - 1] == '\r')) n--;
        if (!n) continue;
        history(lines, &event, H_ENTER, line);
        turn(&c, line, (size_t)n);
    }
    putchar('\n');
    history_end(lines);
    el_end(el);
    ds4_session_free(c.s);
    ds4_tokens_free(&c.history);
    return 0;
}
