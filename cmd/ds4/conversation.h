/* A conversation: its exact list of tokens, and the session that holds what was computed for them. */
#ifndef CONVERSATION_H
#define CONVERSATION_H
#include "ds4.h"
#include "generate.h"
#include "options.h"

struct conversation {
    ds4_engine *g;
    ds4_session *s;
    struct options o;          /* the conversation's own: thinking and context change */
    struct ds4_tokens history; /* empty, or it ends with an answer, whose stop token comes with the next turn */
    bool changed;              /* since it was read from or written to the file of --session */
};

/* Starts one, or resumes that of --session. */
int conversation_begin(struct conversation *c, ds4_engine *g, const struct options *o, struct ds4_error *e);
/* Saves to the file of --session what is not there yet; frees everything. */
int conversation_end(struct conversation *c, struct ds4_error *e);

/* Says something and lets the model answer. After an error, or where no token of an answer came (r->generated 0), the
 * conversation is as it was; one that is interrupted later keeps what there is of the answer. */
int conversation_turn(struct conversation *c, const char *text, size_t n, struct generate_result *r,
                      struct ds4_error *e);
void conversation_reset(struct conversation *c);
/* A context of n tokens; what was computed is kept where there is memory for a copy. */
int conversation_resize(struct conversation *c, int n, struct ds4_error *e);
/* To and from a file; a load that fails changes nothing. */
int conversation_save(struct conversation *c, const char *path, struct ds4_error *e);
int conversation_load(struct conversation *c, const char *path, struct ds4_error *e);

#endif
