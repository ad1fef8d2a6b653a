/* Messages into struct ds4_error. */
#include "failure.h"
#include <stdarg.h>
#include <stdio.h>

int failure(struct ds4_error *e, int code, const char *fmt, ...)
{
    va_list ap;
    struct err err = {0};
    va_start(ap, fmt);
    err_vset(&err, code, fmt, ap);
    va_end(ap);
    return failure_of(e, &err);
}

int failure_of(struct ds4_error *e, const struct err *err)
{
    snprintf(e->message, sizeof e->message, "%s", err->msg);
    return e->code = err->code;
}
