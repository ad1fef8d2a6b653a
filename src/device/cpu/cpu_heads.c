/* Attention over keys and values of their own, and the keys of blocks (spec qwen38 3.6).
 *
 * Queries are taken in groups whose scores fit in memory. Three passes over (query, kv head): scores of tiles of 64
 * rows; exponentials and their sums, tile after tile; sums of values, some columns a task. Rows are decoded by the task
 * that uses them, once for all of its queries that see them alike.
 *
 * Floor: scores and sums of 24 heads of 256 values over 2,048 tokens 26 thousand million multiply-adds, 0.11 s on 2
 * cores of an AMD EPYC (Zen 5, virtual, AVX-512, 232 a second), where they take 0.34 (0.51 with rows decoded for every
 * query). */
#include <math.h>
#include <string.h>
#include "device/cpu/cpu_internal.h"

enum { SCORES_MOST = 8 << 20, TILES_PER_TASK = 4, VALUE_COLUMNS = 64 };
enum { MANY = 64, BLOCK = 8 }; /* from so many queries on a task takes so many */

/* ---------------------------------------------------------------- rows of a store */

struct write_job {
    struct dev_stream *s;
    const struct store_write_args *a;
};

static void write_rows(void *arg, int64_t from, int64_t to, int thread)
{
    const struct write_job *j = arg;
    const struct store_write_args *a = j->a;
    const size_t nx = (size_t)buf_row_values(&a->x->d), ny = a->y ? (size_t)buf_row_values(&a->y->d) : 0;
    float *row = cpu_scratch_of(j->s, thread);
    for (int64_t i = from; i < to; i++) {
        const struct dev_store *st = a->store[j->s->rows->segment[i]];
        memcpy(row, buf_floats(a->x, i), nx * sizeof *row);
        if (ny) memcpy(row + nx, buf_floats(a->y, i), ny * sizeof *row);
        cpu_of(j->s)->k->encode(&st->fmt, row, store_row(st, j->s->rows->pos[i]));
    }
}

/* True if every segment's store has rows for [first, end) of it. */
static bool rows_reserved(struct dev_stream *s, struct dev_store *const *store, int ratio)
{
    for (int i = 0; i < s->rows->n_segments; i++) {
        int64_t first, end;
        compressed_emitted(&s->rows->segments[i], ratio, &first, &end);
        if (first == end || store_has(store[i], first, end)) continue;
        dev_fail(s, ERR_ARG, "rows %lld to %lld of a store were not reserved", (long long)first, (long long)end);
        return false;
    }
    return true;
}

void cpu_store_write(struct dev_stream *s, const struct store_write_args *a)
{
    const int64_t values = buf_row_values(&a->x->d) + (a->y ? buf_row_values(&a->y->d) : 0);
    if (!cpu_ready(s) || !rows_reserved(s, a->store, 1)) return;
    if (!cpu_thread_scratch(s, (size_t)values * sizeof(float))) return;
    struct write_job j = {.s = s, .a = a};
    cpu_ranges(s, write_rows, &j, s->rows->n, 4 * values);
}

/* ---------------------------------------------------------------- keys of blocks */

struct pool_job {
    struct dev_stream *s;
    const struct pool_args *a;
};

/* The key of the block that ends at row i, if one does. */
static void pool_row(const struct pool_job *j, int64_t i, float *turn, float *out)
{
    const struct pool_args *a = j->a;
    const struct cpu_kernels *k = cpu_of(j->s)->k;
    const int seg = j->s->rows->segment[i], w = (int)buf_row_values(&a->x->d);
    const struct segment *g = &j->s->rows->segments[seg];
    const int64_t pos = j->s->rows->pos[i];
    if ((pos + 1) % a->ratio != 0) return;
    memset(out, 0, (size_t)w * sizeof *out);
    for (int64_t p = pos + 1 - a->ratio; p <= pos; p++) {
        const struct dev_ring *ring = a->ring[seg];
        k->add(w,
               p >= g->pos0 ? buf_floats(a->x, g->row0 + (p - g->pos0))
                            : (const float *)(const void *)ring_row(ring, ring->bank, (int32_t)p),
               out);
    }
    k->scale(w, out, 1.0f / (float)a->ratio, out);
    k->rms_norm(w, (float)a->eps, out, a->norm->f32, out);
    cpu_rope_turn(a->rope, j->s->rows->window_rope + 3 * i, false, turn);
    cpu_rotate(k, a->rope, turn, out);
    k->encode(&a->store[seg]->fmt, out, store_row(a->store[seg], pos / a->ratio));
}

