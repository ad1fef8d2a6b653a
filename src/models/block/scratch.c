/* Scratch rows of one layer call. */
#include "models/block/scratch.h"
#include "base/mem.h"

/* Quantised form f of an input; width 0: no matrix needs it. */
static struct buf_desc act_of(const struct scratch_layout *of, int input, int f, int T, int *id)
{
    int groups = 1;
    unsigned formats = 0;
    *id = of->input(of->model, input, &groups, &formats);
    const struct buf_desc rows = of->buf(of->model, *id, T);
    const bool wanted = f != ACT_F32 && (formats >> f & 1);
    return (struct buf_desc){.kind = BUF_ACT,
                             .rows = T,
                             .groups = groups,
                             .width = wanted ? rows.groups * rows.width / groups : 0,
                             .act = (enum act_format)f};
}

size_t block_scratch_bytes(const struct scratch_layout *of, int n_rows)
{
    size_t sum = 0;
    int id;
    for (int i = 0; i < of->bufs; i++) {
        const struct buf_desc b = of->buf(of->model, i, n_rows);
        if (b.width) sum += of->dev->op->buf_bytes(of->dev, &b);
    }
    for (int i = 0; i < of->inputs; i++)
        for (int f = 0; f < ACT_COUNT; f++) {
            const struct buf_desc b = act_of(of, i, f, n_rows, &id);
            if (b.width) sum += of->dev->op->buf_bytes(of->dev, &b);
        }
    return sum;
}

static bool buf_make(struct dev *dev, const struct buf_desc *b, struct dev_buf **out)
{
    if (b->width) *out = dev->op->buf_create(dev, b);
    return !b->width || *out;
}

static bool make_all(struct block_scratch *s, int n_rows)
{
    const struct scratch_layout *of = s->of;
    for (int i = 0; i < of->bufs; i++) {
        const struct buf_desc b = of->buf(of->model, i, n_rows);
        if (!buf_make(of->dev, &b, &s->buf[i])) return false;
    }
    for (int i = 0; i < of->inputs; i++)
        for (int f = 0; f < ACT_COUNT; f++) {
            int id;
            const struct buf_desc b = act_of(of, i, f, n_rows, &id);
            s->input[i].rows = s->buf[id];
            if (!buf_make(of->dev, &b, &s->input[i].act[f])) return false;
        }
    return true;
}

int block_scratch_open(const struct scratch_layout *of, int n_rows, struct block_scratch *s, struct err *e)
{
    *s = (struct block_scratch){.of = of};
    s->buf = mem_alloc((size_t)of->bufs * sizeof(*s->buf));
    s->input = mem_alloc((size_t)of->inputs * sizeof *s->input);
    if (make_all(s, n_rows)) return 0;
    block_scratch_free(s);
    return err_set(e, ERR_MEMORY, "out of memory for the scratch rows of %d-row steps; use a smaller prefill chunk",
                   n_rows);
}

void block_scratch_free(struct block_scratch *s)
{
    for (int i = 0; s->input && i < s->of->inputs; i++)
        for (int f = 0; f < ACT_COUNT; f++)
            if (s->input[i].act[f]) s->of->dev->op->buf_free(s->input[i].act[f]);
    for (int i = 0; s->buf && i < s->of->bufs; i++)
        if (s->buf[i]) s->of->dev->op->buf_free(s->buf[i]);
    mem_free(s->input);
    mem_free(s->buf);
    *s = (struct block_scratch){0};
}
