#include "models/block/cost.h"

void cost_tensor(struct family_cost *c, const struct tensor_view *v, int64_t used, int64_t of, bool multiplied)
{
    c->bytes += tensor_view_bytes(v) / (uint64_t)of * (uint64_t)used;
    if (!multiplied || v->ne[1] < 2) return;
    const double products = (double)v->ne[0] * (double)v->ne[1] * (double)v->ne[2] * (double)used / (double)of;
    *(quant_type(v->type)->act == ACT_F32 ? &c->f32 : &c->int8) += products;
}
