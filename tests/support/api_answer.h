/* Answers of the APIs read as a client reads them, whole or from a stream, and held against the protocol: everything is
 * JSON, parts are opened, told and closed in order, a stream ends once, and what it says at its end is what it said. */
#ifndef API_ANSWER_H
#define API_ANSWER_H
#include <stdbool.h>
#include "base/str.h"
#include "serve/events.h"
#include "serve/request.h"
#include "serve/tool_memory.h"

struct api_answer_call {
    char id[CALL_ID_SIZE];
    struct str name, arguments; /* arguments: the bytes of the JSON object, or a custom tool's input */
    bool custom, done;
};

enum { API_ANSWER_CALLS = 16 };

struct api_answer {
    struct str reasoning, text;
    struct api_answer_call call[API_ANSWER_CALLS];
    int n_calls;
    const char *finish; /* stop, length, calls; stop string where the API has a word for it; NULL: no end */
    struct usage usage; /* reasoning is not read */
    struct str wrong;   /* the first breach; empty: none */
};

/* Reads the body of an answer with status 200, on any thread; in a stream of (chat) completions usage is there if the
 * request asked for it. *a is replaced; zero it before the first time. The test must look at a->wrong. */
void api_answer_read(enum api api, bool stream, const char *body, size_t n, struct api_answer *a);
/* Replaces *line by the answer as answer_run.h writes it: [R reasoning][T text][C name arguments] and the end. */
void api_answer_line(const struct api_answer *a, struct str *line);
void api_answer_free(struct api_answer *a);

#endif
