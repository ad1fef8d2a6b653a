/* Attention over raw window rows and compressed rows (spec deepseek-v4 3.7).
 *
 * First the stored rows that several tasks need are decoded once into shared scratch: raw rows of every segment, all
 * compressed rows of segments that see them all, and, for few queries, each query's selected rows. Selected rows of
 * many queries are decoded by the task that uses them. Then a task computes some heads of one query in two passes over
 * tiles of 64 rows: scores and their maximum; exponentials and weighted sums. A task of all heads also quantises what a
 * second-level cache still holds.
 *
 * A query's row comes from memory and never goes back there: it is normed to scratch, and an output of which only the
 * quantised form is wanted stays in scratch too. What surrounds scores and sums takes 0.74 of the time that it took
 * with both in the query's row and nothing asked for ahead (prompts of 2,048 tokens of DeepSeek V4 Flash's shape, two
 * cores of an AMD EPYC (Zen 5, virtual), profiles in turn). */
#include <math.h>
#include <string.h>
#include "device/cpu/cpu_internal.h"

enum {
    SHARED_MOST = 64 << 20, /* bytes of compressed rows decoded in advance */
    KEEP_ROWS = 1024,       /* rows that a task keeps decoded between its passes */
    HEADS_AHEAD = 3         /* heads of a query that are asked for in advance; they may be another's */
};

/* What one row of the step looks at. */
struct query {
    int seg;
    int32_t raw_first;
    int64_t n_raw, n_comp;
    const int32_t *selected; /* [n_comp] compressed rows; NULL: 0 .. n_comp-1 */
    int64_t raw_at, comp_at; /* their first row among the shared decoded ones; comp_at -1: decoded by the task */
};

/* Rows to decode in advance, at most CPU_TILE of them. */
struct piece {
    int seg;
    bool raw;                /* raw rows by position, else compressed rows */
    const int32_t *selected; /* or NULL */
    int64_t first, n, at;    /* position, row or index into selected; destination row */
};

struct attention_job {
    struct dev_stream *s;
    const struct attention_args *a;
    const struct cpu_kernels *k;
    int heads, width, padded;
    size_t
        stride; /* floats between decoded rows: an odd number of cache lines, or columns would share few cache sets */
    int parts, part_heads, part_pad;
    struct query *query; /* [n] */
    struct piece *piece; /* [n_pieces] */
    float *rows;         /* [n_rows][stride] */
    float *turn;         /* [n][2][4*pairs] rotations of the queries, and back */
    int64_t n_pieces, n_rows;
    int64_t most_seen, most_kept;
};

/* ---------------------------------------------------------------- what is looked at */

static struct query query_of(const struct dev_stream *s, const struct attention_args *a, int i)
{
    const struct rows *r = s->rows;
    struct query q = {.seg = r->segment[i], .raw_first = r->raw_first[i], .comp_at = -1};
    q.n_raw = max_i64(0, (int64_t)r->raw_last[i] - r->raw_first[i] + 1);
    if (!a->store || !a->store[q.seg]) return q;
    const int32_t *selected = a->selected ? buf_ints(a->selected, i) : NULL;
    if (selected && selected[0] >= 0) q.selected = selected + 1;
    q.n_comp = q.selected ? selected[0] : compressed_visible(r->pos[i], a->ratio);
    return q;
}

/* Adds pieces for n rows; returns the row where they start. While pieces are counted there is no array. */
static int64_t pieces_add(struct attention_job *j, struct piece p, int64_t n)
{
    const int64_t at = j->n_rows;
    for (int64_t i = 0; i < n; i += CPU_TILE) {
        if (j->piece) {
            struct piece *to = &j->piece[j->n_pieces];
            *to = p;
            to->first = p.first + i;
            to->n = min_i64(CPU_TILE, n - i);
            to->at = at + i;
        }
        j->n_pieces++;
    }
    j->n_rows += n;
    return at;
}

