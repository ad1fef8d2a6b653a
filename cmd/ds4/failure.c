/* Messages into struct ds4_error. */
#include "failure.h"
#include <stdarg.h>
#include <stdio.h>

int failure(struct ds4_error *e, int code, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(e->message, sizeof e->message, fmt, ap);
    va_end(ap);
    return e->code = code;
}

int failure_of(struct ds4_error *e, const struct err *err)
{
    return failure(e, err->code, "%s", err->msg);
}
