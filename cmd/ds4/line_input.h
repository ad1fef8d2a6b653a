/* What the user types: lines with editing and history (libedit), or as the terminal gives them where it is too narrow,
 * dumb, or not the output. A paste is put into the line as it is; its line ends do not submit. A line that ends in a
 * backslash goes on in the next. */
#ifndef LINE_INPUT_H
#define LINE_INPUT_H
#include "base/str.h"

struct line_input;

/* The terminal must have begun (terminal.h). */
struct line_input *line_input_open(void);
void line_input_close(struct line_input *in);

enum line_result {
    LINE_TEXT,      /* *text: without its line end, UTF-8, not kept as history yet */
    LINE_CANCELLED, /* Ctrl-C; *text: what had been typed */
    LINE_END        /* there is no more: Ctrl-D or a terminal that is gone */
};
/* Reads a text; while it waits, keys and signals mean what they mean in an editor. Before and after it keys are not
 * shown. */
enum line_result line_input_read(struct line_input *in, const char *prompt, struct str *text);
void line_input_remember(struct line_input *in, const char *text);

#endif
