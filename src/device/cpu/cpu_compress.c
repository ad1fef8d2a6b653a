/* The DeepSeek V4 compressor (spec deepseek-v4 3.5). First the position bias is added to the step's gates, then every
 * row that the step completes is computed on its own, then the rings are written. Rows before the step come from the
 * rings' current bank, rows of the step from the projections. */
#include <string.h>
#include "device/cpu/cpu_internal.h"

struct compress_job {
    struct dev_stream *s;
    const struct compress_args *a;
    int width;      /* c*w */
    float *score;   /* [T][width] gates with bias */
    int64_t *first; /* [n_segments + 1] items before each segment */
};

static void bias_rows(void *arg, int64_t from, int64_t to, int thread)
{
    const struct compress_job *j = arg;
    const struct compress_args *a = j->a;
    for (int64_t i = from; i < to; i++) {
        float *score = j->score + i * j->width;
        memcpy(score, buf_floats(a->gate, i), (size_t)j->width * sizeof *score);
        cpu_of(j->s)->k->add(j->width, mat_floats(a->ape, j->s->rows->pos[i] % a->ratio), score);
    }
}

/* Row of an earlier position in a ring. */
static const float *ring_floats(const struct dev_ring *ring, int64_t pos)
{
    return (const float *)(const void *)ring_row(ring, ring->bank, (int32_t)pos);
}

/* Fills kv and score with the rows of window c in order of summation; returns their number. */
static int window_rows(const struct compress_job *j, int seg, int64_t c, const float **kv, const float **score)
{
    const struct compress_args *a = j->a;
    const struct segment *g = &j->s->rows->segments[seg];
    int n = 0;
    for (int r = 0; r < a->ratio; r++)
        for (int half = a->overlap ? 0 : 1; half < 2; half++) { /* 0: the previous window */
            const int64_t pos = (c - 1 + half) * a->ratio + r;
            const int at = a->overlap && half ? a->w : 0;
            if (pos < 0) continue;
            const int64_t i = g->row0 + (pos - g->pos0);
            const bool here = pos >= g->pos0;
            kv[n] = (here ? buf_floats(a->kv, i) : ring_floats(a->ring_kv[seg], pos)) + at;
            score[n++] = (here ? j->score + i * j->width : ring_floats(a->ring_score[seg], pos)) + at;
        }
    return n;
}

static void emit_row(const struct compress_job *j, int seg, int64_t c, void *scratch)
{
    const struct compress_args *a = j->a;
    const struct cpu_kernels *k = cpu_of(j->s)->k;
    struct carve m = {.base = scratch};
    float *row = carve_take(&m, (size_t)a->w * sizeof *row);
    float *turn = carve_take(&m, 4 * sizeof *turn * (size_t)(a->rope ? a->rope->pairs : 0));
    const float **kv = carve_take(&m, 2 * (size_t)a->ratio * sizeof(*kv));
    const float **score = carve_take(&m, 2 * (size_t)a->ratio * sizeof(*score));
    const int n = window_rows(j, seg, c, kv, score);
    k->pool_window(n, kv, score, a->w, row);
    k->rms_norm(a->w, (float)a->eps, row, a->norm->f32, row);
    if (a->rope) {
        const int32_t pos = (int32_t)(c * a->ratio);
        cpu_rope_turn(a->rope, (int32_t[3]){pos, pos, pos}, false, turn);
        cpu_rotate(k, a->rope, turn, row + a->w - 2 * a->rope->pairs);
    }
    if (a->hadamard) k->hadamard(a->w, row);
    k->encode(&a->store[seg]->fmt, row, store_row(a->store[seg], c));
}

static size_t emit_scratch(int w, int pairs, int ratio)
{
    return ((size_t)w + 4 * (size_t)pairs) * sizeof(float) + 4 * (size_t)ratio * sizeof(float *) + 4 * 64;
}

static size_t score_bytes(int rows, int width)
{
    return round_up((size_t)rows * (size_t)width * sizeof(float), 64);
}

static void emit_rows(void *arg, int64_t from, int64_t to, int thread)
{
    const struct compress_job *j = arg;
    int seg = 0;
    for (int64_t i = from; i < to; i++) {
        while (i >= j->first[seg + 1]) seg++;
        int64_t c, end;
        compressed_emitted(&j->s->rows->segments[seg], j->a->ratio, &c, &end);
        emit_row(j, seg, c + (i - j->first[seg]), cpu_scratch_of(j->s, thread));
    }
}

/* Shared scratch of the op, and the items: rows to emit, segment after segment. False: the error is set. */
static bool compress_plan(struct compress_job *j)
{
    const struct rows *r = j->s->rows;
    const struct compress_args *a = j->a;
    const size_t scores = score_bytes(r->n, j->width),
                 emit = emit_scratch(a->w, a->rope ? a->rope->pairs : 0, a->ratio);
    uint8_t *p = cpu_shared_scratch(j->s, scores + ((size_t)r->n_segments + 1) * sizeof *j->first);
    if (!p || !cpu_thread_scratch(j->s, emit)) return false;
    j->score = (float *)(void *)p;
    j->first = (int64_t *)(void *)(p + scores);
    j->first[0] = 0;
    for (int i = 0; i < r->n_segments; i++) {
        int64_t c, end;
        compressed_emitted(&r->segments[i], a->ratio, &c, &end);
        j->first[i + 1] = j->first[i] + (end - c);
        if (c == end || store_has(a->store[i], c, end)) continue;
        dev_fail(j->s, ERR_ARG, "compress: rows %lld to %lld were not reserved", (long long)c, (long long)end);
        return false;
    }
    return true;
}

void cpu_compress(struct dev_stream *s, const struct compress_args *a)
{
    const struct rows *r = s->rows;
    struct compress_job j = {.s = s, .a = a, .width = (int)a->ape->v.ne[0]};
    if (!cpu_ready(s) || !cpu_need_f32(s, a->ape, "compressor position bias") ||
        !cpu_need_f32(s, a->norm, "compressor norm") || !compress_plan(&j))
        return;
    cpu_ranges(s, bias_rows, &j, r->n, j.width);
    cpu_ranges(s, emit_rows, &j, j.first[r->n_segments], (int64_t)a->ratio * a->w * 8);
    for (int i = 0; i < r->n_segments; i++) {
        const struct segment *g = &r->segments[i];
        const size_t stride = (size_t)j.width * sizeof(float);
        if (!cpu_ring_write_segment(s, a->ring_kv[i], g, a->kv->data, a->kv->stride) ||
            !cpu_ring_write_segment(s, a->ring_score[i], g, (const uint8_t *)j.score, stride))
            return;
    }
}

void cpu_compress_work(const struct work_desc *a, struct cpu_work *w)
{
    if (!a->ratio) return;
    const size_t items = ((size_t)a->segments + 1) * sizeof(int64_t);
    cpu_work_raise(w, score_bytes(a->rows, a->wide) + items, emit_scratch(a->wide, a->wide / 2, a->ratio));
}
