/* Conversations and what a family's chat frame (prompt codec) makes of them. The text of messages is untrusted: it is
 * encoded as plain text, so that a special token typed in it stays text; only the frame itself puts special tokens. */
#ifndef TEXT_CHAT_H
#define TEXT_CHAT_H
#include <stdbool.h>
#include <stddef.h>
#include "base/err.h"
#include "text/bpe.h"

enum chat_role { CHAT_SYSTEM, CHAT_USER, CHAT_ASSISTANT, CHAT_TOOL, CHAT_ROLE_COUNT };

struct chat_message {
    enum chat_role role;
    struct bpe_text text;      /* any bytes; of a tool message: the result of the call */
    struct bpe_text reasoning; /* of an assistant message; n 0: none */
};

/* Thinking before the answer: none, as usual, as much as the family can ask for; LOW is less than usual where the
 * family knows such an effort, otherwise the same as HIGH. */
enum chat_thinking { CHAT_THINK_OFF, CHAT_THINK_HIGH, CHAT_THINK_MAX, CHAT_THINK_LOW, CHAT_THINK_COUNT };

struct chat_options {
    enum chat_thinking thinking;
    int ctx;     /* size of the context in tokens; some efforts need a large one */
    int efforts; /* how efforts are worded: an enum of the family, 0 = its default */
    bool tools;  /* tools are offered: old reasoning is then kept in the conversation */
};

struct prompt_codec {
    const char *family;
    enum pretokenizer pretokenizer; /* of the family's vocabularies, for bpe_create */
    const char *const *specials;    /* texts of all special tokens, for bpe_create */
    size_t n_specials;
    const char *const *stops; /* texts of the tokens that end an answer and are never shown */
    size_t n_stops;
    const char *think_open, *think_close; /* texts of the tokens around reasoning */

    /* 0, or ERR_MODEL naming a special token without which the frame cannot be written. For bpe_create. */
    int (*check)(const struct bpe *b, struct err *e);
    /* The thinking that render will use for these options; callers tell the user when it is not what was asked for. */
    enum chat_thinking (*thinking_used)(const struct chat_options *o);
    /* Appends the whole conversation. Where its last message (system messages apart) is a user or tool message, the ids
     * end in the start of the assistant's answer; otherwise behind the last answer. b has passed check. 0, or an error
     * of bpe_encode; ids is then as it was. */
    int (*render)(const struct bpe *b, const struct chat_message *m, size_t n, const struct chat_options *o,
                  struct bpe_ids *ids, struct err *e);
    /* The same for messages that follow a live timeline whose last token is the last one of an answer, stop token not
     * included: closes the answer, then the messages. System messages are ERR_ARG: they have their place at the start.
     */
    int (*render_next)(const struct bpe *b, const struct chat_message *m, size_t n, const struct chat_options *o,
                       struct bpe_ids *ids, struct err *e);
    /* True if a prompt is rendered chat already, to be encoded with bpe_encode_rendered instead of being put into a
     * frame. */
    bool (*is_rendered)(const char *text, size_t n);
};

#endif