static void pool_rows(void *arg, int64_t from, int64_t to, int thread)
{
    const struct pool_job *j = arg;
    float *turn = cpu_scratch_of(j->s, thread), *out = turn + 4 * (size_t)j->a->rope->pairs;
    for (int64_t i = from; i < to; i++) pool_row(j, i, turn, out);
}

void cpu_pool(struct dev_stream *s, const struct pool_args *a)
{
    const int64_t w = buf_row_values(&a->x->d);
    if (!cpu_ready(s) || !cpu_need_f32(s, a->norm, "block key norm") || !rows_reserved(s, a->store, a->ratio)) return;
    if (!cpu_thread_scratch(s, ((size_t)w + 4 * (size_t)a->rope->pairs) * sizeof(float))) return;
    struct pool_job j = {.s = s, .a = a};
    cpu_ranges(s, pool_rows, &j, s->rows->n, 3 * w + 16 * (int64_t)a->rope->pairs);
    for (int i = 0; i < s->rows->n_segments; i++)
        if (!cpu_ring_write_segment(s, a->ring[i], &s->rows->segments[i], a->x->data, a->x->stride)) return;
}

/* ---------------------------------------------------------------- attention */

struct heads_job {
    struct dev_stream *s;
    const struct attention_heads_args *a;
    const struct cpu_kernels *k;
    int width, padded, each, each_pad; /* values of a head; query heads of a kv head */
    int row0, n, block;                /* queries of the group, of a task */
    int64_t seen;                      /* most rows that one of them sees */
    int64_t tiles;                     /* of so many rows */
    float *z;                          /* [n][kv_heads][seen][each_pad] */
    float *max;                        /* [n][kv_heads][tiles][each_pad], then of all tiles in the first */
    float *sum;                        /* [n][kv_heads][each_pad] */
};

/* What a query sees: rows of the selected blocks, then those from `tail` on. */
struct seen {
    const struct dev_store *store;
    const int32_t *selected;
    int64_t n, n_selected, tail;
};

static struct seen seen_by(const struct heads_job *j, int i)
{
    const struct attention_heads_args *a = j->a;
    const int64_t all = (int64_t)j->s->rows->pos[i] + 1;
    const int32_t *selected = a->selected ? buf_ints(a->selected, i) : NULL;
    struct seen v = {.store = a->store[j->s->rows->segment[i]], .n = all};
    if (!selected || selected[0] < 0) return v;
    v.selected = selected + 1;
    v.n_selected = (int64_t)selected[0] * a->block;
    v.tail = all / a->block * a->block;
    v.n = v.n_selected + all - v.tail;
    return v;
}

/* Queries [i, end) of a task: one, or as many as see all rows of a session, the last one most. */
static int alike(const struct heads_job *j, int i, int last)
{
    const int32_t *segment = j->s->rows->segment + j->row0;
    int end = i + 1;
    if (seen_by(j, j->row0 + i).selected) return end;
    while (end < last && segment[end] == segment[i] && !seen_by(j, j->row0 + end).selected) end++;
    return end;
}

static int64_t seen_row(const struct heads_job *j, const struct seen *v, int64_t i)
{
    if (i >= v->n_selected) return v->tail + i - v->n_selected;
    return (int64_t)v->selected[i / j->a->block] * j->a->block + i % j->a->block;
}

/* Values [at, at + n) of rows [first, first + m) of what is seen: as they lie, or decoded to `to`, n rounded up to 16
 * apart. */
