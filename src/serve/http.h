/* HTTP/1.1 for the server: connections, request heads and bodies, framing, limits, who may ask (keys, Host, Origin),
 * answers written from any thread. It knows nothing of APIs, JSON or models: those are routes, and a function that
 * words an error.
 *
 * One thread runs everything here (http_run): it waits for sockets and never computes for long; handlers run on it, so
 * they hand work to other threads. Those answer through the http_reply, which is thread-safe and counted: whoever keeps
 * one holds it.
 *
 * Done before a handler sees a request: framing (anything that two readers could read differently is refused: 400),
 * limits (408, 413, 414, 431), the key (401), Host and Origin (403), known path (404), method (405 with Allow; 426 for
 * an attempt at websockets; OPTIONS is answered), type of the body (415), Expect: 100-continue. Each refusal is worded
 * by http_options.error_body. */
#ifndef SERVE_HTTP_H
#define SERVE_HTTP_H
#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct http; /* a server: its listeners, connections and loop */

/* ---- requests ---- */

/* A complete request. All of it lives until the handler returns, except a body that was taken. */
struct http_request {
    const char *method; /* "GET", "POST", ...; "HEAD" comes to the handler of GET, the body of the answer is left out by
                           itself */
    const char *path;   /* percent-decoded, without query; begins with '/', no byte below 0x20 */
    const char *rest;   /* what stands behind a route that ends in '/', decoded; otherwise "" */
    char *body;         /* n_body bytes and a zero behind them; NULL if there is none */
    size_t n_body;
    int key;            /* index of the key it came with; -1: without (none is wanted, or the route is open) */
    bool loopback;      /* came over a loopback address or a Unix socket */
    const char *client; /* "127.0.0.1:40312", "[::1]:40312", "unix": for the log */
    const struct http_head *head;
};

/* Value of a header field without blanks around it, or NULL; of several fields with this name the first. The name in
 * any case. */
const char *http_request_header(const struct http_request *q, const char *name);
/* Takes the body over: n_body + 1 bytes, freed by mem_free; NULL if there is none (or was taken). */
char *http_request_take_body(struct http_request *q);

/* ---- answers ---- */

/* The answer to one request. The handler is given one reference and must see to it that it is released, by whichever
 * thread is last. An answer whose last reference goes before it was finished becomes a 500, or a broken connection if
 * its head was out. */
struct http_reply;

/* On the HTTP thread. The handler owns one reference of the reply. */
typedef void http_handler(void *arg, struct http_reply *reply, struct http_request *q);

/* All from any thread; none of them blocks. One thread at a time writes to one reply.
 * extra: more header lines, each "Name: value\r\n", or NULL. type: NULL for none. body, bytes: copied. */

/* A whole answer. Does nothing if something was begun or sent before (so "503" may be tried without looking). */
void http_reply_send(struct http_reply *r, int status, const char *type, const void *body, size_t n, const char *extra);
/* A streamed one: the head goes out at once, then what is written, until the end. Chunked for HTTP/1.1, up to the close
 * for 1.0. The three return false when the client is gone or was dropped because it reads too slowly: nothing written
 * matters any more. */
bool http_reply_begin(struct http_reply *r, int status, const char *type, const char *extra);
bool http_reply_write(struct http_reply *r, const void *bytes, size_t n);
bool http_reply_end(struct http_reply *r);

bool http_reply_gone(const struct http_reply *r); /* one atomic look */
/* Bytes that the client has not taken yet; who makes an answer faster than it is read may wait for this to fall. */
size_t http_reply_unread(struct http_reply *r);
/* gone(arg): at most once, when the client went away before the answer was finished; on the HTTP thread without a lock
 * held, or on the calling thread before this returns if it is away already. A client that has only closed its sending
 * side is not gone. drop(arg), if not NULL: once, when the last reference of the reply is released and gone cannot be
 * called any more: the place to release what arg holds. Set at most once per reply. */
void http_reply_on_gone(struct http_reply *r, void (*gone)(void *arg), void (*drop)(void *arg), void *arg);

struct http_reply *http_reply_hold(struct http_reply *r); /* one more reference; returns r */
void http_reply_release(struct http_reply *r);            /* NULL is fine */

