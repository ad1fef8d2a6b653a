/* Weights that are read into memory (ds4_options.load): the same bits as mapped, pieces by memory nodes, and what can
 * go wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../support/engine_kit.h"
#include "base/mem.h"
#include "engine/engine_internal.h"

static struct ds4_options reading(enum kit_model m)
{
    struct ds4_options o = kit_options(m);
    o.load = DS4_LOAD_READ;
    return o;
}

struct seen {
    uint64_t done, total;
    int calls;
};
static struct seen seen;

static void note_progress(void *arg, uint64_t done, uint64_t total)
{
    assert_true(done <= total && total > 0);
    seen.done = done, seen.total = total;
    seen.calls++;
}

static void read_is_as_mapped(void **state)
{
    for (int m = 0; m < KIT_MODEL_COUNT; m++) {
        struct ds4_options o = reading((enum kit_model)m);
        struct ds4_model_info info;
        o.threads = 1 + m % 3;
        o.loading = note_progress;
        seen = (struct seen){0};
        ds4_engine *g = kit_open(&o);
        assert_true(seen.calls > 0);
        if (o.threads == 1) assert_true(seen.done == seen.total);
        ds4_engine_info(g, &info);
        assert_true(info.weights_read);
        ds4_session *s = kit_session(g);
        kit_sync(s, kit_tokens(), 150);
        kit_check(s, (enum kit_model)m, 150);
        kit_eval(s, kit_tokens() + 150, 1);
        kit_check(s, (enum kit_model)m, 151);
        ds4_session_free(s);
        ds4_engine_close(g);
    }
}

/* Weights that are mapped move into huge pages beside the work, and after it. */
static void mapped_is_the_same_when_settled(void **state)
{
    kit_clean(); /* written anew, so in small pages */
    struct ds4_options o = kit_options(KIT_Q8);
    o.load = DS4_LOAD_MAP;
    ds4_engine *g = kit_open(&o);
    ds4_session *s = kit_session(g);
    kit_sync(s, kit_tokens(), 150);
    kit_check(s, KIT_Q8, 150);
    assert_true(ds4_engine_settle(g, 60));
    assert_true(ds4_engine_settle(g, 0));
    kit_eval(s, kit_tokens() + 150, 1);
    kit_check(s, KIT_Q8, 151);
    ds4_session_free(s);
    ds4_engine_close(g);
}

/* Nobody needs the file any more: it may become shorter. */
static void a_file_that_is_read_may_go(void **state)
{
    kit_clean();
    const struct ds4_options o = reading(KIT_Q8);
    ds4_engine *g = kit_open(&o);
    ds4_session *s = kit_session(g);
    assert_int_equal(truncate(kit_path(KIT_Q8), 8192), 0);
    kit_sync(s, kit_tokens(), 40);
    ds4_session_free(s);
    ds4_engine_close(g);
    kit_clean();
}

/* ---------------------------------------------------------------- pieces */

/* The piece that has a byte of a file; NULL: none. */
static const struct load_piece *piece_at(const struct load_plan *p, int file, uint64_t at)
{
    const struct load_piece *found = NULL;
    for (int i = 0; i < p->n_pieces; i++) {
        const struct load_piece *x = &p->piece[i];
        if (x->file != file || at < x->from || at >= x->to) continue;
        assert_null(found); /* once */
        found = x;
    }
    return found;
}

/* Every row is in the piece of its node, but for rows that share a page with the part before; returns how many are. */
static int rows_placed(const struct load_plan *p, const struct tensor_view *v, int n_nodes)
{
    int placed = 0;
    for (int64_t x = 0; x < v->ne[2]; x++)
        for (int64_t r = 0; r < v->ne[1]; r++) {
            const uint64_t at = v->offset + (uint64_t)x * v->stride[2] + (uint64_t)r * v->stride[1];
            const struct load_piece *piece = piece_at(p, v->file, at);
            assert_non_null(piece);
            const int64_t node = (r * n_nodes + n_nodes - 1) / v->ne[1];
            const bool own = r >= v->ne[1] * piece->node / n_nodes && r < v->ne[1] * (piece->node + 1) / n_nodes;
            assert_true(own || (r - v->ne[1] * node / n_nodes) * (int64_t)v->stride[1] < 4096 || v->stride[2] < 16384);
            placed += own;
        }
    return placed;
}

static void check_bytes(const struct canonical *c, const struct load_plan *p)
{
    for (int i = 0; i < p->n_spans; i++) {
        const struct load_span *s = &p->span[i];
        const struct file_map *m = canonical_file(c, s->file);
        const uint64_t end = s->to < file_map_size(m) ? s->to : file_map_size(m);
        const size_t n = (size_t)(end - s->from);
        uint8_t *want = malloc(n);
        const int fd = open(file_map_path(m), O_RDONLY);
        assert_true(pread(fd, want, n, (off_t)s->from) == (ssize_t)n);
        assert_memory_equal(want, file_map_data(m) + s->from, n);
        close(fd);
        free(want);
    }
}

