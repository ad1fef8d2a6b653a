/* A user's turn as tokens. */
#ifndef TURN_H
#define TURN_H
#include "ds4.h"
#include "options.h"

/* Appends what the user says, in the chat frame, to a history that is empty (then the system text comes first) or ends
 * with an answer. *used: the thinking that was rendered. */
int turn_tokens(const ds4_engine *g, const struct options *o, const char *text, size_t n, struct ds4_tokens *history,
                enum ds4_think *used, struct ds4_error *e);

#endif