/* Queries [i0, i1) of one segment. */
static void plan_segment(struct attention_job *j, int i0, int i1)
{
    const int seg = j->query[i0].seg;
    int64_t first = INT64_MAX, end = 0, all = 0;
    for (int i = i0; i < i1; i++) {
        const struct query *q = &j->query[i];
        if (q->n_raw) first = min_i64(first, q->raw_first), end = max_i64(end, q->raw_first + q->n_raw);
        if (!q->selected) all = max_i64(all, q->n_comp);
    }
    const size_t row_bytes = j->stride * sizeof(float);
    const int64_t raw_at =
        pieces_add(j, (struct piece){.seg = seg, .raw = true, .first = first}, max_i64(0, end - first));
    const bool share = (size_t)all * row_bytes <= SHARED_MOST;
    const int64_t all_at = share ? pieces_add(j, (struct piece){.seg = seg}, all) : -1;
    for (int i = i0; i < i1; i++) {
        struct query *q = &j->query[i];
        q->raw_at = raw_at + q->raw_first - first;
        q->comp_at = all_at;
        if (!q->selected) continue;
        q->comp_at = j->parts > 1 ? pieces_add(j, (struct piece){.seg = seg, .selected = q->selected}, q->n_comp) : -1;
    }
}

static void plan_pieces(struct attention_job *j)
{
    j->n_pieces = j->n_rows = 0;
    for (int i = 0, end; i < j->a->n; i = end) {
        for (end = i + 1; end < j->a->n && j->query[end].seg == j->query[i].seg; end++) {
        }
        plan_segment(j, i, end);
    }
}

static bool query_check(struct attention_job *j, const struct query *q)
{
    int64_t end = q->n_comp;
    for (int64_t i = 0; q->selected && i < q->n_comp; i++) end = max_i64(end, q->selected[i] + 1);
    if (!end || store_has(j->a->store[q->seg], 0, end)) return true;
    dev_fail(j->s, ERR_ARG, "attention: %lld compressed rows are visible, fewer were written", (long long)end);
    return false;
}

static size_t turn_bytes(int n, int pairs)
{
    return (size_t)n * 8 * (size_t)pairs * sizeof(float);
}

static int pairs_of(const struct attention_args *a)
{
    return a->rope ? a->rope->pairs : 0;
}

static bool plan_queries(struct attention_job *j)
{
    const size_t query_bytes = round_up((size_t)j->a->n * sizeof(struct query), 64);
    uint8_t *p = cpu_shared_scratch(j->s, query_bytes);
    j->query = (struct query *)(void *)p;
    if (!p) return false;
    for (int i = 0; i < j->a->n; i++) {
        struct query *q = &j->query[i];
        *q = query_of(j->s, j->a, i);
        if (!query_check(j, q)) return false;
        j->most_seen = max_i64(j->most_seen, q->n_raw + q->n_comp);
    }
    plan_pieces(j);
    struct carve c = {0};
    carve_take(&c, query_bytes);
    carve_take(&c, (size_t)j->n_pieces * sizeof(struct piece));
    carve_take(&c, (size_t)j->n_rows * j->stride * sizeof(float));
    carve_take(&c, turn_bytes(j->a->n, pairs_of(j->a)));
    p = cpu_shared_scratch(j->s, c.used);
    if (!p) return false;
    c = (struct carve){.base = p};
    j->query = carve_take(&c, query_bytes);
    j->piece = carve_take(&c, (size_t)j->n_pieces * sizeof(struct piece));
    j->rows = carve_take(&c, (size_t)j->n_rows * j->stride * sizeof(float));
    j->turn = carve_take(&c, turn_bytes(j->a->n, pairs_of(j->a)));
    for (int i = 0; i < j->a->n; i++) j->query[i] = query_of(j->s, j->a, i); /* the scratch may have moved */
    plan_pieces(j);
    for (int i = 0; i < j->a->n; i++)
        if (j->query[i].comp_at < 0) j->most_kept = max_i64(j->most_kept, j->query[i].n_comp);
    return true;
}

/* ---------------------------------------------------------------- decoding */

static void decode_row(const struct attention_job *j, const struct row_format *f, const uint8_t *src, float *to)
{
    j->k->decode(f, src, to);
    for (int v = j->width; v < j->padded; v++) to[v] = 0;
}

