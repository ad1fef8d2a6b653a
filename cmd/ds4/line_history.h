/* The lines typed before: ~/.ds4_history, or .ds4_history in the current folder where HOME is not set. One entry a
 * line, its line ends as \n and its backslashes as \\; readable by its owner only. Every entry is appended at once, so
 * that several programs can share the file; it is cut to the last LINE_HISTORY_ENTRIES when it is read and when the
 * program leaves. */
#ifndef LINE_HISTORY_H
#define LINE_HISTORY_H
#include <histedit.h>
#include <stdbool.h>

enum { LINE_HISTORY_ENTRIES = 512 };

struct line_history {
    History *entries;
    char *path;
    bool failed; /* the user was told */
};

/* Takes the entries of the file, if there is one. */
void line_history_open(struct line_history *h);
/* A text that equals the last entry is not added again. */
void line_history_add(struct line_history *h, const char *text);
void line_history_close(struct line_history *h);

#endif
