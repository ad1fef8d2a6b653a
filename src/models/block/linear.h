/* Matrix products of rows that several matrices read. Weights have any type each; a quantised type wants the rows in
 * its activation format, which is made once per rows and format. */
#ifndef MODELS_BLOCK_LINEAR_H
#define MODELS_BLOCK_LINEAR_H
#include <stdbool.h>
#include "device/device.h"

struct weight {
    struct dev_mat *mat; /* NULL: absent */
    enum act_format act; /* what its products take */
    int rows;            /* outputs */
};

/* Binds a view on a device. Returns 0, ERR_MODEL (the type cannot be multiplied: message names the tensor) or
 * ERR_MEMORY. */
int weight_bind(struct dev *d, const struct tensor_view *v, const char *name, struct weight *w, struct err *e);
void weight_unbind(struct dev *d, struct weight *w);

/* Rows [T][groups][width] and their quantised forms. act[ACT_F32] is unused; the others are NULL where no matrix needs
 * them. */
struct linear_input {
    struct dev_buf *rows;
    struct dev_buf *act[ACT_COUNT];
    bool have[ACT_COUNT];
};

/* Says that the rows have changed. */
void linear_input_renew(struct linear_input *x);
/* What w takes of the rows, for an operation that makes it beside them: NULL if that is the rows themselves. */
struct dev_buf *linear_input_made(struct linear_input *x, const struct weight *w);
/* out[i] = w . x[i] for i < n. */
void linear(struct dev_stream *s, struct linear_input *x, const struct weight *w, struct dev_buf *out, int n);
/* The same for every group of x[i]: out has as many groups. */
void linear_each(struct dev_stream *s, struct linear_input *x, const struct weight *w, struct dev_buf *out, int n);

#endif
