/* From tokenizer.json to lists by id. */
#include "hf_tokenizer.h"
#include <inttypes.h>
#include <jansson.h>
#include <string.h>
#include "base/mem.h"
#include "hf_json.h"

/* Texts by id while they are collected. */
struct by_id {
    const char *path;
    const char **text; /* [max], NULL: no token yet; borrowed from the JSON values */
    int32_t *type;     /* [max] */
    int64_t max, n;    /* ids below n exist */
};

static int put_token(struct by_id *b, const json_t *id, const char *text, int type, struct err *e)
{
    const int64_t i = json_integer_value(id);
    if (!text || !json_is_integer(id)) return err_set(e, ERR_FORMAT, "%s: a token without text or id", b->path);
    if (i < 0 || i >= b->max)
        return err_set(e, ERR_MODEL, "%s: token '%.60s' has id %" PRId64 ", the vocabulary ends at %" PRId64, b->path,
                       text, i, b->max);
    /* An added token may stand in the vocabulary too, then with the same text. */
    if (b->text[i] && strcmp(b->text[i], text))
        return err_set(e, ERR_FORMAT, "%s: id %" PRId64 " is '%.60s' and '%.60s'", b->path, i, b->text[i], text);
    b->text[i] = text;
    b->type[i] = type;
    if (i >= b->n) b->n = i + 1;
    return 0;
}

static int read_tokens(struct by_id *b, const json_t *root, const json_t *model, struct err *e)
{
    const char *text;
    json_t *v;
    size_t i;
    json_object_foreach(json_object_get(model, "vocab"), text, v)
    {
        const int rc = put_token(b, v, text, TOKEN_NORMAL, e);
        if (rc) return rc;
    }
    json_array_foreach(json_object_get(root, "added_tokens"), i, v)
    {
        const int type = json_is_true(json_object_get(v, "special")) ? TOKEN_CONTROL : TOKEN_USER_DEFINED;
        const int rc =
            put_token(b, json_object_get(v, "id"), json_string_value(json_object_get(v, "content")), type, e);
        if (rc) return rc;
    }
    return b->n ? 0 : err_set(e, ERR_FORMAT, "%s: no tokens", b->path);
}

static void store_tokens(const struct by_id *b, struct vocabulary *v)
{
    char hole[40];
    for (int64_t i = 0; i < b->n; i++) {
        snprintf(hole, sizeof hole, "<unused %" PRId64 ">", i);
        const char *text = b->text[i] ? b->text[i] : hole;
        text_list_add(&v->tokens, text, strlen(text));
        v->types[i] = b->text[i] ? b->type[i] : TOKEN_UNUSED;
    }
}

/* A merge is "left right" or ["left", "right"]. */
static int read_merges(const char *path, const json_t *list, struct vocabulary *v, struct err *e)
{
    struct str s = {0};
    size_t i;
    json_t *m;
    int rc = json_is_array(list) ? 0 : err_set(e, ERR_FORMAT, "%s: no merges", path);
    json_array_foreach(list, i, m)
    {
        const char *left = json_string_value(json_array_get(m, 0)), *right = json_string_value(json_array_get(m, 1));
        str_clear(&s);
        if (json_is_string(m))
            str_puts(&s, json_string_value(m));
        else if (left && right)
            str_printf(&s, "%s %s", left, right);
        if (!strchr(str_c(&s), ' ')) {
            rc = err_set(e, ERR_FORMAT, "%s: merge %zu is not a pair", path, i);
            break;
        }
        text_list_add(&v->merges, str_c(&s), s.n);
    }
    str_free(&s);
    return rc;
}

int hf_tokenizer_read(const char *path, int64_t max_tokens, struct vocabulary *v, struct err *e)
{
    *v = (struct vocabulary){.bos = -1, .eos = -1, .pad = -1};
    json_t *root;
    int rc = hf_json_read(path, &root, e);
    if (rc) return rc;
    const json_t *model = json_object_get(root, "model");
    const char *type = json_string_value(json_object_get(model, "type"));
    struct by_id b = {.path = path, .max = max_tokens};
    b.text = mem_try((size_t)max_tokens * sizeof *b.text);
    b.type = mem_try((size_t)max_tokens * sizeof *b.type);
    v->types = mem_try((size_t)max_tokens * sizeof *v->types);
    if (!type || strcmp(type, "BPE"))
        rc = err_set(e, ERR_MODEL, "%s: model type is not BPE", path);
    else if (!b.text || !b.type || !v->types)
        rc = err_set(e, ERR_MEMORY, "%s: not enough memory for the vocabulary", path);
    if (!rc) rc = read_tokens(&b, root, model, e);
    if (!rc) store_tokens(&b, v);
    if (!rc) rc = read_merges(path, json_object_get(model, "merges"), v, e);
    mem_free(b.text);
    mem_free(b.type);
    json_decref(root);
    return rc;
}
