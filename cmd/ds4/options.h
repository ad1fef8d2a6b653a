/* Command line of ds4. */
#ifndef OPTIONS_H
#define OPTIONS_H
#include <stdbool.h>
#include "common/runtime.h"
#include "common/sampling.h"

struct options {
    struct runtime_options runtime;
    struct sampling_options sampling;
    const char *prompt, *prompt_file; /* at most one */
    const char *system;
    bool system_given;
    const char *session; /* file to resume from and to save to, or NULL */
    bool raw;            /* the prompt is text to go on with: no chat frame */
    int n_tokens;        /* most tokens of an answer */
    int n_draft;         /* tokens guessed ahead */
    bool inspect, dump_tokens, doctor;
    const char *check_file[RUNTIME_MAX_MODELS]; /* the files of a model to be looked at */
    int n_check_files;
    bool json;
    const char *token_ids;  /* "0,5,6" */
    const char *logits_out; /* float32 [tokens][vocabulary] */
    const char *dump_logits, *dump_logprobs, *perplexity_file;
    int logprobs_top_k;
    int decode_consistency; /* steps; -1: not asked for */
};

/* True: there is something to do. False: the program is to end with *status, after help or a message. */
bool options_parse(int argc, char **argv, struct options *o, int *status);
/* True if the model or the prompt is only looked at: no answer, no chat, no session. */
bool options_look(const struct options *o);
/* Tells the user where the thinking that was asked for does not fit the context. */
void options_note_thinking(const struct options *o, enum ds4_think used);

#endif
