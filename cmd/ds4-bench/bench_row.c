#include "bench_row.h"
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/mem.h"

enum column_kind { COLUMN_INT, COLUMN_DOUBLE, COLUMN_BYTES };
static const struct {
    const char *name;
    enum column_kind kind;
    int digits;
    size_t at;
} columns[] = {
    {"ctx_tokens", COLUMN_INT, 0, offsetof(struct bench_row, ctx_tokens)},
    {"prefill_tokens", COLUMN_INT, 0, offsetof(struct bench_row, prefill_tokens)},
    {"prefill_tps", COLUMN_DOUBLE, 2, offsetof(struct bench_row, prefill_tps)},
    {"gen_tokens", COLUMN_INT, 0, offsetof(struct bench_row, gen_tokens)},
    {"gen_tps", COLUMN_DOUBLE, 2, offsetof(struct bench_row, gen_tps)},
    {"gen_first_ms", COLUMN_DOUBLE, 3, offsetof(struct bench_row, gen_first_ms)},
    {"gen_steady_tokens", COLUMN_INT, 0, offsetof(struct bench_row, gen_steady_tokens)},
    {"gen_steady_tps", COLUMN_DOUBLE, 2, offsetof(struct bench_row, gen_steady_tps)},
    {"kvcache_bytes", COLUMN_BYTES, 0, offsetof(struct bench_row, kvcache_bytes)},
};
enum { N_COLUMNS = sizeof columns / sizeof columns[0], MAX_FIELDS = 64 };

void bench_rows_add(struct bench_rows *rows, const struct bench_row *row)
{
    rows->row = mem_grow(rows->row, (size_t)(rows->n + 1) * sizeof *rows->row);
    rows->row[rows->n++] = *row;
}

void bench_rows_free(struct bench_rows *rows)
{
    mem_free(rows->row);
    *rows = (struct bench_rows){0};
}

void bench_row_header(FILE *out)
{
    for (int i = 0; i < N_COLUMNS; i++) fprintf(out, "%s%s", i ? "," : "", columns[i].name);
    fputc('\n', out);
    fflush(out);
}

void bench_row_print(FILE *out, const struct bench_row *row)
{
    for (int i = 0; i < N_COLUMNS; i++) {
        const void *const field = (const char *)row + columns[i].at;
        if (i) fputc(',', out);
        switch (columns[i].kind) {
        case COLUMN_INT:
            fprintf(out, "%d", *(const int *)field);
            break;
        case COLUMN_DOUBLE:
            fprintf(out, "%.*f", columns[i].digits, *(const double *)field);
            break;
        case COLUMN_BYTES:
            fprintf(out, "%" PRIu64, *(const uint64_t *)field);
            break;
        }
    }
    fputc('\n', out);
    fflush(out);
}

/* ---------------------------------------------------------------- reading */

/* Cuts a line at its commas, in place; returns the number of fields, at most MAX_FIELDS. */
static int split(char *line, char *field[MAX_FIELDS])
{
    int n = 0;
    line[strcspn(line, "\r\n")] = '\0';
    for (char *p = line; p && n < MAX_FIELDS; n++) {
        field[n] = p;
        p = strchr(p, ',');
        if (p) *p++ = '\0';
    }
    return n;
}

/* The whole field as a number of the column; false: it is none. */
static bool take(struct bench_row *row, int column, const char *text)
{
    void *const field = (char *)row + columns[column].at;
    char *end;
    const double v = strtod(text, &end);
    if (end == text || *end || !(v >= 0 && v < 9e15)) return false;
    if (columns[column].kind == COLUMN_DOUBLE)
        *(double *)field = v;
    else if (columns[column].kind == COLUMN_BYTES)
        *(uint64_t *)field = (uint64_t)v;
    else if (v <= INT32_MAX)
        *(int *)field = (int)v;
    else
        return false;
    return true;
}

static int read_lines(const char *path, char *text, struct bench_rows *rows, struct err *e)
{
    int which[MAX_FIELDS], n_fields = 0, number = 0;
    char *field[MAX_FIELDS], *next;
    for (char *line = text; line && *line; line = next) {
        next = strchr(line, '\n');
        if (next) *next++ = '\0';
        number++;
        const int n = split(line, field);
        if (number == 1) {
            n_fields = n;
            bool length = false;
            for (int i = 0; i < n; i++) {
                which[i] = N_COLUMNS;
                for (int c = 0; c < N_COLUMNS; c++)
                    if (!strcmp(field[i], columns[c].name)) which[i] = c;
                length |= which[i] == 0;
            }
            if (!length) return err_set(e, ERR_FORMAT, "%s: its first line names no column ctx_tokens", path);
            continue;
        }
        struct bench_row row = {0};
        if (n != n_fields)
            return err_set(e, ERR_FORMAT, "%s: line %d has %d fields, the first line %d", path, number, n, n_fields);
        for (int i = 0; i < n; i++)
            if (which[i] < N_COLUMNS && !take(&row, which[i], field[i]))
                return err_set(e, ERR_FORMAT, "%s: line %d: \"%s\" is no %s", path, number, field[i],
                               columns[which[i]].name);
        bench_rows_add(rows, &row);
    }
    return rows->n ? 0 : err_set(e, ERR_FORMAT, "%s holds no rows", path);
}

int bench_rows_read(const char *path, struct bench_rows *rows, struct err *e)
{
    char *text;
    size_t n;
    *rows = (struct bench_rows){0};
    if (file_read(path, 1 << 24, &text, &n, e)) return e->code;
    const int rc = read_lines(path, text, rows, e);
    mem_free(text);
    if (rc) bench_rows_free(rows);
    return rc;
}

/* ---------------------------------------------------------------- comparing */

static void print_change(FILE *out, const char *what, double now, double before)
{
    if (now > 0 && before > 0)
        fprintf(out, "; %s %.2f t/s, was %.2f (%+.1f %%)", what, now, before, 100 * (now / before - 1));
}

void bench_rows_compare(FILE *out, const struct bench_rows *now, const struct bench_rows *before)
{
    for (int i = 0; i < now->n; i++) {
        const struct bench_row *const a = &now->row[i];
        const struct bench_row *b = NULL;
        for (int j = 0; j < before->n && !b; j++)
            if (before->row[j].ctx_tokens == a->ctx_tokens) b = &before->row[j];
        fprintf(out, "ctx %d", a->ctx_tokens);
        if (b) {
            print_change(out, "prefill", a->prefill_tps, b->prefill_tps);
            print_change(out, "decode", a->gen_tps, b->gen_tps);
        } else {
            fputs(": not in the earlier run", out);
        }
        fputc('\n', out);
    }
}
