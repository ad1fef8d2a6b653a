/* How far the evaluation of a prompt is, on standard error: a bar that is redrawn in place on a terminal, else a line
 * for every chunk. Nothing for prompts that are done before they could be read. */
#ifndef PROGRESS_H
#define PROGRESS_H
#include <stdbool.h>

struct progress {
    bool terminal;
    int told;            /* tokens done at the last call, which come again with every layer */
    double begun, drawn; /* seconds */
    int width;           /* columns that the bar takes now; 0: there is none */
};

void progress_begin(struct progress *p);
/* A ds4_progress; arg: the struct progress. */
void progress_show(void *arg, int done, int total);
/* Takes the bar away. */
void progress_end(struct progress *p);

#endif
