/* Help by topic, as pages and as a manual page, from the same tables that options are parsed with (spec cli-and-tools
 * 2). A page to a terminal has its width, and colours unless NO_COLOR is set or TERM is dumb; elsewhere it is plain
 * text of 80 columns. */
#ifndef HELP_H
#define HELP_H
#include <stdio.h>
#include "option.h"

/* What belongs together. A section with options of the program, or with rows that only tell something. */
struct help_section {
    const char *topic; /* the word behind --help; NULL: on the page `all` only */
    const char *title; /* of a command: what it does */
    const char *usage; /* of a command of the program, named by topic: its words; else NULL */
    const char *text;  /* paragraphs, one a line; not on the first page. NULL: none */
    const struct option *options;
    int n_options;
    /* Rows that are kept elsewhere, behind the options: fills *row (kind OPTION_SHOWN) or says that there is no i-th.
     * NULL: none. */
    bool (*row)(int i, struct option *row);
    bool rare; /* not on the first page */
};

/* The rows of a section, as an array. */
#define HELP_ROWS(rows) .options = rows, .n_options = sizeof rows / sizeof rows[0]

/* A section in a program, and where the structure that its options fill lies in what option_scan is given. */
struct help_part {
    const struct help_section *section;
    size_t at;
};

struct help_example {
    const char *topic; /* NULL: on the first page */
    const char *command;
};

struct help_program {
    const char *name, *summary;
    const char *usage;    /* the words behind the name */
    const char *text;     /* paragraphs, one a line, below it */
    const char *see_also; /* manual pages of other programs */
    const struct help_part *parts;
    int n_parts;
    const struct help_example *examples;
    int n_examples;
};

/* The i-th row of a section; false: there is none. */
bool help_row(const struct help_section *s, int i, struct option *row);
/* The section of a topic, or NULL. */
const struct help_section *help_find(const struct help_program *p, const char *topic);
/* Prints a page. topic NULL: the first page; "all": everything; "man": the manual page as roff; else the one section.
 * False, and nothing is printed: there is no such topic. */
bool help_print(FILE *out, const struct help_program *p, const char *topic);
/* The manual page, for man(7) macros. */
void help_man(FILE *out, const struct help_program *p);

/* ---- sections of all programs ---- */

extern const struct help_section help_on_help, help_on_status, help_on_environment;

#endif
