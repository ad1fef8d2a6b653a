/* Tokens of random models. Text in and out works for every byte; words come out as pairs of letters. */
#include "synth_vocabulary.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "base/mem.h"
#include "text/byte_alphabet.h"

enum { N_LETTERS = 26 };

int64_t synth_vocabulary_least(const struct synth_specials *s)
{
    return 256 + s->n + 1; /* no merge, no BPE */
}

int64_t synth_special_id(const struct synth_specials *s, int i, int64_t n_tokens)
{
    if (i < s->n_front || n_tokens == s->published) return s->at[i].id;
    return n_tokens - s->n + i;
}

static void add(struct vocabulary *v, const char *text, size_t n, enum token_type type)
{
    v->types[v->tokens.n] = type;
    text_list_add(&v->tokens, text, n);
}

/* Token of two characters and the merge that makes it. */
static void add_pair(struct vocabulary *v, const char *left, char right)
{
    char merge[8], token[8];
    const int m = snprintf(merge, sizeof merge, "%s %c", left, right),
              t = snprintf(token, sizeof token, "%s%c", left, right);
    add(v, token, (size_t)t, TOKEN_NORMAL);
    text_list_add(&v->merges, merge, (size_t)m);
}

/* Space + letter, then letter + letter, as many as there is room for below end. */
static void add_pairs(struct vocabulary *v, int64_t end)
{
    char space[3] = {0};
    byte_alphabet_text(' ', space);
    for (int i = 0; i < N_LETTERS * (N_LETTERS + 1) && (int64_t)v->tokens.n < end; i++) {
        const char letter[2] = {(char)('a' + i / N_LETTERS - 1), 0};
        add_pair(v, i < N_LETTERS ? space : letter, (char)('a' + i % N_LETTERS));
    }
}

static void add_special(struct vocabulary *v, const struct synth_special *s)
{
    add(v, s->text, strlen(s->text), s->type);
}

static int64_t id_or_none(const struct synth_specials *s, int i, int64_t n_tokens)
{
    return i < 0 ? -1 : synth_special_id(s, i, n_tokens);
}

int synth_words(const struct synth_specials *s, int64_t n_tokens, struct vocabulary *v, struct err *e)
{
    assert(n_tokens >= synth_vocabulary_least(s));
    *v = (struct vocabulary){.bos = id_or_none(s, s->bos, n_tokens),
                             .eos = id_or_none(s, s->eos, n_tokens),
                             .pad = id_or_none(s, s->pad, n_tokens),
                             .pre = s->pre};
    v->types = mem_try((size_t)n_tokens * sizeof *v->types);
    if (!v->types) return err_set(e, ERR_MEMORY, "not enough memory for the vocabulary");
    for (int i = 0; i < s->n_front; i++) add_special(v, &s->at[i]);
    for (int b = 0; b < 256; b++) {
        char text[2];
        add(v, text, byte_alphabet_text((uint8_t)b, text), TOKEN_NORMAL);
    }
    add_pairs(v, synth_special_id(s, s->n_front, n_tokens));
    int next = s->n_front;
    while ((int64_t)v->tokens.n < n_tokens) {
        char unused[40];
        const int64_t id = (int64_t)v->tokens.n;
        if (next < s->n && id == synth_special_id(s, next, n_tokens))
            add_special(v, &s->at[next++]);
        else
            add(v, unused, (size_t)snprintf(unused, sizeof unused, "<unused %" PRId64 ">", id), TOKEN_UNUSED);
    }
    return 0;
}
