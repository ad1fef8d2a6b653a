/* popen and what comes out of it; fork for what is not waited for. */
#include "shell_run.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int shell_run(const char *command, struct str *said)
{
    char part[4096];
    FILE *p = popen(command, "r");
    assert_non_null(p);
    str_clear(said);
    for (size_t n; (n = fread(part, 1, sizeof part, p)) > 0;) str_add(said, part, n);
    const int status = pclose(p);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void shell_expect(const char *command, int status, const char *part)
{
    struct str said = {0};
    const int got = shell_run(command, &said);
    if (got != status || !strstr(str_c(&said), part))
        fail_msg("%s\n%d instead of %d, \"%s\" in:\n%s", command, got, status, part, str_c(&said));
    str_free(&said);
}

void shell_refuses(const char *command, const char *path, const struct shell_refusal *cases, size_t n)
{
    struct str line = {0};
    for (size_t i = 0; i < n; i++) {
        str_clear(&line);
        str_printf(&line, "%s %s 2>&1", command, cases[i].options);
        shell_expect(str_c(&line), cases[i].status, cases[i].says);
        assert_int_equal(access(path, F_OK), -1);
    }
    str_free(&line);
}

void shell_expect_same(const char *a, const char *b, bool same)
{
    struct str said[2] = {{0}, {0}};
    assert_int_equal(shell_run(a, &said[0]), 0);
    assert_int_equal(shell_run(b, &said[1]), 0);
    if (!said[0].n || !strcmp(str_c(&said[0]), str_c(&said[1])) != same)
        fail_msg("%s\n%s\n%s\n%s", a, str_c(&said[0]), b, str_c(&said[1]));
    str_free(&said[0]);
    str_free(&said[1]);
}

/* ---------------------------------------------------------------- children */

void shell_start(struct shell_child *c, const char *command)
{
    int pipes[2];
    struct str line = {0};
    str_printf(&line, "exec %s", command);
    assert_int_equal(pipe(pipes), 0);
    *c = (struct shell_child){.out = pipes[0], .pid = fork()};
    assert_true(c->pid >= 0);
    if (!c->pid) {
        signal(SIGINT, SIG_DFL);
        dup2(pipes[1], STDOUT_FILENO);
        dup2(pipes[1], STDERR_FILENO);
        close(pipes[0]);
        close(pipes[1]);
        execl("/bin/sh", "sh", "-c", str_c(&line), (char *)NULL);
        _exit(127);
    }
    close(pipes[1]);
    str_free(&line);
}

/* More of what it prints; false at the end. */
static bool listen(struct shell_child *c)
{
    char part[4096];
    const ssize_t n = read(c->out, part, sizeof part);
    if (n > 0) str_add(&c->said, part, (size_t)n);
    return n > 0;
}

bool shell_await(struct shell_child *c, const char *part)
{
    const char *at;
    while (!(at = strstr(str_c(&c->said), part)))
        if (!listen(c)) return false;
    at += strlen(part);
    c->said.n -= (size_t)(at - c->said.p);
    memmove(c->said.p, at, c->said.n + 1);
    return true;
}

bool shell_await_line(struct shell_child *c, const char *part, char *line, size_t size)
{
    if (!shell_await(c, part)) return false;
    while (!strchr(str_c(&c->said), '\n'))
        if (!listen(c)) return false;
    snprintf(line, size, "%.*s", (int)strcspn(str_c(&c->said), "\n"), str_c(&c->said));
    return true;
}

int shell_end(struct shell_child *c)
{
    int status;
    while (listen(c)) {
    }
    close(c->out);
    assert_int_equal(waitpid(c->pid, &status, 0), c->pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}
