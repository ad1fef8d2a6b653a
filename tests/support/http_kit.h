/* A small server on src/serve/http.h, running on a thread of its own, and a client of raw sockets for it. Every wait
 * ends after 20 seconds with a failed test.
 *
 * Its routes:  GET /hello   "hello"                    GET /open    "open", without a key
 *              POST /echo   the body (JSON is wanted)  POST /any    the body, of any type
 *              GET /things/ what stands behind it      GET and POST /wait   the test answers: http_kit_take */
#ifndef HTTP_KIT_H
#define HTTP_KIT_H
#include "base/str.h"
#include "serve/http.h"

#include <pthread.h>
#include <stdatomic.h>

/* A request at /wait. */
struct http_kit_wait {
    struct http_reply *reply; /* one reference, the test's */
    atomic_int gone, dropped; /* how often the client went away, and the reply was freed */
    int key;
    struct http_kit_wait *next;
};

struct http_kit {
    struct http *http;
    struct http_options options; /* to be set before http_kit_start; routes, handlers and error_body are the kit's */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct http_kit_wait *first, *last; /* not yet taken */
    bool running;
};

void http_kit_start(struct http_kit *k);
/* Stops if that was not done yet, waits for the thread, closes. */
void http_kit_end(struct http_kit *k);
struct http_kit_wait *http_kit_take(struct http_kit *k); /* the next request at /wait; blocks */
void http_kit_free(struct http_kit_wait *w);             /* after its reply was freed (dropped is 1); waits for that */
/* Waits until *value is at least that. */
void http_kit_until(atomic_int *value, int least);

/* ---- a client ---- */

struct http_answer {
    int status;
    struct str head, body; /* head: status line and fields, without the empty line */
    bool cut;              /* the connection ended inside of it */
};

int http_client(const struct http_kit *k);                  /* a connected socket */
int http_client_at(int port);                               /* the same for any server on 127.0.0.1 */
bool http_client_send(int fd, const void *bytes, size_t n); /* false: the server has reset the connection */
void http_client_put(int fd, const char *text);
void http_client_reset(int fd); /* closes with a reset */
/* Reads up to n bytes; 0 at the end, also if it is a reset (then *reset, if not NULL). */
size_t http_client_read(int fd, void *bytes, size_t n, bool *reset);
void http_client_expect(int fd, const char *text); /* exactly these bytes come */
bool http_client_ended(int fd);                    /* nothing more comes; blocks until the end or the first byte */
/* Reads one answer and not a byte more. method: of the request. *a is replaced. */
void http_client_answer(int fd, const char *method, struct http_answer *a);
const char *http_answer_field(const struct http_answer *a, const char *name, char *value,
                              size_t size); /* NULL if absent */
void http_answer_free(struct http_answer *a);
/* Sends one request to the server at that port. fields: lines, each with CRLF, or ""; a Host of one's own is the first.
 * body NULL: none. */
void http_client_request(int fd, int port, const char *method, const char *target, const char *fields,
                         const char *body);
/* One request on a connection of its own. */
void http_client_ask_at(int port, const char *method, const char *target, const char *fields, const char *body,
                        struct http_answer *a);
void http_client_ask(const struct http_kit *k, const char *method, const char *target, const char *fields,
                     const char *body, struct http_answer *a);

#endif
