/* Writing an answer as it is generated: whole UTF-8 characters. On a terminal the tags of thinking are hidden, a blank
 * line stands where it ends, and control characters other than line ends and tabs are shown as '?'; where it shows
 * colours, thinking is dimmed and Markdown behind it lightly coloured. */
#ifndef ANSWER_H
#define ANSWER_H
#include <stdbool.h>
#include <stdio.h>
#include "ds4.h"
#include "text/markdown.h"
#include "text/utf8.h"

struct answer {
    const ds4_engine *engine;
    FILE *out;
    bool terminal, colours, thinking, dimmed;
    int resumes;
    int line_ends; /* how many the last that was written ends with; one where the answer begins */
    int missing;   /* line ends between thinking and answer that are not written yet */
    bool written;  /* anything at all */
    struct utf8_stream utf8;
    struct str text; /* bytes of one token, complete characters */
    struct markdown markdown;
    struct str coloured;
};

void answer_begin(struct answer *w, const ds4_engine *g, FILE *out, bool thinking);
/* False when it cannot be written (errno). */
bool answer_token(struct answer *w, int32_t id);
/* Ends the line and restores the terminal. */
void answer_end(struct answer *w);

#endif
