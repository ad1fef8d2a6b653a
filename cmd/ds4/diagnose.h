/* --dump-tokens, --token-ids and --logits-out: what tests and bug reports need to see. */
#ifndef DIAGNOSE_H
#define DIAGNOSE_H
#include "ds4.h"

/* "[id, id, ...]", then one line per token. */
void diagnose_tokens(const ds4_engine *g, const struct ds4_tokens *t);
/* "0,5,6" -> ids below n_vocab. */
int diagnose_ids(const char *list, int n_vocab, struct ds4_tokens *out, struct ds4_error *e);
/* Evaluates the tokens behind the session's first `before` one after the other and writes the logits behind each:
 * float32 [n - before][n_vocab]; where there are none, those behind the session's last one. */
int diagnose_logits(ds4_engine *g, ds4_session *s, const struct ds4_tokens *t, size_t before, const char *path,
                    struct ds4_error *e);

#endif
