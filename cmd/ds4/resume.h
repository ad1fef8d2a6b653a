/* --session: a history that outlives the program. */
#ifndef RESUME_H
#define RESUME_H
#include "ds4.h"
#include "options.h"

/* Makes the session. With --session NAME it is taken from that file if there is one, and its tokens are *history
 * (empty before); a place where NAME could not be written is an error now, not after the answer. Where the options only
 * look, NAME must exist and is not written to. */
int resume_begin(ds4_engine *g, const struct options *o, ds4_session **out, struct ds4_tokens *history,
                 struct ds4_error *e);
/* *history becomes the session's. */
void resume_take(const ds4_session *s, struct ds4_tokens *history);
/* Writes the history to a file; the session is brought to it first. */
int resume_save(ds4_session *s, const char *path, const struct ds4_tokens *history, struct ds4_error *e);

#endif
