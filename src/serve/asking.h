/* From a parsed request to the prompt and tokens that the scheduler queues. */
#ifndef SERVE_ASKING_H
#define SERVE_ASKING_H
#include "serve/scheduler.h"

/* Renders a request: calls that this server made come back as they were sampled, the rest in the family's way. Takes
 * the request over, also on error. who: copied, for the log. 0; or negative with *why (400: a conversation that the
 * family cannot write). Any thread. */
int asking_prepare(const struct served *m, struct tool_memory *memory, int ctx, struct request *request,
                   const char *who, struct ask *out, struct api_error *why);
/* 0; or negative with *why (400: the prompt leaves no room for a token of the answer). */
int asking_check_fits(const struct ask *a, int ctx, struct api_error *why);

#endif
