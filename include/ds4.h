/* ds4: the engine's only public header. An engine is a loaded model; a session is one timeline of tokens in it.
 *
 * Threads: one thread at a time may be inside an engine (all its sessions included). Exceptions: ds4_session_cancel,
 * and the tokenizer and text functions, which may be called from any thread at any time.
 *
 * Errors: functions that can fail return 0 or a negative code and fill *e (may be NULL) with one sentence for the user.
 * No call ends the process. After an error a session stands where it stood after its last committed token. */
#ifndef DS4_H
#define DS4_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of the engine and of all programs. */
#define DS4_VERSION "0.1.0"

enum { DS4_CTX_MIN = 2 }; /* the smallest context of a session: a token and one behind it */

typedef struct ds4_engine ds4_engine;
typedef struct ds4_session ds4_session;

enum ds4_code {
    DS4_OK = 0,
    DS4_E_ARG = -1,
    DS4_E_IO = -2,
    DS4_E_FORMAT = -3,
    DS4_E_MODEL = -4,
    DS4_E_MEMORY = -5,
    DS4_E_CANCELLED = -6,
    DS4_E_LIMIT = -7,
    DS4_E_DEVICE = -8
};

struct ds4_error {
    int code;
    char message[1000];
};

/* ---------------------------------------------------------------- engine */

enum ds4_effort {
    DS4_EFFORT_FILE,
    DS4_EFFORT_PREVIEW,
    DS4_EFFORT_LATE
}; /* which checkpoint's mapping of reasoning efforts */

/* Where weights are while they are used: in the mapped files, of which the system keeps what it has room for; or read
 * into memory of their own when the engine opens, in huge pages where there are such, and near the threads that use
 * them where memory has several nodes. AUTO: read where there are several nodes, else map. */
enum ds4_load { DS4_LOAD_AUTO, DS4_LOAD_MAP, DS4_LOAD_READ };

struct ds4_options {
    const char *const *model_paths; /* a file, any shard of a split set, or several whole files */
    int n_model_paths;
    const char *backend; /* "cpu" (NULL), "ref" */
    /* kernels of "cpu": scalar, avx2, avxvnni, avx512, amx, neon, neon-dotprod, neon-i8mm; NULL: best. With amx, and
       where it is the best, the process asks the system for tiles; alternate signal stacks then need room for them */
    const char *isa;
    int threads;           /* 0: one per physical core, and for decode steps as many of them as read memory fastest */
    int threads_decode;    /* of decode steps, if threads is set too; 0: as many */
    bool numa_off;         /* do not bind threads to cores, nor cut work and weights by memory nodes, where there are
                              several nodes */
    int prefill_chunk;     /* most rows of a prefill step; 0: at most 2048, as sessions and memory allow */
    int sessions, ctx;     /* what the memory plan counts with: sessions of ctx tokens; 0: 1 and 32768 */
    uint64_t anchor_bytes; /* rewind points per session; 0: 256 MiB */
    uint64_t memory_limit; /* bytes the engine may count on; 0: what is free now */
    enum ds4_load load;
    bool page_weights; /* run although the weights do not fit into memory (they are read again and again) */
    bool report_only;  /* for ds4_engine_report: opened even if memory is short, nothing is computed, no sessions */
    bool headers_only; /* with report_only: no weight is read at all, so damage inside them stays unseen */
    bool kv_sim_off;   /* no FP8/FP4 rounding of stored rows: they are kept in F32 */
    bool draft;        /* use a draft block inside the file, if there is one, for ds4_session_propose */
    enum ds4_effort effort;
    /* Level 0 (error) to 3 (debug); NULL: warnings on stderr. A process has one log: that of the engine opened last,
     * until it closes. */
    void (*log)(void *arg, int level, const char *subject, const char *text);
    void *log_arg;
    /* Called while weights are read (DS4_LOAD_READ), in the thread that opens, with log_arg; may be NULL. */
    void (*loading)(void *arg, uint64_t done_bytes, uint64_t total_bytes);
};

