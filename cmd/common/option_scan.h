/* Parsing of command lines by the table of options. */
#ifndef OPTION_SCAN_H
#define OPTION_SCAN_H
#include "help.h"

/* Puts the words of a->argv from a->at on into *target, after the defaults that rows state; the program's messages go
 * to stderr (args.h), for an unknown option with the first page of help. command: the options are those of this section
 * and of the sections that are no command; NULL: only of the latter. target may be NULL where --help and --version are
 * all there is. True: all words are taken. False: the program is to end with *status, 0 after help or the version,
 * else 2. */
bool option_scan(struct args *a, const struct help_program *p, const struct help_section *command, void *target,
                 int *status);
/* Says "PROGRAM: what word" and prints the first page of help, of a command its only one, to stderr. */
void option_mistake(struct args *a, const struct help_program *p, const struct help_section *command, const char *what,
                    const char *word);

#endif
