/* A Qwen3.8 source checkpoint: config.json (also with the text model inside "text_config"), the names of its tensors,
 * the constants and the pieces of its n-gram table (spec qwen38 1, 2.2, 8). */
#ifndef HF_QWEN38_H
#define HF_QWEN38_H
#include "base/err.h"
#include "hf_folder.h"
#include "qwen38_layout.h"

/* Reads and completes. A checkpoint without tensors of the draft block gives a model without one. */
int hf_qwen38_config(const char *path, struct hf_folder *f, struct qwen38_params *p, struct err *e);

/* A tensor by its name, with or without ".weight" at its end and "language_model." behind "model."; NULL: none. */
const struct st_tensor *hf_qwen38_find(struct hf_folder *f, const char *name);

/* Piece i of the n-gram table; NULL: none. All have the same number of rows: hf_qwen38_config has seen to it. */
const struct st_tensor *hf_qwen38_piece(struct hf_folder *f, int i);

#endif
