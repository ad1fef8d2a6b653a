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
#include "base/program.h"
#include "generate.h"
#include "resume.h"
#include "turn.h"

/* The transcript is an exact list of tokens: a turn only ever adds to it. */
struct talk {
    ds4_engine *g;
    ds4_session *s;
    const struct options *o;
    struct ds4_tokens history; /* empty, or it ends with an answer */
    bool noted;                /* how there will be thinking */
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

/* A turn that fails leaves the transcript as it was. */
static void turn(struct talk *c, const char *text, size_t n)
{
    struct ds4_error e = {0};
    struct generate_result r = {0};
    const size_t before = c->history.n;
    enum ds4_think used = c->o->sampling.think;
    generate_reset_interrupt();
    int rc = turn_tokens(c->g, c->o, text, n, &c->history, &used, &e);
    if (!rc && !c->noted) options_note_thinking(c->o, used), c->noted = true;
    if (!rc && c->history.n >= (size_t)c->o->runtime.ctx) {
        rc = DS4_E_LIMIT;
        snprintf(e.message, sizeof e.message, "the conversation does not fit into %d tokens; start with a larger --ctx",
                 c->o->runtime.ctx);
    }
    if (!rc) rc = generate_answer(c->g, c->s, c->o, used != DS4_THINK_OFF, &c->history, &r, &e);
    if (rc || !r.generated) {
        c->history.n = before;
        if (rc) program_say("ds4", "%s", e.message);
        return;
    }
    generate_print_speed(&r);
}

int talk_run(ds4_engine *g, const struct options *o, struct ds4_error *e)
{
    struct talk c = {.g = g, .o = o};
    int rc = resume_begin(g, o, &c.s, &c.history, e);
    const size_t before = c.history.n;
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
    rc = resume_end(c.s, o, &c.history, before, e);
    ds4_session_free(c.s);
    ds4_tokens_free(&c.history);
    return rc;
}
