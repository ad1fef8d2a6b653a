/* Session state as layers of rings, stores and scans: creation, forks, steps, anchors and snapshots are the same for
 * all families; what a layer keeps is told by functions of the family. Rings are addressed by absolute position, stores
 * by index; what is committed is a counter, and for scans the current bank. */
#ifndef MODELS_BLOCK_STATE_H
#define MODELS_BLOCK_STATE_H
#include "device/device.h"

enum { STATE_RINGS = 5, STATE_STORES = 2 }; /* most of a layer; a layer has at most one scan */

struct state_layout {
    struct dev *dev;
    int layers, draft_max;
    const void *model; /* for the functions */
    /* Description of ring or store `id` of layer l, or of its scan; false: the layer has none. scan may be NULL. */
    bool (*ring)(const void *model, int l, int id, struct ring_desc *d);
    bool (*store)(const void *model, int l, int id, struct row_format *f);
    bool (*scan)(const void *model, int l, struct scan_desc *d);
    /* Rows of a store that belong to the first pos tokens. */
    int64_t (*store_rows)(const void *model, int l, int id, int pos);
    /* Rows of a ring that a session of pos tokens still needs: *first and their number. */
    int (*ring_needed)(const void *model, int l, int id, int pos, int *first);
};

struct state_layer {
    struct dev_ring *ring[STATE_RINGS]; /* NULL where the layer has none */
    struct dev_store *store[STATE_STORES];
    struct dev_scan *scan;
};

struct block_state {
    const struct state_layout *of;
    int ctx;
    int length;   /* committed tokens */
    int high;     /* one behind the highest position written into the current banks */
    int floor;    /* lowest position that rewind can reach without an anchor */
    int replayed; /* rows of the step at hand that the scans contain */
    struct state_layer *layer;
};

size_t block_state_bytes(const struct state_layout *of, int ctx);
/* ERR_MEMORY: s is empty then, as it is after block_state_free. */
int block_state_open(const struct state_layout *of, int ctx, struct block_state *s, struct err *e);
void block_state_free(struct block_state *s);
int block_state_fork(struct block_state *dst, const struct block_state *src, struct err *e);

/* Makes room for a segment's rows; from here on the rows of a small step may overwrite ring slots. */
int block_state_prepare(struct block_state *s, const struct segment *seg, struct err *e);
/* Makes rows of layer l of tokens [from, to), which no step has asked for, writable. */
int block_state_reserve(struct block_state *s, int l, int from, int to, struct err *e);
/* The first n rows of the segment become history; see struct family. */
void block_state_commit(struct block_state *s, struct dev_stream *stream, const struct segment *seg, int n);

size_t block_state_anchor_bytes(const struct state_layout *of, int pos);
void block_state_anchor_take(const struct block_state *s, void *dst);
void block_state_anchor_restore(struct block_state *s, int pos, const void *src);

size_t block_state_rows_bytes(const struct state_layout *of, int pos);

/* Functions of struct family for every family whose state begins with its struct block_state. */
int block_state_length(const void *state);
bool block_state_rewind(void *state, int pos);
size_t block_state_rows_held(const void *state); /* rows_bytes */
size_t block_state_rows_take(const void *state, size_t from, size_t n, void *dst);
int block_state_rows_restore(void *state, int pos, const void *src, struct err *e);

#endif
