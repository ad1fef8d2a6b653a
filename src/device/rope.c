/* Rotation tables of host devices. */
#include "device/device_internal.h"
#include "base/mem.h"
#include <string.h>

struct dev_rope *host_rope_create(struct dev *d, const struct rope_desc *desc)
{
    (void)d;
    struct dev_rope *r = mem_try(sizeof *r);
    if (!r) return NULL;
    const size_t pairs = (size_t)desc->pairs;
    r->pairs = desc->pairs;
    r->halves = desc->halves;
    r->magnitude = desc->magnitude != 0 ? desc->magnitude : 1;
    r->freq = mem_try(pairs * sizeof *r->freq + 1);
    r->axis = mem_try(pairs + 1);
    if (!r->freq || !r->axis) {
        host_rope_free(r);
        return NULL;
    }
    if (pairs) memcpy(r->freq, desc->freq, pairs * sizeof *r->freq);
    if (pairs && desc->axis) memcpy(r->axis, desc->axis, pairs);
    return r;
}

void host_rope_free(struct dev_rope *r)
{
    if (!r) return;
    mem_free(r->freq);
    mem_free(r->axis);
    mem_free(r);
}