static void decode_raw(const struct attention_job *j, int seg, int64_t pos, float *to)
{
    const struct segment *g = &j->s->rows->segments[seg];
    const struct dev_ring *ring = j->a->ring[seg];
    if (pos >= g->pos0)
        decode_row(j, &j->a->raw->d.fmt, buf_row(j->a->raw, g->row0 + (pos - g->pos0)), to);
    else
        decode_row(j, &ring->d.fmt, ring_row(ring, ring->bank, (int32_t)pos), to);
}

static void decode_comp(const struct attention_job *j, int seg, int64_t row, float *to)
{
    const struct dev_store *store = j->a->store[seg];
    decode_row(j, &store->fmt, store_row(store, row), to);
}

static void decode_pieces(void *arg, int64_t from, int64_t to, int thread)
{
    const struct attention_job *j = arg;
    for (int64_t i = from; i < to; i++) {
        const struct piece *p = &j->piece[i];
        for (int64_t r = 0; r < p->n; r++) {
            float *row = j->rows + (size_t)(p->at + r) * j->stride;
            if (p->raw)
                decode_raw(j, p->seg, p->first + r, row);
            else
                decode_comp(j, p->seg, p->selected ? p->selected[p->first + r] : p->first + r, row);
        }
    }
}

/* ---------------------------------------------------------------- rotation of the queries */

/* Of query i; back: of its output. */
static float *turn_of(const struct attention_job *j, int64_t i, bool back)
{
    return j->turn + (2 * i + back) * 4 * j->a->rope->pairs;
}

static void make_turns(void *arg, int64_t from, int64_t to, int thread)
{
    const struct attention_job *j = arg;
    for (int64_t i = from; i < to; i++)
        for (int back = 0; back < 2; back++)
            cpu_rope_turn(j->a->rope, j->s->rows->rope_pos + 3 * i, back, turn_of(j, i, back));
}

/* One head of query i, or of its output. */
static void rotate_head(const struct attention_job *j, int i, bool back, float *head)
{
    cpu_rotate(j->k, j->a->rope, turn_of(j, i, back), head + j->width - 2 * j->a->rope->pairs);
}

/* ---------------------------------------------------------------- one query, some heads */

struct attention_scratch {
    float *kept;           /* [min(most_kept, KEEP_ROWS)][stride] */
    float *q;              /* [part_heads][padded] normed and rotated, or padded */
    float *acc;            /* [part_heads][padded] */
    float *z;              /* [most_seen][part_pad] */
    float *max, *sum, *by; /* [part_pad] */
    const float *heads;    /* of the query: in its buffer, or in q */
    float *out;            /* [part_heads][width]: in a buffer, or acc */
};

static struct attention_scratch scratch_carve(struct carve *c, const struct attention_job *j)
{
    const size_t head_bytes = (size_t)j->part_heads * (size_t)j->padded * sizeof(float);
    const size_t lane_bytes = (size_t)j->part_pad * sizeof(float);
    struct attention_scratch t;
    t.kept =
        carve_take(c, (size_t)min_i64(round_up((size_t)j->most_kept, CPU_TILE), KEEP_ROWS) * j->stride * sizeof(float));
    t.q = carve_take(c, head_bytes);
    t.acc = carve_take(c, head_bytes);
    t.z = carve_take(c, (size_t)j->most_seen * lane_bytes);
    t.max = carve_take(c, lane_bytes);
    t.sum = carve_take(c, lane_bytes);
    t.by = carve_take(c, lane_bytes);
    return t;
}

/* Pointers to rows [first, first+m) of what q sees. Rows that the task decodes itself are kept if all of them fit. */
static void tile_rows(const struct attention_job *j, const struct query *q, int64_t first, int m, bool again,
                      float *kept, const float **row)
{
    const bool keep = q->n_comp <= KEEP_ROWS;
    for (int i = 0; i < m; i++) {
        const int64_t o = first + i - q->n_raw;
        if (o < 0) {
            row[i] = j->rows + (size_t)(q->raw_at + first + i) * j->stride;
        } else if (q->comp_at >= 0) {
            row[i] = j->rows + (size_t)(q->comp_at + o) * j->stride;
        } else {
            float *to = kept + (size_t)(keep ? o : i) * j->stride;
            if (!keep || !again) decode_comp(j, q->seg, q->selected ? q->selected[o] : o, to);
            row[i] = to;
        }
    }
}

