/* What happens to an answer, from the scheduler to an encoder of one of the APIs: pieces in order, then one end. */
#ifndef SERVE_EVENTS_H
#define SERVE_EVENTS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum event_kind {
    EVENT_REASONING,
    EVENT_TEXT,
    EVENT_CALL_BEGIN,     /* bytes: the name as declared; id: the call's */
    EVENT_CALL_ARGUMENTS, /* a piece of a JSON object; of a custom tool: of its raw input */
    EVENT_CALL_END,
    EVENT_LOGPROBS /* of one token, ahead of the text it became part of; only where they were asked for */
};

struct event_logprob {
    const char *bytes;
    size_t n;
    float logprob;
};

struct event {
    enum event_kind kind;
    const char *bytes; /* whole UTF-8 characters */
    size_t n;
    const char *id; /* EVENT_CALL_BEGIN */
    int tool;       /* EVENT_CALL_*: index into the request's tools */
    struct event_logprob token;
    const struct event_logprob *alternative;
    int n_alternatives;
};

struct usage {
    int prompt, cached; /* tokens of the prompt; of these, reused ones */
    int completion, reasoning;
};

enum finish { FINISH_STOP, FINISH_LENGTH, FINISH_CALLS, FINISH_STOP_STRING };

struct answer_result {
    enum finish finish;
    const char *stop_string; /* FINISH_STOP_STRING: the one that was met */
    bool thinking_closed;
    struct usage usage;
};

/* What the client is told instead of an answer; within an answer that has begun it becomes an event of the API. */
struct api_error {
    int status;          /* HTTP */
    const char *type;    /* of the OpenAI envelope; the Anthropic one follows from the status */
    char param[64];      /* the field; "": none. A copy: some names are the request's, which ends before its error */
    const char *code;    /* NULL: none */
    int n_prompt, n_ctx; /* of context_length_exceeded, else 0 */
    int retry_after;     /* seconds; 0: no such header */
    char message[1200];
};

#endif
