/* The sticky error of a stream, and devices by name. */
#include "device/device.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int dev_error(const struct dev_stream *s, struct err *e)
{
    if (s->error.code && e) *e = s->error;
    return s->error.code;
}

void dev_clear(struct dev_stream *s)
{
    err_clear(&s->error);
}

void dev_fail(struct dev_stream *s, int code, const char *fmt, ...)
{
    char msg[sizeof s->error.msg];
    va_list args;
    va_start(args, fmt);
    vsnprintf(msg, sizeof msg, fmt, args);
    va_end(args);
    err_set(&s->error, code, "%s", msg);
}

int dev_create(const char *name, struct pool *pool, struct dev **out, struct err *e)
{
    if (!strcmp(name, "ref")) return dev_ref_create(out, e);
    if (!strcmp(name, "cpu")) return dev_cpu_create(pool, quant_isa_best(), out, e);
    return err_set(e, ERR_ARG, "unknown device \"%s\"; devices are: ref, cpu", name);
}
