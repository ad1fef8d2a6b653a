/* The lists of texts that bpe_create wants, made from a few strings. */
#include "byte_vocabulary.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "text/byte_alphabet.h"

struct byte_vocabulary {
    struct bpe *bpe;
    char **text; /* [n]: the texts of the tokens */
    size_t n;
};

const struct bpe *byte_vocabulary_bpe(const struct byte_vocabulary *v)
{
    return v->bpe;
}

static void token_add(struct byte_vocabulary *v, const char *left, size_t n_left, const char *right)
{
    char *text = mem_alloc(n_left + strlen(right) + 1);
    memcpy(text, left, n_left);
    memcpy(text + n_left, right, strlen(right));
    v->text[v->n++] = text;
}

struct byte_vocabulary *byte_vocabulary_split(enum pretokenizer pre, const char *const *merges, size_t n_merges,
                                              const char *const *specials, size_t n_specials)
{
    struct byte_vocabulary *v = mem_alloc(sizeof *v);
    v->text = mem_alloc((256 + n_merges + n_specials) * sizeof *v->text);
    for (int byte = 0; byte < 256; byte++) {
        char text[2];
        token_add(v, text, byte_alphabet_text((uint8_t)byte, text), "");
    }
    for (size_t i = 0; i < n_merges; i++) {
        const char *const space = strchr(merges[i], ' ');
        token_add(v, merges[i], (size_t)(space - merges[i]), space + 1);
    }
    for (size_t i = 0; i < n_specials; i++) token_add(v, specials[i], strlen(specials[i]), "");

    struct bpe_text *tokens = mem_alloc(v->n * sizeof *tokens);
    struct bpe_text *rules = mem_alloc((n_merges + 1) * sizeof *rules);
    for (size_t i = 0; i < v->n; i++) tokens[i] = (struct bpe_text){v->text[i], strlen(v->text[i])};
    for (size_t i = 0; i < n_merges; i++) rules[i] = (struct bpe_text){merges[i], strlen(merges[i])};
    struct err e = {0};
    if (bpe_create(tokens, v->n, rules, n_merges, specials, n_specials, pre, NULL, &v->bpe, &e) != 0) {
        fprintf(stderr, "byte_vocabulary: %s\n", e.msg);
        exit(2);
    }
    mem_free(rules);
    mem_free(tokens);
    return v;
}

struct byte_vocabulary *byte_vocabulary_new(const char *const *merges, size_t n_merges, const char *const *specials,
                                            size_t n_specials)
{
    return byte_vocabulary_split(PRETOKENIZER_JOYAI, merges, n_merges, specials, n_specials);
}

void byte_vocabulary_free(struct byte_vocabulary *v)
{
    if (!v) return;
    bpe_free(v->bpe);
    for (size_t i = 0; i < v->n; i++) mem_free(v->text[i]);
    mem_free(v->text);
    mem_free(v);
}
