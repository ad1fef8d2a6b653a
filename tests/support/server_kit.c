#include "server_kit.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Those that run. */
static pid_t running[4];

static void kill_all(void)
{
    for (size_t i = 0; i < sizeof running / sizeof *running; i++)
        if (running[i]) kill(running[i], SIGKILL);
}

static void replace(pid_t was, pid_t is)
{
    static bool asked;
    if (!asked) atexit(kill_all);
    asked = true;
    for (size_t i = 0; i < sizeof running / sizeof *running; i++) {
        if (running[i] != was) continue;
        running[i] = is;
        return;
    }
}

void server_script(char path[TEMP_PATH], const char *lines)
{
    temp_file(path);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(lines, f);
    fclose(f);
}

void server_start_with(struct server_kit *s, const char *model, const char *options)
{
    char command[1024], port[20];
    snprintf(command, sizeof command, TEST_BUILD "/ds4-server %s --port 0 %s", model, options);
    shell_start(&s->child, command);
    replace(0, s->child.pid);
    if (!shell_await_line(&s->child, "listening on http://127.0.0.1:", port, sizeof port))
        fail_msg("%s: %s", command, str_c(&s->child.said));
    s->port = atoi(port);
}

void server_start(struct server_kit *s, const char *lines, const char *options)
{
    char what[TEMP_PATH + 20];
    server_script(s->script, lines);
    snprintf(what, sizeof what, "--scripted %s", s->script);
    server_start_with(s, what, options);
}

void server_ended(struct server_kit *s, int status)
{
    const int got = shell_end(&s->child);
    replace(s->child.pid, 0);
    if (got != status) fail_msg("%d instead of %d: %s", got, status, str_c(&s->child.said));
    str_free(&s->child.said);
    if (*s->script) temp_remove(s->script);
    *s->script = 0;
}

void server_stop(struct server_kit *s)
{
    kill(s->child.pid, SIGTERM);
    server_ended(s, 0);
}

void server_post(const struct server_kit *s, const char *path, const char *body, struct http_answer *a)
{
    http_client_ask_at(s->port, "POST", path, SERVER_JSON, body, a);
}

void server_get(const struct server_kit *s, const char *path, struct http_answer *a)
{
    http_client_ask_at(s->port, "GET", path, "", NULL, a);
}

void server_said(const struct http_answer *a, int status, const char *part)
{
    if (a->status != status || !strstr(str_c(&a->body), part))
        fail_msg("%d instead of %d, or no \"%s\" in:\n%s\n%s", a->status, status, part, str_c(&a->head),
                 str_c(&a->body));
}
