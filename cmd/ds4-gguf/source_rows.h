/* Rows of source tensors as numbers: plain types, FP8 with a scale per tile, FP4 with a scale per 32 values (spec
 * gguf-and-quants 2.12). */
#ifndef SOURCE_ROWS_H
#define SOURCE_ROWS_H
#include "hf_folder.h"

enum source_kind { SOURCE_PLAIN, SOURCE_FP8, SOURCE_FP4 };

struct source_matrix {
    enum source_kind kind;
    const struct st_tensor *t;
    const uint8_t *scale; /* E8M0, row-major; FP8 and FP4 */
    int64_t rows, cols;   /* of values */
    int64_t first;        /* row of the tensor that is row 0 here */
    int tile;             /* FP8: edge of the square that shares a scale */
};

/* Finds a tensor of [rows][cols] values (1 row: one dimension is fine too) with its scales, and checks types and
 * shapes. want_ids: a table of whole numbers, I64 or I32, is wanted. */
int source_find(struct hf_folder *f, const char *name, int64_t rows, int64_t cols, bool want_ids,
                struct source_matrix *m, struct err *e);

/* Rows [first, first + rows) of a plain tensor of [all_rows][cols] values, of any number of dimensions. */
int source_part(const struct st_tensor *t, int64_t first, int64_t rows, int64_t all_rows, int64_t cols,
                struct source_matrix *m, struct err *e);

/* Decodes a row into out[cols]. ERR_MODEL names tensor and row if a value is not finite. */
int source_row(const struct source_matrix *m, int64_t row, float *out, struct err *e);
/* The row as stored (plain types), source_row_bytes long. */
const uint8_t *source_row_data(const struct source_matrix *m, int64_t row);
/* An FP4 row as MXFP4 blocks, the same values without rounding. */
int source_row_mxfp4(const struct source_matrix *m, int64_t row, uint8_t *out, struct err *e);
/* A row of whole numbers, each in [0, limit). */
int source_row_ids(const struct source_matrix *m, int64_t row, int64_t limit, int32_t *out, struct err *e);
/* The type that holds the source's values without loss. */
uint32_t source_exact_type(const struct source_matrix *m);

#endif
