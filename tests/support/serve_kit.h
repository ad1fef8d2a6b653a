/* The scheduler on a thread of its own, with a scripted or another model behind it, requests as JSON, and answers
 * written down as they come. Every wait ends after 60 seconds with a failed test. One kit at a time. */
#ifndef SERVE_KIT_H
#define SERVE_KIT_H
#include <pthread.h>
#include <stdbool.h>
#include "base/str.h"
#include "serve/scheduler.h"

/* A scripted model that says these lines (docs/scripted-engine.md). ctx, chunk: 0 for the defaults. */
void serve_script(const char *lines, int ctx, int chunk, struct served *out);
/* Text with ' made ", so that JSON can be read in C; one of the last 16. */
const char *serve_json(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* A request for a chat completion without thinking: one user message; more: "" or more members, each after a comma. */
const char *serve_user(const char *text, const char *more);
/* DeepSeek's markup within a JSON text. */
#define SERVE_BAR  "\xef\xbd\x9c"
#define SERVE_DSML SERVE_BAR "DSML" SERVE_BAR
/* A block with one call of the tool "run" with the string argument cmd, as the family writes it. */
#define SERVE_RUN(cmd)                                                                                                 \
    "\\n\\n<" SERVE_DSML "tool_calls>\\n<" SERVE_DSML "invoke name=\\'run\\'>\\n<" SERVE_DSML                          \
    "parameter name=\\'cmd\\' string=\\'true\\'>" cmd "</" SERVE_DSML "parameter>\\n</" SERVE_DSML                     \
    "invoke>\\n</" SERVE_DSML "tool_calls>"
/* The member "tools" of a chat completion with the tools run and note. */
#define SERVE_TOOLS                                                                                                    \
    ",'tools':[{'type':'function','function':{'name':'run','parameters':{'type':'object','properties':{'cmd':{"        \
    "'type':'string'}}}}},{'type':'function','function':{'name':'note','parameters':{'type':'object','properties':"    \
    "{'text':{'type':'string'}}}}}]"
/* A prompt of one user message in the family's frame, thinking off. */
void serve_prompt(const struct served *m, const char *text, struct prompt *p);

struct serve_kit {
    struct scheduler_options options; /* set before the start: zeros are 1 session, the script's context, 1000 tokens */
    struct scheduler *scheduler;
    pthread_t thread;
    struct served inner; /* what is behind options.model */
    bool scripted;
    struct str log; /* lines of the log so far; after serve_kit_end, or with the gate closed */
};

/* With a script; or, lines NULL, with k->options.model, which stays the caller's. */
void serve_kit_start(struct serve_kit *k, const char *lines);
/* Lets what runs come to its end. */
void serve_kit_end(struct serve_kit *k);

/* An answer as it was told:
 * line    "[R reasoning][T text][C name arguments]", a call without its end: "[C name arguments..." */
struct serve_answer {
    struct str line;
    struct str logprobs; /* "token:logprob(alternative:logprob ...) " each */
    char call[8][CALL_ID_SIZE];
    int n_calls;
    struct usage first; /* as the prompt began to be read */
    struct answer_result result;
    char stop_string[40];
    struct api_error error; /* status 0: none */
    bool started, over, dropped;
    int order; /* 1: the first that was over, and so on */
    int alive;
    uint64_t number;
    char last; /* kind of the event before */
};

/* Queues a request. key: NULL for none. *a must be zero or freed, and live until serve_wait. */
void serve_ask_as(struct serve_kit *k, const char *key, enum api api, const char *json, struct serve_answer *a);
void serve_ask(struct serve_kit *k, enum api api, const char *json, struct serve_answer *a);
/* Until it is over and dropped. */
void serve_wait(struct serve_answer *a);
/* Until line is at least that long, or all is over. */
void serve_await(struct serve_answer *a, size_t length);
void serve_await_started(struct serve_answer *a);
/* Ask and wait. */
void serve_say(struct serve_kit *k, enum api api, const char *json, struct serve_answer *a);
void serve_answer_free(struct serve_answer *a);
/* The same for chat completions, and what must come. */
void serve_expect(struct serve_kit *k, const char *json, const char *line, enum finish finish);

/* ---- the model's steps ---- */

/* Closed: each step of the model waits to be let through. */
void serve_gate_close(void);
void serve_gate_open(void);
void serve_gate_pass(int n);
/* Until the scheduler stands before the gate with nothing let through. */
void serve_gate_await(void);
int serve_steps(void); /* taken so far */

/* The next call of one kind fails with this code. */
enum serve_call { SERVE_SYNC, SERVE_SUBMIT, SERVE_COLLECT, SERVE_FORK, SERVE_NEXT, SERVE_ENCODE, SERVE_CALLS };
void serve_fail(enum serve_call call, int code, const char *message);
int serve_forks(void); /* so far */

#endif
