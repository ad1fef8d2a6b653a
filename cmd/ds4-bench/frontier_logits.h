/* The logits behind a frontier as JSON. */
#ifndef FRONTIER_LOGITS_H
#define FRONTIER_LOGITS_H
#include "bench.h"

/* Writes frontier_NNNNNN.logits.json into --dump-frontier-logits-dir. */
int frontier_logits(const struct bench *b, const ds4_session *s, struct ds4_error *e);

#endif
