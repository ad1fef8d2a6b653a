/* Command line of ds4-bench (spec cli-and-tools 6). */
#ifndef OPTIONS_H
#define OPTIONS_H
#include "common/runtime.h"
#include "frontiers.h"

struct options {
    struct runtime_options runtime;
    const char *prompt_file, *chat_prompt_file; /* exactly one */
    const char *system;
    struct frontiers frontiers;
    int n_tokens;  /* decode steps at a frontier; 0: none */
    int ctx_alloc; /* tokens of the sessions; complete after options_parse */
    int sessions;  /* that decode together */
    bool teacher_forced;
    const char *csv, *compare; /* files, or NULL */
    const char *dump_logits_dir;
};

/* False: the program is to end with *status. */
bool options_parse(int argc, char **argv, struct options *o, int *status);

#endif
