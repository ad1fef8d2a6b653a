#include "turn.h"
#include <string.h>

int turn_tokens(const ds4_engine *g, const struct options *o, const char *text, size_t n, struct ds4_tokens *history,
                enum ds4_think *used, struct ds4_error *e)
{
    struct ds4_message m[2];
    size_t k = 0;
    const bool first = history->n == 0;
    if (first && *o->system)
        m[k++] = (struct ds4_message){.role = DS4_SYSTEM, .text = o->system, .n_text = strlen(o->system)};
    m[k++] = (struct ds4_message){.role = DS4_USER, .text = text, .n_text = n};
    return first ? ds4_chat_tokens(g, m, k, o->sampling.think, o->runtime.ctx, history, used, e)
                 : ds4_chat_next_tokens(g, m, k, o->sampling.think, o->runtime.ctx, history, used, e);
}
