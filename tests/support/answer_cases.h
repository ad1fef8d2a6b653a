/* What models say, and what must come of it: for every kind of answer, of fault and of repair one text. */
#ifndef SUPPORT_ANSWER_CASES_H
#define SUPPORT_ANSWER_CASES_H
#include <stdbool.h>
#include <stddef.h>
#include "text/answer.h"

struct answer_case {
    const char *name;
    const struct answer_syntax *syntax;
    bool thinking, one_call, no_tools;
    enum answer_cause cause;
    const char *text;
    const char *want;  /* as answer_run writes it */
    const char *block; /* what answer_block must be, NULL: not looked at */
};

extern const struct answer_case answer_cases[];
extern const size_t answer_n_cases;

#endif
