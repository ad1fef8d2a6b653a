/* The file of a scripted engine: what "the model" says, one JSON object per line and generation. Used by tests of the
 * server, ours and other suites'; the meaning of the fields is in docs/scripted-engine.md. */
#ifndef SERVE_SCRIPTED_FILE_H
#define SERVE_SCRIPTED_FILE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"
#include "base/str.h"

enum { SCRIPT_MAX_ALTERNATIVES = 20, SCRIPT_AT_PREFILL = -1 };

struct script_alternative {
    char *text;
    size_t n;
    double logprob;
};

struct script_line {
    struct str bytes;
    size_t *cut; /* where tokens end, ascending, the last one bytes.n */
    size_t n_cuts;
    char **when; /* all must occur in the prompt */
    size_t n_when;
    int64_t times; /* generations that it may serve; 0: any number */
    double token_ms, layer_ms;
    bool full;        /* the context counts as full behind the last token; else the turn ends */
    char *error;      /* NULL: none */
    int64_t error_at; /* tokens emitted by then, or SCRIPT_AT_PREFILL */
    int64_t repeat;
    bool echo;
    size_t echo_cut; /* bytes per token of the echo */
    double logprob;
    struct script_alternative alternative[SCRIPT_MAX_ALTERNATIVES];
    int n_alternatives;
};

struct script {
    struct script_line *line;
    size_t n, cap;
    const char *family; /* "deepseek4" or "qwen38" */
};

/* Reads a script. ERR_FORMAT (or ERR_IO) with the number of the line that is wrong; free it all the same. */
int script_read(const char *path, struct script *s, struct err *e);
void script_free(struct script *s);

#endif
