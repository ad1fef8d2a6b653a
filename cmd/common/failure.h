/* Errors of the program itself, in the form of the engine's. */
#ifndef FAILURE_H
#define FAILURE_H
#include "base/err.h"
#include "ds4.h"

/* Sets code and message; returns code. */
int failure(struct ds4_error *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* The same with an error of base: file functions and others. */
int failure_of(struct ds4_error *e, const struct err *err);

#endif
