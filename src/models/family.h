/* What a model family offers to the engine. A family knows mathematics, its weights and its session state; it does not
 * know who calls, which device runs it, or what other sessions do.
 *
 * Evaluation is provisional: prepare, embed, layer 0 .. L-1 and head change nothing that a session needs at its
 * committed length; commit makes the first n rows of a segment part of it. Cancellation, errors and drafts all use
 * this. Lifetimes: model (const after bind) > scratch (one per engine; used by one layer call at a time) > carry (one
 * per step in flight: what crosses a layer border) ; state (one per session). */
#ifndef MODELS_FAMILY_H
#define MODELS_FAMILY_H
#include <stdbool.h>
#include <stddef.h>
#include "base/err.h"
#include "base/str.h"
#include "device/device.h"
#include "dialect/canonical.h"
#include "models/tap.h"
#include "text/chat.h"

/* Which device runs which part of which layer. One device for all today; families ask per (layer, part) so that other
 * plans need no other family code. */
enum plan_part { PART_EMBED, PART_ATTENTION, PART_DENSE, PART_EXPERTS, PART_HEAD };
struct plan {
    struct dev *dev;
};
struct dev *plan_device(const struct plan *p, int layer, enum plan_part part);

enum { CARRY_PARTS = 4 };

struct bind_options {
    bool kv_sim_off; /* stored rows are not rounded */
    int draft_max;   /* most rows of a step of which any number may be committed */
    bool draft;      /* a draft block inside the file is bound too and follows every step */
};

/* One evaluation in flight. The engine fills it; arrays live as long as the step. */
struct step {
    struct dev_stream *stream;
    struct rows rows;             /* raw_first, raw_last are written by prepare */
    void *const *state;           /* [n_segments] session states */
    struct dev_buf *const *carry; /* the parts of the family's carry, rows 0..n-1 of each */
    void *scratch;
    void *work;              /* of the family: made by prepare, gone when every segment was committed; NULL before */
    const struct taps *taps; /* NULL: none */
};

/* One guess of a draft block: of the token behind `token`, which follows the history and index guesses before it. */
struct guess {
    struct dev_stream *stream;
    void *scratch; /* holds what guess index - 1 left, if index > 0 */
    int32_t token;
    int index;              /* below draft_max */
    struct dev_buf *logits; /* row 0 */
};

/* What a row costs at least, however it is computed. bytes: of the weights that decoding one row reads, the head
 * included; of the routed experts those it is sent to, of tables by token one row. Products are multiply-adds of an
 * average row, without the head, which few rows of a prompt have: with weights in blocks of integers, with float
 * weights, and with what the row sees of its history (attention, the scores of an index, the state of a recurrence). */
struct family_cost {
    uint64_t bytes;
    double int8, f32, attention;
};

struct family {
    const char *name;

    /* Binds weights on the plan's devices. c and the devices must outlive the model. */
    int (*bind)(const struct canonical *c, const struct plan *plan, const struct bind_options *o, void **model,
                struct err *e);
    void (*unbind)(void *model);
    int (*n_layers)(const void *model);
    int (*n_vocab)(const void *model);
    void (*describe)(const void *model, struct str *out); /* shape, for --inspect */
    /* Of rows at positions [from, to) of a session, 0 <= from < to. */
    void (*cost)(const void *model, const struct canonical *c, int from, int to, struct family_cost *cost);

    /* Parts of the carry for n_rows rows; returns their number, at most CARRY_PARTS. Part 0 is what TAP_LAYER_OUT
     * shows. */
    int (*carry)(const void *model, int n_rows, struct buf_desc part[]);
    /* Scratch for steps of up to n_rows rows and n_segments segments. */
    size_t (*scratch_bytes)(const void *model, int n_rows, int n_segments);
    int (*scratch_create)(const void *model, int n_rows, int n_segments, void **scratch, struct err *e);
    void (*scratch_free)(void *scratch);
    /* What ops of layer l need beside it for such steps of sessions of up to ctx tokens; *moe: a place for what d->moe
     * points to. False behind the last layer. */
    bool (*work)(const void *model, int l, int n_rows, int n_segments, int ctx, struct moe_args *moe,
                 struct work_desc *d);

    size_t (*state_bytes)(const void *model, int ctx);
    int (*state_create)(const void *model, int ctx, void **state, struct err *e);
    void (*state_free)(void *state);
    int (*state_fork)(void *dst, const void *src, struct err *e); /* same model; src committed */
    int (*state_length)(const void *state);                       /* committed tokens */

    /* Evaluation. Errors of ops stick to the stream; the functions below return what they find themselves. prepare
     * reserves memory for the step's rows and fills the rest of the row table; row and segment arrays are final before
     * it. */
    int (*prepare)(const void *model, struct step *s, struct err *e);
    void (*embed)(const void *model, struct step *s);
    void (*layer)(const void *model, struct step *s, int l);
    /* Logits of n chosen rows of the step -> FLOAT buffer [n][n_vocab]. At most scratch's n_rows. */
    void (*head)(const void *model, struct step *s, const int *row, int n, struct dev_buf *logits);
    /* The first n rows of a segment become history. n = 0 drops them and cannot fail; bulk segments: 0 or all. Others
     * may be committed again with a larger n. On error the history is as before the call. */
    int (*commit)(const void *model, struct step *s, int segment, int n, struct err *e);

    /* Guesses by a draft block (bind_options.draft): logits of what a guess is drawn from. The state's history, of one
     * token at least, stays as it is. NULL: the family has no draft. */
    bool (*has_draft)(const void *model);
    int (*guess)(const void *model, void *state, const struct guess *a, struct err *e);

    /* Back to pos without help, where the state still holds what pos needs; false: it does not. */
    bool (*rewind)(void *state, int pos);
    /* Anchors: the small part of the state at its committed length. restore also sets the length to pos; rows of the
     * append-only stores up to pos must still be there (they are, in the session that took the anchor). */
    size_t (*anchor_bytes)(const void *state);
    size_t (*anchor_bytes_at)(const void *model, int pos); /* of a state of pos tokens */
    void (*anchor_take)(const void *state, void *dst);
    void (*anchor_restore)(void *state, int pos, const void *src);
    /* The append-only rows up to the committed length, for snapshots. take copies whole rows from byte `from` of them
     * on (where an earlier call ended, or 0) while they fit into n bytes, and returns how many bytes that were. restore
     * overwrites those of any state of the model and is followed by anchor_restore; on error nothing has changed. */
    size_t (*rows_bytes)(const void *state);
    size_t (*rows_take)(const void *state, size_t from, size_t n, void *dst);
    size_t (*rows_bytes_at)(const void *model, int pos);
    int (*rows_restore)(void *state, int pos, const void *src, struct err *e);

    const struct prompt_codec *prompt;
};

/* The family of a canonical model. */
const struct family *family_of(enum canonical_family f);
/* A family's chat frame by its name ("deepseek4"), without a model; NULL: no such family. */
const struct prompt_codec *family_prompt(const char *name);

#endif
