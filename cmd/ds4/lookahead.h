/* Decoding one token after the other, with guesses: tokens that the model's draft block expects are evaluated along
 * with the one that comes next, and need no step of their own where they do come. What is drawn is the same without. */
#ifndef LOOKAHEAD_H
#define LOOKAHEAD_H
#include "ds4.h"

enum { LOOKAHEAD_MOST = 15 }; /* guesses */

struct lookahead {
    ds4_engine *engine;
    ds4_session *session;
    const struct ds4_sampling *sampling;
    int guesses; /* wanted; 0: plain decoding */
    int n_vocab;
    int32_t row[1 + LOOKAHEAD_MOST]; /* evaluated behind the session's history, if n > 0 */
    int n, at;                       /* rows; the last one that is a part of the answer */
    float *logits;                   /* [1 + guesses][n_vocab] of the rows */
};

/* Borrows all of it until lookahead_end. The session has logits. */
void lookahead_begin(struct lookahead *l, ds4_engine *g, ds4_session *s, const struct ds4_sampling *p, int guesses);
/* The history with what was drawn since, and the logits behind it. */
int lookahead_length(const struct lookahead *l);
const float *lookahead_logits(const struct lookahead *l);
/* The next token is id. */
int lookahead_next(struct lookahead *l, int32_t id, struct ds4_error *e);
/* Makes what was drawn the session's history. rc: of what ended it; an error of the end itself is returned instead of
 * 0. */
int lookahead_end(struct lookahead *l, int rc, struct ds4_error *e);

#endif
