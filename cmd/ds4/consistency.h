/* --decode-consistency: tokens computed one by one against the same tokens as one prompt (spec cli-and-tools 4). */
#ifndef CONSISTENCY_H
#define CONSISTENCY_H
#include "ds4.h"
#include "options.h"

/* Prints o->decode_consistency greedy steps behind the prompt, which *t grows by, in the session, which has the
 * beginning of *t or nothing, and how the logits behind them differ from those of a fresh session that gets everything
 * at once. An error if the most probable tokens differ. */
int consistency_run(ds4_engine *g, ds4_session *s, const struct options *o, struct ds4_tokens *t, struct ds4_error *e);

#endif
