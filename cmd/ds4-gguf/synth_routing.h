/* Which experts the tokens of a random model are sent to: all alike, or as Zipf's law has it, the expert of rank r in a
 * layer in proportion to 1/r (with a most frequent one that hardly a token is without). Ranks are drawn for each layer.
 *
 * Hash-routed layers name experts in their tables, so their shares are those of the law for tokens that are all equally
 * frequent. Score-routed layers get selection biases that would give the shares if scores were independent of each
 * other; in a model that runs they are about so. */
#ifndef SYNTH_ROUTING_H
#define SYNTH_ROUTING_H
#include <stdint.h>
#include "base/err.h"

enum synth_router { SYNTH_UNIFORM, SYNTH_ZIPF };

struct synth_routing {
    enum synth_router kind;
    int64_t n_experts, n_used;
    uint64_t seed; /* of the tensor */
    double *use;   /* Zipf: [n_experts] share of the tokens that use the expert */
};

/* n_used <= n_experts. The caller frees it with synth_routing_free. */
int synth_routing_init(struct synth_routing *r, enum synth_router kind, int64_t n_experts, int64_t n_used,
                       uint64_t seed, struct err *e);
void synth_routing_free(struct synth_routing *r);

/* The experts of a token in a hash-routed layer, [n_used], different ones. */
void synth_routing_ids(const struct synth_routing *r, int64_t token, int32_t *ids);
/* Zipf: selection biases of a score-routed layer, [n_experts]. */
void synth_routing_biases(const struct synth_routing *r, float *bias);

#endif
