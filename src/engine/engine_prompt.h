/* Prompts of a loaded model, for programs that write them themselves (the server); ds4.h has the simple way. Any thread
 * may call these at any time. */
#ifndef ENGINE_PROMPT_H
#define ENGINE_PROMPT_H
#include "ds4.h"
#include "text/chat.h"
#include "text/prompt.h"

const struct prompt_codec *engine_prompt_codec(const ds4_engine *g);
int engine_prompt_efforts(const ds4_engine *g); /* the model's, for chat_options */
/* Appends the ids of a prompt; at as in prompt_encode. 0 or a negative code; out is then as it was. */
int engine_prompt_encode(const ds4_engine *g, const struct prompt *p, struct ds4_tokens *out, size_t *at,
                         struct ds4_error *e);

#endif
