#include "serve/scripted_file.h"
#include <jansson.h>
#include <math.h>
#include <string.h>
#include "base/base64.h"
#include "base/file.h"
#include "base/mem.h"

/* One field of a line: where the value goes is up to the reader. */
struct reading {
    struct script *script;
    struct script_line *line;
    json_t *object;
    int number; /* of the line, from 1 */
    struct err *e;
};

static int wrong(struct reading *r, const char *field, const char *wanted)
{
    return err_set(r->e, ERR_FORMAT, "line %d: \"%s\" must be %s", r->number, field, wanted);
}

/* ---------------------------------------------------------------- bytes and where they are cut */

static int read_bytes(struct reading *r)
{
    const json_t *text = json_object_get(r->object, "text"), *base64 = json_object_get(r->object, "base64");
    if (text && base64) return err_set(r->e, ERR_FORMAT, "line %d has both \"text\" and \"base64\"", r->number);
    if (text && !json_is_string(text)) return wrong(r, "text", "a string");
    if (text) str_add(&r->line->bytes, json_string_value(text), json_string_length(text));
    if (!base64) return 0;
    if (!json_is_string(base64) ||
        !base64_decode(json_string_value(base64), json_string_length(base64), &r->line->bytes))
        return wrong(r, "base64", "a string of padded base64");
    return 0;
}

static void cut_every(struct script_line *l, size_t step)
{
    l->n_cuts = (l->bytes.n + step - 1) / step;
    l->cut = mem_alloc((l->n_cuts + 1) * sizeof *l->cut);
    for (size_t i = 0; i < l->n_cuts; i++) l->cut[i] = (i + 1) * step < l->bytes.n ? (i + 1) * step : l->bytes.n;
    l->echo_cut = step;
}

static int cut_at(struct reading *r, const json_t *list)
{
    struct script_line *l = r->line;
    const size_t n = json_array_size(list);
    l->cut = mem_alloc((n + 1) * sizeof *l->cut);
    l->echo_cut = 4;
    for (size_t i = 0, last = 0; i < n; i++) {
        const json_t *at = json_array_get(list, i);
        const json_int_t v = json_is_integer(at) ? json_integer_value(at) : -1;
        if (v <= (json_int_t)last || (uint64_t)v > l->bytes.n)
            return wrong(r, "cuts", "ascending offsets between 1 and the number of bytes");
        l->cut[l->n_cuts++] = last = (size_t)v;
    }
    if (l->bytes.n && (!l->n_cuts || l->cut[l->n_cuts - 1] < l->bytes.n)) l->cut[l->n_cuts++] = l->bytes.n;
    return 0;
}

static int read_cuts(struct reading *r)
{
    static const char wanted[] = "an array of offsets, \"bytes\", \"whole\" or a number of bytes";
    const json_t *v = json_object_get(r->object, "cuts");
    const char *word = json_string_value(v);
    if (json_is_array(v)) return cut_at(r, v);
    if (!v)
        cut_every(r->line, 4);
    else if (word && !strcmp(word, "bytes"))
        cut_every(r->line, 1);
    else if (word && !strcmp(word, "whole"))
        cut_every(r->line, SIZE_MAX / 4);
    else if (json_is_integer(v) && json_integer_value(v) > 0)
        cut_every(r->line, (size_t)json_integer_value(v));
    else
        return wrong(r, "cuts", wanted);
    return 0;
}

/* ---------------------------------------------------------------- the other fields */

static int read_integer(struct reading *r, const char *field, int64_t least, int64_t *out)
{
    const json_t *v = json_object_get(r->object, field);
    if (!v) return 0;
    if (!json_is_integer(v) || json_integer_value(v) < least)
        return wrong(r, field, least ? "a whole number from 1" : "a whole number from 0");
    *out = json_integer_value(v);
    return 0;
}

