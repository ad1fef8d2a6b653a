/* Vocabulary, merges and special tokens made from the texts of a model file, and encoding with them. */
#include "text/bpe.h"
#include <string.h>
#include "base/mem.h"
#include "base/strmap.h"
#include "text/bpe_cache.h"
#include "text/bpe_merge.h"
#include "text/byte_alphabet.h"

struct special {
    int32_t id;
    const char *text; /* the caller's */
    size_t n;
};

struct bpe {
    struct presplit *split;
    struct merge_table *merges;
    size_t n_tokens, n_idle; /* n_idle: merges that are ignored */
    char *bytes;             /* the bytes of all tokens, one after the other */
    size_t *at;              /* [n_tokens + 1]: where the bytes of a token start */
    struct special *special; /* longest text first */
    size_t n_special;
    bool starts_special[256]; /* first bytes of special tokens */
    int32_t byte_id[256];     /* token of each single byte; -1: none */
};

/* ------------------------------------------------------------------------------------------------ lists of ids */

static size_t ids_grown(const struct bpe_ids *ids, size_t more)
{
    const size_t twice = ids->cap < 32 ? 64 : 2 * ids->cap;
    return ids->n + more > twice ? ids->n + more : twice;
}

void bpe_ids_add(struct bpe_ids *ids, int32_t id)
{
    if (ids->n == ids->cap) {
        ids->cap = ids_grown(ids, 1);
        ids->p = mem_grow(ids->p, ids->cap * sizeof *ids->p);
    }
    ids->p[ids->n++] = id;
}

void bpe_ids_free(struct bpe_ids *ids)
{
    mem_free(ids->p);
    *ids = (struct bpe_ids){0};
}

/* Room for `more` ids, whose number comes from a text of any size. */
static int ids_room(struct bpe_ids *ids, size_t more, struct err *e)
{
    if (ids->cap - ids->n >= more) return 0;
    const size_t cap = ids_grown(ids, more);
    int32_t *p = mem_try(cap * sizeof *p);
    if (!p) return err_set(e, ERR_MEMORY, "tokenizer: no memory for %zu token ids", cap);
    if (ids->n > 0) memcpy(p, ids->p, ids->n * sizeof *p);
    mem_free(ids->p);
    ids->p = p;
    ids->cap = cap;
    return 0;
}

/* ------------------------------------------------------------------------------------------------ creation */

static int out_of_memory(struct err *e)
{
    return err_set(e, ERR_MEMORY, "tokenizer: no memory for the vocabulary");
}

static bool text_id(const struct strmap *by_text, const char *text, size_t n, int32_t *id)
{
    uint64_t value;
    if (!strmap_get(by_text, text, n, &value)) return false;
    *id = (int32_t)value;
    return true;
}

static int texts_index(const struct bpe_text *tokens, size_t n_tokens, struct strmap **out, struct err *e)
{
    if (n_tokens >= INT32_MAX) return err_set(e, ERR_MODEL, "tokenizer: %zu tokens are too many", n_tokens);
    *out = strmap_new(n_tokens);
    if (!*out) return out_of_memory(e);
    for (size_t i = 0; i < n_tokens; i++)
        if (strmap_put(*out, tokens[i].p, tokens[i].n, i) < 0) return out_of_memory(e);
    return 0;
}

/* Longer texts first: a search then finds the longest one. */
static void special_enter(struct bpe *b, int32_t id, const struct bpe_text *text)
{
    size_t i = b->n_special++;
    for (; i > 0 && b->special[i - 1].n < text->n; i--) b->special[i] = b->special[i - 1];
    b->special[i] = (struct special){.id = id, .text = text->p, .n = text->n};
    b->starts_special[(unsigned char)text->p[0]] = true;
}

static void specials_find(struct bpe *b, const struct strmap *by_text, const struct bpe_text *tokens,
                          const char *const *specials, size_t n_specials)
{
    b->special = mem_alloc((n_specials + 1) * sizeof *b->special);
    for (size_t i = 0; i < n_specials; i++) {
        int32_t id;
        const size_t n = strlen(specials[i]);
        if (n > 0 && text_id(by_text, specials[i], n, &id) && !bpe_is_special(b, id)) special_enter(b, id, &tokens[id]);
    }
}

/* Turns token texts into bytes. Literal are special tokens and texts with a character outside the
 * alphabet. */
static int bytes_decode(struct bpe *b, const struct bpe_text *tokens, size_t n_tokens, struct err *e)
{
    uint64_t total = 1;
    bool fits = true;
    for (size_t i = 0; fits && i < n_tokens; i++) fits = u64_add(total, tokens[i].n, &total) && total <= SIZE_MAX;
    if (!fits) return out_of_memory(e);
    b->bytes = mem_try((size_t)total);
    b->at = mem_try((n_tokens + 1) * sizeof *b->at);
    if (!b->bytes || !b->at) return out_of_memory(e);
    b->n_tokens = n_tokens;
    size_t at = 0;
    for (size_t i = 0; i < n_tokens; i++) {
        b->at[i] = at;
        const bool literal = bpe_is_special(b, (int32_t)i);
        const ptrdiff_t n = literal ? -1 : byte_alphabet_bytes(tokens[i].p, tokens[i].n, b->bytes + at);
        if (n < 0) memcpy(b->bytes + at, tokens[i].p, tokens[i].n);
        at += n < 0 ? tokens[i].n : (size_t)n;
    }
    b->at[n_tokens] = at;
    return 0;
}

