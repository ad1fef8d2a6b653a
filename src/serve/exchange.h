/* One request for an answer and what becomes of it: read, asked, told. */
#ifndef SERVE_EXCHANGE_H
#define SERVE_EXCHANGE_H
#include "serve/server_internal.h"

/* Reads a request and queues it, or answers it with an error. Takes the body. On a thread that reads requests. */
void exchange_begin(struct server *s, struct incoming *q);
/* Answers a request that is not read because there is too much to read already. */
void exchange_refuse(struct incoming *q);

#endif
