/* A prompt before tokens exist: text and control tokens in turn. What a client says goes in as text and stays text,
 * whatever it spells; control tokens come from the frame alone. So a prompt can be made, shown and compared without a
 * vocabulary, and text between two control tokens is one span for the tokenizer. */
#ifndef TEXT_PROMPT_H
#define TEXT_PROMPT_H
#include <stdbool.h>
#include <stddef.h>
#include "base/err.h"
#include "base/str.h"
#include "text/bpe.h"

struct prompt_codec;

struct prompt_part {
    const char *special; /* spelling of a control token, which lives as long as the program; NULL: text */
    size_t start, n;     /* of text: bytes text.p[start .. start + n), n > 0; neighbours in the list are adjacent */
    bool turn;  /* a turn, of the user's or an answer, starts with this control token: a place to come back to */
    bool apart; /* no span with the text before it (prompt_cut) */
};

struct prompt {
    struct str text; /* all text parts, one after the other; any bytes */
    struct prompt_part *part;
    size_t n, cap;
    bool cut;
}; /* owned by the caller; zero = empty */

void prompt_special(struct prompt *p, const char *special);
void prompt_turn(struct prompt *p, const char *special); /* the same at the start of a turn */
/* Appends text; two texts in a row are one part. n 0 adds nothing. */
void prompt_text(struct prompt *p, const char *bytes, size_t n);
void prompt_puts(struct prompt *p, const char *text);
/* The text that comes next is a part and a span of its own, so that what stands before it does not change its tokens.
 */
void prompt_cut(struct prompt *p);
/* Appends text of our own or of the model, in which the family's spellings are control tokens (the longest one where
 * several start). Never for what a client sent. */
void prompt_marked(struct prompt *p, const char *bytes, size_t n, const struct prompt_codec *codec);
void prompt_append(struct prompt *p, const struct prompt *more);
/* Appends the prompt as text, control tokens as they are spelled. */
void prompt_spell(const struct prompt *p, struct str *out);
/* Appends its ids. at: NULL, or [p->n] receives where in ids each part starts. A control token that the vocabulary
 * lacks is text, one span with its neighbours (its `at` is then where that span starts). 0, or an error of bpe_encode;
 * ids is then as it was. */
int prompt_encode(const struct bpe *b, const struct prompt *p, struct bpe_ids *ids, size_t *at, struct err *e);
void prompt_free(struct prompt *p); /* back to empty */

#endif
