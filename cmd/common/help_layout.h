/* Lines of help: words wrapped at the width of what they are printed to, in colours where it shows some. */
#ifndef HELP_LAYOUT_H
#define HELP_LAYOUT_H
#include <stdio.h>
#include "base/str.h"
#include "option.h"

struct layout {
    FILE *out;
    int width; /* columns */
    bool colour;
};

enum layout_style {
    LAYOUT_PLAIN,
    LAYOUT_TITLE,
    LAYOUT_RED_TITLE,
    LAYOUT_PARAGRAPH,
    LAYOUT_DESCRIPTION,
    LAYOUT_OPTION,
    LAYOUT_ARGUMENT,
    LAYOUT_SEPARATOR,
    LAYOUT_MORE, /* the first of LAYOUT_MORE_COUNT that lines of a list have in turn */
    LAYOUT_STYLES = LAYOUT_MORE + 5
};
enum { LAYOUT_MORE_COUNT = LAYOUT_STYLES - LAYOUT_MORE };

/* All columns are counted from 0; every function but layout_begin prints whole lines. */
void layout_begin(struct layout *l, FILE *out);
void layout_blank(struct layout *l);
/* Words from column `indent` on, where the lines that follow begin too. A newline in the text ends a line. */
void layout_text(struct layout *l, enum layout_style style, int indent, const char *text);
/* "head", then the text in the same manner. */
void layout_headed(struct layout *l, enum layout_style style, const char *head, const char *text);
/* An option, a command or another name with what it does. */
void layout_row(struct layout *l, const struct option *o);
/* "label", blanks to column 28, text. */
void layout_more(struct layout *l, enum layout_style style, const char *label, const char *text);
/* A command as one types it: where it is too long for the line an option begins the next one, behind a
 * backslash. */
void layout_command(struct layout *l, const char *command);

/* Appends what help says of an option: its text, with the value it has otherwise. */
void layout_description(struct str *s, const struct option *o);

#endif
