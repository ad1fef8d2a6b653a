/* Elements of metadata values as numbers and strings (spec dialects 3). */
#include "gguf/gguf.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "gguf/gguf_internal.h"

const char *gguf_kind(const struct gguf_kv *kv, char text[32])
{
    snprintf(text, 32, "%s%s", kv->type == GGUF_ARRAY ? "array of " : "", gguf_type_name(kv->elem));
    return text;
}

/* "key" or "key"[3], for messages. */
static int fail_at(const struct gguf_kv *kv, uint64_t i, struct err *e, const char *got, const char *allowed)
{
    char index[32] = "";
    if (kv->type == GGUF_ARRAY) snprintf(index, sizeof index, "[%" PRIu64 "]", i);
    return err_set(e, ERR_MODEL, "key %s%s is %s; %s", gguf_show(kv->key.p, kv->key.n).text, index, got, allowed);
}

static int check_index(const struct gguf_kv *kv, uint64_t i, struct err *e)
{
    if (i < kv->count) return 0;
    return err_set(e, ERR_MODEL, "key %s has %" PRIu64 " elements; at least %" PRIu64 " are needed",
                   gguf_show(kv->key.p, kv->key.n).text, kv->count, i + 1);
}

/* An integer as sign and 64 bits of two's complement. */
struct integer {
    bool negative;
    uint64_t bits;
};

static bool is_signed(enum gguf_type t)
{
    return t == GGUF_I8 || t == GGUF_I16 || t == GGUF_I32 || t == GGUF_I64;
}

static bool is_integer(enum gguf_type t)
{
    return is_signed(t) || t == GGUF_U8 || t == GGUF_U16 || t == GGUF_U32 || t == GGUF_U64;
}

static struct integer load_integer(const struct gguf_kv *kv, uint64_t i)
{
    const unsigned n = gguf_type_bytes(kv->elem);
    uint64_t v = gguf_load(kv->data + i * n, n);
    if (kv->elem == GGUF_BOOL) v = v != 0;
    if (!is_signed(kv->elem)) return (struct integer){false, v};
    const bool negative = v >> (8 * n - 1) & 1;
    if (negative && n < 8) v |= UINT64_MAX << (8 * n);
    return (struct integer){negative, v};
}

static int get_integer(const struct gguf_kv *kv, uint64_t i, struct integer *v, const char *allowed, struct err *e)
{
    const int rc = check_index(kv, i, e);
    if (rc) return rc;
    if (!is_integer(kv->elem) && kv->elem != GGUF_BOOL) return fail_at(kv, i, e, gguf_type_name(kv->elem), allowed);
    *v = load_integer(kv, i);
    return 0;
}

static int fail_integer(const struct gguf_kv *kv, uint64_t i, struct integer v, const char *allowed, struct err *e)
{
    char got[32];
    if (v.negative)
        snprintf(got, sizeof got, "%" PRId64, (int64_t)v.bits);
    else
        snprintf(got, sizeof got, "%" PRIu64, v.bits);
    return fail_at(kv, i, e, got, allowed);
}

int gguf_u64(const struct gguf_kv *kv, uint64_t i, uint64_t *v, struct err *e)
{
    static const char allowed[] = "an integer of at least 0 is needed";
    struct integer x;
    const int rc = get_integer(kv, i, &x, allowed, e);
    if (rc) return rc;
    if (x.negative) return fail_integer(kv, i, x, allowed, e);
    *v = x.bits;
    return 0;
}

int gguf_i64(const struct gguf_kv *kv, uint64_t i, int64_t *v, struct err *e)
{
    static const char allowed[] = "an integer below 2^63 is needed";
    struct integer x;
    const int rc = get_integer(kv, i, &x, allowed, e);
    if (rc) return rc;
    if (!x.negative && x.bits > INT64_MAX) return fail_integer(kv, i, x, allowed, e);
    *v = (int64_t)x.bits;
    return 0;
}

int gguf_bool(const struct gguf_kv *kv, uint64_t i, bool *v, struct err *e)
{
    static const char allowed[] = "a bool (or 0 or 1) is needed";
    struct integer x;
    const int rc = get_integer(kv, i, &x, allowed, e);
    if (rc) return rc;
    if (x.bits > 1) return fail_integer(kv, i, x, allowed, e);
    *v = x.bits != 0;
    return 0;
}

static double load_float(const struct gguf_kv *kv, uint64_t i)
{
    if (kv->elem == GGUF_F32) {
        const uint32_t bits = (uint32_t)gguf_load(kv->data + 4 * i, 4);
        float f;
        memcpy(&f, &bits, sizeof f);
        return f;
    }
    if (kv->elem == GGUF_F64) {
        const uint64_t bits = gguf_load(kv->data + 8 * i, 8);
        double d;
        memcpy(&d, &bits, sizeof d);
        return d;
    }
    const struct integer x = load_integer(kv, i);
    return x.negative ? (double)(int64_t)x.bits : (double)x.bits;
}

int gguf_f64(const struct gguf_kv *kv, uint64_t i, double *v, struct err *e)
{
    static const char allowed[] = "a finite number is needed";
    const int rc = check_index(kv, i, e);
    if (rc) return rc;
    if (!is_integer(kv->elem) && kv->elem != GGUF_F32 && kv->elem != GGUF_F64)
        return fail_at(kv, i, e, gguf_type_name(kv->elem), allowed);
    const double x = load_float(kv, i);
    if (!isfinite(x)) return fail_at(kv, i, e, isnan(x) ? "NaN" : "infinite", allowed);
    *v = x;
    return 0;
}

int gguf_string(const struct gguf_kv *kv, uint64_t i, struct gguf_str *v, struct err *e)
{
    const int rc = check_index(kv, i, e);
    if (rc) return rc;
    if (kv->elem != GGUF_STRING) return fail_at(kv, i, e, gguf_type_name(kv->elem), "a string is needed");
    const uint8_t *p = kv->data + (kv->str_at ? kv->str_at[i] : 0);
    *v = (struct gguf_str){(const char *)p + 8, gguf_load(p, 8)};
    return 0;
}
