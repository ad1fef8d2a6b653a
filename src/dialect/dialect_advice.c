/* What to get or to do where a file does not run: said once, behind whatever it is refused for. */
#include "dialect/dialect_internal.h"

void dialect_advise(struct canonical *c, enum dialect_advice advice)
{
    if (!c->refused.code) c->advice = advice;
}

void dialect_add_advice(const struct canonical *c, struct err *e)
{
    static const char *const texts[][2] = {
        [ADVICE_OTHER_FILE] = {"; get another file of ", ""},
        [ADVICE_CONVERSION] = {"; that is a fault of its conversion, and downloading it again does not help: get "
                               "another file of ",
                               ""},
        [ADVICE_TYPES] = {"; get another quantisation (Q2_K, UD-Q2_K_XL, IQ2_XXS, Q4_K_M, Q8_0 ...) of ",
                          ", or run this file with the program that it was made for"},
    };
    if (e->code != ERR_MODEL || c->advice == ADVICE_SAID || !c->sources.n) return;
    const struct err why = *e;
    err_clear(e);
    err_set(e, why.code, "%s%s%s, in %s%s", why.msg, texts[c->advice][0], canonical_title(c), c->family->publishers,
            texts[c->advice][1]);
}
