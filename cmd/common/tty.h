/* What a stream of the program is shown on. */
#ifndef TTY_H
#define TTY_H
#include <stdbool.h>
#include <stdio.h>

/* Columns of the terminal; 80 where there is none or it does not say. */
int tty_width(FILE *f);
/* A terminal that understands escape sequences: TERM names one and not "dumb". */
bool tty_escapes(FILE *f);
/* One that is to show colours: NO_COLOR is not set to anything. */
bool tty_colour(FILE *f);

#endif
