/* The conversation on a terminal: one line a turn, until the end of input. */
#ifndef CHAT_H
#define CHAT_H
#include "ds4.h"
#include "options.h"

int chat_run(ds4_engine *g, const struct options *o, struct ds4_error *e);

#endif
