/* What a model says behind the assistant prefix, taken apart: reasoning, text and tool calls. A state machine fed with
 * bytes as they are sampled; the events do not depend on where the feeds are cut (pieces of one kind that follow each
 * other only need joining).
 * Faults of a block that are repaired: other or missing bars in its tags, typographic quotes, white space in tags, ends
 * that are missing where the next tag or the end of the turn shows it, misspelt ends of parameters, a block opened
 * twice or not at all. Any other one makes it text. docs/tool-calls.md has the whole list, which is closed, and the
 * reasons. */
#ifndef TEXT_ANSWER_H
#define TEXT_ANSWER_H
#include <stdbool.h>
#include <stddef.h>

struct chat_tool; /* text/chat.h */
struct str;
struct answer_syntax;
/* How a family writes think tags and calls: DeepSeek's DSML blocks, Qwen's <tool_call> elements. */
extern const struct answer_syntax answer_dsml, answer_xml;

/* The tag that closes a think block, for a server that closes one itself. */
const char *answer_think_close(const struct answer_syntax *s);

enum answer_kind {
    ANSWER_REASONING,
    ANSWER_TEXT,
    ANSWER_CALL_BEGIN,     /* bytes: the name as declared */
    ANSWER_CALL_ARGUMENTS, /* a piece of the JSON text of one object; of a custom tool: a piece of its raw input */
    ANSWER_CALL_END,       /* the call is complete and valid; n 0 */
};
/* bytes are valid UTF-8 in whole characters (may hold zero bytes) and live during the call only; n > 0 except for
 * ANSWER_CALL_END. */
typedef void answer_sink(void *arg, enum answer_kind kind, const char *bytes, size_t n);

struct answer_options {
    const struct answer_syntax *syntax;
    bool thinking;                 /* the prompt ended inside an open think block */
    const struct chat_tool *tools; /* borrowed for the life of the answer; only calls of these are calls */
    size_t n_tools;                /* 0: no text is ever a call, markup is text */
    bool one_call;                 /* the answer is over behind the first complete call */
};

enum answer_cause {
    CAUSE_STOP,       /* the model ended its turn, or answer_feed said that the answer is over */
    CAUSE_LENGTH,     /* token budget or context used up */
    CAUSE_STOP_STRING /* a stop string was found in the text: what is still held is thrown away */
};
enum answer_end { END_STOP, END_LENGTH, END_CALLS };

struct answer;
struct answer *answer_create(const struct answer_options *o, answer_sink *sink, void *arg);
void answer_free(struct answer *a); /* NULL is fine */
/* n bytes as sampled, cut anywhere. True: the answer is over (tool block closed, or first call complete with one_call);
 * generation stops, later bytes are ignored. */
bool answer_feed(struct answer *a, const char *bytes, size_t n);
/* No more bytes: what is held is decided and sent. Once. END_CALLS: there are calls, all complete. END_LENGTH: the
 * limit cut the answer; if it cut a call, that call's ANSWER_CALL_BEGIN may have been sent, and no ANSWER_CALL_END
 * follows. Calls that were complete before it have been sent. */
enum answer_end answer_finish(struct answer *a, enum answer_cause cause);

/* The bytes so far leave the model inside its think block, and not inside a call there. */
bool answer_inside_thinking(const struct answer *a);
/* The next byte belongs to the structure of a tool block (tags, JSON outside strings): sample greedily. */
bool answer_is_syntax(const struct answer *a);
/* Appends what makes the model call a tool here, outside thinking: the opening of a tool block up to where the name
 * goes, or, with a name, up to its first parameter. The caller feeds it like sampled bytes. Nothing where a block is
 * open that may still become a call. */
void answer_force_call(const struct answer *a, const char *name, size_t n, struct str *out);
/* After answer_finish, where calls are complete: their text as sampled, with the white space before it, and with the
 * closing tags that the model left out; else NULL, n 0. For verbatim replay; lives until answer_free. */
const char *answer_block(const struct answer *a, size_t *n);
/* NULL, or one sentence for the log: what was repaired, or why a block is no call. Lives until answer_free. */
const char *answer_note(const struct answer *a);

#endif
