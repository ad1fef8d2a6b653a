/* Commands that tests of whole programs run. */
#ifndef SHELL_RUN_H
#define SHELL_RUN_H
#include "base/str.h"

/* Runs a shell command from the repository root; its standard output replaces *said. The exit status, or -1. Fails the
 * running test if there is no shell. */
int shell_run(const char *command, struct str *said);
/* Fails the running test unless the exit status is that and the output has part in it. */
void shell_expect(const char *command, int status, const char *part);

#endif
