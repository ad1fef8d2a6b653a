/* Inside the HTTP layer. What belongs to whom:
 *   http        the HTTP thread; except lock, dirty, woken, stopping and the counts
 *   http_conn   the HTTP thread alone
 *   http_reply  lock guards what its comment says; conn belongs to the HTTP thread
 * Order of locks: a reply's, then the server's. No callback is called with either. */
#ifndef SERVE_HTTP_INTERNAL_H
#define SERVE_HTTP_INTERNAL_H
#include "serve/http_parse.h"
#include "serve/http_rules.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <pthread.h>
#include <stdatomic.h>

enum {
    HTTP_CLIENT_TEXT = 64,
    HTTP_INPUT_BYTES = 64 * 1024,   /* read ahead of what is being answered */
    HTTP_OUTPUT_BYTES = 256 * 1024, /* more than that unread, and no further pipelined request is begun */
    HTTP_LINGER_MS = 2000,          /* after the last answer, for a client that is still sending */
    HTTP_WATCH_MS = 200,
    HTTP_ZEROS = 8 /* in front of a chunk's size: some readers take 16 digits at most */
};

struct http_conn {
    struct http *http;
    struct http_conn *next, *prev; /* in a list of http: idle or busy */
    enum http_conn_state {
        CONN_IDLE,   /* no byte of a request yet */
        CONN_HEAD,   /* inside a head */
        CONN_BODY,   /* inside a body */
        CONN_ANSWER, /* a handler has it */
        CONN_LAST,   /* the last answer is being sent */
        CONN_LINGER  /* it was; what the client still sends is thrown away, so that no reset destroys the answer on its
                        way */
    } state;
    struct bufferevent *bev;
    struct event *timer; /* deadline of the state */
    struct event *watch; /* looks whether a client that sends nothing more is still there */
    bool loopback, unix_socket;
    bool eof;              /* the client has closed its sending side */
    bool held;             /* it is not read: enough has come */
    int n_probe, probe_in; /* probes sent to such a client; watches until the next */
    int kernel_held; /* bytes that the system had not passed on when the client seemed to take none; -1: never */
    char client[HTTP_CLIENT_TEXT];

    struct http_head head;
    struct http_verdict verdict;
    struct http_chunks chunks;
    char *body;
    size_t n_body, cap_body;
    uint64_t body_since_ns;
    struct http_reply *reply;
};

struct http_list {
    struct http_conn *first, *last;
};

struct http {
    struct http_limits limits;
    struct http_rules rules;
    http_error_body *error_body;
    void *arg;

    struct event_base *base;
    struct evconnlistener **listener;
    char **address;
    char *unix_path; /* to remove at the end, or NULL */
    size_t n_listener, n_address;
    int port;
    bool is_public;              /* not loopback alone */
    struct http_list idle, busy; /* idle: oldest first; its members have no complete head yet */
    int n_conn;
    size_t bodies_bytes;
    bool draining, paused; /* paused: the listeners, until a connection closes or a moment has passed */
    struct event *resume;

    int wake[2]; /* a pipe */
    struct event *woken_event;
    atomic_bool woken, stopping;
    pthread_mutex_t lock;
    bool closed;              /* no more of them: http_close was here. Under lock */
    struct http_reply *dirty; /* replies with something to do for the HTTP thread; each holds a reference. Under lock */

    atomic_int refs; /* http_open's, one per reply */
    atomic_uint_fast64_t n_connections, n_requests, n_refused, n_dropped_slow, n_open;
};

struct http_reply {
    struct http *http;
    struct http_conn *conn; /* NULL once the client is gone or has its answer */
    atomic_int holders;     /* of the API; the object lives on while the HTTP thread needs it */
    atomic_int refs;        /* one for all holders, one of the connection, one of the dirty list */
    int minor;
    bool keep_alive, head_only;
    char *cors;
    struct http_reply *next_dirty; /* under http->lock */
    bool is_dirty;                 /* under http->lock */
    atomic_bool is_gone;
    atomic_size_t unsent; /* bytes of it in the connection's buffer */

    pthread_mutex_t lock; /* for what follows */
    struct str out;       /* framed bytes for the connection */
    bool begun, finished, abandoned, chunked, bodiless, overflow;
    int n_probe; /* bytes of "HTTP/1.1 " that went out ahead of the head */
    int n_zero;  /* zeros that went out ahead of the next chunk's size */
    void (*gone)(void *arg), (*drop)(void *arg);
    void *gone_arg;
};

/* http.c */
void http_wake(struct http *h); /* from any thread and signal handlers */
void http_unref(struct http *h);
void http_list_add(struct http_list *l, struct http_conn *c);
void http_list_remove(struct http_list *l, struct http_conn *c);
void http_conn_closed(struct http *h); /* bookkeeping after one is gone: listeners go on, a drain may be over */

/* http_listen.c */
int http_listen(struct http *h, const struct http_options *o, evconnlistener_cb on_accept,
                evconnlistener_errorcb on_error, struct err *e);
void http_unlisten(struct http *h);
/* Text for a log and whether the local end is a loopback address. */
void http_client_text(int fd, const struct sockaddr *peer, struct http_conn *c);

/* http_conn.c */
void http_conn_open(struct http *h, int fd, const struct sockaddr *peer);
void http_conn_close(struct http_conn *c);  /* frees it; the client of a running answer is gone */
void http_conn_drain(struct http_conn *c);  /* the server stops: only what was asked completely goes on */
void http_conn_attend(struct http_conn *c); /* sends what its reply has; goes on with the next request after its end */

/* http_reply.c */
struct http_reply *http_reply_create(struct http_conn *c);
void http_reply_unref(struct http_reply *r);
void http_reply_lose(struct http_reply *r); /* the client went away: tells who wants to know */
/* A whole answer in bytes; keep false: with Connection: close. */
void http_answer_text(struct str *to, int minor, bool keep, int status, const char *type, size_t n, const char *extra,
                      const char *cors);

#endif
