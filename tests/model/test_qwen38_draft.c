/* Drafted answers are those of plain decoding, token by token and bit by bit, greedy and sampled: whatever the draft
 * block guesses, and also when many guesses are right. */
#include "../support/engine_kit.h"
#include "../support/temp_files.h"
#include "base/mem.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

enum { PROMPT = 150, ANSWER = 60, GUESSES = 5 };

struct answer {
    int32_t token[ANSWER];
    float logits[ANSWER][KIT_VOCAB]; /* what a token was drawn from */
};

static void decode_plainly(ds4_engine *g, const struct ds4_sampling *p, struct answer *a)
{
    ds4_session *s = kit_session(g);
    kit_sync(s, kit_tokens(), PROMPT);
    for (int i = 0; i < ANSWER; i++) {
        memcpy(a->logits[i], ds4_session_logits(s), sizeof a->logits[i]);
        a->token[i] = ds4_sample(a->logits[i], KIT_VOCAB, p, (uint64_t)(PROMPT + i));
        kit_eval(s, &a->token[i], 1);
    }
    ds4_session_free(s);
}

/* Guesses for the tokens behind a->token[at]: of the draft block; right: some of the right ones first. */
static int guess(ds4_session *s, const struct ds4_sampling *p, const struct answer *a, int at, int right,
                 int32_t *tokens)
{
    struct ds4_error e = {0};
    const int n = ds4_session_propose(s, a->token[at], p, GUESSES, tokens, &e);
    if (n != GUESSES) fail_msg("%d guesses: %s", n, e.message);
    for (int i = 0; i < right && at + 1 + i < ANSWER; i++) tokens[i] = a->token[at + 1 + i];
    return n;
}

/* One draft behind a->token[at], which is not evaluated yet; returns how many rows were kept. */
static int draft_once(ds4_session *s, const struct ds4_sampling *p, const struct answer *a, int at, int right)
{
    static float logits[GUESSES + 1][KIT_VOCAB];
    struct ds4_error e = {0};
    int32_t row[GUESSES + 1] = {a->token[at]};
    const int n = 1 + guess(s, p, a, at, right, row + 1);
    if (ds4_session_draft(s, row, n, logits[0], &e)) fail_msg("%s", e.message);
    int keep = 0;
    do {
        const int next = at + ++keep;
        if (next == ANSWER) break;
        assert_memory_equal(logits[keep - 1], a->logits[next], sizeof logits[0]);
        assert_int_equal(ds4_sample(logits[keep - 1], KIT_VOCAB, p, (uint64_t)(PROMPT + next)), a->token[next]);
    } while (keep < n && row[keep] == a->token[at + keep]);
    if (ds4_session_commit(s, keep, &e)) fail_msg("%s", e.message);
    assert_int_equal(ds4_session_length(s), PROMPT + at + keep);
    return keep;
}

static int decode_with_drafts(ds4_engine *g, const struct ds4_sampling *p, const struct answer *a, bool helped)
{
    ds4_session *s = kit_session(g);
    int steps = 0;
    kit_sync(s, kit_tokens(), PROMPT);
    for (int at = 0; at < ANSWER; steps++) at += draft_once(s, p, a, at, helped ? steps % (GUESSES + 1) : 0);
    ds4_session_free(s);
    return steps;
}

static void drafted_is_plain(void **state)
{
    static const struct ds4_sampling how[] = {
        {.temperature = 0, .top_p = 1},
        {.temperature = 1, .top_p = 1, .seed = 3},
        {.temperature = 0.7f, .top_k = 20, .top_p = 0.95f, .min_p = 0.05f, .seed = 4}};
    const struct ds4_options o = kit_options(KIT_QWEN);
    ds4_engine *g = kit_open(&o);
    struct answer *a = mem_alloc(sizeof *a);
    for (size_t i = 0; i < sizeof how / sizeof *how; i++) {
        decode_plainly(g, &how[i], a);
        const int alone = decode_with_drafts(g, &how[i], a, false), helped = decode_with_drafts(g, &how[i], a, true);
        print_message("temperature %g: %d tokens in %d steps, with right guesses put in %d\n",
                      (double)how[i].temperature, ANSWER, alone, helped);
        assert_true(alone <= ANSWER && helped < ANSWER / 2);
    }
    mem_free(a);
    ds4_engine_close(g);
}

