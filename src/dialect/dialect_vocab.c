/* The vocabulary of a file, as far as it can be checked without knowing what it is for (spec dialects 12), and the
 * checkpoint's mapping of reasoning effort (6.3). */
#include "dialect/dialect_internal.h"
#include <string.h>
#include "text/bpe.h"

#define TOK "tokenizer.ggml."

static int take_strings(const struct canonical *c, const char *key, const struct gguf_kv **out, struct err *e)
{
    const struct gguf_kv *kv = *out = gguf_set_kv_find(c->set, key);
    char kind[32];
    if (!kv) return err_set(e, ERR_MODEL, "no tokenizer in this file: %s is missing", key);
    if (kv->type != GGUF_ARRAY || kv->elem != GGUF_STRING)
        return err_set(e, ERR_MODEL, "%s is %s; an array of strings is needed", key, gguf_kind(kv, kind));
    return kv->count ? 0 : err_set(e, ERR_MODEL, "%s is empty; at least one string is needed", key);
}

/* What says something of every token has an entry for each; what it says is not used. */
static int check_per_token(const struct canonical *c, const char *key, struct err *e)
{
    const struct gguf_kv *kv = gguf_set_kv_find(c->set, key);
    char kind[32];
    if (!kv) return 0;
    if (kv->type != GGUF_ARRAY || kv->elem == GGUF_STRING)
        return err_set(e, ERR_MODEL, "%s is %s; an array of numbers is needed", key, gguf_kind(kv, kind));
    if (kv->count == c->tokens->count) return 0;
    return err_set(e, ERR_MODEL, "%s has %llu entries for %llu tokens; as many are needed", key,
                   (unsigned long long)kv->count, (unsigned long long)c->tokens->count);
}

static int check_merges(const struct canonical *c, struct err *e)
{
    struct gguf_str s = {NULL, 0};
    for (uint64_t i = 0; i < c->merges->count; i++) {
        if (gguf_string(c->merges, i, &s, e)) return e->code;
        if (!bpe_is_merge(s.p, (size_t)s.n))
            return err_set(e, ERR_MODEL, TOK "merges[%llu] is \"%.*s\"; two texts with a space between are needed",
                           (unsigned long long)i, (int)(s.n < 80 ? s.n : 80), s.p);
    }
    return 0;
}

/* Special tokens are found by text; an id that names another one, or none, is worth a word. */
static int compare_id(struct canonical *c, const char *key, const char *text, struct err *e)
{
    const struct gguf_kv *kv = gguf_set_kv_find(c->set, key);
    int64_t id;
    struct gguf_str s = {NULL, 0};
    if (!kv || !text) return 0;
    if (kv->type == GGUF_ARRAY) return err_set(e, ERR_MODEL, "%s is an array; one value is needed", key);
    if (gguf_i64(kv, 0, &id, e)) return e->code;
    const bool there = id >= 0 && (uint64_t)id < c->tokens->count;
    if (!there || gguf_string(c->tokens, (uint64_t)id, &s, NULL) || !dialect_is(&s, text))
        dialect_warn(c, "W9", "%s is %lld, which is not %s: the text decides", key, (long long)id, text);
    return 0;
}

static void compare_pre(struct canonical *c)
{
    const struct gguf_kv *kv = gguf_set_kv_find(c->set, "tokenizer.ggml.pre");
    struct gguf_str s;
    if (!dialect_text(kv, &s)) return;
    for (int i = 0; i < 3 && c->family->pre[i]; i++)
        if (dialect_text_is(kv, c->family->pre[i])) return;
    dialect_warn(c, "W9", "tokenizer.ggml.pre is \"%.*s\": using %s, as %s always does", (int)(s.n < 60 ? s.n : 60),
                 s.p, c->family->pre[0], c->family->name);
}

static int check_model(const struct canonical *c, struct err *e)
{
    const struct gguf_kv *kv = gguf_set_kv_find(c->set, TOK "model");
    struct gguf_str s;
    char kind[32];
    if (!kv || dialect_text_is(kv, "gpt2")) return 0;
    if (!dialect_text(kv, &s)) return err_set(e, ERR_MODEL, TOK "model is %s; a string is needed", gguf_kind(kv, kind));
    return err_set(e, ERR_MODEL, TOK "model = %.*s is not supported (only gpt2)", (int)(s.n < 60 ? s.n : 60), s.p);
}

/* A missing embedding, which tells how long they may be, is told elsewhere. */
static int check_tokens(struct canonical *c, struct err *e)
{
    const uint64_t rows = (uint64_t)canonical_int(c, "vocab_size");
    if (c->tokens->count <= rows || !dialect_find(c, -1, "token_embd")) return 0;
    dialect_advise(c, ADVICE_CONVERSION);
    return err_set(e, ERR_MODEL,
                   "the tokenizer has %llu tokens but the model knows %llu: tokens were added to it and not to the "
                   "model (" TOK "tokens, token_embd.weight: %llu embedding rows)",
                   (unsigned long long)c->tokens->count, (unsigned long long)rows, (unsigned long long)rows);
}

int dialect_check_vocabulary(struct canonical *c, struct err *e)
{
    int rc = take_strings(c, TOK "tokens", &c->tokens, e);
    if (rc == 0) rc = take_strings(c, TOK "merges", &c->merges, e);
    if (rc == 0) rc = check_model(c, e);
    if (rc == 0) rc = check_tokens(c, e);
    if (rc == 0) rc = check_per_token(c, TOK "token_type", e);
    if (rc == 0) rc = check_per_token(c, TOK "scores", e);
    if (rc == 0) rc = check_merges(c, e);
    if (rc == 0) rc = compare_id(c, TOK "bos_token_id", c->family->bos, e);
    if (rc == 0) rc = compare_id(c, TOK "eos_token_id", c->family->eos, e);
    if (rc == 0) compare_pre(c);
    return rc;
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
