/* The server's parts, and a request on its way to a thread that reads it. */
#ifndef SERVE_SERVER_INTERNAL_H
#define SERVE_SERVER_INTERNAL_H
#include <pthread.h>
#include "serve/api.h"
#include "serve/journal.h"
#include "serve/scheduler.h"
#include "serve/server.h"

enum asked { ASKED_CHAT, ASKED_COMPLETIONS, ASKED_RESPONSES, ASKED_MESSAGES, ASKED_COUNT };

struct incoming {
    enum asked what;
    char *body, *who, *key; /* owned; key NULL: none */
    size_t n_body;
    size_t counted; /* bytes of it in server.bodies */
    struct http_reply *reply;
    struct journal_entry *entry; /* exchange_begin's, or exchange_refuse's */
    struct incoming *next;
};

/* Requests on their way to one thread. */
struct lane {
    struct server *server;
    struct incoming *first, **end;
    pthread_cond_t wake;
    pthread_t thread;
};

struct server {
    struct server_options o;
    struct served_info info;
    struct http *http;
    struct scheduler *scheduler;
    struct tool_memory *memory;
    struct journal *journal; /* NULL: none */

    pthread_mutex_t lock;     /* of what follows */
    struct lane small, large; /* a body that takes seconds to read keeps only others like it waiting */
    size_t bodies;            /* bytes of all large bodies whose requests are not over */
    bool stopping;
};

/* What n bytes of a large body were counted for is over. */
void server_uncount(struct server *s, size_t n);

#endif
