/* Slabs cut to the first-level cache: see cpu_slab.h. */
#include "device/cpu/cpu_slab.h"
#include <assert.h>

size_t cpu_column_bytes(const struct quant_slab *s, int64_t k)
{
    return (size_t)(k / s->block) * s->panel_block;
}

/* Blocks of a piece. Slabs of small blocks unpack two at a time. */
static int piece_blocks(const struct quant_slab *s, int64_t k)
{
    assert(s->slab_block <= CPU_SLAB_MOST);
    const int64_t blocks = k / s->block, most = max_i64(1, (int64_t)(CPU_SLAB_MOST / s->slab_block));
    const int64_t pieces = (blocks + most - 1) / most, each = (blocks + pieces - 1) / pieces;
    return (int)(each % 2 && each < most ? each + 1 : each);
}

/* Where rows c.. of a piece of m blocks from block b on lie. */
static uint8_t *panel_at(const struct cpu_panels *x, int b, int m, int c)
{
    return x->p + ((size_t)b * (size_t)x->n + (size_t)c * (size_t)m) * x->s->panel_block;
}

void cpu_panels_put(const struct cpu_panels *to, int c, const uint8_t *const *x, int n)
{
    const int blocks = (int)(to->k / to->s->block), each = piece_blocks(to->s, to->k);
    for (int b = 0; b < blocks; b += each) {
        const int m = (int)min_i64(each, blocks - b);
        to->s->pack((int)to->k, x, n, b, m, panel_at(to, b, m, c));
    }
}

struct cpu_slabs cpu_slabs_of(const struct quant_slab *s, const struct tensor_view *w, const struct tensor_view *second,
                              int64_t r0, int64_t end, int n)
{
    struct cpu_slabs m = {.s = s};
    for (; n > 0 && r0 < end; n--, r0 += QUANT_SLAB) {
        struct cpu_rows rows = {.w = w, .r0 = r0, .n = (int)min_i64(QUANT_SLAB, end - r0)};
        m.rows[m.n++] = rows;
        rows.w = second;
        if (second) m.rows[m.n++] = rows;
    }
    return m;
}

/* The rows of a slab; the last one stands in for those that it does not have. */
static void row_pointers(const struct cpu_rows *rows, const uint8_t *row[QUANT_SLAB])
{
    const struct tensor_view *const w = rows->w;
    int64_t left = 0; /* rows of the matrix */
    for (int r = 0; r < rows->n; r++, left--) {
        if (!left) left = w->ne[1] - (rows->r0 + r) % w->ne[1];
        row[r] = !r || left == w->ne[1] ? view_row(w, rows->r0 + r) : row[r - 1] + w->stride[1];
    }
    for (int r = rows->n; r < QUANT_SLAB; r++) row[r] = row[rows->n - 1];
}

/* A task's weights in the order in which they are unpacked: pieces, of each all slabs. */
struct walk {
    const struct cpu_slabs *w;
    int blocks, each, fills;
    size_t block_bytes;
    const uint8_t *row[CPU_SLABS][QUANT_SLAB];
};

static void walk_start(struct walk *v, const struct cpu_slabs *w)
{
    v->w = w;
    v->fills = 0;
    if (!w->s || !w->n) return;
    const struct tensor_view *const m = w->rows[0].w;
    v->blocks = (int)(m->ne[0] / w->s->block);
    v->each = piece_blocks(w->s, m->ne[0]);
    v->fills = (v->blocks + v->each - 1) / v->each * w->n;
    v->block_bytes = quant_row_bytes(m->type, m->ne[0]) / (size_t)v->blocks;
    for (int i = 0; i < w->n; i++) row_pointers(&w->rows[i], v->row[i]);
}

/* The lines of weights that an unpacking reads and the one before it did not: of every row as many, because nobody can
 * foresee branches that depend on where it lies. */
struct wanted {
    const uint8_t *const *row;
    size_t first;
    int rows, lines;
    bool near; /* into the first-level cache */
};

/* Most bytes of a slab's weights that a first-level cache has room for beside the slab that is multiplied meanwhile. */
enum { NEAR_MOST = 8 << 10 };

/* Lines that the first bytes of a row can touch. */
static size_t lines_of(size_t bytes)
{
    return bytes ? (bytes + 62) / 64 + 1 : 0;
}

static struct wanted wanted_by(const struct walk *v, int fill)
{
    if (fill >= v->fills) return (struct wanted){0};
    const size_t piece = (size_t)(fill / v->w->n), bytes = (size_t)v->each * v->block_bytes;
    const size_t first = lines_of(piece * bytes);
    return (struct wanted){.row = v->row[fill % v->w->n],
                           .first = 64 * first,
                           .rows = v->w->rows[fill % v->w->n].n,
                           .lines = (int)(lines_of((piece + 1) * bytes) - first),
                           .near = QUANT_SLAB * bytes <= NEAR_MOST};
}

static void ask_lines(const uint8_t *p, int n)
{
#pragma GCC unroll 8
    for (int i = 0; i < n; i++) __builtin_prefetch(p + 64 * (size_t)i, 0, 2);
}

/* Asks for n rows from row r on, by as few branches as can be: multiplications wait meanwhile. Small pieces have a line
 * or two of many rows, others many lines of a row or two. */
static void ask(const struct wanted *a, int r, int n)
{
    __asm__ volatile(""); /* compilers take a function that only asks for one without effect */
    const int end = (int)min_i64(r + n, a->rows);
    if (!a->near) {
        for (; r < end; r++) ask_lines(a->row[r] + a->first, a->lines);
        return;
    }
    for (int i = 0; i < a->lines; i++) {
        const size_t at = a->first + 64 * (size_t)i;
#pragma GCC unroll 8
        for (int k = r; k < end; k++) __builtin_prefetch(a->row[k] + at, 0, 3);
    }
}

/* Activation rows times pieces between asking for weights and unpacking them. */
enum { AHEAD = 64 };

void cpu_slabs_run(const struct cpu_slabs *w, const struct cpu_panels *x, const struct cpu_slabs *next,
                   uint8_t *scratch, float *acc)
{
    const struct quant_slab *const s = w->s;
    struct walk now, then;
    walk_start(&now, w);
    walk_start(&then, next);
    const int ahead = (AHEAD + x->n - 1) / x->n, panels = (x->n + s->panel - 1) / s->panel;
    const int parts = QUANT_SLAB / s->rows, share = (QUANT_SLAB + parts * panels - 1) / (parts * panels);
    if (s->begin) s->begin();
    for (int f = 0; f < now.fills; f++) {
        const int i = f % w->n, b = f / w->n * now.each, m = (int)min_i64(now.each, now.blocks - b);
        const int piece = (b == 0 ? SLAB_FIRST : 0) | (b + m == now.blocks ? SLAB_LAST : 0);
        const struct wanted a =
            f + ahead < now.fills ? wanted_by(&now, f + ahead) : wanted_by(&then, f + ahead - now.fills);
        for (int h = 0; h < parts && h * s->rows < w->rows[i].n; h++) {
            s->fill(now.row[i] + h * s->rows, b, m, scratch);
            for (int p = 0; p < panels; p++) {
                const int c = p * s->panel, cols = (int)min_i64(s->panel, x->n - c);
                ask(&a, (h * panels + p) * share, share);
                s->multiply(m, scratch, panel_at(x, b, m, c), cols, piece,
                            acc + (size_t)(i * x->n + c) * QUANT_SLAB + h * s->rows);
            }
        }
    }
    if (s->end) s->end();
}
