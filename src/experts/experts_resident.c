/* Experts whose bytes all lie in mapped memory. A ticket only remembers which layer was asked for: every expert is
 * there before it is wanted. */
#include "experts/experts.h"
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include "base/mem.h"

struct experts_ticket {
    struct experts *owner;
    int layer;
};

struct experts {
    int n_layers;
    struct expert_layer *layers;    /* [n_layers] */
    struct experts_ticket *tickets; /* [n_layers]: a layer's tickets are all alike, so one serves every caller */
};

static bool same_count(const struct expert_layer *l)
{
    return l->gate.ne[2] >= 1 && l->gate.ne[2] <= INT32_MAX && l->up.ne[2] == l->gate.ne[2] &&
           l->down.ne[2] == l->gate.ne[2];
}

static int layers_check(const struct expert_layer *layers, int n_layers, struct err *e)
{
    for (int i = 0; i < n_layers; i++) {
        const struct expert_layer *l = &layers[i];
        if (!l->gate.data && !l->up.data && !l->down.data) continue; /* a layer without experts */
        if (!same_count(l))
            return err_set(e, ERR_MODEL,
                           "layer %d: gate, up and down hold %" PRId64 ", %" PRId64 " and %" PRId64
                           " experts; the three numbers must be equal",
                           i, l->gate.ne[2], l->up.ne[2], l->down.ne[2]);
    }
    return 0;
}

int experts_open_resident(const struct expert_layer *layers, int n_layers, struct experts **out, struct err *e)
{
    *out = NULL;
    const int bad = layers_check(layers, n_layers, e);
    if (bad) return bad;
    struct experts *x = mem_try(sizeof *x);
    if (x) {
        x->layers = mem_try((size_t)n_layers * sizeof *x->layers + 1);
        x->tickets = mem_try((size_t)n_layers * sizeof *x->tickets + 1);
    }
    if (!x || !x->layers || !x->tickets) {
        experts_close(x);
        return err_set(e, ERR_MEMORY, "no memory for the table of %d expert layers", n_layers);
    }
    x->n_layers = n_layers;
    if (n_layers) memcpy(x->layers, layers, (size_t)n_layers * sizeof *layers);
    for (int i = 0; i < n_layers; i++) x->tickets[i] = (struct experts_ticket){.owner = x, .layer = i};
    *out = x;
    return 0;
}

void experts_close(struct experts *x)
{
    if (!x) return;
    mem_free(x->layers);
    mem_free(x->tickets);
    mem_free(x);
}

int experts_count(const struct experts *x, int layer)
{
    const struct expert_layer *l = experts_layer(x, layer);
    return l && l->gate.data ? (int)l->gate.ne[2] : 0;
}

const struct expert_layer *experts_layer(const struct experts *x, int layer)
{
    return layer >= 0 && layer < x->n_layers ? &x->layers[layer] : NULL;
}

static int id_check(const struct experts *x, int layer, int32_t id, struct err *e)
{
    const int n = experts_count(x, layer);
    if (id >= 0 && id < n) return 0;
    return err_set(e, ERR_MODEL, "layer %d: expert %d was selected, but the layer has %d experts", layer, id, n);
}

int experts_want(struct experts *x, int layer, const int32_t *ids, int n, struct experts_ticket **out, struct err *e)
{
    *out = NULL;
    if (!experts_layer(x, layer))
        return err_set(e, ERR_ARG, "layer %d is outside the %d expert layers", layer, x->n_layers);
    for (int i = 0; i < n; i++) {
        const int bad = id_check(x, layer, ids[i], e);
        if (bad) return bad;
    }
    *out = &x->tickets[layer];
    return 0;
}

/* Matrix number id of a stacked tensor. */
static struct tensor_view slice(const struct tensor_view *v, int32_t id)
{
    struct tensor_view s = *v;
    const uint64_t skip = (uint64_t)id * v->stride[2];
    s.ne[2] = 1;
    s.data += skip;
    s.offset += skip;
    return s;
}

int experts_get(struct experts_ticket *t, int32_t id, struct expert *out, struct err *e)
{
    const struct experts *x = t->owner;
    const int bad = id_check(x, t->layer, id, e);
    if (bad) return bad;
    const struct expert_layer *l = &x->layers[t->layer];
    *out = (struct expert){.gate = slice(&l->gate, id), .up = slice(&l->up, id), .down = slice(&l->down, id)};
    return 0;
}

void experts_done(struct experts_ticket *t)
{
    (void)t; /* nothing is pinned or counted */
}
