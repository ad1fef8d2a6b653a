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

/* Thread scratch: decoded tile, padded heads, weights. */
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

/* Few queries read halves as they lie; for many a row is decoded once. */
enum { STRAIGHT_MOST = 8, STRAIGHT_WIDTH = 1024 };

static bool straight(const struct select_job *j)
{
    return j->store->fmt.kind == ROWFMT_F16 && j->width == j->padded && j->width <= STRAIGHT_WIDTH &&
           j->n <= STRAIGHT_MOST;
}

/* Rows [first, first + m), which lie in one segment -> what the kernel reads. */
static void rows_load(const struct select_job *j, int64_t first, int m, struct select_scratch *t, const float **row,
                      struct cpu_scores *s)
{
    if (straight(j)) {
        s->halves = store_row(j->store, first), s->halves_stride = j->store->row_bytes;
        return;
    }
    for (int r = 0; r < m; r++) {
        float *to = t->rows + (size_t)r * (size_t)j->padded;
        cpu_of(j->s)->k->decode(&j->store->fmt, store_row(j->store, first + r), to);
        for (int v = j->width; v < j->padded; v++) to[v] = 0;
        row[r] = to;
    }
    s->row = row;
}

static void score_tile(const struct select_job *j, int64_t first, struct select_scratch *t)
{
    const int m = (int)min_i64(CPU_TILE, j->visible - first);
    const float *row[CPU_TILE];
    struct cpu_scores s = {.width = j->padded, .n_heads = j->heads, .q_stride = (size_t)j->padded};
    rows_load(j, first, m, t, row, &s);
    for (int i = 0; i < j->n; i++) {
        s.n_rows = (int)min_i64(m, query_visible(j, i) - first);
        if (s.n_rows <= 0) continue;
        /* A single query stays loaded for all tiles of a task. */
        if (j->n > 1 || first % (TILES_PER_TASK * CPU_TILE) == 0) query_load(j, i, t);
        s.q = t->heads;
        cpu_of(j->s)->k->index_scores(&s, t->w, j->score + i * j->visible + first);
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

/* ---------------------------------------------------------------- the k best scores */

/* Candidates of one query: all rows so far that can be among the k best, ascending. A row later than k candidates must
 * be better than the worst of them, for of equal ones the lower row counts. */
struct best {
    const float *score;
    int k, n, most;
    float least;    /* of the k best so far */
    int32_t *index; /* [most + CPU_TILE + 1] */
    uint32_t *key;  /* likewise */
};

static struct best best_carve(struct carve *c, int k)
{
    struct best b = {.k = k, .most = 2 * k + 256};
    const size_t room = (size_t)b.most + CPU_TILE + 1;
    b.index = carve_take(c, room * sizeof *b.index);
    b.key = carve_take(c, room * sizeof *b.key);
    return b;
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

static float key_score(uint32_t key)
{
    const uint32_t u = key ^ (key & 0x80000000u ? 0x80000000u : 0xffffffffu);
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

/* The key of the k-th best of n > k keys, digit by digit from the top; *equal: how many rows of exactly that key belong
 * to the best. */
static uint32_t threshold_key(const uint32_t *key, int n, int k, int *equal)
{
    uint32_t prefix = 0, mask = 0;
    int left = k;
    for (int shift = 24; shift >= 0; shift -= 8) {
        int count[256] = {0}, digit = 255;
        for (int c = 0; c < n; c++)
            if ((key[c] & mask) == prefix) count[key[c] >> shift & 255]++;
        for (; count[digit] < left; digit--) left -= count[digit];
        prefix |= (uint32_t)digit << shift;
        mask |= 255u << shift;
    }
    *equal = left;
    return prefix;
}

/* Leaves the k best candidates. */
static void best_prune(struct best *b)
{
    int equal, n = 0;
    for (int c = 0; c < b->n; c++) b->key[c] = score_key(b->score[b->index[c]]);
    const uint32_t least = threshold_key(b->key, b->n, b->k, &equal);
    for (int c = 0; c < b->n; c++)
        if (b->key[c] > least || (b->key[c] == least && equal-- > 0)) b->index[n++] = b->index[c];
    b->n = n;
    b->least = key_score(least);
}

/* The k best of n > k scores -> the first k of index. */
static void best_find(struct best *b, const struct cpu_kernels *k, int64_t n)
{
    int64_t c = 0;
    b->n = 0;
    for (; c < n && c < b->most; c++) b->index[b->n++] = (int32_t)c;
    best_prune(b);
    for (; c < n; c += CPU_TILE) {
        if (b->n > b->most) best_prune(b);
        b->n += k->above((int)min_i64(CPU_TILE, n - c), b->score + c, b->least, (int32_t)c, b->index + b->n);
    }
    if (b->n > b->k) best_prune(b);
}

static void pick_queries(void *arg, int64_t from, int64_t to, int thread)
{
    const struct select_job *j = arg;
    struct carve c = {.base = cpu_scratch_of(j->s, thread)};
    struct best b = best_carve(&c, j->a->top_k);
    for (int64_t i = from; i < to; i++) {
        int32_t *out = buf_ints(j->a->out, j->row0 + i);
        const int64_t n = query_visible(j, (int)i);
        out[0] = -1;
        if (n <= b.k) continue;
        b.score = j->score + i * j->visible;
        best_find(&b, cpu_of(j->s)->k, n);
        out[0] = b.k;
        memcpy(out + 1, b.index, (size_t)b.k * sizeof *out);
    }
}

/* Scratch of a thread: of scoring, afterwards of picking. */
static size_t thread_bytes(const struct select_job *j)
{
    struct carve score = {0}, pick = {0};
    select_carve(&score, j);
    best_carve(&pick, j->a->top_k);
    return score.used > pick.used ? score.used : pick.used;
}

/* ---------------------------------------------------------------- groups of queries */

static void select_group(struct select_job *j)
{
    if (j->visible <= j->a->top_k) {
        for (int i = 0; i < j->n; i++) buf_ints(j->a->out, j->row0 + i)[0] = -1;
        return;
    }
    j->score = cpu_shared_scratch(j->s, (size_t)j->n * (size_t)j->visible * sizeof *j->score);
    if (!j->score || !cpu_thread_scratch(j->s, thread_bytes(j))) return;
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
    const struct select_args args = {.top_k = a->top_k};
    const struct select_job j = {
        .a = &args, .heads = a->index_heads, .padded = (int)round_up((size_t)a->index_width, 16)};
    const int64_t scores = min_i64(a->rows * visible, max_i64(SCORES_MOST, visible));
    cpu_work_raise(w, (size_t)scores * sizeof *j.score, thread_bytes(&j));
}