/* Head of query i, normed and rotated. The query's row stays as it is: it would have to be written back to memory. */
static void turn_head(const struct attention_job *j, int i, const float *q, float *head)
{
    j->k->rms_norm(j->width, (float)j->a->eps, q, NULL, head);
    rotate_head(j, i, false, head);
    for (int v = j->width; v < j->padded; v++) head[v] = 0;
}

static void load_heads(const struct attention_job *j, int i, int head0, int n_heads, struct attention_scratch *t)
{
    const float *q = buf_floats(j->a->q, i) + (size_t)head0 * (size_t)j->width;
    t->heads = j->a->rope ? t->q : cpu_pad_rows(q, n_heads, j->width, j->padded, t->q);
    for (int h = 0; h < n_heads && j->a->rope; h++, q += j->width) {
        for (int v = 0; v < j->width; v += 16) __builtin_prefetch(q + HEADS_AHEAD * j->width + v);
        turn_head(j, i, q, t->q + (size_t)h * (size_t)j->padded);
    }
    for (int h = 0; h < j->part_pad; h++) {
        t->max[h] = h >= n_heads ? 0 : j->a->sinks ? j->a->sinks->f32[head0 + h] : -INFINITY;
        t->sum[h] = 0;
    }
}

/* Factors 1/denominator, and the result. */
static void finish_heads(const struct attention_job *j, int i, int head0, int n_heads, struct attention_scratch *t)
{
    float *out = t->out;
    for (int h = 0; h < j->part_pad; h++)
        t->by[h] = h >= n_heads ? 0 : j->a->sinks ? j->a->sinks->f32[head0 + h] - t->max[h] : -INFINITY;
    j->k->exp(j->part_pad, t->by, t->by);
    for (int h = 0; h < n_heads; h++, out += j->width) {
        j->k->scale(j->width, t->acc + (size_t)h * (size_t)j->padded, 1 / (t->sum[h] + t->by[h]), out);
        if (j->a->rope) rotate_head(j, i, true, out);
    }
}

static void attend(const struct attention_job *j, int i, int head0, int n_heads, struct attention_scratch *t)
{
    const struct query *q = &j->query[i];
    const int64_t n = q->n_raw + q->n_comp;
    const float *row[CPU_TILE];
    load_heads(j, i, head0, n_heads, t);
    if (n == 0) memset(t->acc, 0, (size_t)n_heads * (size_t)j->padded * sizeof *t->acc);
    if (n_heads < j->part_pad) memset(t->z, 0, (size_t)n * (size_t)j->part_pad * sizeof *t->z);
    for (int64_t first = 0; first < n; first += CPU_TILE) {
        const int m = (int)min_i64(CPU_TILE, n - first);
        tile_rows(j, q, first, m, false, t->kept, row);
        const struct cpu_scores s = {.row = row,
                                     .n_rows = m,
                                     .width = j->padded,
                                     .q = t->heads,
                                     .n_heads = n_heads,
                                     .q_stride = (size_t)j->padded};
        j->k->attention_scores(&s, (float)j->a->scale, t->z + first * j->part_pad, j->part_pad, t->max);
    }
    for (int64_t first = 0; first < n; first += CPU_TILE) {
        const int m = (int)min_i64(CPU_TILE, n - first);
        float *z = t->z + first * j->part_pad;
        tile_rows(j, q, first, m, true, t->kept, row);
        j->k->attention_exp(m, n_heads, z, j->part_pad, t->max, t->sum);
        j->k->attention_sum(m, row, j->padded, n_heads, z, j->part_pad, first == 0, t->acc);
    }
    finish_heads(j, i, head0, n_heads, t);
}

/* Rows of the output: queries' where nobody wants them. */
static struct dev_buf *out_of(const struct attention_args *a)
{
    return a->out ? a->out : a->q;
}

