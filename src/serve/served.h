/* What the server needs of a model, as a table, so that a loaded engine and a scripted one look alike from above. A
 * session is one timeline of tokens with the meaning of ds4.h; a generation is one answer in it: begin, then next and
 * submit in turn.
 *
 * Threads: info, encode and the token functions may be called from any thread, cancel too; all others from one. Errors
 * are those of ds4.h: 0 or a negative code, and a sentence. */
#ifndef SERVE_SERVED_H
#define SERVE_SERVED_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "ds4.h"
#include "text/chat.h"
#include "text/prompt.h"

enum { SERVED_MAX_ALTERNATIVES = 20 };

struct served_info {
    const char *name;   /* of the model, for people */
    const char *family; /* "deepseek4", "qwen38" */
    const char *id;     /* what the APIs call it, e.g. "deepseek-v4-flash" */
    const struct prompt_codec *codec;
    int efforts;  /* for chat_options */
    int ctx;      /* most tokens of a session */
    int sessions; /* that fit into memory by the plan */
};

struct served_alternative {
    const char *bytes; /* valid until the session's next call */
    size_t n;
    float logprob;
};

/* A token that was drawn, with what the client may ask about it. */
struct served_choice {
    int32_t id;
    float logprob;
    int n_alternatives;
    struct served_alternative alternative[SERVED_MAX_ALTERNATIVES]; /* most probable first */
};

struct served_draw {
    const struct ds4_sampling *sampling;
    bool logprobs;    /* fill logprob and alternatives */
    int alternatives; /* 0..SERVED_MAX_ALTERNATIVES */
};

struct served_ops;
/* A session of either kind begins with this. */
struct served_session {
    const struct served_ops *ops;
};

struct served_ops {
    void (*info)(const void *model, struct served_info *info);
    /* Appends the tokens of a prompt; at: [p->n], where in *out each part starts. */
    int (*encode)(const void *model, const struct prompt *p, struct ds4_tokens *out, size_t *at, struct ds4_error *e);
    size_t (*token_bytes)(const void *model, int32_t id, const char **bytes); /* of control tokens the spelling */
    bool (*token_is_control)(const void *model, int32_t id);
    bool (*token_is_stop)(const void *model, int32_t id);

    int (*session_create)(void *model, int ctx, struct served_session **out, struct ds4_error *e);
    void (*session_free)(struct served_session *s);
    int (*fork)(struct served_session *s, struct served_session **out, struct ds4_error *e);
    int (*length)(const struct served_session *s);
    const int32_t *(*tokens)(const struct served_session *s);
    int (*mark)(struct served_session *s, int pos, struct ds4_error *e);
    /* As ds4_session_sync, but the evaluation is only queued, like a submission. */
    int (*sync)(struct served_session *s, const int32_t *tokens, int n, struct ds4_sync_info *info,
                struct ds4_error *e);
    int (*submit)(struct served_session *s, const int32_t *tokens, int n, struct ds4_error *e);
    enum ds4_state (*collect)(struct served_session *s, int *done, struct ds4_error *e);
    void (*cancel)(struct served_session *s);
    int (*step)(void *model, struct ds4_error *e); /* 1: work is left; 0: all idle; negative: as ds4_engine_step */

    /* An answer to this prompt begins, before its tokens are synced. */
    int (*begin)(struct served_session *s, const struct prompt *p, struct ds4_error *e);
    /* The next token of the answer, behind the committed history; it still has to be submitted. A stop token ends the
     * answer; DS4_E_LIMIT: the context is full. */
    int (*next)(struct served_session *s, const struct served_draw *d, struct served_choice *out, struct ds4_error *e);
    /* The server puts this text into the answer itself; its tokens follow by submit. */
    void (*forced)(struct served_session *s, const char *text, size_t n);
};

struct served {
    const struct served_ops *ops;
    void *model;
};

#endif
