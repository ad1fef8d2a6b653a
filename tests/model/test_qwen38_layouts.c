/* One Qwen3.8 with a draft in the layouts of other makers: the same logits and the same guesses, bit for bit. Fused
 * projections; the draft in a file of its own, beside a model that is counted with or without it. */
#include "../support/engine_kit.h"
#include "../support/qwen38_forms.h"
#include "../support/synth_qwen38.h"
#include "../support/temp_files.h"
#include "base/mem.h"
#include "quant/quant.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

enum { N_IDS = 90, GUESSES = 7, MOST_V = 600 };

struct answer {
    float logits[N_IDS][MOST_V];
    int32_t guess[GUESSES];
    int n_guesses;
};

static char base[TEMP_PATH], fused[TEMP_PATH], trunk[TEMP_PATH], stripped[TEMP_PATH], draft[TEMP_PATH],
    copies[TEMP_PATH];
static char *const paths[] = {base, fused, trunk, stripped, draft, copies};

static void make_files(uint32_t type)
{
    struct synth_qwen38 s = synth_qwen38_tiny();
    struct err e = {0};
    s.draft = true, s.tied = false, s.type = s.experts = type;
    int rc = synth_qwen38_write(base, &s, &e);
    if (!rc) rc = qwen38_write_fused(base, fused, &e);
    if (!rc) rc = qwen38_write_part(base, trunk, PART_TRUNK, &e);
    if (!rc) rc = qwen38_write_part(base, stripped, PART_STRIPPED, &e);
    if (!rc) rc = qwen38_write_part(base, draft, PART_DRAFT, &e);
    if (!rc) rc = qwen38_write_part(base, copies, PART_DRAFT_COPY, &e);
    if (rc) fail_msg("%s", e.msg);
}

static int engine_of(const char *first, const char *second, ds4_engine **g, struct ds4_error *e)
{
    const char *const list[] = {first, second};
    return ds4_engine_open(
        &(struct ds4_options){
            .model_paths = list, .n_model_paths = second ? 2 : 1, .threads = 1, .ctx = 256, .draft = true},
        g, e);
}

static void answer_of(const char *first, const char *second, struct answer *a)
{
    struct ds4_error e = {0};
    struct ds4_model_info info;
    const struct ds4_sampling greedy = {.top_p = 1};
    ds4_engine *g;
    ds4_session *s;
    memset(a, 0, sizeof *a);
    if (engine_of(first, second, &g, &e) || ds4_session_create(g, 256, &s, &e)) fail_msg("%s", e.message);
    ds4_engine_info(g, &info);
    assert_true(info.n_vocab <= MOST_V);
    for (int i = 0; i < N_IDS; i++) {
        const int32_t id = (i * 37 + i * i) % info.n_vocab;
        kit_eval(s, &id, 1);
        memcpy(a->logits[i], ds4_session_logits(s), (size_t)info.n_vocab * sizeof(float));
    }
    a->n_guesses = ds4_session_propose(s, 5, &greedy, GUESSES, a->guess, &e);
    if (a->n_guesses < 0) fail_msg("%s", e.message);
    ds4_session_free(s);
    ds4_engine_close(g);
}

static void one_model(void **state)
{
    static const uint32_t types[] = {QT_F32, QT_F16};
    static const struct {
        const char *name, *first, *second;
        bool guesses;
    } layouts[] = {{"fused", fused, NULL, true},
                   {"draft apart", trunk, draft, true},
                   {"with copies", trunk, copies, true},
                   {"counted with it", stripped, draft, true},
                   {"both counted", stripped, copies, true},
                   {"stripped", stripped, NULL, false},
                   {"without", trunk, NULL, false}};
    struct answer *want = mem_alloc(sizeof *want), *got = mem_alloc(sizeof *got);
    for (int t = 0; t < 2; t++) {
        make_files(types[t]);
        answer_of(base, NULL, want);
        assert_int_equal(want->n_guesses, GUESSES);
        for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
            answer_of(layouts[i].first, layouts[i].second, got);
            if (memcmp(got->logits, want->logits, sizeof got->logits)) fail_msg("%s: other logits", layouts[i].name);
            assert_int_equal(got->n_guesses, layouts[i].guesses ? GUESSES : 0);
            if (layouts[i].guesses && memcmp(got->guess, want->guess, sizeof got->guess))
                fail_msg("%s: other guesses", layouts[i].name);
        }
    }
    mem_free(want);
    mem_free(got);
}

static void not_a_model(void **state)
{
    static const struct {
        const char *first, *second, *says;
    } cases[] = {
        {draft, NULL,
         "is the draft block of a Qwen3.8 Flash Next model; give it behind the model itself: -m MODEL -m THIS"},
        {copies, NULL,
         "is the draft block of a Qwen3.8 Flash Next model; give it behind the model itself: -m MODEL -m THIS"},
        {copies, trunk, "are not of one model"},
        {trunk, base, "are not of one model"},
        {base, trunk, "are not of one model"},
        {base, stripped, "is in two files"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ds4_error e = {0};
        ds4_engine *g;
        if (engine_of(cases[i].first, cases[i].second, &g, &e) == 0) fail_msg("case %d: opened", (int)i);
        if (!strstr(e.message, cases[i].says)) fail_msg("case %d: \"%s\"", (int)i, e.message);
    }
}

static int begin(void **state)
{
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) temp_file(paths[i]);
    return 0;
}

static int end(void **state)
{
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) temp_remove(paths[i]);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_model), cmocka_unit_test(not_a_model)};
    return cmocka_run_group_tests(tests, begin, end);
}
