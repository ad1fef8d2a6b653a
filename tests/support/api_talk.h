/* Conversations with ds4-server over any of its APIs, and what it said, in one form for all of them: the same talk is
 * the same prompt whichever API carries it. */
#ifndef API_TALK_H
#define API_TALK_H
#include <stdbool.h>
#include "base/str.h"

enum talk_api { TALK_CHAT, TALK_COMPLETIONS, TALK_RESPONSES, TALK_MESSAGES, TALK_APIS };
const char *talk_path(enum talk_api api);

enum { TALK_CALLS = 4, TALK_STEPS = 8 };

struct talk_call {
    struct str id, name, arguments;
};
struct talk_said {
    struct str reasoning, text;
    struct talk_call call[TALK_CALLS];
    int n_calls;
    int tokens;         /* of the answer, as its usage says */
    const char *finish; /* "stop", "length", "calls"; NULL: the answer has no end */
    struct str wrong;   /* why this is no answer; empty: it is one */
};
void talk_said_free(struct talk_said *a);
/* Reads the body of an answer with status 200, and replaces *a. */
void talk_read(enum talk_api api, bool stream, const char *body, struct talk_said *a);
/* All of it but the ids of calls, in one line. */
void talk_line(const struct talk_said *a, struct str *out);

/* What has been said so far: a question, an answer, results of its calls in their order, ... */
struct talk_step {
    const char *question; /* NULL: results */
    const char *result;   /* of every call of the answer before */
    struct talk_said answer;
};
struct talk {
    const char *system;
    const char *tools; /* JSON: an array of {"name", "description", "parameters"}; NULL: none */
    struct talk_step step[TALK_STEPS];
    int n_steps; /* the last one has no answer yet */
};
void talk_free(struct talk *t);
/* The request for the answer to the last step, at temperature 0. Completions have only its question. */
void talk_request(const struct talk *t, enum talk_api api, bool stream, int max_tokens, struct str *out);

#endif
