/* Maps the pages of the weights before they are used. A page that is touched for the first time stops its thread, even
 * if the system has it in memory: about 0.25 s per GiB in all (Linux 6, pages of 4 KiB, AMD EPYC in a virtual machine),
 * which is a quarter of a first long prompt. Here all threads do it at once, at 0.2 s per GiB each. It ends after two
 * seconds, so that a file that has to be read from a slow disk holds nobody up. */
#include <stdatomic.h>
#include "base/clock.h"
#include "base/file.h"
#include "engine_internal.h"

enum { PIECE = 16 << 20 /* bytes */, SECONDS_MOST = 2 };

struct map_job {
    const struct ds4_engine *g;
    uint64_t end_ns;
    atomic_bool stopped;
};

/* Task: a tensor. */
static void map_tensor(void *arg, int task, int thread)
{
    struct map_job *j = arg;
    const struct canonical *const c = j->g->canonical;
    const struct tensor_view *v;
    canonical_tensor_at(c, task, &v);
    if (v->file < 0 || canonical_on_disk(c, task) || (!j->g->draft && canonical_of_draft(c, task))) return;
    const uint64_t bytes = tensor_view_bytes(v);
    for (uint64_t at = 0; at < bytes && !atomic_load(&j->stopped); at += PIECE) {
        const bool done =
            file_map_populate(canonical_file(c, v->file), v->offset + at, bytes - at < PIECE ? bytes - at : PIECE);
        if (!done || clock_ns() > j->end_ns) atomic_store(&j->stopped, true);
    }
}

bool engine_weights_mapped(const struct ds4_engine *g)
{
    return g->canonical && g->pool && !g->page_weights && canonical_has_file(g->canonical);
}

/* What is not in memory yet is to come there in huge pages. */
static void ask_for_huge(const struct ds4_engine *g)
{
    struct load_plan p;
    struct err e = {0};
    if (!load_plan_make(g->canonical, g->draft, 1, &p, &e))
        for (int i = 0; i < p.n_spans; i++)
            file_huge_ask(canonical_file(g->canonical, p.span[i].file), p.span[i].from, p.span[i].to);
    load_plan_free(&p);
}

void engine_weights_map(struct ds4_engine *g)
{
    if (!engine_weights_mapped(g)) return;
    if (g->load == DS4_LOAD_MAP) ask_for_huge(g);
    struct map_job j = {.g = g, .end_ns = clock_ns() + SECONDS_MOST * UINT64_C(1000000000)};
    pool_run(g->pool, map_tensor, &j, canonical_n_tensors(g->canonical));
}
