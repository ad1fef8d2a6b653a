/* Values and places of edited rows. */
#include "source_edit.h"
#include <math.h>
#include <string.h>

static int64_t head_of(const struct source_edit *c, int64_t head)
{
    return head % c->groups * (c->heads / c->groups) + head / c->groups;
}

int64_t source_edit_row(const struct source_edit *c, int64_t row)
{
    if (!c->rows_per_head || row < c->first_row) return row;
    const int64_t r = row - c->first_row;
    return c->first_row + head_of(c, r / c->rows_per_head) * c->rows_per_head + r % c->rows_per_head;
}

void source_edit_values(const struct source_edit *c, float *values, float *spare, int64_t n)
{
    if (c->cols_per_head) {
        const size_t width = (size_t)c->cols_per_head;
        memcpy(spare, values, (size_t)n * sizeof *values);
        for (int64_t h = 0; h < c->heads; h++)
            memcpy(values + (size_t)h * width, spare + (size_t)head_of(c, h) * width, width * sizeof *values);
    }
    for (int64_t i = 0; i < n && c->one_more; i++) values[i] += 1;
    for (int64_t i = 0; i < n && c->minus_exp; i++) values[i] = -(float)exp((double)values[i]);
}

bool source_edit_changes(const struct source_edit *c)
{
    return c->one_more || c->minus_exp || c->beside || c->cols_per_head;
}
