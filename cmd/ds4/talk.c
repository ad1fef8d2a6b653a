#include "talk.h"
#include <stdio.h>
#include <string.h>
#include "base/mem.h"
#include "base/program.h"
#include "chat_commands.h"
#include "conversation.h"
#include "generate.h"
#include "line_input.h"
#include "terminal.h"
#include "turn.h"

/* ---------------------------------------------------------------- turns */

static void print_meter(const struct conversation *c)
{
    const size_t used = c->history.n, ctx = (size_t)c->o.runtime.ctx, left = used < ctx ? ctx - used : 0;
    fprintf(stderr, ", context: %zu/%zu (%d%%)\n", used, ctx, (int)(100.0 * (double)used / (double)ctx));
    if (left && left <= ctx / 10)
        program_say(
            "ds4", "the context is nearly full, %zu tokens are left: /ctx N makes it larger, /reset begins anew", left);
}

static void print_end(const struct conversation *c, const struct generate_result *r)
{
    if (!r->generated)
        program_say("ds4", "%s; as if it had not been said",
                    r->end == GENERATE_INTERRUPTED ? "interrupted" : "there was no answer");
    else if (r->end == GENERATE_INTERRUPTED)
        program_say("ds4", "interrupted; what there is of the answer is kept");
    else if (r->end == GENERATE_LIMIT)
        program_say("ds4", "the answer ends here, after %d tokens (-n)", r->generated);
    else if (r->end == GENERATE_FULL)
        program_say("ds4", "the answer ends here: the context of %d tokens is full; /ctx N makes it larger",
                    c->o.runtime.ctx);
}

static void turn(struct conversation *c, const char *text, size_t n)
{
    struct ds4_error e = {0};
    struct generate_result r;
    if (conversation_turn(c, text, n, &r, &e)) {
        program_say("ds4", "%s", e.message);
        return;
    }
    print_end(c, &r);
    if (!r.generated) return;
    generate_print_speed(&r);
    print_meter(c);
}

/* ---------------------------------------------------------------- lines */

/* True if the program is to end. */
static bool command(struct conversation *c, const char *text)
{
    struct ds4_error e = {0};
    struct chat_request r = {0};
    if (chat_command(c, text, &r, &e))
        program_say("ds4", "%s", e.message);
    else if (r.say)
        turn(c, r.say, r.n_say);
    mem_free(r.say);
    return r.leave;
}

static bool is_empty(const struct str *text)
{
    return strspn(str_c(text), " \t\n") == text->n;
}

static bool take_line(struct conversation *c, struct line_input *in, const struct str *text)
{
    if (is_empty(text)) return false;
    line_input_remember(in, str_c(text));
    if (chat_is_command(text->p, text->n)) return command(c, text->p);
    turn(c, text->p, text->n);
    return false;
}

static void lines(struct conversation *c, struct line_input *in)
{
    struct str text = {0};
    for (bool leave = false; !leave;) {
        fflush(stdout);
        const enum line_result result = line_input_read(in, "ds4> ", &text);
        if (result == LINE_TEXT)
            leave = take_line(c, in, &text);
        else if (result == LINE_END)
            leave = true;
        else if (is_empty(&text))
            fputs("(Ctrl-D or /quit leaves)\n", stderr);
    }
    str_free(&text);
}

int talk_run(ds4_engine *g, const struct options *o, struct ds4_error *e)
{
    struct conversation c;
    const int rc = conversation_begin(&c, g, o, e);
    if (rc) return rc;
    options_note_thinking(&c.o, turn_thinking(g, &c.o));
    puts("Type a question, or one of these:");
    chat_commands_print(stdout);
    terminal_begin();
    struct line_input *in = line_input_open();
    lines(&c, in);
    line_input_close(in);
    return conversation_end(&c, e);
}
