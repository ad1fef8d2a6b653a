/* The server's parts, and a request on its way to the thread that reads it. */
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
    struct http_reply *reply;
    struct journal_entry *entry; /* exchange_begin's */
    struct incoming *next;
};

struct server {
    struct server_options o;
    struct served_info info;
    struct http *http;
    struct scheduler *scheduler;
    struct tool_memory *memory;
    struct journal *journal; /* NULL: none */

    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t wake;
    struct incoming *incoming, **incoming_end;
    bool stopping;
};

#endif
