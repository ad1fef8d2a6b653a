/* Where the bytes of routed experts are. Only devices talk to it: they want a set of experts of a layer, get each when
 * it is there, and say when they are done, so that resident and streamed weights look the same. */
#ifndef EXPERTS_EXPERTS_H
#define EXPERTS_EXPERTS_H
#include <stdint.h>
#include "base/err.h"
#include "gguf/tensor_view.h"

/* The three matrices of one expert; each has its own type. 2-D views: ne[0] = input width, ne[1] = rows. */
struct expert {
    struct tensor_view gate, up, down;
};

/* One layer's stacked tensors (3-D views: ne[2] = number of experts). */
struct expert_layer {
    struct tensor_view gate, up, down;
};

struct experts;
struct experts_ticket;

/* All experts lie in mapped memory: every ticket is ready at once. layers[n_layers] is copied. */
int experts_open_resident(const struct expert_layer *layers, int n_layers, struct experts **out, struct err *e);
void experts_close(struct experts *x);
int experts_count(const struct experts *x, int layer);
const struct expert_layer *experts_layer(const struct experts *x, int layer);

/* Announces the distinct ids that a step will use. The ticket is valid until experts_done. ids outside the layer:
 * ERR_MODEL. */
int experts_want(struct experts *x, int layer, const int32_t *ids, int n, struct experts_ticket **out, struct err *e);
/* Waits for one wanted expert. On a read error returns its code. */
int experts_get(struct experts_ticket *t, int32_t id, struct expert *out, struct err *e);
void experts_done(struct experts_ticket *t);

#endif
