/* Where Markdown stands: inside a code fence, inside inline code, or in neither. Fed with text byte by byte. Fences and
 * inline code are those of CommonMark, except that a fence may be indented or quoted ("> ", "- ") in any way. */
#ifndef TEXT_CODE_SPANS_H
#define TEXT_CODE_SPANS_H
#include <stdbool.h>
#include <stddef.h>

struct code_spans {
    char fence;      /* '`' or '~' of the open fence, 0: none */
    int fence_len;   /* of the open fence, or of the one whose first line is not over yet */
    char fence_line; /* its character, behind a run that opens a fence and on the line of that */
    bool closing;    /* behind a run that closes the fence if only white space follows on its line */
    int inline_len;  /* of the run that opened inline code, 0: none */
    char run;        /* '`' or '~': the last bytes are a run of these */
    int run_len;
    bool run_first;      /* nothing before the run on its line */
    bool indent, escape; /* nothing but indentation on this line yet; behind a backslash */
    bool text;           /* something other than white space on this line */
    bool begun;
}; /* zero = fresh */

void code_spans_feed(struct code_spans *c, const char *bytes, size_t n);
/* A letter that came now would be code. */
bool code_spans_open(const struct code_spans *c);

#endif
