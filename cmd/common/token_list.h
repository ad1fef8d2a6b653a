/* Lists of token ids, and the token that is not left to chance. */
#ifndef TOKEN_LIST_H
#define TOKEN_LIST_H
#include "ds4.h"

void token_list_add(struct ds4_tokens *t, int32_t id);
/* Bytes of the longest token: a text of n times as many has more than n tokens. */
size_t token_longest(const ds4_engine *g);
/* The most probable token, the lowest id on ties. */
int32_t token_greedy(const float *logits, int n_vocab);

#endif
