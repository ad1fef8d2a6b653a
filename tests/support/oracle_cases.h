/* The small DeepSeek V4 models that an independent float64 implementation (tests/oracle) was run on: shapes and token
 * ids. Its logits are in tests/golden/oracle_NAME.bin: float32 [n_ids][V] without roundings, then [n_ids][V] with them.
 */
#ifndef ORACLE_CASES_H
#define ORACLE_CASES_H
#include "synth_model.h"

struct oracle_case {
    const char *name;
    struct synth_shape shape;
    int n_ids;
};

int oracle_case_count(void);
struct oracle_case oracle_case_at(int i);
/* The ids of a case: a fixed pseudo-random sequence below V. */
void oracle_case_ids(const struct oracle_case *c, int32_t *ids);

#endif
