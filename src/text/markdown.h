/* Light colours for Markdown on a terminal while it streams in: headings, bold, italic, inline code, fenced code, list
 * bullets, quotes. Nothing but SGR sequences is added: without them the output is the input, byte for byte, and it is
 * the same however the input was cut. Markers stay visible, without the style that they give. Bytes are held back only
 * where their own colour is not known yet: a bullet or number at the start of a line, marks that may end a code block.
 *
 * This is for reading along, not CommonMark: inline styles end with their line, and so do colours on the terminal. */
#ifndef TEXT_MARKDOWN_H
#define TEXT_MARKDOWN_H
#include <stdbool.h>
#include <stddef.h>
#include "base/str.h"

enum markdown_place {
    MARKDOWN_LINE_START, /* in blanks and quote marks */
    MARKDOWN_HEADING,    /* behind # */
    MARKDOWN_BULLET,     /* behind a held - + or * */
    MARKDOWN_NUMBER,     /* behind held digits, perhaps with a point or parenthesis */
    MARKDOWN_FENCE,      /* in marks that may open a code block */
    MARKDOWN_INFO,       /* in the rest of such a line */
    MARKDOWN_INLINE,
    MARKDOWN_CODE_START, /* in the blanks of a line of a code block */
    MARKDOWN_CODE_FENCE, /* in held marks that may close it */
    MARKDOWN_CODE,
    MARKDOWN_PLACE_COUNT
};

/* Zero = fresh. */
struct markdown {
    enum markdown_place place;
    char held[16];
    int n_held;
    unsigned line, shown; /* styles of the line; what the terminal has been told */
    int count;            /* of the marks being read at the start of a line; in INFO 0: it opens nothing */
    char fence;           /* ` or ~: of the marks, then of the code block */
    int fence_length;     /* marks that opened the block */
    char run, before_run; /* a run of * _ or ` that the next byte decides about, 0: none; the byte before it */
    int run_length;
    int code_length;   /* backquotes that opened inline code; 0: none */
    char bold, italic; /* the mark that opened it; 0: off */
    bool escaped;      /* behind a backslash */
    char last;         /* the byte before, 0 at the start of a line */
};

/* Appends the text with its colours to out. */
void markdown_feed(struct markdown *m, const char *text, size_t n, struct str *out);
/* Appends what is still held, without any colour left on, and starts afresh. */
void markdown_end(struct markdown *m, struct str *out);
/* Says that the terminal has lost the colour it was told last. */
void markdown_forgotten(struct markdown *m);

#endif
