/* A loaded engine as the server sees it. */
#ifndef SERVE_SERVED_ENGINE_H
#define SERVE_SERVED_ENGINE_H
#include "serve/served.h"

/* The engine must outlive *out. sessions, ctx: as in its options. */
void served_engine_open(ds4_engine *g, int sessions, int ctx, struct served *out);
void served_engine_close(struct served *s); /* its sessions must be freed before */

#endif
