/* One answer: prefill with progress, then tokens until a stop, the limit, the context's end or an interrupt. */
#ifndef GENERATE_H
#define GENERATE_H
#include "ds4.h"
#include "options.h"

enum generate_end { GENERATE_DONE, GENERATE_LIMIT, GENERATE_FULL, GENERATE_INTERRUPTED };

struct generate_result {
    int prefilled, generated;
    int steps; /* tokens evaluated one by one: the last ones generated need none */
    double prefill_s, generate_s;
    enum generate_end end; /* why there are no more: the model stopped, -n, the context is full, SIGINT */
};

/* Makes the session's history these tokens, showing how far it is; an interrupt (terminal.h) is DS4_E_CANCELLED. */
int generate_prefill(ds4_session *s, const int32_t *tokens, int n, struct ds4_sync_info *info, struct ds4_error *e);
/* Extends *history (the tokens that the session is synced to) by what is generated, the stop token not included. An
 * interrupt, from the last terminal_forget_interrupt on, ends it at the next token or layer of the prompt. */
int generate_answer(ds4_engine *g, ds4_session *s, const struct options *o, bool thinking, struct ds4_tokens *history,
                    struct generate_result *r, struct ds4_error *e);
/* "prefill: X t/s, generation: Y t/s" without a line end on standard error: tokens evaluated over the time that took; 0
 * where there were none. */
void generate_print_speed(const struct generate_result *r);

#endif
