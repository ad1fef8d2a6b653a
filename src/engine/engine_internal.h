/* What the files of the engine share: the engine, its sessions, and evaluations in flight.
 *
 * A session is a list of tokens: [0, length) are history (the family's state stands behind them), [length, length +
 * pending) wait to be evaluated. A batch carries some waiting tokens of some sessions through the layers; only its
 * commit moves them into the history. Everything that can go wrong before drops the batch and leaves the history as it
 * was. */
#ifndef ENGINE_INTERNAL_H
#define ENGINE_INTERNAL_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "ds4.h"
#include "base/err.h"
#include "base/pool.h"
#include "base/str.h"
#include "base/topology.h"
#include "device/device.h"
#include "dialect/canonical.h"
#include "engine/pace.h"
#include "models/family.h"
#include "text/bpe.h"

enum {
    DRAFT_MAX = 16,    /* most rows that a session has in a decode step; the slack of the families' rings */
    DECODE_ROWS = 64,  /* most rows of a decode step */
    ANCHOR_STEP = 128, /* rewind points are taken at its multiples: the smallest state of DeepSeek V4 (spec 3.5) */
};

/* ---------------------------------------------------------------- batches (engine_batch.c) */

/* What crosses a layer border: the family's buffers for steps of some number of rows. */
struct carry {
    int n;
    struct dev_buf *part[CARRY_PARTS];
};
int carry_create(struct ds4_engine *g, int rows, struct carry *c, struct err *e);
void carry_free(struct ds4_engine *g, struct carry *c);
uint64_t carry_bytes(const struct ds4_engine *g, int rows);

/* One evaluation in flight: the row table, and how far it is. Borrows carry, scratch and stream. */
struct batch {
    struct step step; /* rows.n and rows.n_segments count what was added */
    int cap_rows, cap_segments;
    int layer;      /* layers done */
    bool prepared;  /* the family has seen it: it must be committed or dropped */
    int32_t *table; /* owned: all columns of the row table, cap_rows each */
    int32_t *token, *segment, *pos, *rope_pos, *raw_first, *raw_last; /* columns; rope_pos: three values a row */
    int *head_row;              /* [cap_rows] rows that want logits, for the head */
    struct segment *segments;   /* [cap_segments] owned */
    void **state;               /* [cap_segments] owned list of borrowed states */
    struct ds4_session **owner; /* [cap_segments] owned list of borrowed sessions */
};

int batch_create(struct ds4_engine *g, struct batch *b, int rows, int segments, const struct carry *carry,
                 struct err *e);
void batch_free(struct batch *b);
/* Bytes that batch_create allocates. */
uint64_t batch_bytes(int rows, int segments);
/* True if n rows more of one more session fit. */
bool batch_fits(const struct batch *b, int n);
/* Adds the next n waiting tokens of a session and notes the batch in it. */
void batch_add(struct batch *b, struct ds4_session *s, int n);
/* One layer, with preparation and embedding before the first. Errors: the family's, the stream's, damaged model files,
 * ERR_CANCELLED if none of its sessions wants it any more. After an error the batch must be dropped. */
int batch_layer(struct ds4_engine *g, struct batch *b, struct err *e);
/* Logits of n of its rows, into the engine's logits buffer. */
int batch_head(struct ds4_engine *g, struct batch *b, const int *row, int n, struct err *e);
/* The first n rows of a segment become history of the family's state; small segments may grow in several calls. */
int batch_commit(struct ds4_engine *g, struct batch *b, int segment, int n, struct err *e);
/* Forgets the batch: nothing of it becomes history. The stream's error is emptied. */
void batch_drop(struct ds4_engine *g, struct batch *b);
/* Empties a batch whose segments are all committed. */
void batch_done(struct batch *b);

/* ---------------------------------------------------------------- rewind points (anchors.c) */

/* A copy of what a state needs at pos, and the logits there. Shared by forks. */
struct anchor {
    int refs;
    int pos;
    size_t cap;    /* bytes of data */
    float *logits; /* [n_vocab], first part of data */
    void *part;    /* of the family's anchor_take, behind it */
    unsigned char data[];
};

struct anchors {
    struct anchor **at; /* ascending positions */
    bool *marked;       /* beside at */
    int n, cap;
    uint64_t bytes, budget;
    int *mark; /* positions ahead at which a rewind point is wanted, ascending */
    int n_mark, cap_mark;
};

