/* A model that says what a file tells it to (docs/scripted-engine.md), with sessions, prefixes and delays like a real
 * one: for tests of the server without a model and without luck. */
#ifndef SERVE_SCRIPTED_H
#define SERVE_SCRIPTED_H
#include "base/err.h"
#include "serve/served.h"

struct scripted_options {
    const char *path;
    int ctx;           /* tokens; 0: 32768 */
    int prefill_chunk; /* tokens; 0: 2048 */
    int sessions;
};

/* ERR_FORMAT with the number of the line for a script that breaks its rules. */
int scripted_open(const struct scripted_options *o, struct served *out, struct err *e);
void scripted_close(struct served *s); /* its sessions must be freed before */

#endif
