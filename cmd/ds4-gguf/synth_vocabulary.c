/* Tokens of random models. Text in and out works for every byte; words come out as pairs of letters. */
#include "synth_vocabulary.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "base/mem.h"
#include "text/byte_alphabet.h"

enum { PUBLISHED_TOKENS = 129280, N_LETTERS = 26, FIRST_BYTE = 3 };

/* Special tokens with their ids in the published vocabulary (spec deepseek-v4 1). */
static const struct special {
    int id;
    const char *text;
} specials[] = {
    {0, "<｜begin▁of▁sentence｜>"}, {1, "<｜end▁of▁sentence｜>"}, {2, "<｜▁pad▁｜>"},
    {128803, "<｜User｜>"},         {128804, "<｜Assistant｜>"},  {128821, "<think>"},
    {128822, "</think>"},           {128825, "｜DSML｜"},         {128828, "<｜latest_reminder｜>"},
    {128829, "<｜action｜>"},       {128830, "<｜query｜>"},      {128831, "<｜authority｜>"},
    {128832, "<｜domain｜>"},       {128836, "<｜title｜>"},      {128844, "<｜extracted_url｜>"},
    {128845, "<｜read_url｜>"},
};
enum { N_SPECIALS = sizeof specials / sizeof specials[0] };

_Static_assert(SYNTH_VOCABULARY_LEAST == 256 + N_SPECIALS + 1, "bytes, special tokens, and a pair: no merge, no BPE");

static int64_t special_id(int i, int64_t n_tokens)
{
    if (i < FIRST_BYTE || n_tokens == PUBLISHED_TOKENS) return specials[i].id;
    return n_tokens - N_SPECIALS + i;
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

int synth_vocabulary(int64_t n_tokens, struct vocabulary *v, struct err *e)
{
    assert(n_tokens >= SYNTH_VOCABULARY_LEAST);
    *v = (struct vocabulary){.bos = 0, .eos = 1, .pad = 2};
    v->types = mem_try((size_t)n_tokens * sizeof *v->types);
    if (!v->types) return err_set(e, ERR_MEMORY, "not enough memory for the vocabulary");
    for (int i = 0; i < FIRST_BYTE; i++) add(v, specials[i].text, strlen(specials[i].text), TOKEN_CONTROL);
    for (int b = 0; b < 256; b++) {
        char text[2];
        add(v, text, byte_alphabet_text((uint8_t)b, text), TOKEN_NORMAL);
    }
    add_pairs(v, special_id(FIRST_BYTE, n_tokens));
    int next = FIRST_BYTE;
    while ((int64_t)v->tokens.n < n_tokens) {
        char unused[40];
        const int64_t id = (int64_t)v->tokens.n;
        if (next < N_SPECIALS && id == special_id(next, n_tokens)) {
            add(v, specials[next].text, strlen(specials[next].text), TOKEN_USER_DEFINED);
            next++;
        } else
            add(v, unused, (size_t)snprintf(unused, sizeof unused, "<unused %" PRId64 ">", id), TOKEN_UNUSED);
    }
    return 0;
}