static int read_ms(struct reading *r, const char *field, double *out)
{
    const json_t *v = json_object_get(r->object, field);
    if (!v) return 0;
    const double ms = json_number_value(v);
    if (!json_is_number(v) || !(ms >= 0) || !(ms <= 1e9)) return wrong(r, field, "a number of milliseconds");
    *out = ms;
    return 0;
}

static int read_when(struct reading *r)
{
    const json_t *v = json_object_get(r->object, "when");
    const size_t n = json_is_array(v) ? json_array_size(v) : v ? 1 : 0;
    r->line->when = mem_alloc((n + 1) * sizeof *r->line->when);
    for (size_t i = 0; i < n; i++) {
        const char *text = json_string_value(json_is_array(v) ? json_array_get(v, i) : v);
        if (!text) return wrong(r, "when", "a string or an array of strings");
        r->line->when[r->line->n_when++] = mem_strdup(text);
    }
    return 0;
}

static int read_stop(struct reading *r)
{
    const json_t *v = json_object_get(r->object, "stop");
    const char *word = v ? json_string_value(v) : "eos";
    if (!word || (strcmp(word, "eos") && strcmp(word, "length"))) return wrong(r, "stop", "\"eos\" or \"length\"");
    r->line->full = !strcmp(word, "length");
    return 0;
}

static int read_family(struct reading *r)
{
    const json_t *v = json_object_get(r->object, "family");
    const char *word = v ? json_string_value(v) : NULL;
    if (!v && r->script->family) return 0;
    if (v && (!word || (strcmp(word, "deepseek4") && strcmp(word, "qwen38"))))
        return wrong(r, "family", "\"deepseek4\" or \"qwen38\"");
    const char *family = word && !strcmp(word, "qwen38") ? "qwen38" : "deepseek4";
    if (r->script->family && strcmp(family, r->script->family))
        return err_set(r->e, ERR_FORMAT, "line %d: family %s, but the first line says %s", r->number, family,
                       r->script->family);
    r->script->family = family;
    return 0;
}

static int read_error(struct reading *r)
{
    const json_t *v = json_object_get(r->object, "error"), *at = json_object_get(r->object, "error_at");
    const char *word = at ? json_string_value(at) : NULL;
    if (v && !json_is_string(v)) return wrong(r, "error", "a string");
    if (v) r->line->error = mem_strdup(json_string_value(v));
    if (word && !strcmp(word, "prefill")) {
        r->line->error_at = SCRIPT_AT_PREFILL;
        return 0;
    }
    if (word) return wrong(r, "error_at", "a number of tokens or \"prefill\"");
    return read_integer(r, "error_at", 0, &r->line->error_at);
}

static int read_logprobs(struct reading *r)
{
    const json_t *v = json_object_get(r->object, "logprob"), *list = json_object_get(r->object, "alts");
    if (v && !json_is_number(v)) return wrong(r, "logprob", "a number");
    r->line->logprob = v ? json_number_value(v) : 0;
    if (list && (!json_is_array(list) || json_array_size(list) > SCRIPT_MAX_ALTERNATIVES))
        return wrong(r, "alts", "an array of at most 20 pairs [string, number]");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *pair = json_array_get(list, i), *text = json_array_get(pair, 0), *p = json_array_get(pair, 1);
        if (json_array_size(pair) != 2 || !json_is_string(text) || !json_is_number(p))
            return wrong(r, "alts", "an array of pairs [string, number]");
        struct script_alternative *a = &r->line->alternative[r->line->n_alternatives++];
        a->n = json_string_length(text);
        a->text = mem_alloc(a->n + 1);
        memcpy(a->text, json_string_value(text), a->n + 1);
        a->logprob = json_number_value(p);
    }
    return 0;
}

static int read_echo(struct reading *r)
{
    const json_t *v = json_object_get(r->object, "echo");
    if (v && !json_is_boolean(v)) return wrong(r, "echo", "true or false");
    r->line->echo = json_is_true(v);
    return 0;
}

