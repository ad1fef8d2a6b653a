/* A device that runs every operation twice, on cpu and on ref, from the same inputs: before an operation ref gets cpu's
 * values, behind it the outputs are compared. So a whole model can be judged operation by operation. For steps of at
 * most the rings' slack and stored rows without roundings. */
#ifndef SHADOW_DEVICE_H
#define SHADOW_DEVICE_H
#include "device/device.h"

enum shadow_op {
    SHADOW_EMBED,
    SHADOW_RMS_NORM,
    SHADOW_MATMUL,
    SHADOW_ROPE,
    SHADOW_HADAMARD,
    SHADOW_SELECT,
    SHADOW_ATTENTION,
    SHADOW_ROUTER,
    SHADOW_MOE,
    SHADOW_COMPRESS,
    SHADOW_HC_GATES,
    SHADOW_HC_REDUCE,
    SHADOW_HC_EXPAND,
    SHADOW_HC_MIX,
    SHADOW_GATHER,
    SHADOW_ELEMENT,
    SHADOW_DECAY,
    SHADOW_CONV,
    SHADOW_DELTA_SCAN,
    SHADOW_MEMORY_GATE,
    SHADOW_STORE_WRITE,
    SHADOW_POOL,
    SHADOW_ATTENTION_HEADS,
    SHADOW_COUNT
};

struct shadow_stats {
    long rows;    /* compared */
    double worst; /* largest |difference| over the largest |value| of the row (matmul: at least the size of its sum) */
    long flips;   /* moe: rows in which a quantised value inside fell on the other side of a tie */
    double worst_flip;
};

int dev_shadow_create(struct pool *pool, struct dev **out, struct err *e);
const struct shadow_stats *dev_shadow_stats(const struct dev *d, enum shadow_op op);
const char *dev_shadow_name(enum shadow_op op);

#endif
