/* The terminal that the program runs on, and the signals about it. What is changed there (line modes, bracketed paste,
 * colours) is taken back on every way out: at the end of the program, before a signal ends it (which it then does as if
 * nobody had caught it), and before Ctrl-Z stops it. SIGINT does not end the program: it is noted.
 *
 * Keys are read from standard input, escape sequences go to standard output. */
#ifndef TERMINAL_H
#define TERMINAL_H
#include <stdbool.h>
#include <stdio.h>
#include "ds4.h"

/* From now on all of this is in force. Signals that are ignored stay ignored. */
void terminal_begin(void);
/* Takes everything back. */
void terminal_give_back(void);
/* Ends the program as SIGINT does. */
void terminal_die_of_interrupt(void) __attribute__((noreturn));

/* Line modes. As they were found; or: keys are not shown, and wait for whoever reads next; or: set by a line editor. */
enum terminal_mode { TERMINAL_AS_FOUND, TERMINAL_QUIET, TERMINAL_EDITED };
void terminal_mode(enum terminal_mode mode);
void terminal_paste(bool bracketed);
/* Says that standard output has a colour on. */
void terminal_coloured(bool on);
/* How often the program went on after a stop: a colour is then no longer on. */
int terminal_resumes(void);

bool terminal_interrupted(void);
void terminal_forget_interrupt(void);
/* An interrupt also cancels what s evaluates; NULL: nothing. */
void terminal_interrupt_cancels(ds4_session *s);

/* Waits for keys, or for one of the others; an interrupt that has been noted does not wait. */
enum terminal_event { TERMINAL_KEYS, TERMINAL_INTERRUPT, TERMINAL_RESIZED, TERMINAL_RESUMED };
enum terminal_event terminal_wait(void);

#endif
