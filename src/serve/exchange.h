/* One request for an answer and what becomes of it: read, asked, told. */
#ifndef SERVE_EXCHANGE_H
#define SERVE_EXCHANGE_H
#include "serve/server_internal.h"

/* Reads a request and queues it, or answers it with an error. Takes the body. On the thread that reads requests. */
void exchange_begin(struct server *s, struct incoming *q);

#endif