/* ---- the server ---- */

enum http_route_flag {
    HTTP_OPEN = 1, /* answers without a key */
    HTTP_JSON = 2  /* the body must be application/json (415); so a form or script of a foreign page cannot send it */
};

/* A path ending in '/' (longer than "/") stands for everything below it. A route for GET also answers HEAD. */
struct http_route {
    const char *method, *path;
    unsigned flags;
    http_handler *handler;
};

/* Zero means the default in brackets. */
struct http_limits {
    size_t head_bytes;   /* request line and header fields [64 KiB]: 431; the target alone [8 KiB]: 414 */
    int header_fields;   /* [128]: 431 */
    size_t body_bytes;   /* of one request [64 MiB]: 413 */
    size_t bodies_bytes; /* of all requests that are being read, or whose handler has not returned [256 MiB]: 503 */
    size_t
        unread_bytes; /* of a streamed answer that its client has not read yet [16 MiB]; then the client is dropped */
    int connections;  /* [4096], less if the system allows fewer files; beyond it the longest idle one is closed */
    int head_ms;      /* from the first byte of a request to the end of its head [10,000] */
    int body_ms;      /* for a body, plus 1 ms for every 16 bytes that came [30,000] */
    int idle_ms;      /* without a byte, between two requests or before the first [120,000] */
    int stall_ms;     /* a client that takes no byte of what is to be sent for so long, or up to twice that, is dropped
                         [30,000] */
};

/* Words an error answer of this layer (JSON) for the API that path belongs to ("" if the request had no readable path).
 * message: one sentence, plain ASCII without quotes or backslashes. out: empty. */
typedef void http_error_body(void *arg, const char *path, int status, const char *message, struct str *out);

/* All is copied, except the routes, which must outlive the server. */
struct http_options {
    const char *const *hosts; /* addresses or names to listen on; none: 127.0.0.1, or nothing if there is a unix_path */
    size_t n_hosts;
    int port;                /* 0: any free one (http_port) */
    const char *unix_path;   /* who may connect is decided by the process's umask, as for any file */
    const char *const *keys; /* API keys; none: no key is asked for */
    size_t n_keys;
    const char *const *allow_hosts; /* names that Host may have on loopback, besides the loopback ones; "*": any */
    size_t n_allow_hosts;
    const char *const *allow_origins; /* "https://app.example": foreign pages that may ask, and read (CORS); "*": all */
    size_t n_allow_origins;
    const struct http_route *routes;
    size_t n_routes;
    http_error_body *error_body; /* NULL: {"error":{"message":"..."}} */
    void *arg;                   /* for handlers and error_body */
    struct http_limits limits;
};

/* Binds and listens; from now on clients wait. Raises the process's soft limit of open files if the connections need
 * it. Warns (log) when an address that is not loopback is served without a key. */
int http_open(const struct http_options *o, struct http **http, struct err *e);
/* Serves until http_stop was called and the last running answer has been sent. */
void http_run(struct http *h);
/* No new connections; requests that come on open ones are answered 503; running answers go on to their end. From any
 * thread, and from a signal handler. */
void http_stop(struct http *h);
bool http_stopping(const struct http *h);
/* After http_run: closes what is left. Replies still held stay valid, their clients are gone. */
void http_close(struct http *h);

int http_port(const struct http *h); /* the one in use; 0 with a Unix socket alone */
/* "http://127.0.0.1:8000" for each listener in turn ("unix:/path"); NULL behind the last. */
const char *http_address(const struct http *h, size_t i);

/* For the page of metrics; from any thread. */
struct http_counts {
    uint64_t connections, requests, refused,
        dropped_slow; /* since the start; refused: answered by this layer with an error */
    uint64_t open;    /* connections now */
};
struct http_counts http_counts(const struct http *h);

/* Appends the keys of a file, one a line, blanks around them and lines that are empty or begin with '#' left out, to a
 * list grown with mem_grow (elements: mem_strdup). A file without a key is an error. */
int http_keys_read(const char *path, char ***keys, size_t *n, struct err *e);

#endif
