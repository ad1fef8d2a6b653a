#include "canonical_same.h"
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>
#include "quant/quant.h"

void canonical_same_view(const char *name, const struct tensor_view *a, const struct tensor_view *b)
{
    if (!b) fail_msg("%s is missing", name);
    assert_int_equal(a->type, b->type);
    assert_memory_equal(a->ne, b->ne, sizeof a->ne);
    const size_t row = quant_row_bytes(a->type, a->ne[0]);
    for (int64_t e = 0; e < a->ne[2]; e++) {
        for (int64_t r = 0; r < a->ne[1]; r++) {
            const uint8_t *pa = a->data + (uint64_t)e * a->stride[2] + (uint64_t)r * a->stride[1];
            const uint8_t *pb = b->data + (uint64_t)e * b->stride[2] + (uint64_t)r * b->stride[1];
            if (memcmp(pa, pb, row) != 0) fail_msg("%s differs in slice %d, row %d", name, (int)e, (int)r);
        }
    }
}

void canonical_same_tensors(const struct canonical *a, const struct canonical *b)
{
    assert_int_equal(canonical_n_tensors(a), canonical_n_tensors(b));
    for (int i = 0; i < canonical_n_tensors(a); i++) {
        const struct tensor_view *v;
        const char *name = canonical_tensor_at(a, i, &v);
        canonical_same_view(name, v, canonical_tensor(b, "%s", name));
    }
}
