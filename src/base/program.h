/* What the mains of all programs have in common: standard streams that are closed or full, messages on stderr, and how
 * a program ends. Exit status: 0 done, 1 failed, 2 wrong use. */
#ifndef BASE_PROGRAM_H
#define BASE_PROGRAM_H
#include "base/err.h"

/* First thing in main. Descriptors 0 to 2 that are closed are taken, so that no file gets their numbers and then the
 * program's messages; reading and writing them fails as on a closed one. A file that grows past the limit of its size
 * is an error of writing, and memory that is out ends the program with a message and status 1. name: a literal. */
void program_begin(const char *name);
/* "NAME: text" on stderr, one line: names in it are made safe for a terminal, and a long text is shortened (err_set).
 * name: that of the program or of one of its commands. */
void program_say(const char *name, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Says what went wrong; returns the exit status for it: 2 for ERR_ARG, else 1. */
int program_failed(const char *name, const struct err *e);
/* Last thing in main: writes out what is left for stdout. Returns status, or 1 after "NAME: standard output: cannot
 * write: reason" if any of its text was lost and status is 0. */
int program_end(const char *name, int status);

#endif
