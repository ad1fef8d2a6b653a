/* What was measured at one length of the context, as a row of the nine-column CSV (spec cli-and-tools 6). */
#ifndef BENCH_ROW_H
#define BENCH_ROW_H
#include <stdint.h>
#include <stdio.h>
#include "base/err.h"

struct bench_row {
    int ctx_tokens, prefill_tokens;
    double prefill_tps;
    int gen_tokens;
    double gen_tps, gen_first_ms;
    int gen_steady_tokens;
    double gen_steady_tps;
    uint64_t kvcache_bytes;
};

struct bench_rows {
    struct bench_row *row; /* [n], owned: bench_rows_free */
    int n;
};

void bench_rows_add(struct bench_rows *rows, const struct bench_row *row);
void bench_rows_free(struct bench_rows *rows);
void bench_row_header(FILE *out);
void bench_row_print(FILE *out, const struct bench_row *row); /* one line, at once */
/* Rows of a file of this or an earlier form: columns are found by their names, missing ones stay 0. */
int bench_rows_read(const char *path, struct bench_rows *rows, struct err *e);
/* Speeds beside those of the earlier run that have the same length. */
void bench_rows_compare(FILE *out, const struct bench_rows *now, const struct bench_rows *before);

#endif
