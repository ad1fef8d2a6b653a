/* Who is served when: a queue of requests, sessions that keep what they have read, and the loop that lets all answers
 * go on token by token while the prompts of others are read layer by layer. One thread, the scheduler's own, is inside
 * the model; the functions here may be called from any thread. */
#ifndef SERVE_SCHEDULER_H
#define SERVE_SCHEDULER_H
#include "base/err.h"
#include "serve/events.h"
#include "serve/request.h"
#include "serve/served.h"
#include "serve/tool_memory.h"

struct scheduler;

struct scheduler_options {
    struct served model;
    struct tool_memory *memory;
    int sessions;          /* answers at the same time */
    int ctx;               /* tokens of a session */
    int max_tokens;        /* of an answer, where the request does not say */
    double time_limit;     /* seconds an answer may take, 0: any; then it ends as if its token limit were reached */
    bool repetition_guard; /* so does one that says the same over and over (repetition.h) */
};

/* How an answer gets out; all are called on the scheduler's thread. One of end and error comes last, then drop. */
struct client {
    void (*started)(void *arg, const struct usage *usage); /* the prompt is being read; completion counts are 0 */
    void (*alive)(void *arg); /* every second until the end, for clients that wait too long for a sign of life */
    void (*event)(void *arg, const struct event *event);
    void (*end)(void *arg, const struct answer_result *result);
    void (*error)(void *arg, const struct api_error *error);
    void (*drop)(void *arg);
    /* Bytes that it has not read yet; while they are too many its answer does not go on. NULL: it reads all at once. */
    size_t (*unread)(void *arg);
};

/* A request that has been rendered. */
struct ask {
    struct request *request;  /* owned */
    struct prompt prompt;     /* owned */
    struct ds4_tokens tokens; /* owned */
    int *turn;                /* owned: [n_turns] where in tokens turns begin */
    int n_turns;
    const char *who; /* "POST /v1/messages 127.0.0.1:40312", for the log; owned */
};
void ask_free(struct ask *a);

int scheduler_create(const struct scheduler_options *o, struct scheduler **out, struct err *e);
/* Runs on the calling thread until scheduler_stop and the end of the last answer. */
void scheduler_run(struct scheduler *s);
/* False: it takes no more requests, because the server is going down or the model has failed; *why says so. */
bool scheduler_open(struct scheduler *s, struct api_error *why);
/* Queues a request, which must fit into the context; takes what it holds. Returns its number, for scheduler_cancel; 0:
 * it is not open any more, and nothing was taken. */
uint64_t scheduler_add(struct scheduler *s, struct ask *ask, const struct client *client, void *arg,
                       struct api_error *why);
/* Nobody listens any more: the work ends at the next layer; neither end nor error is called, only drop. */
void scheduler_cancel(struct scheduler *s, uint64_t number);
void scheduler_stop(struct scheduler *s);
/* After scheduler_run. */
void scheduler_free(struct scheduler *s);

/* Counters since the start. */
struct scheduler_counts {
    uint64_t requests, finished[4], failed, cancelled; /* finished: by enum finish */
    uint64_t prompt_tokens, cached_tokens, completion_tokens;
    double prefill_s, decode_s;
    int active, queued, sessions;
};
struct scheduler_counts scheduler_counts(struct scheduler *s);
/* True, with the reason, if the model has failed for good. */
bool scheduler_failed(struct scheduler *s, char *reason, size_t n);

#endif
