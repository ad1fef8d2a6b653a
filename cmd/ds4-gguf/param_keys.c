/* Values by their place in a struct. */
#include "param_keys.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct param_key *param_find(const struct param_key *keys, const char *name)
{
    for (; keys->name; keys++)
        if (strcmp(keys->name, name) == 0) return keys;
    return NULL;
}

bool param_is_list(const struct param_key *k)
{
    return k->kind == PARAM_WHOLES || k->kind == PARAM_REALS || k->kind == PARAM_BIGS;
}

static int64_t load_whole(const void *params, size_t at)
{
    int64_t v;
    memcpy(&v, (const char *)params + at, sizeof v);
    return v;
}

static void store_whole(void *params, size_t at, int64_t v)
{
    memcpy((char *)params + at, &v, sizeof v);
}

int64_t param_whole(const void *params, const struct param_key *k)
{
    return load_whole(params, k->at);
}

float param_real(const void *params, const struct param_key *k)
{
    float v;
    memcpy(&v, (const char *)params + k->at, sizeof v);
    return v;
}

int64_t param_length(const void *params, const struct param_key *k)
{
    return load_whole(params, k->n_at);
}

bool param_is_set(const void *params, const struct param_key *k)
{
    if (param_is_list(k)) return param_length(params, k) != PARAM_UNSET;
    if (k->kind == PARAM_REAL) return param_real(params, k) != PARAM_UNSET;
    return k->kind == PARAM_OTHER || param_whole(params, k) != PARAM_UNSET;
}

double param_entry(const void *params, const struct param_key *k, int i)
{
    const char *const list = (const char *)params + k->at;
    if (k->kind == PARAM_WHOLES) return ((const int32_t *)(const void *)list)[i];
    if (k->kind == PARAM_REALS) return (double)((const float *)(const void *)list)[i];
    return (double)((const uint64_t *)(const void *)list)[i];
}

/* ---- set by text */

union number {
    double real;
    uint64_t whole;
};

/* A number of at least 0, whole or any, which ends at a comma or at the end of the text. Returns what is behind it. */
static const char *number(const char *text, bool is_whole, uint64_t most, union number *v)
{
    char *end;
    errno = 0;
    if (is_whole) {
        const bool negative = text[strspn(text, " ")] == '-';
        v->whole = strtoull(text, &end, 10);
        if (v->whole > most || (negative && v->whole) || errno) return NULL;
    } else {
        v->real = strtod(text, &end);
        if (!(v->real >= 0 && v->real <= 3.4e38)) return NULL;
    }
    return end > text && (!*end || *end == ',') ? end : NULL;
}

static void store_entry(void *params, const struct param_key *k, int64_t i, union number v)
{
    char *const list = (char *)params + k->at;
    if (k->kind == PARAM_WHOLES)
        ((int32_t *)(void *)list)[i] = (int32_t)v.whole;
    else if (k->kind == PARAM_REALS)
        ((float *)(void *)list)[i] = (float)v.real;
    else
        ((uint64_t *)(void *)list)[i] = v.whole;
}

static int set_list(void *params, const struct param_key *k, const char *text, struct err *e)
{
    const bool whole = k->kind != PARAM_REALS;
    const char *at = text;
    for (int64_t n = 0; n < k->most;) {
        union number v;
        at = number(at, whole, k->kind == PARAM_WHOLES ? INT32_MAX : UINT64_MAX, &v);
        if (!at) break;
        store_entry(params, k, n++, v);
        if (!*at) {
            store_whole(params, k->n_at, n);
            return 0;
        }
        at++;
    }
    return err_set(e, ERR_ARG, "%s: '%s' is not a list of at most %d %snumbers such as %s", k->name, text, k->most,
                   whole ? "whole " : "", whole ? "0,4,128" : "10,10,7.5");
}

int param_set(void *params, const struct param_key *k, const char *text, struct err *e)
{
    union number v;
    if (param_is_list(k)) return set_list(params, k, text, e);
    if (k->kind == PARAM_SWITCH) {
        const bool on = strcmp(text, "true") == 0;
        if (!on && strcmp(text, "false")) return err_set(e, ERR_ARG, "%s: '%s' is not true or false", k->name, text);
        store_whole(params, k->at, on);
        return 0;
    }
    const bool whole = k->kind != PARAM_REAL;
    const char *const end = number(text, whole, INT32_MAX, &v);
    if (!end || *end)
        return err_set(e, ERR_ARG, "%s: '%s' is not a %s", k->name, text,
                       whole ? "whole number from 0 to 2147483647" : "number from 0 on");
    const float real = whole ? 0 : (float)v.real;
    if (whole)
        store_whole(params, k->at, (int64_t)v.whole);
    else
        memcpy((char *)params + k->at, &real, sizeof real);
    return 0;
}

/* ---- written */

void param_put(struct gguf_writer *w, const char *arch, const void *params, const struct param_key *k)
{
    char name[96];
    const void *const list = (const char *)params + k->at;
    if (!param_is_set(params, k)) return;
    snprintf(name, sizeof name, "%s.%s", arch, k->name);
    switch (k->kind) {
    case PARAM_WHOLE:
        gguf_put_u32(w, name, (uint32_t)param_whole(params, k));
        break;
    case PARAM_LONG:
        gguf_put_u64(w, name, (uint64_t)param_whole(params, k));
        break;
    case PARAM_REAL:
        gguf_put_f32(w, name, param_real(params, k));
        break;
    case PARAM_SWITCH:
        gguf_put_bool(w, name, param_whole(params, k) != 0);
        break;
    case PARAM_WHOLES:
        gguf_put_arr_i32(w, name, list, (uint64_t)param_length(params, k));
        break;
    case PARAM_REALS:
        gguf_put_arr_f32(w, name, list, (uint64_t)param_length(params, k));
        break;
    case PARAM_BIGS:
        gguf_put_arr_u64(w, name, list, (uint64_t)param_length(params, k));
        break;
    case PARAM_OTHER:
        break;
    }
}