static void attention_task(void *arg, int task, int thread)
{
    const struct attention_job *j = arg;
    const struct attention_args *a = j->a;
    struct carve c = {.base = cpu_scratch_of(j->s, thread)};
    struct attention_scratch t = scratch_carve(&c, j);
    const int i = task / j->parts, head0 = task % j->parts * j->part_heads;
    const bool whole = a->act && j->parts == 1;
    t.out = buf_floats(out_of(a), i) + (size_t)head0 * (size_t)j->width;
    if (whole && !a->out && j->width == j->padded) t.out = t.acc;
    attend(j, i, head0, (int)min_i64(j->part_heads, j->heads - head0), &t);
    for (int g = 0; whole && g < a->act->d.groups; g++) cpu_act_quant_group(t.out, a->act, i, g);
}

static void plan_widths(struct attention_job *j)
{
    j->padded = (int)round_up((size_t)j->width, 16);
    j->stride = (size_t)j->padded + (j->padded / 16 % 2 ? 0 : 16);
}

/* Few queries: their heads are cut among the threads, eight at least. */
static void plan_parts(struct attention_job *j)
{
    const int want = (4 * cpu_of(j->s)->n_threads + j->a->n - 1) / j->a->n;
    const int parts = (int)min_i64(want, (j->heads + 7) / 8);
    j->part_heads = (int)round_up((size_t)((j->heads + parts - 1) / parts), 8);
    j->parts = (j->heads + j->part_heads - 1) / j->part_heads;
    j->part_pad = j->part_heads;
    if (j->parts == 1) j->part_heads = j->heads;
}

void cpu_attention(struct dev_stream *s, const struct attention_args *a)
{
    if (!cpu_ready(s) || a->n <= 0 || !cpu_need_f32(s, a->sinks, "attention sinks")) return;
    struct attention_job j = {.s = s, .a = a, .k = cpu_of(s)->k, .heads = a->q->d.groups, .width = a->q->d.width};
    plan_widths(&j);
    plan_parts(&j);
    if (!plan_queries(&j)) return;
    struct carve count = {0};
    scratch_carve(&count, &j);
    if (!cpu_thread_scratch(s, count.used)) return;
    if (a->rope) cpu_ranges(s, make_turns, &j, a->n, 128 * (int64_t)a->rope->pairs); /* sines are dear */
    cpu_ranges(s, decode_pieces, &j, j.n_pieces, CPU_TILE * (int64_t)j.width);
    cpu_tasks(s, attention_task, &j, (int64_t)a->n * j.parts);
    if (a->act && j.parts > 1) cpu_act_quant(s, &(struct act_quant_args){.x = out_of(a), .out = a->act, .n = a->n});
}

/* Rows decoded in advance: all raw ones, what all queries of a segment see, and what a few queries have selected. */
void cpu_attention_work(const struct cpu_dev *d, const struct work_desc *a, struct cpu_work *w)
{
    struct attention_job j = {.heads = a->heads, .part_heads = a->heads, .width = a->width};
    plan_widths(&j);
    j.part_pad = (int)round_up((size_t)a->heads, 8);
    const int64_t visible = work_visible(a), seen = a->top_k ? min_i64(visible, a->top_k) : visible;
    const bool shared = (size_t)seen * j.stride * sizeof(float) <= SHARED_MOST;
    const int64_t few = seen < visible ? min_i64(a->rows, 4 * (int64_t)d->n_threads) : 0;
    j.n_rows = a->rows + (int64_t)a->segments * (a->window + (shared ? seen : 0)) + few * seen;
    j.n_pieces = j.n_rows / CPU_TILE + 2 * (int64_t)a->segments + a->rows;
    j.most_seen = a->window + seen;
    j.most_kept = shared && seen == visible ? 0 : seen;
    struct carve all = {0}, one = {0};
    carve_take(&all, (size_t)a->rows * sizeof(struct query));
    carve_take(&all, (size_t)j.n_pieces * sizeof(struct piece));
    carve_take(&all, (size_t)j.n_rows * j.stride * sizeof(float));
    carve_take(&all, turn_bytes(a->rows, a->pairs));
    scratch_carve(&one, &j);
    cpu_work_raise(w, all.used, one.used);
}