/* Guesses depend on nothing but the history: not on chunks, nor on guesses that were made before. */
static void guesses_are_reproducible(void **state)
{
    static const int chunk[] = {1, 30, 512};
    const struct ds4_sampling p = {.temperature = 1, .top_p = 1, .seed = 9};
    int32_t want[15], got[15];
    struct ds4_error e = {0};
    for (size_t i = 0; i < sizeof chunk / sizeof *chunk; i++) {
        struct ds4_options o = kit_options(KIT_QWEN);
        o.prefill_chunk = chunk[i];
        ds4_engine *g = kit_open(&o);
        ds4_session *s = kit_session(g);
        kit_sync(s, kit_tokens(), 90);
        assert_int_equal(ds4_session_propose(s, 17, &p, 9, got, &e), 9);
        kit_sync(s, kit_tokens(), 100);
        assert_int_equal(ds4_session_propose(s, kit_tokens()[100], &p, 99, got, &e), 15);
        if (i == 0) memcpy(want, got, sizeof want);
        assert_memory_equal(want, got, sizeof want);
        kit_check(s, KIT_QWEN, 100);
        ds4_session_free(s);
        ds4_engine_close(g);
    }
}

static void nothing_to_guess_with(void **state)
{
    const struct ds4_sampling p = {.top_p = 1};
    int32_t guess_list[4];
    struct ds4_error e = {0};
    struct ds4_options o = kit_options(KIT_QWEN);
    for (int draft = 0; draft < 2; draft++) {
        o.draft = draft;
        ds4_engine *g = kit_open(&o);
        ds4_session *s = kit_session(g);
        assert_int_equal(ds4_session_propose(s, 5, &p, 4, guess_list, &e), 0); /* no history */
        kit_sync(s, kit_tokens(), 20);
        kit_check(s, KIT_QWEN, 20); /* the draft block changes nothing */
        assert_int_equal(ds4_session_propose(s, 5, &p, 4, guess_list, &e), draft ? 4 : 0);
        assert_int_equal(ds4_session_propose(s, -1, &p, 4, guess_list, &e), DS4_E_ARG);
        assert_int_equal(ds4_session_draft(s, kit_tokens() + 20, 2, NULL, &e), 0);
        assert_int_equal(ds4_session_propose(s, 5, &p, 4, guess_list, &e), DS4_E_ARG);
        assert_int_equal(ds4_session_commit(s, 2, &e), 0);
        kit_check(s, KIT_QWEN, 22);
        ds4_session_free(s);
        ds4_engine_close(g);
    }
}

/* A draft of n rows behind the history, of which the first `keep` are the list's. */
static void draft_keep(ds4_session *s, int n, int keep)
{
    static float rows[16][KIT_VOCAB];
    struct ds4_error e = {0};
    int32_t ids[16];
    const int p = ds4_session_length(s);
    for (int i = 0; i < n; i++) ids[i] = (kit_tokens()[p + i] + (i < keep ? 0 : 5)) % KIT_VOCAB;
    if (ds4_session_draft(s, ids, n, rows[0], &e)) fail_msg("%s", e.message);
    for (int i = 0; i < keep; i++) assert_memory_equal(rows[i], kit_truth(KIT_QWEN, p + i + 1), sizeof rows[i]);
    if (ds4_session_commit(s, keep, &e)) fail_msg("%s", e.message);
    kit_check(s, KIT_QWEN, p + keep);
}

static void guesses_of(ds4_session *s, int32_t guesses[GUESSES])
{
    const struct ds4_sampling p = {.temperature = 1, .top_p = 1, .seed = 9};
    struct ds4_error e = {0};
    assert_int_equal(ds4_session_propose(s, kit_tokens()[ds4_session_length(s)], &p, GUESSES, guesses, &e), GUESSES);
}

/* What a session guesses that came to n tokens the plain way. */
static void plain_guesses(ds4_engine *g, int n, int32_t guesses[GUESSES])
{
    ds4_session *s = kit_session(g);
    kit_sync(s, kit_tokens(), n);
    guesses_of(s, guesses);
    ds4_session_free(s);
}

/* Every number of kept rows at every place in a block and in the windows of the convolutions, with guesses and
 * without. */
