/* A user's turn as tokens. */
#ifndef TURN_H
#define TURN_H
#include "ds4.h"
#include "options.h"

/* Appends what the user says, in the chat frame, to a history that is empty (then the system text comes first) or ends
 * with an answer. Where the way of thinking puts a text behind the first token of a chat (think max does) it is put
 * there, and another one's taken away. *used: the thinking that was rendered. After an error the history is as before.
 */
int turn_tokens(const ds4_engine *g, const struct options *o, const char *text, size_t n, struct ds4_tokens *history,
                enum ds4_think *used, struct ds4_error *e);
/* The thinking that a turn would use: o->sampling.think, or less where the context is too small. */
enum ds4_think turn_thinking(const ds4_engine *g, const struct options *o);

#endif
