/* Conversations and what a family's chat frame (prompt codec) makes of them. The text of messages, calls and tools is
 * untrusted: it stays text, so that a special token typed in it is never one; only the frame itself puts special
 * tokens. */
#ifndef TEXT_CHAT_H
#define TEXT_CHAT_H
#include <stdbool.h>
#include <stddef.h>
#include "base/err.h"
#include "text/bpe.h"
#include "text/prompt.h"

enum chat_role { CHAT_SYSTEM, CHAT_USER, CHAT_ASSISTANT, CHAT_TOOL, CHAT_ROLE_COUNT };

/* A call that an assistant message made. */
struct chat_call {
    struct bpe_text id;        /* ties its result to it */
    struct bpe_text name;      /* of the tool, as in the prompt */
    struct bpe_text arguments; /* JSON text as the client or the model gave it; of a custom tool its object too */
};

struct chat_message {
    enum chat_role role;
    struct bpe_text text;      /* any bytes; of a tool message: the result of the call */
    struct bpe_text reasoning; /* of an assistant message; n 0: none */
    const struct chat_call *calls;
    size_t n_calls;          /* of an assistant message */
    struct bpe_text call_id; /* of a tool message: the call it answers; n 0: unknown */
    struct bpe_text block; /* of an assistant message with calls: the text of its calls as the model wrote it, with the
                            * white space before it, from our own memory: repeated byte for byte, special tokens
                            * included. n 0: the calls are written in the family's way */
};

/* Consecutive user and tool messages are one turn; system messages among them do not count. */
bool chat_is_turn(const struct chat_message *m); /* a user or tool message */
/* Index behind the last message of the turn that m[from] is in; from itself if there is none before the next assistant
 * message. */
size_t chat_turn_end(const struct chat_message *m, size_t n, size_t from);
/* The tool messages of the turn m[from..to) in the order of the calls that they answer, which are those of the
 * assistant message before it: indices, to be freed with mem_free. Results of unknown calls come first, as they stand.
 * 0 or ERR_MEMORY. */
int chat_results(const struct chat_message *m, size_t from, size_t to, size_t **order, struct err *e);

/* 0, or ERR_ARG if a system message is among m[from..n). */
int chat_no_system(const struct chat_message *m, size_t n, size_t from, struct err *e);
/* 0, or ERR_MODEL naming the first of these special tokens that the vocabulary lacks. format: whose they are, for the
 * message. */
int chat_specials_check(const struct bpe *b, const char *const *specials, size_t n, const char *format, struct err *e);

/* A tool the model may call. */
struct chat_tool {
    struct bpe_text name;
    struct bpe_text schema; /* one line of JSON: {"name": ..., "description": ..., "parameters": ...} (tool_schema.h) */
    bool custom;            /* takes text, not an object: one parameter `input` */
};

/* Thinking before the answer: none, much, as much as the family can ask for; LOW and MEDIUM are less where the family
 * knows such efforts, otherwise the same as HIGH. DEFAULT: as the checkpoint does where nobody says how much. */
enum chat_thinking {
    CHAT_THINK_OFF,
    CHAT_THINK_HIGH,
    CHAT_THINK_MAX,
    CHAT_THINK_LOW,
    CHAT_THINK_MEDIUM,
    CHAT_THINK_DEFAULT,
    CHAT_THINK_COUNT
};

struct chat_options {
    enum chat_thinking thinking;
    int ctx;     /* size of the context in tokens; some efforts need a large one */
    int efforts; /* how efforts are worded: an enum of the family, 0 = its default */
    const struct chat_tool *tools;
    size_t n_tools;
    bool tools_first; /* tools ahead of the system text, where the family's format has them behind it */
};

struct answer_syntax; /* text/answer.h */

struct prompt_codec {
    const char *family;
    enum pretokenizer pretokenizer; /* of the family's vocabularies, for bpe_create */
    const char *const *specials;    /* texts of all special tokens, for bpe_create */
    size_t n_specials;
    const char *const *stops; /* texts of the tokens that end an answer and are never shown */
    size_t n_stops;
    const char *think_open, *think_close; /* texts of the tokens around reasoning */
    const struct answer_syntax *answer;   /* how the model writes an answer with calls */

    /* 0, or ERR_MODEL naming a special token without which the frame cannot be written. For bpe_create. */
    int (*check)(const struct bpe *b, struct err *e);
    /* The thinking that render will use for these options; callers tell the user when it is not what was asked for. */
    enum chat_thinking (*thinking_used)(const struct chat_options *o);
    /* Appends the whole conversation. Where its last message (system messages apart) is a user or tool message, the
     * prompt ends in the start of the assistant's answer; otherwise behind the last answer. System messages stand at
     * the start, wherever they are in the list. 0, or an error; p may then hold a part of it. */
    int (*render)(const struct chat_message *m, size_t n, const struct chat_options *o, struct prompt *p,
                  struct err *e);
    /* The same for messages m[from..n) behind a live timeline whose last token is the last one of an answer, stop token
     * not included: closes the answer, then writes the messages. m[0..from) are those of the timeline as far as the
     * caller knows them (from may be 0). A system message among m[from..n) is ERR_ARG: it has its place at the start.
     */
    int (*render_next)(const struct chat_message *m, size_t n, size_t from, const struct chat_options *o,
                       struct prompt *p, struct err *e);
    /* True if a prompt is rendered chat already, to be read with prompt_marked instead of being put into a frame. */
    bool (*is_rendered)(const char *text, size_t n);
};

#endif
