/* Checked access to JSON values. */
#include "hf_json.h"
#include <inttypes.h>
#include <string.h>
#include "base/file.h"
#include "base/mem.h"

#define MAX_JSON (512u << 20)

int hf_json_read(const char *path, json_t **out, struct err *e)
{
    char *text;
    size_t n;
    int rc = file_read(path, MAX_JSON, &text, &n, e);
    if (rc) return rc;
    json_error_t je;
    json_t *root = json_loadb(text, n, JSON_REJECT_DUPLICATES, &je);
    mem_free(text);
    if (!root) return err_set(e, ERR_FORMAT, "%s: line %d: not valid JSON: %s", path, je.line, je.text);
    if (!json_is_object(root)) {
        json_decref(root);
        return err_set(e, ERR_FORMAT, "%s: not a JSON object", path);
    }
    *out = root;
    return 0;
}

static const json_t *value(const struct hf_reader *r, const char *key)
{
    const json_t *v = json_object_get(r->object, key);
    return v && !json_is_null(v) ? v : NULL;
}

static const json_t *required(struct hf_reader *r, const char *key)
{
    const json_t *v = value(r, key);
    if (!v) err_set(r->e, ERR_MODEL, "%s: \"%s\" is missing", r->path, key);
    return v;
}

static int64_t int_value(struct hf_reader *r, const char *key, const json_t *v, int64_t min, int64_t max)
{
    const int64_t x = json_integer_value(v);
    if (json_is_integer(v) && x >= min && x <= max) return x;
    err_set(r->e, ERR_MODEL, "%s: \"%s\" must be a whole number from %" PRId64 " to %" PRId64, r->path, key, min, max);
    return min;
}

int64_t hf_int(struct hf_reader *r, const char *key, int64_t min, int64_t max)
{
    const json_t *v = required(r, key);
    return v ? int_value(r, key, v, min, max) : min;
}

int64_t hf_int_or(struct hf_reader *r, const char *key, int64_t min, int64_t max, int64_t none)
{
    const json_t *v = value(r, key);
    return v ? int_value(r, key, v, min, max) : none;
}

static double float_value(struct hf_reader *r, const char *key, const json_t *v, double min, double max)
{
    const double x = json_number_value(v);
    if (json_is_number(v) && x >= min && x <= max) return x;
    err_set(r->e, ERR_MODEL, "%s: \"%s\" must be a number from %g to %g", r->path, key, min, max);
    return min;
}

double hf_float(struct hf_reader *r, const char *key, double min, double max)
{
    const json_t *v = required(r, key);
    return v ? float_value(r, key, v, min, max) : min;
}

double hf_float_or(struct hf_reader *r, const char *key, double min, double max, double none)
{
    const json_t *v = value(r, key);
    return v ? float_value(r, key, v, min, max) : none;
}

bool hf_bool_or(struct hf_reader *r, const char *key, bool none)
{
    const json_t *v = value(r, key);
    if (!v) return none;
    if (!json_is_boolean(v)) err_set(r->e, ERR_MODEL, "%s: \"%s\" must be true or false", r->path, key);
    return json_is_true(v);
}

void hf_expect(struct hf_reader *r, const char *key, const char *want, bool is_required)
{
    const json_t *v = is_required ? required(r, key) : value(r, key);
    if (!v) return;
    const char *got = json_is_string(v) ? json_string_value(v) : "not a string";
    if (strcmp(got, want))
        err_set(r->e, ERR_MODEL, "%s: \"%s\" is %s; only %s can be converted", r->path, key, got, want);
}
