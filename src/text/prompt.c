/* Parts of a prompt, and what they are as text and as ids. */
#include "text/prompt.h"
#include <string.h>
#include "base/mem.h"
#include "text/chat.h"

/* ------------------------------------------------------------------------------------------------ writing */

static struct prompt_part *part_add(struct prompt *p)
{
    if (p->n == p->cap) {
        p->cap = p->cap ? 2 * p->cap : 32;
        p->part = mem_grow(p->part, p->cap * sizeof *p->part);
    }
    struct prompt_part *const part = &p->part[p->n++];
    *part = (struct prompt_part){.start = p->text.n, .apart = p->cut};
    p->cut = false;
    return part;
}

void prompt_special(struct prompt *p, const char *special)
{
    part_add(p)->special = special;
}

void prompt_turn(struct prompt *p, const char *special)
{
    struct prompt_part *const part = part_add(p);
    part->special = special;
    part->turn = true;
}

void prompt_text(struct prompt *p, const char *bytes, size_t n)
{
    if (n == 0) return;
    struct prompt_part *part = p->n > 0 ? &p->part[p->n - 1] : NULL;
    if (!part || part->special || p->cut) part = part_add(p);
    str_add(&p->text, bytes, n);
    part->n += n;
}

void prompt_puts(struct prompt *p, const char *text)
{
    prompt_text(p, text, strlen(text));
}

void prompt_cut(struct prompt *p)
{
    p->cut = true;
}

/* The longest spelling that starts at text; NULL: none. */
static const char *special_at(const struct prompt_codec *codec, const char *text, size_t n)
{
    const char *best = NULL;
    size_t n_best = 0;
    for (size_t i = 0; i < codec->n_specials; i++) {
        const char *const s = codec->specials[i];
        if (*s != *text) continue;
        const size_t length = strlen(s);
        if (length > n_best && length <= n && memcmp(s, text, length) == 0) {
            best = s;
            n_best = length;
        }
    }
    return best;
}

void prompt_marked(struct prompt *p, const char *bytes, size_t n, const struct prompt_codec *codec)
{
    size_t from = 0, at = 0;
    while (at < n) {
        const char *const special = special_at(codec, bytes + at, n - at);
        if (!special) {
            at++;
            continue;
        }
        prompt_text(p, bytes + from, at - from);
        prompt_special(p, special);
        from = at += strlen(special);
    }
    prompt_text(p, bytes + from, n - from);
}

void prompt_append(struct prompt *p, const struct prompt *more)
{
    for (const struct prompt_part *part = more->part; part < more->part + more->n; part++) {
        if (part->apart) prompt_cut(p);
        if (!part->special)
            prompt_text(p, more->text.p + part->start, part->n);
        else if (part->turn)
            prompt_turn(p, part->special);
        else
            prompt_special(p, part->special);
    }
}

void prompt_free(struct prompt *p)
{
    str_free(&p->text);
    mem_free(p->part);
    *p = (struct prompt){0};
}

/* ------------------------------------------------------------------------------------------------ reading */

static void part_spell(const struct prompt *p, const struct prompt_part *part, struct str *out)
{
    if (part->special)
        str_puts(out, part->special);
    else
        str_add(out, p->text.p + part->start, part->n);
}

void prompt_spell(const struct prompt *p, struct str *out)
{
    for (size_t i = 0; i < p->n; i++) part_spell(p, &p->part[i], out);
}

/* The parts from i on that are one span for the tokenizer: text, and control tokens without an id. Returns the index
 * behind them. */
static size_t span_end(const struct bpe *b, const struct prompt *p, size_t i)
{
    const size_t from = i;
    while (i < p->n && (!p->part[i].special || bpe_special(b, p->part[i].special) < 0) &&
           (i == from || !p->part[i].apart))
        i++;
    return i;
}

static int span_encode(const struct bpe *b, const struct prompt *p, size_t from, size_t to, struct bpe_ids *ids,
                       struct err *e)
{
    if (to == from + 1 && !p->part[from].special)
        return bpe_encode(b, p->text.p + p->part[from].start, p->part[from].n, ids, e);
    struct str text = {0};
    for (size_t i = from; i < to; i++) part_spell(p, &p->part[i], &text);
    const int rc = bpe_encode(b, text.p, text.n, ids, e);
    str_free(&text);
    return rc;
}

int prompt_encode(const struct bpe *b, const struct prompt *p, struct bpe_ids *ids, size_t *at, struct err *e)
{
    const size_t n_before = ids->n;
    for (size_t i = 0; i < p->n;) {
        const size_t end = span_end(b, p, i), start = ids->n;
        if (end > i) {
            const int rc = span_encode(b, p, i, end, ids, e);
            if (rc != 0) {
                ids->n = n_before;
                return rc;
            }
            for (; i < end; i++)
                if (at) at[i] = start;
        } else {
            bpe_ids_add(ids, bpe_special(b, p->part[i].special));
            if (at) at[i] = start;
            i++;
        }
    }
    return 0;
}