static void tile_rows(const struct heads_job *j, const struct seen *v, int64_t first, int m, int at, int n, float *to,
                      const float **row)
{
    const struct row_format part = {.kind = v->store->fmt.kind, .width = n};
    const int padded = (int)round_up((size_t)n, 16);
    const bool plain = part.kind == ROWFMT_F32 && n == padded;
    const size_t skip = (size_t)at * (part.kind == ROWFMT_F16 ? 2 : sizeof(float));
    for (int i = 0; i < m; i++) {
        const uint8_t *from = store_row(v->store, seen_row(j, v, first + i)) + skip;
        row[i] = plain ? (const float *)(const void *)from : to + (size_t)i * (size_t)padded;
        if (plain) continue;
        float *dst = to + (size_t)i * (size_t)padded;
        j->k->decode(&part, from, dst);
        for (int c = n; c < padded; c++) dst[c] = 0;
    }
}

static float *z_of(const struct heads_job *j, int query, int kv)
{
    return j->z + ((size_t)query * (size_t)j->a->kv_heads + (size_t)kv) * (size_t)j->seen * (size_t)j->each_pad;
}

static float *max_of(const struct heads_job *j, int query, int kv)
{
    return j->max + ((size_t)query * (size_t)j->a->kv_heads + (size_t)kv) * (size_t)j->tiles * (size_t)j->each_pad;
}

static float *sum_of(const struct heads_job *j, int query, int kv)
{
    return j->sum + ((size_t)query * (size_t)j->a->kv_heads + (size_t)kv) * (size_t)j->each_pad;
}

/* Thread scratch: rows of a tile, query heads, sums of values. */
struct heads_scratch {
    float *rows, *q, *acc;
};

static struct heads_scratch scratch_carve(struct carve *c, const struct heads_job *j)
{
    struct heads_scratch t;
    t.rows = carve_take(c, CPU_TILE * (size_t)j->padded * sizeof(float));
    t.q = carve_take(c, (size_t)j->each * (size_t)j->padded * sizeof(float));
    t.acc = carve_take(c, (size_t)j->block * (size_t)j->each * VALUE_COLUMNS * sizeof(float));
    return t;
}

static int64_t tasks_of_tiles(const struct heads_job *j)
{
    return (j->tiles + TILES_PER_TASK - 1) / TILES_PER_TASK;
}

/* Queries of a task. */
struct queries {
    int first, end, kv;
};

static struct queries queries_of(const struct heads_job *j, int64_t item)
{
    const int first = (int)(item / j->a->kv_heads) * j->block;
    return (struct queries){
        .first = first, .end = (int)min_i64(first + j->block, j->n), .kv = (int)(item % j->a->kv_heads)};
}

/* Items of queries_of. */
static int64_t query_items(const struct heads_job *j)
{
    return (int64_t)((j->n + j->block - 1) / j->block) * j->a->kv_heads;
}

/* Rows of a tile that a query sees. */
static int tile_seen(const struct heads_job *j, int query, int64_t tile)
{
    return (int)max_i64(0, min_i64(CPU_TILE, seen_by(j, j->row0 + query).n - tile * CPU_TILE));
}

static void score_tile(const struct heads_job *j, int query, int kv, int64_t tile, const float *const *row, float *pad)
{
    const int m = tile_seen(j, query, tile);
    float *max = max_of(j, query, kv) + tile * j->each_pad, *z = z_of(j, query, kv) + tile * CPU_TILE * j->each_pad;
    const float *q = buf_floats(j->a->q, j->row0 + query) + (size_t)kv * (size_t)j->each * (size_t)j->width;
    if (!m) return;
    q = cpu_pad_rows(q, j->each, j->width, j->padded, pad);
    for (int h = 0; h < j->each_pad; h++) max[h] = h < j->each ? -INFINITY : 0;
    if (j->each < j->each_pad) memset(z, 0, (size_t)m * (size_t)j->each_pad * sizeof *z);
    const struct cpu_scores s = {
        .row = row, .n_rows = m, .width = j->padded, .q = q, .n_heads = j->each, .q_stride = (size_t)j->padded};
    j->k->attention_scores(&s, (float)j->a->scale, z, j->each_pad, max);
}

