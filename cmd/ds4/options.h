/* Command line of ds4. */
#ifndef OPTIONS_H
#define OPTIONS_H
#include <stdbool.h>
#include "ds4.h"

enum { OPTIONS_MAX_MODELS = 64 };

struct options {
    const char *model[OPTIONS_MAX_MODELS];
    int n_models;
    const char *prompt, *prompt_file; /* at most one */
    const char *system;
    bool system_given;
    const char *session; /* file to resume from and to save to, or NULL */
    bool raw;            /* the prompt is text to go on with: no chat frame */
    int n_tokens;        /* most tokens of an answer */
    enum ds4_think think;
    struct ds4_sampling sampling;
    int ctx;                   /* 0 until the engine is open: its default */
    struct ds4_options engine; /* model_paths is filled by the caller */
    bool inspect, dump_tokens, verbose, help;
    const char *token_ids;  /* "0,5,6" */
    const char *logits_out; /* float32 [tokens][vocabulary] */
    const char *dump_logits, *dump_logprobs, *perplexity_file;
    int logprobs_top_k;
    int decode_consistency; /* steps; -1: not asked for */
    bool doctor;
};

/* 0, or the exit status 2 after a message. */
int options_parse(int argc, char **argv, struct options *o);
void options_help(void);
/* True if the model or the prompt is only looked at: no answer, no chat, no session. */
bool options_look(const struct options *o);
/* Tells the user where the thinking that was asked for does not fit the context. */
void options_note_thinking(const struct options *o, enum ds4_think used);

#endif