void anchors_free(struct anchors *a);
/* Removes the points behind length (all marks stay). */
void anchors_cut(struct anchors *a, int length);
/* Index of the last point at or before pos; -1: none. */
int anchors_find(const struct anchors *a, int pos);
/* A rewind point at pos is wanted: one that is there is kept longest, a position ahead is remembered. */
int anchors_mark(struct anchors *a, int pos, struct err *e);
/* First mark ahead of pos; INT_MAX: none. */
int anchors_next_mark(const struct anchors *a, int pos);
/* True if a point is to be taken at pos, which needs logits there. */
bool anchors_wanted(const struct anchors *a, int pos);
/* Takes a point at the session's length if one is wanted and the budget allows it; marks passed are done with. */
void anchors_take(struct ds4_session *s);
/* dst (empty) gets the points of src up to length and its marks. */
int anchors_share(struct anchors *dst, const struct anchors *src, int length, struct err *e);

/* ---------------------------------------------------------------- sessions */

struct ds4_session {
    struct ds4_engine *engine;
    int slot; /* index into engine->session */
    int ctx;
    void *state;       /* the family's */
    uint64_t promised; /* bytes that the memory plan counts for it */
    int32_t *tokens;   /* [ctx] */
    int length, pending;
    float *logits; /* [n_vocab] after the last token of the history, if have_logits */
    bool have_logits;

    enum ds4_state status; /* of the last submission */
    int done;              /* its tokens in the history so far */
    uint64_t ticket;       /* smaller: has waited longer */
    struct batch *batch;   /* that carries its tokens now, or NULL */
    struct err failure;    /* of DS4_FAILED */
    atomic_bool cancel;    /* set by any thread */

    struct batch draft;  /* DRAFT_MAX rows; in flight between draft and commit */
    int n_draft;         /* rows that wait for a commit; 0: none */
    float *draft_logits; /* [DRAFT_MAX][n_vocab] */

    struct anchors anchors;
};

/* ERR_ARG unless the session neither evaluates nor waits for the commit of a draft. */
int session_idle(const struct ds4_session *s, struct err *e);
/* ERR_ARG if one of the ids is not of the vocabulary. */
int session_check_tokens(const struct ds4_session *s, const int32_t *tokens, int n, struct err *e);
/* What files and snapshots keep of a session behind a header: tokens i32[length], logits f32[n_vocab] if has_logits,
 * the family's rows, its anchor part. */
struct session_sizes {
    int32_t length, n_vocab, has_logits, reserved; /* 0: no padding */
    uint64_t rows_bytes, anchor_bytes;
};
struct session_parts {
    uint64_t tokens, logits, rows, anchor, end; /* where they begin */
};
struct session_sizes session_sizes(const struct ds4_session *s);
/* True if a session of the engine can have these sizes, whatever its context. */
bool session_sizes_possible(const struct ds4_engine *g, const struct session_sizes *z);
struct session_parts session_parts(const struct session_sizes *z, uint64_t header_bytes);
/* The first n waiting tokens are history now (the family has committed them); logits may be NULL. */
void session_advance(struct ds4_session *s, int n, bool have_logits);
/* Queues the n tokens that lie behind the history in s->tokens. */
void session_enqueue(struct ds4_session *s, int n);
/* Runs the engine until the session's submission is over. 0, or its error (ERR_CANCELLED included). */
int session_run(struct ds4_session *s, ds4_progress *progress, void *arg, struct err *e);

/* Moves the history back to the largest position <= pos that needs no evaluation. Nothing changed on error. */
int session_reach(struct ds4_session *s, int pos, struct err *e);
/* Puts an empty state in place of the session's. */
int session_reset(struct ds4_session *s, struct err *e);
/* The history is these i32 tokens now, behind which the state stands already; logits: f32 [n_vocab], or NULL. Both may
 * lie anywhere. The rewind points of the history before are gone. */
void session_replace(struct ds4_session *s, const void *tokens, int length, const void *logits);

/* ---------------------------------------------------------------- the engine */

struct ds4_engine {
    struct pool *pool;           /* NULL: the device has no use for it */
    int threads, threads_decode; /* of sweeps, of other batches */
    struct topology topology;
    struct dev *dev;
    struct canonical *canonical; /* NULL in tests with a family of their own */
    const struct family *family;
    void *model;
    struct bpe *bpe; /* NULL without canonical */
    char backend[8];
    const char *isa; /* "" where the backend has no kernel sets */
    enum ds4_effort effort;
    bool kv_sim_off, draft, page_weights, report_only;
    enum ds4_load load;     /* never AUTO once threads are there */
    struct huge_work *huge; /* NULL: none */
    int n_layers, n_vocab, prefill_chunk;
    uint64_t anchor_bytes;
    uint64_t identity;    /* of the model, whatever computes it */
    uint64_t fingerprint; /* of everything that a snapshot depends on */

