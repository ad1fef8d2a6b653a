/* The vocabulary of a file, as far as it can be checked without knowing what it is for (spec dialects 12), and the
 * checkpoint's mapping of reasoning effort (6.3). */
#include "dialect/dialect_internal.h"
#include <string.h>

static const struct gguf_kv *strings(const struct canonical *c, const char *key)
{
    const struct gguf_kv *kv = gguf_set_kv_find(c->set, key);
    return kv && kv->type == GGUF_ARRAY && kv->elem == GGUF_STRING && kv->count > 0 ? kv : NULL;
}

/* Special tokens are found by text; an id that names another one is worth a word. */
static void compare_id(struct canonical *c, const char *key, const char *text)
{
    const struct gguf_kv *kv = gguf_set_kv_find(c->set, key);
    uint64_t id;
    struct gguf_str s = {NULL, 0};
    if (!kv || gguf_u64(kv, 0, &id, NULL)) return;
    if (id < c->tokens->count && gguf_string(c->tokens, id, &s, NULL) == 0 && dialect_is(&s, text)) return;
    dialect_warn(c, "%s is %llu, which is not %s: the text decides", key, (unsigned long long)id, text);
}

static void compare_pre(struct canonical *c)
{
    const struct gguf_kv *kv = gguf_set_kv_find(c->set, "tokenizer.ggml.pre");
    struct gguf_str s;
    if (!dialect_text(kv, &s)) return;
    for (int i = 0; i < 3 && c->family->pre[i]; i++)
        if (dialect_text_is(kv, c->family->pre[i])) return;
    dialect_warn(c, "tokenizer.ggml.pre is \"%.*s\": using %s, as %s always does", (int)(s.n < 60 ? s.n : 60), s.p,
                 c->family->pre[0], c->family->name);
}

int dialect_check_vocabulary(struct canonical *c, struct err *e)
{
    const struct gguf_kv *model = gguf_set_kv_find(c->set, "tokenizer.ggml.model");
    struct gguf_str s;
    c->tokens = strings(c, "tokenizer.ggml.tokens");
    c->merges = strings(c, "tokenizer.ggml.merges");
    if (!c->tokens || !c->merges)
        return err_set(e, ERR_MODEL, "no tokenizer in this file (%s): tokenizer.ggml.%s is missing",
                       gguf_path(c->files[0]), c->tokens ? "merges" : "tokens");
    if (dialect_text(model, &s) && !dialect_text_is(model, "gpt2"))
        return err_set(e, ERR_MODEL, "tokenizer.ggml.model = %.*s is not supported (only gpt2)",
                       (int)(s.n < 60 ? s.n : 60), s.p);
    const uint64_t rows = (uint64_t)canonical_int(c, "vocab_size");
    if (c->tokens->count > rows)
        return err_set(e, ERR_MODEL, "%llu tokens but %llu embedding rows", (unsigned long long)c->tokens->count,
                       (unsigned long long)rows);
    compare_pre(c);
    compare_id(c, "tokenizer.ggml.bos_token_id", c->family->bos);
    compare_id(c, "tokenizer.ggml.eos_token_id", c->family->eos);
    return 0;
}

const struct gguf_kv *canonical_tokens(const struct canonical *c)
{
    return c->tokens;
}

const struct gguf_kv *canonical_merges(const struct canonical *c)
{
    return c->merges;
}

/* A later checkpoint's mark in a name. */
static bool marked(const struct gguf_str *s)
{
    return dialect_contains(s, "0731") || dialect_contains(s, "0813") || dialect_contains(s, "Vision");
}

bool canonical_late_effort(const struct canonical *c, bool *known)
{
    struct gguf_str s;
    *known = true;
    if (dialect_text_has(gguf_set_kv_find(c->set, "tokenizer.chat_template"), "Beyond maximum")) return true;
    for (uint64_t i = 0; i < gguf_set_n_kv(c->set); i++) {
        const struct gguf_kv *kv = gguf_set_kv_at(c->set, i);
        const bool named = dialect_is(&kv->key, "general.name");
        const bool origin = dialect_begins(&kv->key, "general.source.");
        if ((named || origin) && dialect_text(kv, &s) && marked(&s)) return true;
    }
    const char *file = dialect_file_name(gguf_path(c->files[0]));
    *known = marked(&(struct gguf_str){file, strlen(file)});
    return *known;
}
