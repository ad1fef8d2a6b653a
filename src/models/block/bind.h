/* Binding of a family's tensors by tables: where a tensor goes, its name within the layer, its shape. */
#ifndef MODELS_BLOCK_BIND_H
#define MODELS_BLOCK_BIND_H
#include "dialect/canonical.h"
#include "models/block/linear.h"

/* Exactly one of weight and mat is set. */
struct bind_slot {
    struct weight *weight;
    struct dev_mat **mat;
    const char *name;
    int64_t ne0, ne1; /* ne1 = 0: one dimension */
};

/* Binds n tensors with a prefix before their names. ERR_MODEL (missing, misshapen, a type that cannot be multiplied) or
 * ERR_MEMORY; what was bound before stays. */
int bind_slots(const struct canonical *c, struct dev *dev, const char *prefix, const struct bind_slot *t, int n,
               struct err *e);
#define BIND(c, dev, prefix, table, e) bind_slots(c, dev, prefix, table, (int)(sizeof(table) / sizeof(table)[0]), e)

/* The stacked matrices of a layer's routed experts: gate and up [D, F, E], down [D', D, E] with D' = F or, padded,
 * more.
 */
int bind_experts(const struct canonical *c, const char *prefix, int64_t D, int64_t F, int64_t E, struct expert_layer *x,
                 struct err *e);

/* Frees those of the matrices that are bound. */
void mats_free(struct dev *dev, struct dev_mat **const *list, int n);
/* The bit of a weight's activation format, 0 where it is absent. */
unsigned weight_format(const struct weight *w);

#endif
