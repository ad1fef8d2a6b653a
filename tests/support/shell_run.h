/* Commands that tests of whole programs run, from the repository root. All functions fail the running test if there is
 * no shell. */
#ifndef SHELL_RUN_H
#define SHELL_RUN_H
#include <stdbool.h>
#include <sys/types.h>
#include "base/str.h"

/* Runs a shell command; its standard output replaces *said. The exit status, or -1. */
int shell_run(const char *command, struct str *said);
/* Fails the running test unless the exit status is that and the output has part in it. */
void shell_expect(const char *command, int status, const char *part);
/* What a program must refuse: options, the exit status, a part of what it says. */
struct shell_refusal {
    const char *options;
    int status;
    const char *says;
};
/* Runs a command with the options of each case behind it; path is what it writes if it does not refuse, and must not
 * be there. What it says is expected on either stream. */
void shell_refuses(const char *command, const char *path, const struct shell_refusal *cases, size_t n);
/* Fails the running test unless both commands succeed, print something, and print the same (or not). */
void shell_expect_same(const char *a, const char *b, bool same);

/* A program that runs beside the test. */
struct shell_child {
    pid_t pid;
    int out;
    struct str said; /* its standard output and error since the last shell_await */
};
/* Starts a simple command, the words of one program. SIGINT has its default action there. */
void shell_start(struct shell_child *c, const char *command);
/* Waits until part has been printed and forgets everything up to its end. False: the program ended without. */
bool shell_await(struct shell_child *c, const char *part);
/* The same, and the rest of that line, without its end, into line[size]. */
bool shell_await_line(struct shell_child *c, const char *part, char *line, size_t size);
/* Waits for the end, with all that was printed until then in c->said; the exit status, or minus the signal that ended
 * it. Afterwards str_free(&c->said). */
int shell_end(struct shell_child *c);

#endif
