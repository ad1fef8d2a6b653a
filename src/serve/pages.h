/* What GET answers: the web page, models, health, numbers. */
#ifndef SERVE_PAGES_H
#define SERVE_PAGES_H
#include "serve/server_internal.h"

/* On the HTTP thread; the reply stays the caller's. */
void pages_get_file(struct http_reply *reply, const struct http_request *q);
void pages_get(struct server *s, struct http_reply *reply, const struct http_request *q);

#endif