/* Opens, checks and binds a model. The memory plan is logged and checked before anything large is allocated. */
int ds4_engine_open(const struct ds4_options *o, ds4_engine **out, struct ds4_error *e);
void ds4_engine_close(ds4_engine *g); /* its sessions must be freed before */

struct ds4_model_info {
    const char *name, *family, *dialect, *backend, *isa;
    int n_layers, n_vocab, ctx_max, prefill_chunk;
    int threads, threads_decode; /* of prompts and of decode steps */
    int numa_nodes;              /* that work is cut by; 1: it is not */
    bool weights_read;           /* into memory of their own */
    int draft_max;               /* most tokens of ds4_session_draft */
    bool draft;                  /* a draft block is in use */
    int quant_bits;              /* of a weight of the routed experts, on average, rounded down; 0: no such experts */
};
void ds4_engine_info(const ds4_engine *g, struct ds4_model_info *info);

struct ds4_memory_plan {
    uint64_t weights;     /* of the files, mapped or read */
    uint64_t weights_own; /* widened copies */
    uint64_t scratch;     /* buffers and working space, once per engine */
    uint64_t session;     /* per session of ctx tokens, anchors apart */
    uint64_t anchors;     /* per session */
    uint64_t total, available;
    uint64_t active; /* of the weights: what decoding the last token of ctx reads */
    int sessions, ctx;
};
void ds4_engine_plan(const ds4_engine *g, struct ds4_memory_plan *plan);
/* What it would be with sessions of another context. */
void ds4_engine_plan_for(const ds4_engine *g, int ctx, struct ds4_memory_plan *plan);
/* What tokens at positions [from, to) cost at least, however they are computed; 0 <= from < to. weights: bytes that
 * decoding one of them reads. The others are multiply-adds of one of them on average, the head (the logits) apart: with
 * weights in blocks of integers, with float weights, and with its history (attention, scores of an index, the state of
 * a recurrence). */
struct ds4_cost {
    uint64_t weights;
    double int8, f32, attention;
};
void ds4_engine_cost(const ds4_engine *g, int from, int to, struct ds4_cost *cost);
/* Has the system give the memory that prompts are worked on in (the plan's scratch) now. Without it the first long
 * prompt waits for that: on a virtual machine for a second a GiB and more. For programs that have time before their
 * first prompt. */
void ds4_engine_warm(ds4_engine *g);
/* Waits, so many seconds at most, for what the engine still does beside its work; true: that is over. Mapped weights
 * that the system's cache has in small pages are read again into huge ones (once for as long as they stay in the
 * cache), which makes everything faster. For programs that measure. */
bool ds4_engine_settle(ds4_engine *g, int seconds);
/* Text of ds4 --inspect: dialect report, shape, plan. Valid until the engine closes. */
const char *ds4_engine_report(const ds4_engine *g);

/* ---------------------------------------------------------------- text */

struct ds4_tokens {
    int32_t *p; /* owned: ds4_tokens_free */
    size_t n, cap;
};
void ds4_tokens_free(struct ds4_tokens *t);

/* Appends the ids of a text. rendered: special tokens that occur literally become their ids (a rendered chat); else no
 * byte sequence ever does (untrusted text). */
int ds4_tokenize(const ds4_engine *g, const char *text, size_t n, bool rendered, struct ds4_tokens *out,
                 struct ds4_error *e);
/* Bytes of a token; returns their number. */
size_t ds4_token_bytes(const ds4_engine *g, int32_t id, const char **bytes);
bool ds4_token_is_stop(const ds4_engine *g, int32_t id);
bool ds4_token_is_special(const ds4_engine *g, int32_t id);
int32_t ds4_token_think_begin(const ds4_engine *g); /* -1: the family has none */
int32_t ds4_token_think_end(const ds4_engine *g);

enum ds4_role { DS4_SYSTEM, DS4_USER, DS4_ASSISTANT, DS4_TOOL };
enum ds4_think { DS4_THINK_OFF, DS4_THINK_HIGH, DS4_THINK_MAX };
struct ds4_message {
    enum ds4_role role;
    const char *text;
    size_t n_text;
    const char *reasoning;
    size_t n_reasoning; /* assistant messages; NULL: none */
};
/* Appends a conversation in the family's chat frame, ready for the assistant's answer. think max falls back to high
 * where the context is too small for it; *used says which was rendered (may be NULL). */
