/* Tokens of a scripted engine: whatever bytes occur, numbered as they come. A control token and a text of the same
 * bytes are two tokens. All functions may be called from any thread. */
#ifndef SERVE_SCRIPTED_VOCABULARY_H
#define SERVE_SCRIPTED_VOCABULARY_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct scripted_vocabulary;

struct scripted_vocabulary *scripted_vocabulary_new(void);
void scripted_vocabulary_free(struct scripted_vocabulary *v);
int32_t scripted_vocabulary_id(struct scripted_vocabulary *v, bool control, const char *bytes, size_t n);
/* The bytes live as long as the vocabulary. */
size_t scripted_vocabulary_bytes(struct scripted_vocabulary *v, int32_t id, bool *control, const char **bytes);

#endif
