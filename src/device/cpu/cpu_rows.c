/* Ops that look at one row (or one group of it) at a time. Items are (row, group), so that one row of many heads is cut
 * among threads like many rows. */
#include <math.h>
#include <string.h>
#include "device/cpu/cpu_internal.h"

/* One job for all of them: n rows of `groups` groups; a: the op's arguments. */
struct row_job {
    struct dev_stream *s;
    const struct cpu_kernels *k;
    const void *a;
    int groups;
};

static struct row_job row_job(struct dev_stream *s, const void *a, int groups)
{
    return (struct row_job){.s = s, .k = cpu_of(s)->k, .a = a, .groups = groups};
}

/* ---------------------------------------------------------------- embed, gather */

static void embed_rows(void *arg, int64_t from, int64_t to, int thread)
{
    const struct row_job *j = arg;
    const struct embed_args *a = j->a;
    const int64_t width = a->table->v.ne[0];
    for (int64_t i = from; i < to; i++) {
        float *out = buf_floats(a->out, i);
        a->table->type->decode(view_row(&a->table->v, j->s->rows->token[i]), out, width);
        for (int c = 1; c < a->copies; c++) memcpy(out + c * width, out, (size_t)width * sizeof *out);
    }
}

void cpu_embed(struct dev_stream *s, const struct embed_args *a)
{
    if (!cpu_ready(s)) return;
    if (!a->table->type || !a->table->type->decode) {
        dev_fail(s, ERR_MODEL, "the embedding has type %u, which this build cannot decode", a->table->v.type);
        return;
    }
    for (int i = 0; i < a->n; i++) {
        const int64_t rows = view_rows(&a->table->v);
        if (s->rows->token[i] >= 0 && s->rows->token[i] < rows) continue;
        dev_fail(s, ERR_ARG, "token %d is outside the embedding of %lld rows", s->rows->token[i], (long long)rows);
        return;
    }
    struct row_job j = row_job(s, a, 1);
    cpu_ranges(s, embed_rows, &j, a->n, a->copies * a->table->v.ne[0]);
}

void cpu_gather(struct dev_stream *s, const struct gather_args *a)
{
    if (!cpu_ready(s)) return;
    const size_t bytes = a->x->stride < a->out->stride ? a->x->stride : a->out->stride;
    for (int i = 0; i < a->n; i++) memcpy(buf_row(a->out, i), buf_row(a->x, a->row[i]), bytes);
}

/* ---------------------------------------------------------------- norm, activations */

static void rms_norm_groups(void *arg, int64_t from, int64_t to, int thread)
{
    const struct row_job *j = arg;
    const struct rms_norm_args *a = j->a;
    const float *w = a->weight ? a->weight->f32 : NULL;
    for (int64_t i = from; i < to; i++) {
        const int64_t row = i / a->groups, at = i % a->groups * a->width;
        j->k->rms_norm(a->width, (float)a->eps, buf_floats(a->x, row) + at, w && a->each ? w + at : w,
                       buf_floats(a->out, row) + at);
    }
}

void cpu_rms_norm(struct dev_stream *s, const struct rms_norm_args *a)
{
    if (!cpu_ready(s) || !cpu_need_f32(s, a->weight, "norm")) return;
    struct row_job j = row_job(s, a, a->groups);
    cpu_ranges(s, rms_norm_groups, &j, (int64_t)a->n * a->groups, 2 * (int64_t)a->width);
}

void cpu_act_quant_group(const float *x, const struct dev_buf *out, int64_t row, int64_t g)
{
    const int width = out->d.width;
    act_quantise(out->d.act, x + g * width, width,
                 (uint8_t *)buf_row(out, row) + (size_t)g * act_row_bytes(out->d.act, width));
}

static void act_quant_groups(void *arg, int64_t from, int64_t to, int thread)
{
    const struct row_job *j = arg;
    const struct act_quant_args *a = j->a;
    for (int64_t i = from; i < to; i++)
        cpu_act_quant_group(buf_floats(a->x, i / j->groups), a->out, i / j->groups, i % j->groups);
}

void cpu_act_quant(struct dev_stream *s, const struct act_quant_args *a)
{
    if (!cpu_ready(s)) return;
    struct row_job j = row_job(s, a, a->out->d.groups);
    cpu_ranges(s, act_quant_groups, &j, (int64_t)a->n * j.groups, 4 * (int64_t)a->out->d.width);
}

