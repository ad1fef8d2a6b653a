/* Runs of the answer parser: one text, cut in some way, and what came of it in one readable line. */
#ifndef SUPPORT_ANSWER_RUN_H
#define SUPPORT_ANSWER_RUN_H
#include "base/str.h"
#include "text/answer.h"
#include "text/chat.h"

/* The tools of the tests:
 *   weather(city: string, days: integer)   note(path: string, text: string)   shell(command: string, seconds: number)
 *   look(what, any type)   list()   pick(flag: boolean or null, count: integer or null, label: string or integer,
 *   list: array, place: object)   patch: custom */
extern const struct chat_tool answer_tools[];
extern const size_t answer_n_tools;

/* What came of an answer. `line` joins the events that belong together: [R reasoning][T text][C name arguments], a call
 * that was begun and never ended [C name arguments..., and the end: stop, length, calls; " over" before it if feeding
 * ended the answer. */
struct answer_run {
    struct str line;
    struct str block, note;
    size_t n_calls; /* complete ones */
};

/* Makes a run. Aborts with a message unless all is as it must be whatever the model said: reasoning, text and names are
 * valid UTF-8, names are declared, arguments of complete calls are JSON objects (raw text of custom tools), no call is
 * left unfinished without a limit, the end fits.
 * ends[n_ends]: offsets where feeds end, the last one is the end of the text. */
void answer_run(struct answer_run *r, const struct answer_options *o, const char *text, const size_t *ends,
                size_t n_ends, enum answer_cause cause);
void answer_run_whole(struct answer_run *r, const struct answer_options *o, const char *text, size_t n,
                      enum answer_cause cause);
void answer_run_bytes(struct answer_run *r, const struct answer_options *o, const char *text, size_t n,
                      enum answer_cause cause);
void answer_run_free(struct answer_run *r);

#endif
