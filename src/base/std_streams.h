/* The three standard streams of a program, for its main: what happens when they are closed or cannot be written to. */
#ifndef BASE_STD_STREAMS_H
#define BASE_STD_STREAMS_H

/* First thing in main: descriptors 0 to 2 that are closed are taken, so that no file gets their numbers and then the
 * program's messages; reading and writing them fails as on a closed one. */
void std_streams_hold(void);
/* Last thing in main: writes out what is left for stdout. Returns status, or 1 after "PROGRAM: standard output: cannot
 * write: reason" if any of its text was lost and status is 0. */
int std_streams_end(const char *program, int status);

#endif
