/* One request for an answer, whatever API it came through: what the model is asked, how it is to answer, and what the
 * encoder of that API must echo. */
#ifndef SERVE_REQUEST_H
#define SERVE_REQUEST_H
#include <jansson.h>
#include "ds4.h"
#include "serve/events.h"
#include "text/chat.h"

enum api { API_CHAT, API_COMPLETIONS, API_RESPONSES, API_MESSAGES };

enum tool_choice { CHOICE_AUTO, CHOICE_NONE, CHOICE_REQUIRED, CHOICE_NAMED };

/* How a tool came in, so that its calls go out the same way. */
enum tool_form { TOOL_FUNCTION, TOOL_CUSTOM, TOOL_SEARCH, TOOL_LOCAL_SHELL };

struct request_tool {
    enum tool_form form;
    const char *name;       /* in the prompt */
    const char *wire_name;  /* in the API */
    const char *namespace_; /* NULL: none */
};

struct request {
    enum api api;
    char *key;         /* the API key it came with, NULL: none; scopes call ids */
    const char *model; /* as given; NULL: none */

    /* what is asked; strings live in the JSON tree or in `texts` */
    struct chat_message *message;
    size_t n_messages;
    struct chat_tool *tool; /* for the codec; empty if no tool may be called */
    struct request_tool *tool_form;
    size_t n_tools;
    enum tool_choice choice;
    int chosen; /* CHOICE_NAMED: index of the tool */
    bool one_call;

    /* how */
    enum chat_thinking thinking;
    int thinking_budget;          /* tokens; 0: none */
    struct ds4_sampling sampling; /* the seed is random where none was given */
    int max_tokens;               /* -1: none given; 0: only read the prompt */
    const char **stop;
    size_t n_stops;
    bool logprobs;
    int top_logprobs;

    /* how it is told */
    bool stream, include_usage;
    bool summaries;     /* Responses: reasoning summaries were asked for */
    bool cache_control; /* Messages */
    int64_t created;

    json_t *body; /* the whole request, for echoes */
    char *raw;    /* its text; owned */
    size_t n_raw;
    char **texts; /* other strings, owned */
    size_t n_texts, cap_texts;
};

void request_free(struct request *r); /* with everything in it; NULL: nothing */
/* A copy of text that lives as long as the request. */
char *request_text(struct request *r, const char *text, size_t n);
/* Adds a message, a call to the message added last, a tool; zeroed. Pointers to earlier ones end. */
struct chat_message *request_message(struct request *r, enum chat_role role);
struct chat_call *request_call(struct request *r);
struct chat_tool *request_tool(struct request *r, struct request_tool form);

#endif
