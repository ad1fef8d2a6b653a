/* What a tensor of the file is of those of the source, beyond their rows in order: other values, heads in another
 * order, matrices side by side (spec qwen38 2.2). */
#ifndef SOURCE_EDIT_H
#define SOURCE_EDIT_H
#include <stdbool.h>
#include <stdint.h>

struct source_edit {
    bool one_more;  /* 1 is added: gains that are stored around zero */
    bool minus_exp; /* -e^x */
    bool beside;    /* a row is that of the first matrix and behind it that of the second */
    /* Heads that are grouped in the source and tiled in the file: head r * groups + g of the file is head
     * g * (heads / groups) + r of the source. heads 0: nothing moves. */
    int64_t heads, groups;
    int64_t first_row, rows_per_head; /* rows from first_row on move; rows_per_head 0: none */
    int64_t cols_per_head;            /* 0: columns stay */
};

/* The row of the source that is row `row` of the file. */
int64_t source_edit_row(const struct source_edit *c, int64_t row);
/* Makes values [n] of a source row into those of the file; spare is room for n more. */
void source_edit_values(const struct source_edit *c, float *values, float *spare, int64_t n);
/* False: rows may be copied as they are. */
bool source_edit_changes(const struct source_edit *c);

#endif
