/* Code fences and inline code of Markdown, byte by byte. */
#include "text/code_spans.h"
#include <string.h>

static void line_begins(struct code_spans *c)
{
    c->indent = true;
    c->text = false;
}

/* A run of backticks or tildes is over: what did it open or close? */
static void run_ends(struct code_spans *c)
{
    const char run = c->run;
    const int len = c->run_len;
    c->run = 0;
    if (c->fence) {
        c->closing = c->run_first && run == c->fence && len >= c->fence_len;
        return;
    }
    if (c->run_first && len >= 3) {
        c->fence_line = run;
        c->fence_len = len;
        c->inline_len = run == '`' ? len : 0;
        return;
    }
    if (run == '~') return;
    /* The first line of a backtick fence holds no backtick: it was inline code after all. */
    if (c->fence_line == '`') c->fence_line = 0;
    if (c->inline_len == 0)
        c->inline_len = len;
    else if (c->inline_len == len)
        c->inline_len = 0;
}

static void line_ends(struct code_spans *c)
{
    if (c->fence_line) {
        c->fence = c->fence_line;
        c->inline_len = 0;
    } else if (c->closing) {
        c->fence = 0;
    }
    if (!c->text) c->inline_len = 0; /* a blank line ends the paragraph, and inline code with it */
    c->fence_line = 0;
    c->closing = false;
    line_begins(c);
}

static void byte(struct code_spans *c, char b)
{
    if (c->run && b != c->run) run_ends(c);
    if (b == '\n') {
        line_ends(c);
        c->escape = false;
        return;
    }
    const bool space = b == ' ' || b == '\t' || b == '\r';
    if (!space) c->text = true;
    if ((b == '`' || b == '~') && !(c->escape && c->inline_len == 0 && !c->fence)) {
        if (c->run) {
            c->run_len++;
        } else {
            c->run = b;
            c->run_len = 1;
            c->run_first = c->indent;
        }
        c->closing = false;
        c->indent = false;
    } else {
        if (!space) c->closing = false;
        c->indent = c->indent && (space || strchr(">-*+.)0123456789", b));
    }
    c->escape = b == '\\' && !c->escape;
}

void code_spans_feed(struct code_spans *c, const char *bytes, size_t n)
{
    if (!c->begun) line_begins(c);
    c->begun = true;
    for (size_t i = 0; i < n; i++) byte(c, bytes[i]);
}

bool code_spans_open(const struct code_spans *c)
{
    struct code_spans next = *c;
    if (next.run) run_ends(&next);
    return next.fence || next.fence_line || next.inline_len > 0;
}
