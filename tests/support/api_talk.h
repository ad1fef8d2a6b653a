/* Conversations with ds4-server over any of its APIs, as a client keeps them: the same talk is the same prompt
 * whichever API carries it. */
#ifndef API_TALK_H
#define API_TALK_H
#include "api_answer.h"

#define API_COUNT (API_MESSAGES + 1)
extern const char *const api_paths[API_COUNT];

/* What has been said so far: a question, an answer, results of its calls in their order, ... */
enum { TALK_STEPS = 8 };
struct talk_step {
    const char *question; /* NULL: results */
    const char *result;   /* of every call of the answer before */
    struct api_answer answer;
};

enum talk_thinking { TALK_AS_IT_IS, TALK_THINKING, TALK_NO_THINKING };
struct talk {
    const char *system; /* NULL: none */
    const char *tools;  /* JSON: an array of {"name", "description", "parameters"}; NULL: none */
    enum talk_thinking thinking;
    struct talk_step step[TALK_STEPS];
    int n_steps; /* the last one has no answer yet */
};
void talk_free(struct talk *t); /* back to zero */
/* The request for the answer to the last step, at temperature 0. Completions have only its question. */
void talk_request(const struct talk *t, enum api api, bool stream, int max_tokens, struct str *out);

#endif
