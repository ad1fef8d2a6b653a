/* The tool calls of earlier answers, exactly as they were sampled, by the ids that clients were given: when a client
 * sends such a call back, the prompt gets the very bytes that the model wrote, and the history is not read again. Ids
 * are random and count only together with the key of the request that made them. Oldest use goes first. */
#ifndef SERVE_TOOL_MEMORY_H
#define SERVE_TOOL_MEMORY_H
#include <stdbool.h>
#include <stddef.h>
#include "base/str.h"

struct tool_memory;

enum { CALL_ID_SIZE = 48 }; /* a prefix of at most 15 bytes, 32 hex digits and the zero */

/* max_ids 0: nothing is kept. */
struct tool_memory *tool_memory_new(size_t max_ids, size_t max_bytes);
void tool_memory_free(struct tool_memory *m);
/* A new id: prefix and 128 random bits. */
void tool_memory_id(const char *prefix, char out[CALL_ID_SIZE]);
/* The calls of one answer: its block, and what was thought before it, which not every client sends back. key: NULL
 * without one. */
void tool_memory_put(struct tool_memory *m, const char *key, char (*ids)[CALL_ID_SIZE], size_t n_ids,
                     const struct str *block, const struct str *reasoning);
/* Appends both if all ids are known under this key and belong to the same answer. */
bool tool_memory_get(struct tool_memory *m, const char *key, const char *const *ids, size_t n_ids, struct str *block,
                     struct str *reasoning);

#endif
