/* What the tables of several families have in common: shorthands of their rows, and values that tensors of the same
 * names tell in every family. For the files of the tables. */
#ifndef DIALECT_TABLES_H
#define DIALECT_TABLES_H
#include "dialect/dialect_family.h"

/* ---- tensor rows: where a tensor stands, and the usual classes */

#define OWN    SCOPE_MODEL
#define BLOCK  SCOPE_BLOCK
#define VECTOR .class = CLASS_VECTOR, .flags = TENSOR_SMALL
#define MATRIX .class = CLASS_PLAIN

/* A table of the family and its length: .keys and .n_keys of `keys`. */
#define FAMILY_ROWS(table) .table = table, .n_##table = sizeof table / sizeof *(table)

/* Gate and up of the routed experts as one tensor. */
#define GATE_AND_UP                                                                                                    \
    {                                                                                                                  \
        "ffn_gate_up_exps", {"ffn_gate_exps", "ffn_up_exps"}, true, NULL                                               \
    }
/* Those of the shared expert: not met yet, by the same rule. */
#define GATE_AND_UP_SHARED                                                                                             \
    {                                                                                                                  \
        "ffn_gate_up_shexp", {"ffn_gate_shexp", "ffn_up_shexp"}, true, NULL                                            \
    }

/* ---- what shapes say: for key_row.derive */

/* *v = value; false where there is none, which is not above 0. */
static inline bool dialect_say(int64_t value, double *v)
{
    *v = (double)value;
    return value > 0;
}

bool dialect_width(const struct canonical *c, int layer, double *v);
bool dialect_vocabulary(const struct canonical *c, int layer, double *v);
bool dialect_layers(const struct canonical *c, int layer, double *v);
/* Routed experts of a block, by its router. */
bool dialect_experts(const struct canonical *c, int layer, double *v);

/* For key_row.matters: what is only compared, or limits what may be asked for. False. */
bool dialect_nowhere(const struct canonical *c, int layer);

/* The first block that has a tensor, among all that are bound; -1: none. */
int dialect_first_with(const struct canonical *c, const char *stem);
/* Dimension i of the tensor in that block; 0: no block has it. */
int64_t dialect_first_ne(const struct canonical *c, const char *stem, int i);

#endif
