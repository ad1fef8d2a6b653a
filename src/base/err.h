/* Errors as values. A function that can fail returns 0 or one of the negative codes below and, when it is given a
 * struct err, leaves there one sentence for the user: what, where, got, wanted, what to do. */
#ifndef BASE_ERR_H
#define BASE_ERR_H
#include <stdarg.h>

enum err_code {
    ERR_OK = 0,
    ERR_ARG = -1,       /* wrong use by the caller or the command line */
    ERR_IO = -2,        /* the operating system refused: open, read, write, map */
    ERR_FORMAT = -3,    /* a file or message is damaged */
    ERR_MODEL = -4,     /* a well-formed model that this engine cannot run */
    ERR_MEMORY = -5,    /* not enough memory */
    ERR_CANCELLED = -6, /* the caller asked to stop */
    ERR_LIMIT = -7,     /* context, session or size limit reached */
    ERR_DEVICE = -8     /* a device failed */
};

enum { ERR_TEXT = 1000 };
struct err {
    int code;
    char msg[ERR_TEXT];
};

/* Sets code and message (printf format) and returns code. e may be NULL. The first error wins: an err that already
 * holds one keeps it. Messages quote names and texts of files: they are made safe for a terminal (text_defuse). One
 * that is too long keeps its beginning and its end, with " ... " between: a long path does not push out what is wrong.
 */
int err_set(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
int err_vset(struct err *e, int code, const char *fmt, va_list ap) __attribute__((format(printf, 3, 0)));

/* Puts "context: " in front of the message of e and returns its code; no effect on an err without error. */
int err_wrap(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Empties e. */
void err_clear(struct err *e);

#endif
