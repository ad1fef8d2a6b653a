/* --perplexity-file: how probable the model finds a text (spec cli-and-tools 4). */
#ifndef PERPLEXITY_H
#define PERPLEXITY_H
#include "ds4.h"
#include "options.h"

/* The file's text as plain tokens: the first 32 are context, each of the next ones (to o->n_tokens and the context's
 * end) is scored by its log-probability behind those before it. One line on standard output:
 * "tokens=... scored=... nll=... avg_nll=... ppl=...", where tokens are those of the file. */
int perplexity_run(ds4_engine *g, const struct options *o, struct ds4_error *e);

#endif
