/* Options of every program that runs a model. */
#ifndef RUNTIME_H
#define RUNTIME_H
#include "ds4.h"
#include "help.h"

enum { RUNTIME_MAX_MODELS = 64 };

struct runtime_options {
    const char *model[RUNTIME_MAX_MODELS];
    int n_models;
    int ctx; /* 0: the engine's choice */
    bool verbose;
    struct ds4_options engine; /* complete after runtime_prepare */
    const char *program;
    double loading_said; /* when progress of reading weights was said last */
};

extern const struct help_section runtime_section; /* fills struct runtime_options */

/* Completes o->engine: models, context, and a log that goes to stderr as lines "PROGRAM: ...", without -v only errors
 * and warnings. program and *o must outlive the engine. */
void runtime_prepare(struct runtime_options *o, const char *program);

#endif
