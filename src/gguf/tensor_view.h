/* A tensor as its users see it: a view on bytes of some file. There is no "the mapping" and no type per role: every
 * tensor has its own file, type and strides, so fused, split and padded matrices are views too (spec dialects 4). */
#ifndef GGUF_TENSOR_VIEW_H
#define GGUF_TENSOR_VIEW_H
#include <stdint.h>

struct tensor_view {
    uint32_t type;       /* enum qtype */
    int64_t ne[4];       /* ne[0] = row length = input width; 1 where unused */
    uint64_t stride[4];  /* bytes: [1] from row to row, [2] from expert to expert; [0] unused */
    const uint8_t *data; /* first row: in a mapped file or in a widened copy; valid as long as the model */
    int file;            /* index into the model's files; -1: a copy in memory */
    uint64_t offset;     /* of the first row in that file */
};

#endif