/* ---------------------------------------------------------------- lines */

static int check_fields(struct reading *r)
{
    static const char *const known[] = {"text",     "base64",   "cuts", "when",    "times",
                                        "token_ms", "layer_ms", "stop", "family",  "error",
                                        "error_at", "repeat",   "echo", "logprob", "alts"};
    const char *key;
    json_t *value;
    json_object_foreach(r->object, key, value)
    {
        size_t i = 0;
        while (i < sizeof known / sizeof *known && strcmp(key, known[i])) i++;
        if (i == sizeof known / sizeof *known)
            return err_set(r->e, ERR_FORMAT, "line %d: unknown field \"%.60s\"", r->number, key);
    }
    return 0;
}

static int read_fields(struct reading *r)
{
    struct script_line *l = r->line;
    *l = (struct script_line){.times = 1, .repeat = 1};
    int rc = check_fields(r);
    if (!rc) rc = read_bytes(r);
    if (!rc) rc = read_cuts(r);
    if (!rc) rc = read_when(r);
    if (!rc) rc = read_integer(r, "times", 0, &l->times);
    if (!rc) rc = read_ms(r, "token_ms", &l->token_ms);
    if (!rc) rc = read_ms(r, "layer_ms", &l->layer_ms);
    if (!rc) rc = read_stop(r);
    if (!rc) rc = read_family(r);
    if (!rc) rc = read_error(r);
    if (!rc) rc = read_integer(r, "repeat", 1, &l->repeat);
    if (!rc) rc = read_echo(r);
    if (!rc) rc = read_logprobs(r);
    return rc;
}

static bool is_blank(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!strchr(" \t\r", p[i])) return false;
    return true;
}

static int read_line(struct script *s, const char *p, size_t n, int number, struct err *e)
{
    json_error_t why;
    struct reading r = {.script = s, .number = number, .e = e};
    r.object = json_loadb(p, n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);
    if (!r.object) return err_set(e, ERR_FORMAT, "line %d is not JSON: %s", number, why.text);
    int rc = 0;
    if (!json_is_object(r.object)) rc = err_set(e, ERR_FORMAT, "line %d is not a JSON object", number);
    if (rc == 0 && s->n == s->cap) s->line = mem_grow(s->line, (s->cap = 2 * s->cap + 8) * sizeof *s->line);
    if (rc == 0) {
        r.line = &s->line[s->n++];
        rc = read_fields(&r);
    }
    json_decref(r.object);
    return rc;
}

int script_read(const char *path, struct script *s, struct err *e)
{
    enum { MAX_BYTES = 1 << 28 };
    char *text = NULL;
    size_t size = 0;
    *s = (struct script){0};
    int rc = file_read(path, MAX_BYTES, &text, &size, e), number = 0;
    if (rc) return rc;
    for (size_t at = 0; rc == 0 && at < size;) {
        const char *end = memchr(text + at, '\n', size - at);
        const size_t n = end ? (size_t)(end - text) - at : size - at;
        number++;
        if (!is_blank(text + at, n)) rc = read_line(s, text + at, n, number, e);
        at += n + 1;
    }
    mem_free(text);
    if (rc == 0 && s->n == 0) rc = err_set(e, ERR_FORMAT, "there is no line in it");
    return rc ? err_wrap(e, "script %s", path) : 0;
}

void script_free(struct script *s)
{
    for (size_t i = 0; i < s->n; i++) {
        struct script_line *l = &s->line[i];
        for (size_t k = 0; k < l->n_when; k++) mem_free(l->when[k]);
        for (int k = 0; k < l->n_alternatives; k++) mem_free(l->alternative[k].text);
        str_free(&l->bytes);
        mem_free(l->when);
        mem_free(l->cut);
        mem_free(l->error);
    }
    mem_free(s->line);
    *s = (struct script){0};
}
