/* What ds4-gguf convert has to know of a family. */
#ifndef CONVERT_FAMILY_H
#define CONVERT_FAMILY_H
#include "gguf/gguf.h"
#include "hf_folder.h"
#include "layout.h"
#include "source_edit.h"
#include "source_rows.h"

struct convert_numbers {
    int64_t tokens, layers, experts;
    int64_t sources; /* most matrices that a tensor comes from */
};

struct convert_family {
    const char *model_type; /* in config.json, its beginning */
    const char *arch, *pretokenizer;
    const char *layers; /* names of tensors of layer N begin with it and N */
    size_t params_bytes;
    bool pads; /* as in struct synth_family */
    /* Reads config.json, and what of the parameters is in tensors; checks. */
    int (*config)(const char *path, struct hf_folder *f, void *params, struct err *e);
    int (*layout)(const void *params, struct layout_tensor **out, int *n, struct err *e);
    void (*metadata)(struct gguf_writer *w, const void *params, const struct layout_tensor *tensors, int n);
    struct convert_numbers (*numbers)(const void *params);
    /* Finds the matrices that a tensor comes from, of equal numbers of rows, and what is done to them. */
    int (*bind)(struct hf_folder *f, const void *params, const struct layout_tensor *t, struct source_matrix *list,
                struct source_edit *edit, struct err *e);
};

extern const struct convert_family convert_deepseek4, convert_qwen38;

#endif