static void every_place(void **state)
{
    enum { PLACES = 12, FROM = 40 }; /* blocks of 4, 3 and 9 rows before the present one */
    struct ds4_options o = kit_options(KIT_QWEN);
    for (int draft = 0; draft < 2; draft++) {
        o.draft = draft;
        ds4_engine *g = kit_open(&o);
        for (int keep = 0; keep <= 5; keep++) {
            ds4_session *s = kit_session(g);
            for (int p = FROM; p < FROM + PLACES; p++) {
                int32_t got[GUESSES], want[GUESSES];
                kit_sync(s, kit_tokens(), p);
                draft_keep(s, 6, keep);
                if (draft && p % 5 == 0) {
                    guesses_of(s, got);
                    plain_guesses(g, p + keep, want);
                    assert_memory_equal(got, want, sizeof got);
                }
                kit_eval(s, kit_tokens() + p + keep, 1);
                kit_check(s, KIT_QWEN, p + keep + 1);
            }
            ds4_session_free(s);
        }
        ds4_engine_close(g);
    }
}

/* One session drafts while others go on with steps of all sizes, in the same batches. */
static void one_of_several_drafts(void **state)
{
    const struct ds4_options o = kit_options(KIT_QWEN);
    struct ds4_error e = {0};
    ds4_engine *g = kit_open(&o);
    ds4_session *a = kit_session(g), *b = kit_session(g), *c = kit_session(g);
    int32_t guesses[GUESSES];
    kit_sync(a, kit_tokens(), 101);
    kit_sync(b, kit_tokens(), 30);
    for (int i = 0; i < 24; i++) {
        const int nb = ds4_session_length(b), nc = ds4_session_length(c);
        guesses_of(a, guesses);
        kit_submit(b, kit_tokens() + nb, 1);
        kit_submit(c, kit_tokens() + nc, 1 + i % 20);
        draft_keep(a, 1 + i % 7, i % 7 < 6 ? i % (1 + i % 7) : 0);
        while (ds4_engine_step(g, &e) > 0) continue;
        assert_int_equal(ds4_session_collect(b, NULL, &e), DS4_DONE);
        assert_int_equal(ds4_session_collect(c, NULL, &e), DS4_DONE);
        kit_check(b, KIT_QWEN, nb + 1);
        kit_check(c, KIT_QWEN, nc + 1 + i % 20);
    }
    kit_check(a, KIT_QWEN, ds4_session_length(a));
    ds4_session_free(a);
    ds4_session_free(b);
    ds4_session_free(c);
    ds4_engine_close(g);
}

/* Back into the middle of what was drafted, and through a file: drafts and guesses go on as if nothing had been. */
static void back_and_through_a_file(void **state)
{
    const struct ds4_options o = kit_options(KIT_QWEN);
    struct ds4_error e = {0};
    char path[TEMP_PATH];
    int32_t got[GUESSES], want[GUESSES];
    temp_file(path);
    ds4_engine *g = kit_open(&o);
    ds4_session *s = kit_session(g);
    kit_sync(s, kit_tokens(), 60);
    for (int i = 0; i < 6; i++) {
        const int p = ds4_session_length(s);
        draft_keep(s, 8, 5);
        draft_keep(s, 6, 4);
        kit_rewind(s, p + 2 + i);
        guesses_of(s, got);
        plain_guesses(g, p + 2 + i, want);
        assert_memory_equal(got, want, sizeof got);
        draft_keep(s, 4, i % 4);
        if (ds4_session_save(s, path, &e)) fail_msg("%s", e.message);
        const int n = ds4_session_length(s);
        ds4_session_free(s);
        s = kit_session(g);
        if (ds4_session_load(s, path, &e)) fail_msg("%s", e.message);
        kit_check(s, KIT_QWEN, n);
        guesses_of(s, got);
        plain_guesses(g, n, want);
        assert_memory_equal(got, want, sizeof got);
        draft_keep(s, 7, 3);
    }
    ds4_session_free(s);
    ds4_engine_close(g);
    temp_remove(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drafted_is_plain),      cmocka_unit_test(guesses_are_reproducible),
        cmocka_unit_test(nothing_to_guess_with), cmocka_unit_test(every_place),
        cmocka_unit_test(one_of_several_drafts), cmocka_unit_test(back_and_through_a_file),
    };
    return cmocka_run_group_tests(tests, NULL, kit_teardown);
}
