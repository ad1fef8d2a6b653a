#include "chat_commands.h"
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/mem.h"
#include "base/program.h"
#include "base/str.h"
#include "common/failure.h"
#include "common/token_list.h"
#include "turn.h"

/* ---------------------------------------------------------------- thinking */

static int think(struct conversation *c, enum ds4_think mode)
{
    static const char *const words[] = {[DS4_THINK_OFF] = "answers come at once, without thinking",
                                        [DS4_THINK_HIGH] = "thinking before answers",
                                        [DS4_THINK_MAX] = "thinking as much as the model can before answers"};
    c->o.sampling.think = mode;
    const enum ds4_think used = turn_thinking(c->g, &c->o);
    options_note_thinking(&c->o, used);
    fprintf(stderr, "%s\n", words[used]);
    return 0;
}

static int run_think(struct conversation *c, const char *argument, struct chat_request *r, struct ds4_error *e)
{
    return think(c, DS4_THINK_HIGH);
}

static int run_think_max(struct conversation *c, const char *argument, struct chat_request *r, struct ds4_error *e)
{
    return think(c, DS4_THINK_MAX);
}

static int run_nothink(struct conversation *c, const char *argument, struct chat_request *r, struct ds4_error *e)
{
    return think(c, DS4_THINK_OFF);
}

/* ---------------------------------------------------------------- the context */

static double gib(uint64_t bytes)
{
    return (double)bytes / (1 << 30);
}

static void print_context(const struct conversation *c)
{
    struct ds4_memory_plan p;
    ds4_engine_plan_for(c->g, c->o.runtime.ctx, &p);
    fprintf(stderr, "context: %zu of %d tokens used\n", c->history.n, c->o.runtime.ctx);
    fprintf(stderr, "memory: %.3f GiB, up to %.3f more for rewind points; in all %.3f GiB", gib(p.session),
            gib(p.anchors), gib(p.total));
    if (p.available) fprintf(stderr, " of %.3f", gib(p.available));
    fputc('\n', stderr);
}

static int run_ctx(struct conversation *c, const char *argument, struct chat_request *r, struct ds4_error *e)
{
    char *end;
    const long n = strtol(argument, &end, 10);
    if (*argument && (*end || n < 1 || n > INT32_MAX))
        return failure(e, DS4_E_ARG, "/ctx: '%s' is not a number of tokens", argument);
    const int rc = *argument ? conversation_resize(c, (int)n, e) : 0;
    if (rc) return rc;
    print_context(c);
    options_note_thinking(&c->o, turn_thinking(c->g, &c->o));
    return 0;
}

/* ---------------------------------------------------------------- files */

/* A path as typed; ~/ at its beginning is the user's folder. */
static int path_of(const char *command, const char *argument, struct str *path, struct ds4_error *e)
{
    const char *home = getenv("HOME");
    const bool tilde = !strncmp(argument, "~/", 2) && home && *home;
    if (!*argument) return failure(e, DS4_E_ARG, "%s: give the name of a file", command);
    str_printf(path, "%s%s", tilde ? home : "", argument + tilde);
    return 0;
}

/* All of the file, unless it is so long that its tokens cannot fit into the context. */
static int run_read(struct conversation *c, const char *argument, struct chat_request *r, struct ds4_error *e)
{
    struct str path = {0};
    struct err err = {0};
    int rc = path_of("/read", argument, &path, e);
    if (!rc && file_read(str_c(&path), (uint64_t)c->o.runtime.ctx * token_longest(c->g), &r->say, &r->n_say, &err))
        rc = failure_of(e, &err);
    if (!rc && !r->n_say) rc = failure(e, DS4_E_ARG, "%s: is empty", str_c(&path));
    if (!rc) fprintf(stderr, "%s: %zu bytes\n", str_c(&path), r->n_say);
    str_free(&path);
    return rc;
}

