/* What the expert layer's plan (cpu_moe.c) tells its phases: those for few rows are there, those for many rows in
 * cpu_moe_slab.c. */
#ifndef CPU_MOE_H
#define CPU_MOE_H
#include "device/cpu/cpu_internal.h"

/* Activation rows of one format, or panels of them. */
struct act_rows {
    uint8_t *p;
    size_t stride;                 /* 0: all rows are the same */
    const struct quant_slab *slab; /* NULL: rows; else panels, stride bytes a row */
};

/* One expert at work on n rows. */
struct batch {
    struct expert e;
    struct act_rows gate_x, up_x, mid_x;
    struct act_rows mid_rows; /* many rows: mid, quantised */
    float *mid;               /* [n][inputs of down]; NULL: of many rows, where nobody wants them */
    const int32_t *row;       /* [n] rows of the step; NULL: 0 .. n-1 */
    const float *weight;      /* [n]; NULL: 1 */
    const bool *begins;       /* [n] the first expert of its row; NULL: of none */
    int n;
    float clamp;
};

struct moe_job {
    struct dev_stream *s;
    const struct moe_args *a;
    int D, n_pairs, n_experts;
    int n_batches;
    struct batch *batch;     /* [n_batches] in order of summation: experts by id, then the shared one */
    int32_t *start;          /* [n_experts + 1] first pair of each expert */
    int32_t *row, *used;     /* [n_pairs] rows of the sorted pairs; ids of the experts */
    int32_t *place;          /* [n][k] where a pair went */
    float *weight;           /* [n_pairs] */
    bool *begins;            /* [n_pairs] of its row's pairs the first */
    float *shared_weight;    /* [n] */
    float *mid, *shared_mid; /* [n_pairs][F], [n][shared F] */
    struct act_rows mid_x, shared_mid_x;
    struct act_rows mid_rows, shared_mid_rows;                /* many rows */
    bool many;                                                /* rows: cpu_moe_slab.c does the work */
    struct act_rows gate_x, up_x, shared_gate_x, shared_up_x; /* many rows: of the pairs, of the shared expert */
    int up_step, shared_up_step, down_step;                   /* weight rows per task */
    int *task0;                                               /* [n_batches + 1] first up task of a batch */
    struct act_rows x[ACT_COUNT], pair_x[ACT_COUNT];          /* by row; by pair. p NULL: format not needed */
};

static inline enum act_format act_of(const struct tensor_view *v)
{
    return quant_type(v->type)->act;
}

/* j->n rows are so many that weights are unpacked for them. */
bool moe_many(enum quant_isa isa, const struct moe_args *a);
/* Their part of the shared scratch, and bytes of each thread's. */
void moe_slabs_carve(struct carve *c, struct moe_job *j, enum quant_isa isa);
size_t moe_slabs_thread_bytes(const struct moe_job *j);
/* Where each batch's activations are; after the plan. */
void moe_slabs_plan(struct moe_job *j);
/* All phases after the rows' activations are quantised, up to mid; and those after it. */
void moe_slabs_up(struct moe_job *j);
void moe_slabs_down(struct moe_job *j);

#endif