static void score_task(void *arg, int task, int thread)
{
    const struct heads_job *j = arg;
    struct carve c = {.base = cpu_scratch_of(j->s, thread)};
    const struct heads_scratch t = scratch_carve(&c, j);
    const int64_t of_tiles = tasks_of_tiles(j), first = task % of_tiles * TILES_PER_TASK;
    const struct queries q = queries_of(j, task / of_tiles);
    const float *row[CPU_TILE];
    for (int64_t tile = first; tile < min_i64(first + TILES_PER_TASK, j->tiles); tile++)
        for (int i = q.first, end; i < q.end; i = end) {
            end = alike(j, i, q.end);
            const struct seen v = seen_by(j, j->row0 + end - 1);
            tile_rows(j, &v, tile * CPU_TILE, tile_seen(j, end - 1, tile), q.kv * j->width, j->width, t.rows, row);
            for (; i < end; i++) score_tile(j, i, q.kv, tile, row, t.q);
        }
}

static void softmax_pairs(void *arg, int64_t from, int64_t to, int thread)
{
    const struct heads_job *j = arg;
    for (int64_t pair = from; pair < to; pair++) {
        const int query = (int)(pair / j->a->kv_heads), kv = (int)(pair % j->a->kv_heads);
        const int64_t n = seen_by(j, j->row0 + query).n;
        float *max = max_of(j, query, kv), *sum = sum_of(j, query, kv), *z = z_of(j, query, kv);
        for (int64_t tile = 1; tile * CPU_TILE < n; tile++)
            for (int h = 0; h < j->each_pad; h++)
                if (max[tile * j->each_pad + h] > max[h]) max[h] = max[tile * j->each_pad + h];
        memset(sum, 0, (size_t)j->each_pad * sizeof *sum);
        for (int64_t first = 0; first < n; first += CPU_TILE)
            j->k->attention_exp((int)min_i64(CPU_TILE, n - first), j->each, z + first * j->each_pad, j->each_pad, max,
                                sum);
    }
}

static int value_parts(const struct heads_job *j)
{
    return (j->width + VALUE_COLUMNS - 1) / VALUE_COLUMNS;
}

/* Columns [c0, c0 + n) of the sums of queries [from, end) that see rows alike; acc: [query][each][n rounded up]. */
static void sum_values(const struct heads_job *j, int from, int end, int kv, int c0, int n, float *rows, float *acc)
{
    const size_t padded = round_up((size_t)n, 16), values = (size_t)j->each * padded;
    const struct seen v = seen_by(j, j->row0 + end - 1);
    const float *row[CPU_TILE];
    for (int64_t tile = 0; tile * CPU_TILE < v.n; tile++) {
        tile_rows(j, &v, tile * CPU_TILE, tile_seen(j, end - 1, tile), (j->a->kv_heads + kv) * j->width + c0, n, rows,
                  row);
        for (int i = from; i < end; i++) {
            const float *z = z_of(j, i, kv) + tile * CPU_TILE * j->each_pad;
            const int m = tile_seen(j, i, tile);
            if (m || tile == 0)
                j->k->attention_sum(m, row, (int)padded, j->each, z, j->each_pad, tile == 0,
                                    acc + (size_t)(i - from) * values);
        }
    }
    for (int i = from; i < end; i++)
        for (int h = 0; h < j->each; h++, acc += padded) {
            float *out = buf_floats(j->a->out, j->row0 + i) + (size_t)(kv * j->each + h) * (size_t)j->width + c0;
            j->k->scale(n, acc, 1 / sum_of(j, i, kv)[h], out);
        }
}

static void value_task(void *arg, int task, int thread)
{
    const struct heads_job *j = arg;
    struct carve c = {.base = cpu_scratch_of(j->s, thread)};
    const struct heads_scratch t = scratch_carve(&c, j);
    const int parts = value_parts(j), c0 = task % parts * VALUE_COLUMNS;
    const struct queries q = queries_of(j, task / parts);
    for (int i = q.first, end; i < q.end; i = end) {
        end = alike(j, i, q.end);
        sum_values(j, i, end, q.kv, c0, (int)min_i64(VALUE_COLUMNS, j->width - c0), t.rows, t.acc);
    }
}

