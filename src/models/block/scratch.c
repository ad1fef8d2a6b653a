/* Scratch of one layer call. */
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
                             .rows = rows.rows,
                             .groups = groups,
                             .width = wanted ? rows.groups * rows.width / groups : 0,
                             .act = (enum act_format)f};
}

size_t block_scratch_bytes(const struct scratch_layout *of, int n_rows, int n_segments)
{
    size_t sum = (size_t)n_segments * (size_t)(of->rings + of->stores + of->scans) * sizeof(void *);
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

static bool views_make(struct block_scratch *s)
{
    s->view = mem_alloc((size_t)s->of->views * sizeof(*s->view));
    for (int i = 0; i < s->of->views; i++)
        if (!(s->view[i] = s->of->dev->op->view_create(s->of->dev))) return false;
    return true;
}

static bool rows_make(struct block_scratch *s, int n_rows)
{
    const struct scratch_layout *of = s->of;
    s->buf = mem_alloc((size_t)of->bufs * sizeof(*s->buf));
    s->input = mem_alloc((size_t)of->inputs * sizeof *s->input);
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

static bool handles_make(struct block_scratch *s, int n_segments)
{
    const size_t n = (size_t)n_segments * sizeof(void *);
    for (int i = 0; i < s->of->rings; i++)
        if (!(s->ring[i] = mem_try(n))) return false;
    for (int i = 0; i < s->of->stores; i++)
        if (!(s->store[i] = mem_try(n))) return false;
    return !s->of->scans || (s->scan = mem_try(n));
}

static int fill(struct block_scratch *s, int n_rows, int n_segments, struct err *e)
{
    if (!handles_make(s, n_segments)) return err_set(e, ERR_MEMORY, "out of memory for %d segments", n_segments);
    if (rows_make(s, n_rows) && views_make(s)) return 0;
    return err_set(e, ERR_MEMORY, "out of memory for the scratch rows of %d-row steps; use a smaller prefill chunk",
                   n_rows);
}

int block_scratch_create(const struct scratch_layout *of, int n_rows, int n_segments, void **scratch, struct err *e)
{
    struct block_scratch *s = mem_alloc(sizeof *s);
    s->of = of;
    const int rc = fill(s, n_rows, n_segments, e);
    if (rc)
        block_scratch_free(s);
    else
        *scratch = s;
    return rc;
}

void block_scratch_free(void *scratch)
{
    struct block_scratch *s = scratch;
    if (!s) return;
    for (int i = 0; s->input && i < s->of->inputs; i++)
        for (int f = 0; f < ACT_COUNT; f++)
            if (s->input[i].act[f]) s->of->dev->op->buf_free(s->input[i].act[f]);
    for (int i = 0; s->buf && i < s->of->bufs; i++)
        if (s->buf[i]) s->of->dev->op->buf_free(s->buf[i]);
    for (int i = 0; s->view && i < s->of->views; i++)
        if (s->view[i]) s->of->dev->op->buf_free(s->view[i]);
    for (int i = 0; i < STATE_RINGS; i++) mem_free(s->ring[i]);
    for (int i = 0; i < STATE_STORES; i++) mem_free(s->store[i]);
    mem_free(s->scan);
    mem_free(s->view);
    mem_free(s->input);
    mem_free(s->buf);
    mem_free(s);
}

void block_scratch_segment(struct block_scratch *s, int i, const struct state_layer *layer)
{
    for (int k = 0; k < s->of->rings; k++) s->ring[k][i] = layer->ring[k];
    for (int k = 0; k < s->of->stores; k++) s->store[k][i] = layer->store[k];
    if (s->of->scans) s->scan[i] = layer->scan;
}

struct dev_buf *block_scratch_from(struct block_scratch *s, int i, struct dev_buf *of, int row)
{
    if (row == 0) return of;
    s->of->dev->op->view_set(s->view[i], of, row);
    return s->view[i];
}