/* ---------------------------------------------------------------- rope, hadamard */

void cpu_rope_turn(const struct dev_rope *rope, const int32_t pos[3], bool inverse, float *turn)
{
    for (int i = 0; i < rope->pairs; i++) {
        const double angle = (double)pos[rope->axis[i]] * rope->freq[i];
        const float c = (float)(cos(angle) * rope->magnitude), up = (float)(sin(angle) * rope->magnitude);
        const float sn = inverse ? -up : up;
        if (rope->halves) {
            turn[i] = c, turn[rope->pairs + i] = sn;
            continue;
        }
        float *t = turn + 4 * (size_t)i;
        t[0] = t[1] = c;
        t[2] = -sn;
        t[3] = sn;
    }
}

void cpu_rotate(const struct cpu_kernels *k, const struct dev_rope *rope, const float *turn, float *x)
{
    (rope->halves ? k->rotate_halves : k->rotate)(rope->pairs, turn, x);
}

static void rope_rows(void *arg, int64_t from, int64_t to, int thread)
{
    const struct row_job *j = arg;
    const struct rope_args *a = j->a;
    float *turn = cpu_scratch_of(j->s, thread);
    for (int64_t i = from; i < to; i++) {
        float *x = buf_floats(a->x, i) + a->first;
        cpu_rope_turn(a->rope, j->s->rows->rope_pos + 3 * i, a->inverse, turn);
        for (int g = 0; g < a->groups; g++) cpu_rotate(j->k, a->rope, turn, x + (size_t)g * (size_t)a->width);
    }
}

void cpu_rope(struct dev_stream *s, const struct rope_args *a)
{
    if (!cpu_ready(s) || !cpu_thread_scratch(s, 4 * sizeof(float) * (size_t)a->rope->pairs)) return;
    struct row_job j = row_job(s, a, a->groups);
    cpu_ranges(s, rope_rows, &j, a->n, (int64_t)a->rope->pairs * (a->groups + 64)); /* sines are dear */
}

static void hadamard_groups(void *arg, int64_t from, int64_t to, int thread)
{
    const struct row_job *j = arg;
    const struct hadamard_args *a = j->a;
    for (int64_t i = from; i < to; i++)
        j->k->hadamard(a->width, buf_floats(a->x, i / a->groups) + i % a->groups * a->width);
}

void cpu_hadamard(struct dev_stream *s, const struct hadamard_args *a)
{
    if (!cpu_ready(s)) return;
    struct row_job j = row_job(s, a, a->groups);
    cpu_ranges(s, hadamard_groups, &j, (int64_t)a->n * a->groups, 2 * (int64_t)a->width);
}

/* ---------------------------------------------------------------- rounding to a row format */

static void round_groups(void *arg, int64_t from, int64_t to, int thread)
{
    const struct row_job *j = arg;
    const struct round_args *a = j->a;
    uint8_t *code = cpu_scratch_of(j->s, thread);
    for (int64_t i = from; i < to; i++) {
        float *x = buf_floats(a->x, i / a->groups) + i % a->groups * a->fmt.width;
        j->k->encode(&a->fmt, x, code);
        j->k->decode(&a->fmt, code, x);
    }
}

void cpu_round(struct dev_stream *s, const struct round_args *a)
{
    if (!cpu_ready(s) || a->fmt.kind == ROWFMT_F32 || !cpu_thread_scratch(s, cpu_row_bytes(&a->fmt))) return;
    struct row_job j = row_job(s, a, a->groups);
    cpu_ranges(s, round_groups, &j, (int64_t)a->n * a->groups, 4 * (int64_t)a->fmt.width);
}

static void pack_rows(void *arg, int64_t from, int64_t to, int thread)
{
    const struct row_job *j = arg;
    const struct pack_args *a = j->a;
    for (int64_t i = from; i < to; i++) j->k->encode(&a->out->d.fmt, buf_floats(a->x, i), buf_row(a->out, i));
}

void cpu_pack(struct dev_stream *s, const struct pack_args *a)
{
    if (!cpu_ready(s)) return;
    struct row_job j = row_job(s, a, 1);
    cpu_ranges(s, pack_rows, &j, a->n, 4 * (int64_t)a->out->d.fmt.width);
}
