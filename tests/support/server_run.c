#include "server_run.h"
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

void server_run_write(char path[TEMP_PATH], const char *lines)
{
    temp_file(path);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(lines, f);
    fclose(f);
}

static void start(struct server_run *s, const char *what, const char *options)
{
    char command[1024], port[20];
    snprintf(command, sizeof command, TEST_BUILD "/ds4-server %s --port 0 %s", what, options);
    shell_start(&s->child, command);
    if (!shell_await_line(&s->child, "listening on http://127.0.0.1:", port, sizeof port))
        fail_msg("%s: %s", command, str_c(&s->child.said));
    s->port = atoi(port);
}

void server_run_start(struct server_run *s, const char *what, const char *options)
{
    s->script[0] = 0;
    start(s, what, options);
}

void server_run_script(struct server_run *s, const char *lines, const char *options)
{
    char what[TEMP_PATH + 20];
    server_run_write(s->script, lines);
    snprintf(what, sizeof what, "--scripted %s", s->script);
    start(s, what, options);
}

void server_run_ended(struct server_run *s, int status)
{
    const int got = shell_end(&s->child);
    if (got != status) fail_msg("%d instead of %d: %s", got, status, str_c(&s->child.said));
    str_free(&s->child.said);
    if (s->script[0]) temp_remove(s->script);
}

void server_run_stop(struct server_run *s)
{
    kill(s->child.pid, SIGTERM);
    server_run_ended(s, 0);
}

void server_post(const struct server_run *s, const char *path, const char *body, struct http_answer *a)
{
    http_client_ask_at(s->port, "POST", path, SERVER_JSON, body, a);
}

void server_get(const struct server_run *s, const char *path, struct http_answer *a)
{
    http_client_ask_at(s->port, "GET", path, "", NULL, a);
}

void server_said(const struct http_answer *a, int status, const char *part)
{
    if (a->status != status || !strstr(str_c(&a->body), part))
        fail_msg("%d instead of %d, or no \"%s\" in:\n%s\n%s", a->status, status, part, str_c(&a->head),
                 str_c(&a->body));
}

int server_send(const struct server_run *s, const char *path, const char *body)
{
    const int fd = http_client_at(s->port);
    http_client_request(fd, s->port, "POST", path, SERVER_JSON, body);
    return fd;
}
