/* Hyper-parameters of a family by their keys: a table says where each lies in the family's struct; by it they are set
 * from text, written and given to checks. */
#ifndef PARAM_KEYS_H
#define PARAM_KEYS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"
#include "gguf/gguf.h"

enum param_kind {
    PARAM_WHOLE,  /* int64_t; u32 in a file */
    PARAM_LONG,   /* int64_t; u64 in a file */
    PARAM_REAL,   /* float */
    PARAM_SWITCH, /* int64_t 0 or 1; bool in a file */
    PARAM_WHOLES, /* int32_t[most] */
    PARAM_REALS,  /* float[most] */
    PARAM_BIGS,   /* uint64_t[most] */
    PARAM_OTHER   /* the family's own */
};
enum { PARAM_UNSET = -1 }; /* a number, or the length of a list: the file does not have the key */

struct param_key {
    const char *name; /* without the architecture's prefix; NULL behind the last */
    enum param_kind kind;
    size_t at;   /* of the value in the struct */
    size_t n_at; /* lists: of their int64_t length */
    int most;    /* lists: of it */
};

const struct param_key *param_find(const struct param_key *keys, const char *name); /* NULL: there is none */
bool param_is_list(const struct param_key *k);
bool param_is_set(const void *params, const struct param_key *k);
int64_t param_whole(const void *params, const struct param_key *k); /* WHOLE, LONG, SWITCH */
float param_real(const void *params, const struct param_key *k);
int64_t param_length(const void *params, const struct param_key *k);      /* lists */
double param_entry(const void *params, const struct param_key *k, int i); /* lists */

/* Sets one from text: a number, "true" or "false", numbers with commas between them. ERR_ARG names key and text. Not
 * for OTHER. */
int param_set(void *params, const struct param_key *k, const char *text, struct err *e);
/* Writes one that is set, as "ARCH.name". Not for OTHER. */
void param_put(struct gguf_writer *w, const char *arch, const void *params, const struct param_key *k);

#endif
