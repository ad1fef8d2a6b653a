/* Who may ask for what: routes and methods, keys, Host and Origin. Pure decisions about a head that was read; nothing
 * is sent here. */
#ifndef SERVE_HTTP_RULES_H
#define SERVE_HTTP_RULES_H
#include "serve/http_parse.h"

/* A copy of what http_options says about this. */
struct http_rules {
    char **keys, **hosts, **origins; /* owned */
    size_t n_keys, n_hosts, n_origins;
    const struct http_route *routes;
    size_t n_routes;
};

struct http_verdict {
    int status;      /* 0: go on with route; 204: OPTIONS is answered; otherwise the refusal */
    const char *why; /* one sentence, constant */
    const struct http_route *route;
    const char *rest; /* behind a route that ends in '/', in the head's path */
    int key;          /* index, or -1 */
    struct str extra; /* header lines that belong to the refusal or the answer to OPTIONS: Allow and the like; owned */
    struct str cors;  /* header lines for every answer to this request; owned */
};

void http_rules_take(struct http_rules *r, const struct http_options *o);
void http_rules_free(struct http_rules *r);
/* loopback: the request came over TCP to a loopback address. *v: zero-initialised. */
void http_rules_judge(const struct http_rules *r, const struct http_head *h, bool loopback, struct http_verdict *v);
void http_verdict_clear(struct http_verdict *v);

#endif