static int run_save(struct conversation *c, const char *argument, struct chat_request *r, struct ds4_error *e)
{
    struct str path = {0};
    int rc = path_of("/save", argument, &path, e);
    if (!rc) rc = conversation_save(c, str_c(&path), e);
    str_free(&path);
    return rc;
}

static int run_load(struct conversation *c, const char *argument, struct chat_request *r, struct ds4_error *e)
{
    struct str path = {0};
    int rc = path_of("/load", argument, &path, e);
    if (!rc) rc = conversation_load(c, str_c(&path), e);
    if (!rc)
        program_say("ds4", "session %s: going on behind %zu tokens of a context of %d", str_c(&path), c->history.n,
                    c->o.runtime.ctx);
    str_free(&path);
    return rc;
}

/* ---------------------------------------------------------------- others */

static int run_help(struct conversation *c, const char *argument, struct chat_request *r, struct ds4_error *e)
{
    chat_commands_print(stdout);
    return 0;
}

static int run_reset(struct conversation *c, const char *argument, struct chat_request *r, struct ds4_error *e)
{
    conversation_reset(c);
    fputs("a new conversation\n", stderr);
    return 0;
}

static int run_quit(struct conversation *c, const char *argument, struct chat_request *r, struct ds4_error *e)
{
    r->leave = true;
    return 0;
}

/* ---------------------------------------------------------------- the table */

const struct chat_command chat_commands[] = {
    {"/help", NULL, "this list", run_help},
    {"/think", NULL, "think before answers", run_think},
    {"/think-max", NULL, "think as much as the model can; needs a context of 393216 tokens", run_think_max},
    {"/nothink", NULL, "answer at once", run_nothink},
    {"/ctx", "[N]", "show the context, or make it N tokens large; the conversation stays", run_ctx},
    {"/read", "FILE", "say what is in a file, all of it", run_read},
    {"/save", "NAME", "write the conversation to a file, with what was computed for it", run_save},
    {"/load", "NAME", "go on with the conversation in such a file; this one is left", run_load},
    {"/reset", NULL, "begin a new conversation", run_reset},
    {"/quit", NULL, "leave", run_quit},
    {"/exit", NULL, "the same", run_quit},
    {"Ctrl-C", NULL, "stop the answer; while a line is typed: drop it"},
    {"Ctrl-D", NULL, "leave; a session file is saved then"},
};
const int chat_n_commands = sizeof chat_commands / sizeof *chat_commands;

void chat_commands_print(FILE *f)
{
    for (int i = 0; i < chat_n_commands; i++) {
        const struct chat_command *k = &chat_commands[i];
        const int n = fprintf(f, "  %s%s%s", k->name, k->argument ? " " : "", k->argument ? k->argument : "");
        fprintf(f, "%*s%s\n", n < 16 ? 16 - n : 1, "", k->help);
    }
}

bool chat_is_command(const char *text, size_t n)
{
    return n && *text == '/' && !memchr(text, '\n', n);
}

static const struct chat_command *find(const char *name, size_t n)
{
    for (int i = 0; i < chat_n_commands; i++)
        if (strlen(chat_commands[i].name) == n && !memcmp(chat_commands[i].name, name, n)) return &chat_commands[i];
    return NULL;
}

int chat_command(struct conversation *c, const char *text, struct chat_request *r, struct ds4_error *e)
{
    const size_t n = strcspn(text, " \t");
    struct str argument = {0};
    const char *from = text + n + strspn(text + n, " \t");
    size_t left = strlen(from);
    while (left && (from[left - 1] == ' ' || from[left - 1] == '\t')) left--;
    str_add(&argument, from, left);
    const struct chat_command *k = find(text, n);
    int rc;
    if (!k)
        rc = failure(e, DS4_E_ARG, "unknown command %.*s; /help lists them, and a blank before it makes it a message",
                     (int)n, text);
    else if (!k->argument && argument.n)
        rc = failure(e, DS4_E_ARG, "%s takes no argument", k->name);
    else
        rc = k->run(c, str_c(&argument), r, e);
    str_free(&argument);
    return rc;
}
