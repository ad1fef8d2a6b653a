/* Engines on small random models, and what they must answer: the logits after every position of one list of tokens,
 * evaluated one token at a time by a session alone. Every other way to the same position has to give the same bits. */
#ifndef ENGINE_KIT_H
#define ENGINE_KIT_H
#include <stdbool.h>
#include <stdint.h>
#include "ds4.h"

enum kit_model {
    KIT_F16,
    KIT_Q8,
    KIT_Q2,   /* experts Q2_K, the rest Q8_0 */
    KIT_NINE, /* nine types of blocks and more, each matrix of the experts another one; by ds4-gguf synth */
    KIT_QWEN, /* Qwen3.8: experts MXFP4, the rest Q8_0, with its draft block */
    KIT_MODEL_COUNT
};

/* A model file, written on first use and removed by kit_clean. */
const char *kit_path(enum kit_model m);
void kit_clean(void);
/* The same at the end of a group of tests; returns 0. */
int kit_teardown(void **state);

/* Options for the model with 2 threads, room for 4096 tokens and 8 sessions, silent. */
struct ds4_options kit_options(enum kit_model m);
/* The functions below fail the running test on error. */
ds4_engine *kit_open(const struct ds4_options *o);
ds4_session *kit_session(ds4_engine *g);

/* Token number i of the list, and its beginning (KIT_TOKENS tokens). */
enum { KIT_TOKENS = 2100 };
const int32_t *kit_tokens(void);

/* Logits after the first n tokens, 1 <= n <= KIT_TRUTH, from a file evaluated once per model. */
enum { KIT_TRUTH = 700, KIT_VOCAB = 288 };
const float *kit_truth(enum kit_model m, int n);
/* The session's history is the first n tokens of the list, and its logits are those. */
void kit_check(const ds4_session *s, enum kit_model m, int n);

void kit_submit(ds4_session *s, const int32_t *tokens, int n);
/* Submits tokens and steps until the session is done. */
void kit_eval(ds4_session *s, const int32_t *tokens, int n);
void kit_sync(ds4_session *s, const int32_t *tokens, int n);
void kit_rewind(ds4_session *s, int pos);

/* xorshift; below: 0 .. n-1. */
uint64_t kit_random(uint64_t *state);
int kit_below(uint64_t *state, int n);

#endif