int ds4_chat_tokens(const ds4_engine *g, const struct ds4_message *m, size_t n, enum ds4_think think, int ctx,
                    struct ds4_tokens *out, enum ds4_think *used, struct ds4_error *e);
/* The same for messages that follow a live history whose last token is the last of an answer (without its stop token):
 * closes the answer, then appends the messages. No system messages. */
int ds4_chat_next_tokens(const ds4_engine *g, const struct ds4_message *m, size_t n, enum ds4_think think, int ctx,
                         struct ds4_tokens *out, enum ds4_think *used, struct ds4_error *e);
/* True if a prompt is rendered chat already (begins with the family's first token or a user turn, literally). */
bool ds4_is_rendered_chat(const ds4_engine *g, const char *text, size_t n);

/* ---------------------------------------------------------------- sessions */

int ds4_session_create(ds4_engine *g, int ctx, ds4_session **out, struct ds4_error *e);
void ds4_session_free(ds4_session *s);
/* A session with the same history, sharing what can be shared; the source must be idle. */
int ds4_session_fork(ds4_session *s, ds4_session **out, struct ds4_error *e);

int ds4_session_length(const ds4_session *s); /* committed tokens */
int ds4_session_ctx(const ds4_session *s);
const int32_t *ds4_session_tokens(const ds4_session *s);
/* Logits after the last committed token, n_vocab floats; NULL while there are none. Valid until the session changes. */
const float *ds4_session_logits(const ds4_session *s);

/* Progress of tokens being evaluated, called between steps: done of total. */
typedef void ds4_progress(void *arg, int done, int total);

/* What a sync found and did. */
struct ds4_sync_info {
    int reused;     /* tokens kept */
    int evaluated;  /* tokens computed, replayed ones included */
    int first_diff; /* position of the first token that differed, or -1 */
};
/* Makes the session's history exactly tokens[0..n): keeps the longest common prefix (rewinding through anchors where
 * the history went on differently), evaluates the rest, returns when done. 0 < n < ctx. On cancellation the completed
 * part stays. */
int ds4_session_sync(ds4_session *s, const int32_t *tokens, int n, ds4_progress *progress, void *arg,
                     struct ds4_sync_info *info, struct ds4_error *e);
/* The same without waiting: what is left to evaluate is queued like a submission (ds4_engine_step computes it,
 * ds4_session_collect tells how far it is; DS4_DONE at once where nothing is left). info->evaluated is 0. */
int ds4_session_sync_submit(ds4_session *s, const int32_t *tokens, int n, struct ds4_sync_info *info,
                            struct ds4_error *e);
/* Says that a rewind will want to go to this position (end of the system text, of a message, start of an answer).
 * Positions ahead are honoured when they are evaluated: a chunk ends there and a rewind point is kept. */
int ds4_session_mark(ds4_session *s, int pos, struct ds4_error *e);
/* Shortens the history to pos tokens (0 <= pos <= length): from a rewind point, with replay where needed. Logits are
 * then those of pos. */
int ds4_session_rewind(ds4_session *s, int pos, struct ds4_error *e);

/* Several sessions at once. submit queues tokens behind the history; step computes one unit of work: a decode step of
 * all sessions that wait with at most draft_max tokens, in turn with one layer of the oldest prefill chunk; collect
 * tells how far a session is. step returns 1 while work is left, 0 when all are idle, negative when a unit failed (the
 * sessions it served are DS4_FAILED and keep their committed history; the others go on). */
enum ds4_state { DS4_IDLE, DS4_BUSY, DS4_DONE, DS4_FAILED, DS4_CANCELLED };
int ds4_session_submit(ds4_session *s, const int32_t *tokens, int n, struct ds4_error *e);
int ds4_engine_step(ds4_engine *g, struct ds4_error *e);
/* State of the last submission; DONE, FAILED and CANCELLED are told once, then the session is IDLE. done: its tokens
 * committed so far. */