    struct ds4_memory_plan plan;
    uint64_t promised; /* to the sessions that exist */
    struct str report;
    void (*log)(void *arg, int level, const char *subject, const char *text); /* the caller's, or NULL */
    void *log_arg;
    void (*loading)(void *arg, uint64_t done, uint64_t total); /* likewise */

    struct dev_stream *stream;
    struct carry carry_decode, carry_sweep;
    struct dev_buf *logits; /* [max(DRAFT_MAX, segments of a decode step)][n_vocab] */
    void *scratch;

    struct ds4_session **session; /* [n_slots], NULL where free */
    int n_slots;
    struct batch decode, sweep; /* sweep.step.rows.n == 0: none in flight */
    bool decode_turn;           /* whose turn it is while there is work of both kinds */
    struct pace pace;           /* of prompts beside answers */
    uint64_t ticket;            /* last one given out */
};

/* Copies an error to the caller's and returns its code. */
int engine_error(struct ds4_error *e, const struct err *err);

/* Tokenizer of the canonical model, and whether the family's chat frame can be written with it. */
int engine_text_open(struct ds4_engine *g, struct err *e);

/* True if a draft block is bound. */
static inline bool engine_has_draft(const struct ds4_engine *g)
{
    return g->family->has_draft && g->family->has_draft(g->model);
}

/* Largest context of a session. */
int engine_ctx_max(const struct ds4_engine *g);

/* Shapes of the engine's buffers, fixed at open. */
struct engine_shape {
    int decode_rows, decode_segments; /* of a decode step */
    int rows, segments;               /* of any step */
    int logits_rows;
};
struct engine_shape engine_shape(int sessions, int prefill_chunk);

/* Completes an engine whose model, device and options are set: memory plan, buffers, batches. On error the caller
 * closes it. */
int engine_assemble(struct ds4_engine *g, struct err *e);

/* Memory plan (engine_plan.c). Fills g->plan from sessions, ctx and available in it, and g->prefill_chunk if that is 0;
 * ERR_MEMORY if it does not fit. */
int engine_plan_make(struct ds4_engine *g, struct err *e);
/* Weights are in mapped files and are to stay in memory. */
bool engine_weights_mapped(const struct ds4_engine *g);
/* Puts the weights' pages into the page tables, as far as that is quick, and has the system read what it has not read
 * yet into huge pages. */
void engine_weights_map(struct ds4_engine *g);
/* A thread that brings mapped weights, where they lie in small pages, into huge ones (engine_huge.c). NULL: they are
 * not mapped, or the system cannot do that. */
struct huge_work *huge_start(const struct ds4_engine *g);
bool huge_wait(struct huge_work *w, int seconds); /* at most; true: it has done what it can */
void huge_end(struct huge_work *w);               /* stops and frees it */
/* What a session of ctx tokens needs, anchors apart. */
uint64_t engine_session_bytes(const struct ds4_engine *g, int ctx);
/* What a session of ctx tokens is counted with: its bytes, anchors, and working space for contexts longer than planned.
 */
uint64_t engine_session_promise(const struct ds4_engine *g, int ctx);
/* Counts a session of this size in. ERR_MEMORY if it does not fit beside the others. */
int engine_promise(struct ds4_engine *g, uint64_t bytes, struct err *e);
/* Reading weights into memory (engine_load.c). Pages [from, to) of a file; node: whose part of its matrix that is. */
struct load_piece {
    int file, node;
    uint64_t from, to;
};
struct load_span {
    int file;
    bool huge;
    uint64_t from, to;
};
struct load_plan {
    struct load_span *span;   /* [n_spans] neighbours in one */
    struct load_piece *piece; /* [n_pieces] by node, in the order of the files; they cover the spans */
    int n_spans, n_pieces;
    uint64_t bytes;
};
struct load_target {
    struct pool *pool;  /* NULL: the caller's thread */
    const int *node_id; /* of the nodes, for the system; NULL: memory from wherever it comes */
    void (*progress)(void *arg, uint64_t done, uint64_t total); /* by the caller's thread; or NULL */
    void *arg;
};
int load_plan_make(const struct canonical *c, bool draft, int n_nodes, struct load_plan *p, struct err *e);
void load_plan_free(struct load_plan *p);
/* Errors name file and offset; the model is of no use then. */
int load_plan_run(const struct canonical *c, const struct load_plan *p, const struct load_target *to, struct err *e);
/* All of it, once the memory plan has been checked. */
int engine_load(struct ds4_engine *g, struct err *e);

void engine_plan_text(const struct ds4_engine *g, struct str *out);
int engine_quant_bits(const struct ds4_engine *g); /* of struct ds4_model_info */

#endif
