/* How much of a session's history a prompt can go on from. A model samples tokens that the tokenizer would not always
 * choose for the same bytes; where history and prompt spell the same bytes and their borders meet again, the history's
 * own tokens stand for the prompt's, so that an answer which comes back in the next request is never read again. */
#ifndef SERVE_PREFIX_H
#define SERVE_PREFIX_H
#include "serve/served.h"

struct history {
    const int32_t *token;
    const bool *sampled; /* by the model: only such text may stand for a control token of the same spelling */
    int n;
};

struct prefix {
    int reused;   /* tokens of the history that the prompt begins with */
    int from;     /* what follows them: tokens of the prompt from here on */
    bool respelt; /* the history has other tokens for some of the bytes */
};

struct prefix prefix_find(const struct served *m, const struct history *h, const int32_t *prompt, int n);

#endif