enum ds4_state ds4_session_collect(ds4_session *s, int *done, struct ds4_error *e);
/* Drops what is queued or running for s, in the middle of a layer (ref: at its end); a decode step that others share is
 * ended for them first. Without work it has no effect. Any thread. */
void ds4_session_cancel(ds4_session *s);

/* Speculation. draft evaluates n <= draft_max tokens behind the history without committing; logits [n][n_vocab] of
 * every row. Then exactly one commit keeps the first n_keep (0..n) of them. */
int ds4_session_draft(ds4_session *s, const int32_t *tokens, int n, float *logits, struct ds4_error *e);
int ds4_session_commit(ds4_session *s, int n_keep, struct ds4_error *e);

struct ds4_sampling;
/* Guesses of the model's draft block for the tokens behind `token`, which comes next and is not evaluated yet: up to n,
 * drawn as ds4_sample will draw from the true logits at these positions, so that good guesses are met at any
 * temperature. Nothing changes in the session. Returns their number (0: the engine has no draft block, or the session
 * no history), or an error. To use them: draft [token, guesses], sample row after row, and commit up to the first row
 * whose sample is not the next guess: the tokens are those of plain decoding. */
int ds4_session_propose(ds4_session *s, int32_t token, const struct ds4_sampling *p, int n, int32_t *guess,
                        struct ds4_error *e);

/* Snapshot in memory: everything a session needs to go on, for an engine of the same model file, backend and options.
 */
int ds4_session_snapshot(ds4_session *s, void **data, size_t *n, struct ds4_error *e); /* ds4_free */
uint64_t ds4_session_bytes(const ds4_session *s);                                      /* of a snapshot now */
int ds4_session_restore(ds4_session *s, const void *data, size_t n, struct ds4_error *e);
void ds4_free(void *p);

/* Sessions on file: what a snapshot holds, little endian, with checksums over all of it (docs/sessions.md). save
 * replaces the file in one go once all of it is on the disk, and needs little memory. load is for the same model,
 * backend and kv_sim_off; threads, kernel set and chunks may differ, and the context as long as the tokens fit. Until
 * it succeeds the session keeps what it has, so for a moment both histories need memory. Refusals name the file and the
 * reason: DS4_E_IO (cannot be read or written), DS4_E_FORMAT (no session, damaged, cut off, another version of the
 * format), DS4_E_MODEL (another model, backend or kv_sim_off), DS4_E_LIMIT (more tokens than the context). */
int ds4_session_save(ds4_session *s, const char *path, struct ds4_error *e);
int ds4_session_load(ds4_session *s, const char *path, struct ds4_error *e);

/* ---------------------------------------------------------------- sampling */

struct ds4_sampling {
    float temperature; /* 0: the highest logit, lowest id on ties */
    int top_k;         /* 0: all */
    float top_p;       /* 1: all */
    float min_p;       /* 0: all; relative to the most probable token */
    uint64_t seed;
};
/* 0; or DS4_E_MODEL: a logit is NaN or infinite, as where weights are damaged. Nothing drawn from such logits means
 * anything: answers should end here. */
int ds4_logits_check(const float *logits, int n_vocab, struct ds4_error *e);

/* Draws a token. Weights are e^(logit / temperature); then, each on what the one before left: the top_k highest, the
 * fewest highest whose share of the weight reaches top_p, those of at least min_p times the highest weight (the highest
 * always stays; of equals the lower ids are higher). One of them is drawn in proportion to its weight. The random
 * number in [0, 1) is a hash of seed and position, so drafted and plain decoding draw alike. NaN counts as impossible.
 */
int32_t ds4_sample(const float *logits, int n_vocab, const struct ds4_sampling *p, uint64_t position);

struct ds4_logprob {
    int32_t id;
    float logprob;
};
/* The k most probable tokens, descending (lowest id first on ties), from the unfiltered softmax. Returns how many. */
int ds4_top_logprobs(const float *logits, int n_vocab, int k, struct ds4_logprob *out);
float ds4_token_logprob(const float *logits, int n_vocab, int32_t id);

#endif
