#include "serve/fields.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "base/str.h"

json_t *field(const struct fields *f, const char *name)
{
    json_t *v = json_object_get(f->object, name);
    return json_is_null(v) ? NULL : v;
}

bool fields_good(const struct fields *f)
{
    return f->why->status == 0;
}

bool field_wrong(const struct fields *f, const char *name, const char *fmt, ...)
{
    va_list ap;
    if (!fields_good(f)) return false;
    f->why->status = 400;
    f->why->type = "invalid_request_error";
    snprintf(f->why->param, sizeof f->why->param, "%s", name);
    text_defuse(f->why->param, strlen(f->why->param));
    const int n = snprintf(f->why->message, sizeof f->why->message, "%s%s: ", f->path, name);
    va_start(ap, fmt);
    vsnprintf(f->why->message + n, sizeof f->why->message - (size_t)n, fmt, ap);
    va_end(ap);
    text_defuse(f->why->message, strlen(f->why->message));
    return false;
}

bool field_bool(const struct fields *f, const char *name, bool absent)
{
    const json_t *v = field(f, name);
    if (!v) return absent;
    if (!json_is_boolean(v)) field_wrong(f, name, "must be true or false");
    return json_is_true(v);
}

double field_number(const struct fields *f, const char *name, double low, double high, double absent)
{
    const json_t *v = field(f, name);
    if (!v) return absent;
    const double x = json_number_value(v);
    if (!json_is_number(v) || !(x >= low && x <= high))
        return field_wrong(f, name, "must be a number from %g to %g", low, high), absent;
    return x;
}

int64_t field_integer(const struct fields *f, const char *name, int64_t low, int64_t high, int64_t absent)
{
    const json_t *v = field(f, name);
    if (!v) return absent;
    const double x = json_number_value(v);
    if (!json_is_number(v) || x != floor(x) || x < (double)low)
        return low == INT64_MIN ? field_wrong(f, name, "must be a whole number")
                                : field_wrong(f, name, "must be a whole number from %lld", (long long)low),
               absent;
    if (x >= (double)high) return high;
    return json_is_integer(v) ? (int64_t)json_integer_value(v) : (int64_t)x;
}

const char *field_string(const struct fields *f, const char *name, const char *absent)
{
    const json_t *v = field(f, name);
    if (!v) return absent;
    if (!json_is_string(v)) return field_wrong(f, name, "must be a string"), absent;
    return json_string_value(v);
}

json_t *field_array(const struct fields *f, const char *name)
{
    json_t *v = field(f, name);
    if (v && !json_is_array(v)) return field_wrong(f, name, "must be an array"), NULL;
    return v;
}

json_t *field_object(const struct fields *f, const char *name)
{
    json_t *v = field(f, name);
    if (v && !json_is_object(v)) return field_wrong(f, name, "must be an object"), NULL;
    return v;
}
