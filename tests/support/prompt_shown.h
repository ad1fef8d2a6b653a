/* A rendered prompt as one string in which control tokens can be told from text: each stands between ⟦ and ⟧. Zero
 * bytes of text are shown as ␀. */
#ifndef TESTS_PROMPT_SHOWN_H
#define TESTS_PROMPT_SHOWN_H
#include "text/chat.h"

void prompt_show(const struct prompt *p, struct str *out);

/* What a codec makes of messages must look like want; a failure of the running cmocka test otherwise. */
void prompt_expect(const struct prompt_codec *c, const struct chat_message *m, size_t n, const struct chat_options *o,
                   const char *want);
void prompt_expect_next(const struct prompt_codec *c, const struct chat_message *m, size_t n, size_t from,
                        const struct chat_options *o, const char *want);

/* Texts, and the messages made of them. */
#define TEXT(t)                                                                                                        \
    {                                                                                                                  \
        (t), sizeof(t) - 1                                                                                             \
    }
#define SYSTEM(t)                                                                                                      \
    {                                                                                                                  \
        .role = CHAT_SYSTEM, .text = TEXT(t)                                                                           \
    }
#define ASK(t)                                                                                                         \
    {                                                                                                                  \
        .role = CHAT_USER, .text = TEXT(t)                                                                             \
    }
#define RESULT(id, t)                                                                                                  \
    {                                                                                                                  \
        .role = CHAT_TOOL, .text = TEXT(t), .call_id = TEXT(id)                                                        \
    }
#define ANSWER(r, t)                                                                                                   \
    {                                                                                                                  \
        .role = CHAT_ASSISTANT, .text = TEXT(t), .reasoning = TEXT(r)                                                  \
    }
#define CALLING(r, t, list)                                                                                            \
    {                                                                                                                  \
        .role = CHAT_ASSISTANT, .text = TEXT(t), .reasoning = TEXT(r), .calls = (list),                                \
        .n_calls = sizeof(list) / sizeof *(list)                                                                       \
    }
#define CALL(id_, name_, args)                                                                                         \
    {                                                                                                                  \
        .id = TEXT(id_), .name = TEXT(name_), .arguments = TEXT(args)                                                  \
    }

#endif