static void byte_tokens_find(struct bpe *b, const struct strmap *by_text)
{
    for (int byte = 0; byte < 256; byte++) {
        char text[2];
        const size_t n = byte_alphabet_text((uint8_t)byte, text);
        if (!text_id(by_text, text, n, &b->byte_id[byte]) || bpe_is_special(b, b->byte_id[byte])) b->byte_id[byte] = -1;
    }
}

/* The space between two texts; NULL: it is not. */
static const char *space_of(const char *merge, size_t n)
{
    return n > 2 ? memchr(merge + 1, ' ', n - 2) : NULL;
}

bool bpe_is_merge(const char *text, size_t n)
{
    return space_of(text, n) != NULL;
}

/* "left right" -> the rule. Looks the joined text up in buffer, which has room for it. A rule that would make a special
 * token is left out: text must never become one. So is one that names texts that the vocabulary lacks (cut vocabularies
 * keep the full list): it could never apply. */
static int merge_enter(struct bpe *b, const struct strmap *by_text, const struct bpe_text *merge, uint32_t rank,
                       char *buffer, struct err *e)
{
    const char *const space = space_of(merge->p, merge->n);
    const size_t n_left = space ? (size_t)(space - merge->p) : 0;
    const size_t n_right = space ? merge->n - n_left - 1 : 0;
    int32_t left = -1, right = -1, joined = -1;
    if (!space)
        return err_set(e, ERR_MODEL,
                       "tokenizer: merge %u \"%.*s\" is not two texts with a space between; the vocabulary of the "
                       "model file is damaged",
                       rank, (int)(merge->n < 80 ? merge->n : 80), merge->p);
    memcpy(buffer, merge->p, n_left);
    memcpy(buffer + n_left, space + 1, n_right);
    const bool known = text_id(by_text, merge->p, n_left, &left) && text_id(by_text, space + 1, n_right, &right) &&
                       text_id(by_text, buffer, n_left + n_right, &joined);
    b->n_idle += !known;
    if (known && !bpe_is_special(b, joined)) merge_table_put(b->merges, left, right, rank, joined);
    return 0;
}

static int merges_read(struct bpe *b, const struct strmap *by_text, const struct bpe_text *merges, size_t n_merges,
                       struct err *e)
{
    if (n_merges >= UINT32_MAX) return err_set(e, ERR_MODEL, "tokenizer: %zu merges are too many", n_merges);
    size_t longest = 1;
    for (size_t i = 0; i < n_merges; i++)
        if (merges[i].n > longest) longest = merges[i].n;
    char *buffer = mem_try(longest);
    b->merges = merge_table_new(n_merges);
    int rc = buffer && b->merges ? 0 : out_of_memory(e);
    for (size_t i = 0; rc == 0 && i < n_merges; i++) rc = merge_enter(b, by_text, &merges[i], (uint32_t)i, buffer, e);
    mem_free(buffer);
    return rc;
}

int bpe_create(const struct bpe_text *tokens, size_t n_tokens, const struct bpe_text *merges, size_t n_merges,
               const char *const *specials, size_t n_specials, enum pretokenizer pre,
               int (*check)(const struct bpe *b, struct err *e), struct bpe **out, struct err *e)
{
    *out = NULL;
    struct bpe *b = mem_alloc(sizeof *b);
    struct strmap *by_text = NULL;
    int rc = texts_index(tokens, n_tokens, &by_text, e);
    if (rc == 0) {
        specials_find(b, by_text, tokens, specials, n_specials);
        byte_tokens_find(b, by_text);
    }
    if (rc == 0 && check) rc = check(b, e);
    if (rc == 0) rc = bytes_decode(b, tokens, n_tokens, e);
    if (rc == 0) rc = merges_read(b, by_text, merges, n_merges, e);
    if (rc == 0) rc = presplit_create(pre, &b->split, e);
    strmap_free(by_text);
    if (rc != 0) {
        bpe_free(b);
        return rc;
    }
    *out = b;
    return 0;
}

void bpe_free(struct bpe *b)
{
    if (!b) return;
    presplit_free(b->split);
    merge_table_free(b->merges);
    mem_free(b->bytes);
    mem_free(b->at);
    mem_free(b->special);
    mem_free(b);
}

/* ------------------------------------------------------------------------------------------------ encoding */

enum { CACHE_FROM = 4096 }; /* bytes of a text that may repeat its words often enough */

