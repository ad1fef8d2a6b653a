/* A program on a pseudo terminal whose other end is a terminal emulator (libvterm): tests look at the screen and not at
 * bytes, and wait for what is to be seen there. All functions fail the running cmocka test with the screen when
 * something goes wrong or does not come. */
#ifndef TERMINAL_KIT_H
#define TERMINAL_KIT_H
#include <stdbool.h>
#include <sys/types.h>
#include <termios.h>
#include <vterm.h>
#include "base/str.h"

struct terminal {
    int fd, slave;  /* both ends; the other one stays open, so that its modes can be looked at */
    int news, keep; /* from and to the process that keeps the session */
    pid_t keeper, pid;
    bool stopped, ended;
    int status; /* of waitpid, when it ended */
    VTerm *vt;
    VTermScreen *screen;
    int rows, columns;
    struct str above; /* lines that were scrolled out of the window */
    struct str keys;  /* what the emulator wants to send */
    bool cursor_hidden;
    struct termios before;
};

/* Starts a program (argv ends with NULL) with TERM=xterm-256color, LANG=C and what changes (ends with NULL) says:
 * "NAME=value", or "NAME" to take it away. It is the foreground job of a session that another process leads, as a shell
 * does: so it can be stopped, and when it ends the terminal's modes stay as they are. Skips the test where no pseudo
 * terminal can be had, as in a bare container. */
void terminal_start(struct terminal *t, int rows, int columns, const char *const *argv, const char *const *changes);

/* Types bytes; the program's output is read meanwhile. */
void terminal_type(struct terminal *t, const char *text);
/* Pastes a text as terminals do: its line ends as Enter, between marks if the program has asked for them. */
void terminal_send_paste(struct terminal *t, const char *text);
void terminal_resize(struct terminal *t, int rows, int columns);

/* Everything that was and is shown, lines without blanks at their ends. Valid until the next call. */
const char *terminal_text(struct terminal *t);
/* The row of the cursor. */
const char *terminal_cursor_row(struct terminal *t);
/* Waits until the text, or the row of the cursor, is to be seen. */
void terminal_await(struct terminal *t, const char *text);
void terminal_await_count(struct terminal *t, const char *text, int count);
void terminal_await_gone(struct terminal *t, const char *text);
void terminal_await_row(struct terminal *t, const char *row);
/* Fails unless this was or is shown, or if it was. */
void terminal_expect(struct terminal *t, const char *text);
void terminal_expect_not(struct terminal *t, const char *text);
/* Style of the first cell of a text that is in the window, as of "\033[...m": "", "1", "1;35". */
const char *terminal_style(struct terminal *t, const char *text);
/* Whether pastes would be marked (bracketed paste); until they would be. */
bool terminal_wants_pastes(struct terminal *t);
void terminal_await_pastes(struct terminal *t);

/* Waits until the program is stopped, by a signal. */
void terminal_await_stop(struct terminal *t);
/* Fails unless the terminal is as it was before the program: line modes, no bracketed paste, no colour, the cursor
 * visible. */
void terminal_expect_restored(struct terminal *t);
/* Waits for the end of the program, expects that the terminal is restored, and lets it go. Returns the status that
 * waitpid gives. */
int terminal_end(struct terminal *t);

#endif
