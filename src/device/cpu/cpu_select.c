/* The k best compressed rows of a query (spec deepseek-v4 3.6). Queries are taken in groups of rows of one session
 * whose scores fit in memory; tasks score tiles of index rows for all queries of the group, then each query picks its
 * best. */
#include <math.h>
#include <string.h>
#include "device/cpu/cpu_internal.h"

struct select_job {
    struct dev_stream *s;
    const struct select_args *a;
    const struct dev_store *store;
    int row0, n; /* queries of the group */
    int heads, width, padded;
    int64_t visible; /* of the group's last query */
    float *score;    /* [n][visible] */
};

enum { SCORES_MOST = 16 << 20, TILES_PER_TASK = 4 };

static int64_t query_visible(const struct select_job *j, int i)
{
    return compressed_visible(j->s->rows->pos[j->row0 + i], j->a->ratio);
}

/* Thread scratch: decoded tile, padded heads, weights; afterwards, keys of one query's scores. */
struct select_scratch {
    float *rows, *q, *w;
    const float *heads; /* of the query: in its buffer, or padded in q */
};

static struct select_scratch select_carve(struct carve *c, const struct select_job *j)
{
    struct select_scratch t;
    t.rows = carve_take(c, CPU_TILE * (size_t)j->padded * sizeof(float));
    t.q = carve_take(c, (size_t)j->heads * (size_t)j->padded * sizeof(float));
    t.w = carve_take(c, (size_t)j->heads * sizeof(float));
    return t;
}

/* Query heads and weights as the kernel wants them. */
static void query_load(const struct select_job *j, int i, struct select_scratch *t)
{
    const float *q = buf_floats(j->a->q, j->row0 + i);
    const float *w = j->a->weight ? buf_floats(j->a->weight, j->row0 + i) : NULL;
    t->heads = cpu_pad_rows(q, j->heads, j->width, j->padded, t->q);
    for (int h = 0; h < j->heads; h++) t->w[h] = (w ? w[h] : 1) * (float)j->a->scale;
}

static void score_tile(const struct select_job *j, int64_t first, struct select_scratch *t)
{
    const int m = (int)min_i64(CPU_TILE, j->visible - first);
    const struct cpu_kernels *k = cpu_of(j->s)->k;
    const float *row[CPU_TILE];
    for (int r = 0; r < m; r++) {
        float *to = t->rows + (size_t)r * (size_t)j->padded;
        k->decode(&j->store->fmt, store_row(j->store, first + r), to);
        for (int v = j->width; v < j->padded; v++) to[v] = 0;
        row[r] = to;
    }
    for (int i = 0; i < j->n; i++) {
        const int seen = (int)min_i64(m, query_visible(j, i) - first);
        if (seen <= 0) continue;
        /* A single query stays loaded for all tiles of a task. */
        if (j->n > 1 || first % (TILES_PER_TASK * CPU_TILE) == 0) query_load(j, i, t);
        const struct cpu_scores s = {.row = row,
                                     .n_rows = seen,
                                     .width = j->padded,
                                     .q = t->heads,
                                     .n_heads = j->heads,
                                     .q_stride = (size_t)j->padded};
        k->index_scores(&s, t->w, j->score + i * j->visible + first);
    }
}

static void score_task(void *arg, int task, int thread)
{
    const struct select_job *j = arg;
    struct carve c = {.base = cpu_scratch_of(j->s, thread)};
    struct select_scratch t = select_carve(&c, j);
    const int64_t first = (int64_t)task * TILES_PER_TASK * CPU_TILE;
    for (int i = 0; i < TILES_PER_TASK && first + i * CPU_TILE < j->visible; i++)
        score_tile(j, first + i * CPU_TILE, &t);
}

/* Order-preserving integer of a float's bits: larger float, larger key; both zeros are equal, and what is not a number
 * comes last, as in ref. */
static uint32_t score_key(float f)
{
    uint32_t u;
    f += 0.0f;
    memcpy(&u, &f, sizeof u);
    if ((u & 0x7fffffffu) > 0x7f800000u) u = 0xff800000u;
    return u ^ (u & 0x80000000u ? 0xffffffffu : 0x80000000u);
}

/* The key of the k-th best of n > k scores, digit by digit from the top; *equal: how many rows of exactly that key
 * belong to the best. key: [n] scratch. */
