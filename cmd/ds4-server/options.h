/* Command line of ds4-server. */
#ifndef OPTIONS_H
#define OPTIONS_H
#include "common/runtime.h"

enum { OPTIONS_MAX_WORDS = 64 };

struct options {
    struct runtime_options runtime;
    const char *scripted; /* file, or NULL */
    int sessions;
    int n_tokens;   /* most of an answer that does not say */
    int time_limit; /* seconds; 0: any */
    bool repetition_guard;
    int tool_ids;
    const char *host[OPTIONS_MAX_WORDS];
    int n_hosts;
    int port;
    const char *unix_path;
    const char *api_key, *api_key_file;
    const char *allow_host[OPTIONS_MAX_WORDS], *allow_origin[OPTIONS_MAX_WORDS];
    int n_allow_hosts, n_allow_origins;
    bool cors;
    bool quiet;        /* no line per request */
    const char *trace; /* file of the journal, or NULL */
};

/* False: the program is to end with *status. */
bool options_parse(int argc, char **argv, struct options *o, int *status);

#endif
