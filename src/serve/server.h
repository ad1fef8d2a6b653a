/* ds4-server without its command line: routes, the threads behind them, and how an answer gets from the scheduler to a
 * client. */
#ifndef SERVE_SERVER_H
#define SERVE_SERVER_H
#include "base/err.h"
#include "serve/http.h"
#include "serve/served.h"

struct server;

struct server_options {
    struct served model;
    const char *backend;      /* for /props: "cpu", "scripted" */
    int sessions, ctx;        /* answers at the same time; tokens of a session */
    int max_tokens;           /* of an answer, where the request does not say */
    double time_limit;        /* seconds of an answer; 0: any */
    bool repetition_guard;    /* as in scheduler.h */
    size_t tool_ids;          /* calls that are remembered for replay; 0: none */
    const char *journal;      /* file of the journal of requests; NULL: none */
    struct http_options http; /* routes, error_body and arg are the server's */
};

/* Creates the sessions, binds and listens. */
int server_open(const struct server_options *o, struct server **out, struct err *e);
/* Serves until server_stop and the end of the last answer. Returns an exit status: 0, or SERVER_FAILED after the model
 * has failed for good: then clients have been told for some seconds, and a supervisor should start the program anew. */
int server_run(struct server *s);
enum { SERVER_FAILED = 3 };
/* From any thread, and from a signal handler. */
void server_stop(struct server *s);
void server_close(struct server *s);
const struct http *server_http(const struct server *s); /* for http_address */

#endif
