/* Writes a Qwen3.8 file with a draft again in the layouts of other makers (spec dialects 10, 11): the same model. */
#ifndef QWEN38_FORMS_H
#define QWEN38_FORMS_H
#include <stdbool.h>
#include "base/err.h"

/* Query, key and value of attention blocks in one tensor, and gate and up of the experts. */
int qwen38_write_fused(const char *from, const char *to, struct err *e);

enum qwen38_part {
    PART_TRUNK,      /* without the draft, counted without it */
    PART_STRIPPED,   /* the same, still counted with it */
    PART_DRAFT,      /* the draft's tensors alone */
    PART_DRAFT_COPY, /* with copies of what goes around a model, the mixer of its head named like a model's */
};
int qwen38_write_part(const char *from, const char *to, enum qwen38_part part, struct err *e);

#endif