static void pieces_go_to_nodes(void **state)
{
    for (int n_nodes = 1; n_nodes <= 3; n_nodes++)
        for (int k = 0; k < KIT_MODEL_COUNT; k++) {
            const char *path = kit_path((enum kit_model)k);
            static const int id[3] = {0, 0, 0}; /* of this system */
            struct canonical *c;
            struct load_plan p;
            struct pool *pool;
            struct err e = {0};
            uint64_t sum = 0;
            int placed = 0, rows = 0;
            assert_int_equal(canonical_open(&path, 1, NULL, &c, &e), 0);
            assert_int_equal(load_plan_make(c, true, n_nodes, &p, &e), 0);
            for (int i = 0; i < p.n_pieces; i++) {
                sum += p.piece[i].to - p.piece[i].from;
                assert_true(p.piece[i].to - p.piece[i].from <= 8 << 20 && p.piece[i].from % 4096 == 0);
                assert_true(i == 0 || p.piece[i].node >= p.piece[i - 1].node);
            }
            assert_true(sum == p.bytes);
            for (int i = 0; i < canonical_n_tensors(c); i++) {
                const struct tensor_view *v;
                canonical_tensor_at(c, i, &v);
                if (canonical_on_disk(c, i)) assert_null(piece_at(&p, v->file, v->offset + tensor_view_bytes(v) / 2));
                if (canonical_on_disk(c, i) || v->file < 0) continue;
                placed += rows_placed(&p, v, n_nodes);
                rows += (int)(v->ne[1] * v->ne[2]);
            }
            assert_true(n_nodes > 1 || placed == rows);
            assert_int_equal(pool_create(2, &pool, &e), 0);
            const struct load_target to = {.pool = pool, .node_id = n_nodes > 1 ? id : NULL};
            assert_int_equal(load_plan_run(c, &p, &to, &e), 0);
            check_bytes(c, &p);
            pool_free(pool);
            load_plan_free(&p);
            canonical_close(c);
        }
}

/* Of large matrices the parts are placed to a page. */
static void large_rows_are_placed(void **state)
{
    const char *path = kit_path(KIT_F16);
    struct canonical *c;
    struct load_plan p;
    struct err e = {0};
    assert_int_equal(canonical_open(&path, 1, NULL, &c, &e), 0);
    assert_int_equal(load_plan_make(c, false, 2, &p, &e), 0);
    const struct tensor_view *v = canonical_tensor(c, "token_embd.weight"); /* 288 rows of 128 bytes */
    const int rows = (int)v->ne[1], page_rows = 4096 / (int)v->stride[1] + 1;
    assert_true(rows > 4 * page_rows);
    assert_true(rows_placed(&p, v, 2) >= rows - 2 * page_rows);
    load_plan_free(&p);
    canonical_close(c);
}

/* ---------------------------------------------------------------- refusals */

static void fails(const struct ds4_options *o, int code, const char *part)
{
    struct ds4_error e = {0};
    ds4_engine *g;
    assert_int_equal(ds4_engine_open(o, &g, &e), code);
    if (!strstr(e.message, part)) fail_msg("\"%s\" lacks \"%s\"", e.message, part);
}

static int cut_at = -1;

/* Once the first piece has been read the file has lost what comes later. */
static void cut_off(void *arg, uint64_t done, uint64_t total)
{
    if (cut_at >= 0) assert_int_equal(truncate(kit_path(KIT_Q2), cut_at), 0);
}

static void refusals(void **state)
{
    struct ds4_options o = reading(KIT_Q2);
    o.page_weights = true;
    fails(&o, DS4_E_ARG, "--load read or --page-weights");
    o = reading(KIT_Q2);
    o.memory_limit = 1 << 20;
    fails(&o, DS4_E_MEMORY, "not enough memory");
    o.report_only = true;
    ds4_engine *g = kit_open(&o);
    assert_non_null(strstr(ds4_engine_report(g), "(read into memory)"));
    ds4_engine_close(g);
}

static void a_file_cut_off_while_it_is_read(void **state)
{
    struct canonical *c;
    struct load_plan p;
    struct err e = {0};
    kit_clean();
    const char *path = kit_path(KIT_Q2);
    assert_int_equal(canonical_open(&path, 1, NULL, &c, &e), 0);
    assert_int_equal(load_plan_make(c, false, 2, &p, &e), 0);
    assert_true(p.n_pieces > 2);
    cut_at = (int)p.piece[1].from;
    const struct load_target to = {.progress = cut_off};
    assert_int_equal(load_plan_run(c, &p, &to, &e), ERR_IO);
    if (!strstr(e.msg, path) || !strstr(e.msg, "it ends at offset ")) fail_msg("%s", e.msg);
    cut_at = -1;
    load_plan_free(&p);
    canonical_close(c);
    kit_clean();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(read_is_as_mapped),
        cmocka_unit_test(mapped_is_the_same_when_settled),
        cmocka_unit_test(a_file_that_is_read_may_go),
        cmocka_unit_test(pieces_go_to_nodes),
        cmocka_unit_test(large_rows_are_placed),
        cmocka_unit_test(refusals),
        cmocka_unit_test(a_file_cut_off_while_it_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, kit_teardown);
}
