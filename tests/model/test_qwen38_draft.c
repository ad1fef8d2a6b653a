/* Drafted answers are those of plain decoding, token by token and bit by bit, greedy and sampled: whatever the draft
 * block guesses, and also when many guesses are right. */
#include "../support/engine_kit.h"
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drafted_is_plain),
        cmocka_unit_test(guesses_are_reproducible),
        cmocka_unit_test(nothing_to_guess_with),
    };
    return cmocka_run_group_tests(tests, NULL, kit_teardown);
}
