/* The conversation on a terminal: one line a turn, until the end of input. */
#ifndef TALK_H
#define TALK_H
#include "ds4.h"
#include "options.h"

int talk_run(ds4_engine *g, const struct options *o, struct ds4_error *e);

#endif
