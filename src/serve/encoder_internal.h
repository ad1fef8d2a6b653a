/* What the writers of the APIs share. */
#ifndef SERVE_ENCODER_INTERNAL_H
#define SERVE_ENCODER_INTERNAL_H
#include "serve/api.h"
#include "serve/tool_memory.h"
#include "text/json_text.h"

struct told_call {
    char id[CALL_ID_SIZE];   /* the call's, which its result will name */
    char item[CALL_ID_SIZE]; /* Responses: the item's */
    int tool;
    struct str arguments;
    bool done;
};

struct encoder {
    const struct encoder_ops *ops;
    const struct request *r;
    const char *model;
    char id[CALL_ID_SIZE];
    bool begun;
    struct usage usage;
    struct str reasoning, text; /* all so far */
    struct told_call *call;
    size_t n_calls;
    struct str logprobs; /* of tokens not told yet: elements of an array */

    /* the part that is open, for APIs that number them */
    enum open_part { OPEN_NONE, OPEN_REASONING, OPEN_TEXT, OPEN_CALL } open;
    int index; /* of the open part, or of the next one */
    int64_t sequence;
    char item[CALL_ID_SIZE];
    struct str items; /* Responses: the finished ones, as elements of an array */
};

struct encoder_ops {
    const char *id_prefix;
    void (*started)(struct encoder *e, struct str *out);
    void (*alive)(struct encoder *e, struct str *out);
    void (*event)(struct encoder *e, const struct event *event, struct str *out); /* after it was added to *e */
    void (*end)(struct encoder *e, const struct answer_result *result, struct str *out);
    void (*error)(struct encoder *e, const struct api_error *why, struct str *out);
    void (*whole)(struct encoder *e, const struct answer_result *result, struct str *out); /* without a stream */
};

extern const struct encoder_ops encoder_chat, encoder_completions, encoder_responses, encoder_messages;

/* "text" as JSON. */
void put_quoted(struct str *out, const char *text, size_t n);
void put_c(struct str *out, const char *text);
void put_str(struct str *out, const struct str *text);
/* The call being written, and the tool it is of. */
struct told_call *open_call(struct encoder *e);
const struct request_tool *tool_of(const struct encoder *e, const struct told_call *c);
/* Usage of the OpenAI chat APIs. */
void put_usage(struct str *out, const struct usage *u);
/* {"message": ..., "type": ..., "param": ..., "code": ...} */
void put_openai_error(struct str *out, const struct api_error *why);
/* {"type": "error", "error": {...}} */
void put_anthropic_error(struct str *out, const struct api_error *why);

#endif