struct encoder {
    const struct bpe *b;
    struct bpe_ids *ids;
    struct merge_work work;
    struct piece_cache *cache; /* or NULL */
};

/* Appends the ids of a piece; *left is their number. */
static int merge_piece(struct encoder *enc, const char *piece, size_t n, size_t *left, struct err *e)
{
    int rc = ids_room(enc->ids, n, e);
    if (rc != 0) return rc;
    int32_t *const ids = enc->ids->p + enc->ids->n;
    for (size_t i = 0; i < n; i++) {
        ids[i] = enc->b->byte_id[(unsigned char)piece[i]];
        if (ids[i] < 0)
            return err_set(e, ERR_MODEL, "tokenizer: the vocabulary has no token for byte 0x%02x",
                           (unsigned)(unsigned char)piece[i]);
    }
    *left = n;
    rc = merge_run(enc->b->merges, &enc->work, ids, left, e);
    if (rc == 0) enc->ids->n += *left;
    return rc;
}

static int encode_piece(void *arg, const char *piece, size_t n, struct err *e)
{
    struct encoder *const enc = arg;
    size_t left;
    if (!enc->cache || n > PIECE_CACHE_BYTES) return merge_piece(enc, piece, n, &left, e);
    struct piece_slot *const s = piece_cache_find(enc->cache, piece, n);
    int rc = 0;
    if (s->n_ids > 0) {
        rc = ids_room(enc->ids, s->n_ids, e);
        if (rc != 0) return rc;
        memcpy(enc->ids->p + enc->ids->n, s->ids, s->n_ids * sizeof *s->ids);
        enc->ids->n += s->n_ids;
        return 0;
    }
    rc = merge_piece(enc, piece, n, &left, e);
    if (rc == 0 && left <= PIECE_CACHE_IDS) {
        memcpy(s->ids, enc->ids->p + enc->ids->n - left, left * sizeof *s->ids);
        s->n_ids = (uint8_t)left;
    }
    return rc;
}

/* The special token that starts at text; NULL: none. */
static const struct special *special_at(const struct bpe *b, const char *text, size_t n)
{
    if (!b->starts_special[(unsigned char)text[0]]) return NULL;
    for (const struct special *s = b->special; s < b->special + b->n_special; s++)
        if (s->n <= n && memcmp(s->text, text, s->n) == 0) return s;
    return NULL;
}

static int encode_spans(struct encoder *enc, const char *text, size_t n, struct err *e)
{
    int rc = 0;
    size_t from = 0, at = 0;
    while (rc == 0 && at < n) {
        const struct special *const s = special_at(enc->b, text + at, n - at);
        if (!s) {
            at++;
            continue;
        }
        rc = presplit_run(enc->b->split, text + from, at - from, encode_piece, enc, e);
        if (rc == 0) rc = ids_room(enc->ids, 1, e);
        if (rc == 0) bpe_ids_add(enc->ids, s->id);
        from = at += s->n;
    }
    return rc != 0 ? rc : presplit_run(enc->b->split, text + from, n - from, encode_piece, enc, e);
}

static int encode(const struct bpe *b, const char *text, size_t n, bool rendered, struct bpe_ids *ids, struct err *e)
{
    struct encoder enc = {.b = b, .ids = ids, .cache = n >= CACHE_FROM ? piece_cache_new() : NULL};
    const size_t before = ids->n;
    const int rc = rendered ? encode_spans(&enc, text, n, e) : presplit_run(b->split, text, n, encode_piece, &enc, e);
    merge_work_free(&enc.work);
    piece_cache_free(enc.cache);
    if (rc != 0) ids->n = before;
    return rc;
}

int bpe_encode(const struct bpe *b, const char *text, size_t n, struct bpe_ids *ids, struct err *e)
{
    return encode(b, text, n, false, ids, e);
}

int bpe_encode_rendered(const struct bpe *b, const char *text, size_t n, struct bpe_ids *ids, struct err *e)
{
    return encode(b, text, n, true, ids, e);
}

/* ------------------------------------------------------------------------------------------------ questions */

int32_t bpe_special(const struct bpe *b, const char *text)
{
    const size_t n = strlen(text);
    for (const struct special *s = b->special; s < b->special + b->n_special; s++)
        if (s->n == n && memcmp(s->text, text, n) == 0) return s->id;
    return -1;
}

bool bpe_is_special(const struct bpe *b, int32_t id)
{
    for (const struct special *s = b->special; s < b->special + b->n_special; s++)
        if (s->id == id) return true;
    return false;
}

size_t bpe_n_tokens(const struct bpe *b)
{
    return b->n_tokens;
}

size_t bpe_n_idle_merges(const struct bpe *b)
{
    return b->n_idle;
}

size_t bpe_token_bytes(const struct bpe *b, int32_t id, const char **bytes)
{
    if (id < 0 || (size_t)id >= b->n_tokens) {
        *bytes = "";
        return 0;
    }
    *bytes = b->bytes + b->at[id];
    return b->at[id + 1] - b->at[id];
}
