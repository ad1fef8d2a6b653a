/* Writing an answer as it is generated: whole UTF-8 characters. On a terminal thinking is dimmed, its tags are hidden
 * and control characters other than line ends and tabs are shown as '?'. */
#ifndef ANSWER_H
#define ANSWER_H
#include <stdbool.h>
#include <stdio.h>
#include "ds4.h"
#include "text/utf8.h"

struct answer {
    const ds4_engine *engine;
    FILE *out;
    bool terminal, thinking, dimmed;
    char last; /* last byte written */
    struct utf8_stream utf8;
    struct str text; /* bytes of one token, complete characters */
};

void answer_begin(struct answer *w, const ds4_engine *g, FILE *out, bool thinking);
/* False when it cannot be written (errno). */
bool answer_token(struct answer *w, int32_t id);
/* Ends the line and restores the terminal. */
void answer_end(struct answer *w);

#endif
