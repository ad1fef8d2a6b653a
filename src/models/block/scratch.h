/* Scratch rows of one layer call: a table of buffers, and the quantised forms of those that matrices read. */
#ifndef MODELS_BLOCK_SCRATCH_H
#define MODELS_BLOCK_SCRATCH_H
#include "models/block/linear.h"

struct scratch_layout {
    struct dev *dev;
    const void *model; /* for the functions */
    int bufs, inputs;
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
};

size_t block_scratch_bytes(const struct scratch_layout *of, int n_rows);
/* ERR_MEMORY: s is empty then, as it is after block_scratch_free. */
int block_scratch_open(const struct scratch_layout *of, int n_rows, struct block_scratch *s, struct err *e);
void block_scratch_free(struct block_scratch *s);

/* n row buffers of floats. */
static inline struct buf_desc scratch_floats(int rows, int groups, int width)
{
    return (struct buf_desc){.kind = BUF_FLOAT, .rows = rows, .groups = groups, .width = width};
}

#endif
