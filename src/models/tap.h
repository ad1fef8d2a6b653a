/* Taps: named points of the forward pass where somebody may look at rows, count them, or change them (dumps, importance
 * matrices, drafts, steering). A family calls tap_at behind each point; without taps that is one comparison. */
#ifndef MODELS_TAP_H
#define MODELS_TAP_H
#include "device/device.h"

enum tap_point {
    TAP_ATTN_IN,    /* normed input of the attention, [T][D] */
    TAP_ATTN_OUT,   /* its output, before it joins the streams */
    TAP_FFN_IN,     /* normed input of the FFN */
    TAP_EXPERT_MID, /* [T][K][F] gated rows times the route weight, in selection order; needs taps.expert_mid */
    TAP_FFN_OUT,    /* routed + shared, before it joins the streams */
    TAP_LAYER_OUT,  /* carry after the layer */
    TAP_POINT_COUNT
};

struct taps {
    unsigned wanted; /* bits 1 << enum tap_point */
    /* Called with the stream idle behind the point; may read and write rows 0..n-1 of buf through the device. */
    void (*fn)(void *arg, enum tap_point point, int layer, struct dev_stream *s, struct dev_buf *buf, int n);
    void *arg;
    struct dev_buf *expert_mid; /* the user's buffer that TAP_EXPERT_MID fills: FLOAT, groups K, width F */
};

static inline bool tap_wanted(const struct taps *t, enum tap_point point)
{
    return t && (t->wanted >> point & 1);
}

static inline void tap_at(const struct taps *t, enum tap_point point, int layer, struct dev_stream *s,
                          struct dev_buf *buf, int n)
{
    if (tap_wanted(t, point)) t->fn(t->arg, point, layer, s, buf, n);
}

#endif
