/* Scratch of one layer call: a table of row buffers, the quantised forms of those that matrices read, and the handles
 * of the segments' state. */
#ifndef MODELS_BLOCK_SCRATCH_H
#define MODELS_BLOCK_SCRATCH_H
#include "models/block/linear.h"
#include "models/block/state.h"

struct scratch_layout {
    struct dev *dev;
    const void *model; /* for the functions */
    int bufs, inputs;
    int views;
    int rings, stores, scans; /* handles of each segment: of the first rings and stores of a layer, of its scan (1) */
    /* Description of buffer id for T rows; width 0: the model needs none. */
    struct buf_desc (*buf)(const void *model, int id, int T);
    /* The buffer of an input's rows, into how many groups its quantised forms are cut, and which are needed (bits 1 <<
     * enum act_format). */
    int (*input)(const void *model, int input, int *groups, unsigned *formats);
};

struct block_scratch {
    const struct scratch_layout *of;
    struct dev_buf **buf;       /* [bufs] NULL where none is needed */
    struct linear_input *input; /* [inputs] owns the quantised forms; the rows are of buf */
    struct dev_buf **view;      /* [views] for block_scratch_from */
    /* [n_segments] for the layer at work; NULL where the layout has none. */
    struct dev_ring **ring[STATE_RINGS];
    struct dev_store **store[STATE_STORES];
    struct dev_scan **scan;
};

/* Bytes for steps of up to n_rows rows and n_segments segments. */
size_t block_scratch_bytes(const struct scratch_layout *of, int n_rows, int n_segments);
/* Makes a struct block_scratch, which block_scratch_free frees; the layout must outlive it. ERR_MEMORY: *scratch stays
 * as it is. */
int block_scratch_create(const struct scratch_layout *of, int n_rows, int n_segments, void **scratch, struct err *e);
void block_scratch_free(void *scratch);
/* Segment i is of a session whose layer this is. */
void block_scratch_segment(struct block_scratch *s, int i, const struct state_layer *layer);

/* Rows of a buffer from `row` on as a buffer: the buffer itself if that is 0, else view number i of the scratch, until
 * the next call with that number. */
struct dev_buf *block_scratch_from(struct block_scratch *s, int i, struct dev_buf *of, int row);

/* n row buffers of floats. */
static inline struct buf_desc scratch_floats(int rows, int groups, int width)
{
    return (struct buf_desc){.kind = BUF_FLOAT, .rows = rows, .groups = groups, .width = width};
}

static inline struct buf_desc scratch_ints(int rows, int width)
{
    return (struct buf_desc){.kind = BUF_I32, .rows = rows, .groups = 1, .width = width};
}

/* For widths that several uses ask for. */
static inline int scratch_larger(int a, int b)
{
    return a > b ? a : b;
}

#endif
