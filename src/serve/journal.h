/* A journal of requests for an answer: one JSON object a line, enough to send them again (tools/replay). It holds what
 * people wrote, so only its owner can read it; keys and cookies are never in it. docs/server.md has its members. */
#ifndef SERVE_JOURNAL_H
#define SERVE_JOURNAL_H
#include "base/err.h"
#include "serve/http.h"

struct journal;
/* Appends to the file, or makes it. keys: of the server; what contains one of them is left out. Copies. */
int journal_open(const char *path, const char *const *keys, size_t n_keys, struct journal **out, struct err *e);
void journal_close(struct journal *j); /* after its last entry has ended; NULL is fine */

/* One request. All functions do nothing for an entry that is NULL, as it is without a journal. */
struct journal_entry;
/* j NULL: NULL. Copies. */
struct journal_entry *journal_begin(struct journal *j, const struct http_request *q);
void journal_told(struct journal_entry *entry, size_t n); /* that many bytes of the answer's body went out */
/* Writes the line and frees the entry. status: 0 if nothing was answered. how: "complete", "error", "client gone". Any
 * thread. */
void journal_end(struct journal_entry *entry, int status, const char *how);

#endif
