/* Files that lie beside models and are none (spec dialects 2.2, 11, 13.3 R13), by their records. */
#ifndef GGUF_SIDE_FILE_H
#define GGUF_SIDE_FILE_H
#include "gguf/gguf.h"

#define SIDE_MODEL_ALONE "run the model itself, which gives the same answers without it"

/* Clauses: what it is, behind "FILE is", and what to do with it where it was given in place of a model. */
struct side_file {
    const char *what, *instead;
};

/* False: it is none that is known. */
bool side_file_tell(const struct gguf *g, struct side_file *out);

#endif
