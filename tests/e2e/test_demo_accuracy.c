/* How many of its answers the demo model gets right with weights in Q8_0, against the float32 run that
 * models/demo/eval.json tells of. Every token that the assistant should write is compared with the most probable one
 * after the text before it, so an answer is right exactly if greedy decoding would give it. The tasks come from
 * tools/demo-model/tasks.py.
 *
 * Plainly run, the program takes a few conversations of the figures that the float32 run has at 100 %, and all answers
 * must be right. With a word behind its name it takes everything, with the checkpoint's own BF16 weights as well, and
 * prints a table; no figure may be more than 2 points below float32's. */
#include "../support/demo_model.h"
#include "base/mem.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { MAX_FIGURES = 64, MAX_PARTS = 64, CTX = 4096, DRAFT = 16, SMALL = 5 };

static const char *const files[] = {"recall", "arithmetic", "tool", "facts", "dense"};
enum { N_FILES = sizeof files / sizeof *files };

struct figure {
    char name[48];
    double want; /* share of right answers in float32 */
    int right, all;
};

/* Tokens [from, to) that the assistant should write. */
struct part {
    int figure;
    size_t from, to;
};

struct asker {
    ds4_engine *engine;
    ds4_session *session;
    int n_vocab;
    float *logits; /* [DRAFT][n_vocab] */
    bool small;
    struct figure figure[MAX_FIGURES]; /* of the file at work */
    int n_figures;
    struct ds4_tokens text; /* of the conversation at work */
    struct part part[MAX_PARTS];
    int n_parts;
};

/* ---------------------------------------------------------------- judging */

static bool is_top(const struct asker *a, const float *logits, int32_t id)
{
    return ds4_sample(logits, a->n_vocab, &(struct ds4_sampling){0}, 0) == id;
}

static bool part_right(struct asker *a, const struct part *p)
{
    const int32_t *id = a->text.p;
    struct ds4_error e = {0};
    demo_sync(a->session, &a->text, p->from);
    if (!is_top(a, ds4_session_logits(a->session), id[p->from])) return false;
    for (size_t at = p->from; at + 1 < p->to;) {
        const size_t n = p->to - 1 - at < DRAFT ? p->to - 1 - at : DRAFT;
        assert_int_equal(ds4_session_draft(a->session, id + at, (int)n, a->logits, &e), 0);
        assert_int_equal(ds4_session_commit(a->session, (int)n, &e), 0);
        for (size_t i = 0; i < n; i++)
            if (!is_top(a, a->logits + i * (size_t)a->n_vocab, id[at + i + 1])) return false;
        at += n;
    }
    return true;
}

static bool wanted(const struct asker *a, const struct figure *f)
{
    return !a->small || (f->want == 1 && f->all < SMALL);
}

static void conversation_judge(struct asker *a)
{
    for (int i = 0; i < a->n_parts; i++) {
        const struct part *p = &a->part[i];
        struct figure *f = &a->figure[p->figure];
        if (!wanted(a, f)) continue;
        f->right += part_right(a, p);
        f->all++;
    }
    a->text.n = 0;
    a->n_parts = 0;
}

/* ---------------------------------------------------------------- the files */

/* The text of a part, behind its word; value: only the first token is judged. */
static void part_read(FILE *f, struct asker *a, bool judged, bool value)
{
    struct part p = {.figure = -1, .from = a->text.n};
    size_t n = 0;
    if ((judged && fscanf(f, "%d", &p.figure) != 1) || fscanf(f, "%zu", &n) != 1) fail_msg("a line is damaged");
    char *text = demo_text_bytes(f, n);
    demo_tokenize(a->engine, text, &a->text);
    mem_free(text);
    if (!judged) return;
    p.to = value ? p.from + 1 : a->text.n;
    assert_true(p.figure >= 0 && p.figure < a->n_figures && a->n_parts < MAX_PARTS && p.to <= a->text.n);
    a->part[a->n_parts++] = p;
}

static void file_judge(struct asker *a, const char *name)
{
    char path[128], word[16];
    snprintf(path, sizeof path, "tests/golden/demo_tasks_%s.txt", name);
    FILE *f = demo_text_open(path);
    a->n_figures = 0;
    while (demo_text_word(f, word)) {
        if (!strcmp(word, "figure")) {
            assert_true(a->n_figures < MAX_FIGURES);
            struct figure *g = &a->figure[a->n_figures++];
            g->right = g->all = 0;
            assert_int_equal(fscanf(f, "%47s %lf", g->name, &g->want), 2);
        } else if (!strcmp(word, "start")) {
            conversation_judge(a);
        } else {
            const bool value = !strcmp(word, "value");
            part_read(f, a, value || !strcmp(word, "say"), value);
        }
    }
    conversation_judge(a);
    fclose(f);
}

/* ---------------------------------------------------------------- tests */

static bool everything;

static void asker_open(struct asker *a, const char *conversion)
{
    char path[TEMP_PATH];
    struct ds4_model_info info;
    *a = (struct asker){.small = !everything};
    demo_model_convert(conversion, path);
    a->engine = demo_engine_open(path, CTX);
    temp_remove(path);
    ds4_engine_info(a->engine, &info);
    a->n_vocab = info.n_vocab;
    assert_true(info.draft_max >= DRAFT);
    a->logits = mem_alloc((size_t)DRAFT * (size_t)a->n_vocab * sizeof *a->logits);
    a->session = demo_session(a->engine, CTX);
}

static void asker_close(struct asker *a)
{
    ds4_tokens_free(&a->text);
    mem_free(a->logits);
    ds4_session_free(a->session);
    ds4_engine_close(a->engine);
    mem_free(a);
}

static void accuracy(const char *title, const char *conversion)
{
    struct asker *a = mem_alloc(sizeof *a);
    int worse = 0, judged = 0;
    asker_open(a, conversion);
    print_message("%-28s %8s %8s %6s\n", title, "float32", "here", "of");
    for (int i = 0; i < N_FILES; i++) {
        file_judge(a, files[i]);
        for (int k = 0; k < a->n_figures; k++) {
            const struct figure *f = &a->figure[k];
            if (!f->all) continue;
            const double got = 100.0 * f->right / f->all, want = 100 * f->want;
            print_message("%-28s %7.1f%% %7.1f%% %6d\n", f->name, want, got, f->all);
            worse += got < want - (a->small ? 0 : 2.05);
            judged += f->all;
        }
    }
    asker_close(a);
    assert_int_equal(worse, 0);
    assert_true(judged >= (everything ? 3000 : 50));
}

static void q8_0_keeps_the_accuracy(void **state)
{
    (void)state;
    accuracy("Q8_0", "--dense Q8_0 --experts Q8_0");
}

static void bf16_keeps_the_accuracy(void **state)
{
    (void)state;
    accuracy("BF16", "");
}

int main(int argc, char **argv)
{
    (void)argv;
    everything = argc > 1;
    const struct CMUnitTest few[] = {cmocka_unit_test(q8_0_keeps_the_accuracy)};
    const struct CMUnitTest all[] = {
        cmocka_unit_test(q8_0_keeps_the_accuracy),
        cmocka_unit_test(bf16_keeps_the_accuracy),
    };
    return everything ? cmocka_run_group_tests(all, NULL, NULL) : cmocka_run_group_tests(few, NULL, NULL);
}