/* ---------------------------------------------------------------- groups of queries */

/* Everything in the shared scratch; base NULL only counts. */
static void group_carve(struct carve *c, struct heads_job *j)
{
    const size_t pairs = (size_t)j->n * (size_t)j->a->kv_heads, lane = (size_t)j->each_pad * sizeof(float);
    j->tiles = (j->seen + CPU_TILE - 1) / CPU_TILE;
    j->z = carve_take(c, pairs * (size_t)j->seen * lane);
    j->max = carve_take(c, pairs * (size_t)j->tiles * lane);
    j->sum = carve_take(c, pairs * lane);
}

/* Queries from row0 on whose scores fit in memory; one at least. */
static void group_size(struct heads_job *j, int row0)
{
    const int64_t row_values = (int64_t)j->a->kv_heads * j->each_pad;
    j->row0 = row0;
    j->n = 0, j->seen = 0;
    while (row0 + j->n < j->a->n) {
        const int64_t seen = max_i64(j->seen, seen_by(j, row0 + j->n).n);
        if (j->n > 0 && (j->n + 1) * seen * row_values > SCORES_MOST) break;
        j->seen = seen;
        j->n++;
    }
    j->block = j->n < MANY ? 1 : BLOCK;
}

static bool group_check(struct heads_job *j)
{
    for (int i = j->row0; i < j->row0 + j->n; i++) {
        const int64_t all = (int64_t)j->s->rows->pos[i] + 1;
        if (store_has(j->a->store[j->s->rows->segment[i]], 0, all)) continue;
        dev_fail(j->s, ERR_ARG, "attention: %lld rows are visible, fewer were written", (long long)all);
        return false;
    }
    return true;
}

static void group_run(struct heads_job *j)
{
    struct carve c = {0}, one = {0};
    group_carve(&c, j);
    scratch_carve(&one, j);
    c = (struct carve){.base = cpu_shared_scratch(j->s, c.used)};
    if (!c.base || !cpu_thread_scratch(j->s, one.used)) return;
    group_carve(&c, j);
    const int64_t pairs = (int64_t)j->n * j->a->kv_heads;
    cpu_tasks(j->s, score_task, j, query_items(j) * tasks_of_tiles(j));
    cpu_ranges(j->s, softmax_pairs, j, pairs, 4 * j->seen * j->each_pad);
    cpu_tasks(j->s, value_task, j, query_items(j) * value_parts(j));
}

static void heads_widths(struct heads_job *j)
{
    j->padded = (int)round_up((size_t)j->width, 16);
    j->each_pad = (int)round_up((size_t)j->each, 8);
}

void cpu_attention_heads(struct dev_stream *s, const struct attention_heads_args *a)
{
    struct heads_job j = {.s = s, .a = a, .k = cpu_of(s)->k, .width = a->q->d.width};
    j.each = a->q->d.groups / a->kv_heads;
    heads_widths(&j);
    for (int row = 0; row < a->n && cpu_ready(s); row += j.n) {
        group_size(&j, row);
        if (!group_check(&j)) return;
        group_run(&j);
    }
}

void cpu_heads_work(const struct cpu_dev *d, const struct work_desc *a, struct cpu_work *w)
{
    if (!a->kv_heads) return;
    const struct attention_heads_args args = {.kv_heads = a->kv_heads};
    struct heads_job j = {.a = &args, .width = a->width, .each = a->heads / a->kv_heads, .block = BLOCK};
    heads_widths(&j);
    const int64_t most = a->top_k ? (int64_t)a->top_k * a->block + a->block : a->ctx;
    j.seen = min_i64(most, a->ctx);
    j.n = (int)max_i64(1, min_i64(a->rows, SCORES_MOST / (j.seen * a->kv_heads * j.each_pad)));
    struct carve all = {0}, one = {0};
    group_carve(&all, &j);
    scratch_carve(&one, &j);
    cpu_work_raise(w, all.used, one.used);
}
