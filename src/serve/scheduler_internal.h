/* What the files of the scheduler share. */
#ifndef SERVE_SCHEDULER_INTERNAL_H
#define SERVE_SCHEDULER_INTERNAL_H
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include "serve/prefix.h"
#include "serve/repetition.h"
#include "serve/scheduler.h"
#include "text/answer.h"
#include "text/stop_strings.h"

/* A request from its arrival to its end. */
struct job {
    uint64_t number;
    struct ask ask;
    const struct client *client;
    void *arg;
    atomic_bool cancelled;
    double arrived, placed, spoken; /* s: added, given a session, client reminded last */
    struct job *next;               /* in the queue */
};

/* A call of the answer that is being written. */
struct call_id {
    char text[CALL_ID_SIZE];
};

/* A session and the answer it is in. */
struct slot {
    struct served_session *session;
    bool *sampled;   /* [ctx] of the history's tokens: by the model */
    double used;     /* s: when it was last of use */
    struct job *job; /* NULL: idle */

    bool answering;       /* the prompt has been read */
    bool ready;           /* what was submitted is part of the history: the answer can go on, and be copied */
    struct prefix prefix; /* what was found of the prompt */
    char why[160];        /* why the prefix ended where it did */
    struct usage usage;
    double read_s, began; /* seconds for the prompt; when the answer began */

    struct answer *answer;
    struct str reasoning; /* of it, so far */
    struct stop_strings *stops;
    int max_tokens, budget; /* of the answer; of its thinking, 0: none */
    bool call_forced;
    int stop; /* index of the stop string that was met, or -1 */
    char (*call)[CALL_ID_SIZE];
    size_t n_calls, cap_calls;
    int tool; /* of the call that is being written */
    struct repetition repetition;
};

struct scheduler {
    struct scheduler_options o;
    struct served_info info;
    struct slot *slot;
    int n_slots; /* one more than answers at a time: side questions then find one without an old conversation */
    int active;

    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t wake;
    struct job *queue, **queue_end;
    struct job *placing; /* neither in the queue nor in a session */
    int queued;
    uint64_t numbers;
    bool stopping;
    char failure[1000]; /* "": the model works */
    struct scheduler_counts counts;
};

/* ---- slots.c: which session a prompt goes to ---- */

/* Finds a session for the job and queues its prompt there; the caller makes it the slot's. 0; or an error; or
 * SLOT_LATER: nothing was done, the history to go on from is that of an answer whose next token is being computed.
 * Fewer than o.sessions answers are being written. */
enum { SLOT_LATER = 1 };
int slot_place(struct scheduler *s, struct job *j, struct slot **out, struct ds4_error *e);
/* Tokens of the prompt that have been read so far, beyond those that were cached. */
int slot_read(const struct slot *t);

/* ---- generation.c: an answer, token by token ---- */

/* The prompt has been read: the answer begins. */
void generation_begin(struct scheduler *s, struct slot *t);
/* One token further: samples (or forces) what comes next and submits it. Ends the answer where it is over. */
void generation_next(struct scheduler *s, struct slot *t);
/* Ends it before its time. */
void generation_fail(struct scheduler *s, struct slot *t, const struct api_error *why);
void generation_drop(struct scheduler *s, struct slot *t); /* cancelled */

/* ---- scheduler.c ---- */

void job_free(struct job *j);
/* The slot is idle again. */
void slot_release(struct scheduler *s, struct slot *t);
/* A step or a session failed: what the client is told. Remembers it if the model can do no more. */
void failure_of_model(struct scheduler *s, const struct ds4_error *e, struct api_error *out);

/* ---- request_log.c ---- */

void request_log(const struct scheduler *s, const struct slot *t, const char *finish);

#endif
