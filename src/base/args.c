/* Command line words one by one. */
#include "base/args.h"
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <strings.h>
#include "base/program.h"

const char *args_next(struct args *a)
{
    return !a->bad && a->at < a->argc ? a->argv[a->at++] : NULL;
}

void args_mistake(struct args *a, const char *fmt, ...)
{
    struct err e = {0};
    va_list ap;
    va_start(ap, fmt);
    err_vset(&e, ERR_ARG, fmt, ap);
    va_end(ap);
    program_failed(a->program, &e);
    a->bad = true;
}

const char *args_value(struct args *a, const char *option)
{
    if (a->at < a->argc) return a->argv[a->at++];
    args_mistake(a, "%s needs a value", option);
    return NULL;
}

int64_t args_int(struct args *a, const char *option, int64_t min, int64_t max)
{
    const char *text = args_value(a, option);
    if (!text) return min;
    char *end;
    errno = 0;
    const long long v = strtoll(text, &end, 10);
    if (end == text || *end || errno || v < min || v > max) {
        args_mistake(a, "%s: '%s' is not a whole number from %" PRId64 " to %" PRId64, option, text, min, max);
        return min;
    }
    return v;
}

uint64_t args_seed(struct args *a, const char *option)
{
    const char *text = args_value(a, option);
    if (!text) return 0;
    char *end;
    errno = 0;
    const unsigned long long v = strtoull(text, &end, 10);
    if (end == text || *end || errno || *text == '-' || !v)
        args_mistake(a, "%s: '%s' is not a whole number from 1 to %" PRIu64, option, text, UINT64_MAX);
    return v;
}

uint64_t args_gib(struct args *a, const char *option)
{
    const char *text = args_value(a, option);
    if (!text) return 0;
    char *end;
    const double v = strtod(text, &end);
    if (end == text || (*end && strcasecmp(end, "GB")) || !(v * (1 << 30) >= 1 && v <= 1 << 20)) {
        args_mistake(a, "%s: '%s' is not a size such as 12GB", option, text);
        return 0;
    }
    return (uint64_t)(v * (1 << 30));
}

double args_float(struct args *a, const char *option, double min, double max)
{
    const char *text = args_value(a, option);
    if (!text) return min;
    char *end;
    errno = 0;
    const double v = strtod(text, &end);
    if (end == text || *end || errno || !isfinite(v) || v < min || v > max) {
        args_mistake(a, "%s: '%s' is not a number from %g to %g", option, text, min, max);
        return min;
    }
    return v;
}
