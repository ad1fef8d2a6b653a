/* One answer: prefill with progress, then tokens until a stop, the limit, the context's end or an interrupt. */
#ifndef GENERATE_H
#define GENERATE_H
#include "ds4.h"
#include "options.h"

struct generate_result {
    int prefilled, generated;
    int steps; /* tokens evaluated one by one: the last ones generated need none */
    double prefill_s, generate_s;
};

/* From now on SIGINT ends generate_answer, at the next token or layer of the prompt, and not the program. Where it is
 * ignored it stays so. */
void generate_catch_interrupts(void);
/* Whether one arrived since the last reset. */
bool generate_interrupted(void);
void generate_reset_interrupt(void);
/* Extends *history (the tokens that the session is synced to) by what is generated, the stop token not included. */
int generate_answer(ds4_engine *g, ds4_session *s, const struct options *o, bool thinking, struct ds4_tokens *history,
                    struct generate_result *r, struct ds4_error *e);
/* "prefill: X t/s, generation: Y t/s" on stderr: tokens evaluated over the time that took; 0 where there were none. */
void generate_print_speed(const struct generate_result *r);

#endif
