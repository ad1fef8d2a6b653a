/* --dump-logits and --dump-logprobs: what the model says behind a prompt, as JSON (spec cli-and-tools 4). */
#ifndef DUMP_JSON_H
#define DUMP_JSON_H
#include "ds4.h"
#include "options.h"

enum { DUMP_TOP_MAX = 128 };

/* Logits after the whole prompt, to o->dump_logits. The session has the beginning of it, or nothing. */
int dump_logits(ds4_engine *g, ds4_session *s, const struct options *o, const struct ds4_tokens *prompt,
                struct ds4_error *e);
/* A greedy continuation of up to o->n_tokens tokens, with the o->logprobs_top_k most probable ones at every step, to
 * o->dump_logprobs. It ends with a stop token, which is the last step then, or where the context does. *t becomes
 * the prompt and what was selected. */
int dump_logprobs(ds4_engine *g, ds4_session *s, const struct options *o, struct ds4_tokens *t, struct ds4_error *e);

#endif