static uint32_t threshold_key(const float *score, uint32_t *key, int64_t n, int k, int *equal)
{
    uint32_t prefix = 0, mask = 0;
    int64_t left = k;
    for (int shift = 24; shift >= 0; shift -= 8) {
        int64_t count[256] = {0};
        if (!mask)
            for (int64_t c = 0; c < n; c++) key[c] = score_key(score[c]), count[key[c] >> 24]++;
        for (int64_t c = 0; mask && c < n; c++)
            if ((key[c] & mask) == prefix) count[key[c] >> shift & 255]++;
        int digit = 255;
        for (; count[digit] < left; digit--) left -= count[digit];
        prefix |= (uint32_t)digit << shift;
        mask |= 255u << shift;
    }
    *equal = (int)left;
    return prefix;
}

static void pick_queries(void *arg, int64_t from, int64_t to, int thread)
{
    const struct select_job *j = arg;
    for (int64_t i = from; i < to; i++) {
        int32_t *out = buf_ints(j->a->out, j->row0 + i);
        const int64_t n = query_visible(j, (int)i);
        const float *score = j->score + i * j->visible;
        uint32_t *key = cpu_scratch_of(j->s, thread);
        int equal;
        out[0] = -1;
        if (n <= j->a->top_k) continue;
        const uint32_t least = threshold_key(score, key, n, j->a->top_k, &equal);
        int count = 0;
        for (int64_t c = 0; c < n; c++)
            if (key[c] > least || (key[c] == least && equal-- > 0)) out[1 + count++] = (int32_t)c;
        out[0] = count;
    }
}

static void select_group(struct select_job *j)
{
    if (j->visible <= j->a->top_k) {
        for (int i = 0; i < j->n; i++) buf_ints(j->a->out, j->row0 + i)[0] = -1;
        return;
    }
    struct carve count = {0};
    select_carve(&count, j);
    j->score = cpu_shared_scratch(j->s, (size_t)j->n * (size_t)j->visible * sizeof *j->score);
    const size_t keys = (size_t)j->visible * sizeof(uint32_t);
    if (!j->score || !cpu_thread_scratch(j->s, count.used > keys ? count.used : keys)) return;
    if (!store_has(j->store, 0, j->visible)) {
        dev_fail(j->s, ERR_ARG, "select: %lld index rows are visible, fewer were written", (long long)j->visible);
        return;
    }
    const int64_t tasks = (j->visible + TILES_PER_TASK * CPU_TILE - 1) / (TILES_PER_TASK * CPU_TILE);
    cpu_tasks(j->s, score_task, j, tasks);
    cpu_ranges(j->s, pick_queries, j, j->n, 8 * j->visible);
}

/* Rows from `row` on of one segment whose scores fit in memory. */
static int group_rows(const struct dev_stream *s, const struct select_args *a, int row)
{
    int n = 0;
    for (int i = row; i < a->n && s->rows->segment[i] == s->rows->segment[row]; i++) {
        const int64_t seen = compressed_visible(s->rows->pos[i], a->ratio);
        if (n > 0 && (n + 1) * seen > SCORES_MOST) break;
        n++;
    }
    return n;
}

void cpu_select(struct dev_stream *s, const struct select_args *a)
{
    struct select_job j = {.s = s, .a = a, .heads = a->q->d.groups, .width = a->q->d.width};
    j.padded = (int)round_up((size_t)j.width, 16);
    for (int row = 0; row < a->n && cpu_ready(s); row += j.n) {
        j.row0 = row;
        j.n = group_rows(s, a, row);
        j.store = a->store[s->rows->segment[row]];
        j.visible = query_visible(&j, j.n - 1);
        select_group(&j);
    }
}

void cpu_select_work(const struct work_desc *a, struct cpu_work *w)
{
    const int64_t visible = work_visible(a);
    if (!a->top_k || visible <= a->top_k) return;
    const struct select_job j = {.heads = a->index_heads, .padded = (int)round_up((size_t)a->index_width, 16)};
    const int64_t scores = min_i64(a->rows * visible, max_i64(SCORES_MOST, visible));
    struct carve one = {0};
    select_carve(&one, &j);
    const size_t keys = (size_t)visible * sizeof(uint32_t);
    cpu_work_raise(w, (size_t)scores * sizeof *j.score, one.used > keys ? one.used : keys);
}
