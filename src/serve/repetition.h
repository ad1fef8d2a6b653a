/* Notices that a model has begun to say the same over and over: every token equals the one `period` tokens before it,
 * for longer than anybody would want. */
#ifndef SERVE_REPETITION_H
#define SERVE_REPETITION_H
#include <stdint.h>

enum {
    REPETITION_PERIODS = 64, /* tokens of the longest sequence that is looked for */
    REPETITION_TOKENS = 1024 /* so many that follow a sequence and repeat it are still an answer */
};

/* Zero-initialised = nothing said yet. */
struct repetition {
    int32_t last[REPETITION_PERIODS];
    int run[REPETITION_PERIODS]; /* [p - 1]: so many tokens up to now equal those p before them */
    uint64_t n;
};

/* The next token. The period of what has been repeated for more than REPETITION_TOKENS tokens, or 0. */
int repetition_add(struct repetition *r, int32_t token);

#endif
