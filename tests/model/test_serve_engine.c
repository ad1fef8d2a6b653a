/* The scheduler with a real engine on a small random model: answers together are bit for bit those alone, and what is
 * known is not computed again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "serve/served_engine.h"
#include "../support/engine_kit.h"
#include "../support/serve_kit.h"

enum { CTX = 2048 };

static ds4_engine *engine;
static struct served model;

static int open_engine(void **state)
{
    struct ds4_options o = kit_options(KIT_Q8);
    o.ctx = CTX;
    o.sessions = 9;
    o.prefill_chunk = 64;
    engine = kit_open(&o);
    served_engine_open(engine, 8, CTX, &model);
    return 0;
}

static int close_engine(void **state)
{
    served_engine_close(&model);
    ds4_engine_close(engine);
    kit_clean();
    return 0;
}

static void start(struct serve_kit *k, int sessions)
{
    *k = (struct serve_kit){.options = {.model = model, .sessions = sessions, .ctx = CTX}};
    serve_kit_start(k, NULL);
}

/* ---------------------------------------------------------------- together as alone */

enum { MANY = 6 };

static const char *ask(int i)
{
    return serve_json("{'messages':[{'role':'user','content':'question %d %0*d'}],'thinking':%s,'max_tokens':%d,"
                      "'seed':%d,'temperature':%s,'logprobs':true,'top_logprobs':2}",
                      i, 1 + 60 * i, 0, i % 2 ? "true" : "false", 20 + 3 * i, i + 1, i % 3 ? "1" : "0");
}

static void same(const struct serve_answer *a, const struct serve_answer *b)
{
    assert_int_equal(a->error.status, 0);
    assert_string_equal(str_c(&a->line), str_c(&b->line));
    assert_string_equal(str_c(&a->logprobs), str_c(&b->logprobs));
    assert_int_equal(a->result.finish, b->result.finish);
    assert_int_equal(a->result.usage.completion, b->result.usage.completion);
}

static void test_together_as_alone(void **state)
{
    struct serve_kit k;
    struct serve_answer alone[MANY], together[2 * MANY];
    start(&k, 1);
    for (int i = 0; i < MANY; i++) serve_say(&k, API_CHAT, ask(i), &alone[i]);
    serve_kit_end(&k);
    for (int sessions = 3; sessions <= 8; sessions += 5) {
        start(&k, sessions);
        serve_gate_close(); /* all are there before the first is read */
        for (int i = 0; i < 2 * MANY; i++) serve_ask(&k, API_CHAT, ask(i % MANY), &together[i]);
        serve_gate_open();
        for (int i = 0; i < 2 * MANY; i++) {
            serve_wait(&together[i]);
            same(&together[i], &alone[i % MANY]);
            serve_answer_free(&together[i]);
        }
        serve_kit_end(&k);
    }
    for (int i = 0; i < MANY; i++) serve_answer_free(&alone[i]);
}

/* The same seed, the same answer; without one, another each time. */
static void test_seeds(void **state)
{
    struct serve_kit k;
    struct serve_answer a, b;
    start(&k, 1);
    for (int seeded = 0; seeded < 2; seeded++) {
        const char *more = seeded ? ",'max_tokens':40,'seed':7" : ",'max_tokens':40";
        serve_say(&k, API_CHAT, serve_user("Tell me a story.", more), &a);
        serve_say(&k, API_CHAT, serve_user("Tell me a story.", more), &b);
        assert_int_equal(!strcmp(str_c(&a.line), str_c(&b.line)), seeded);
        serve_answer_free(&a);
        serve_answer_free(&b);
    }
    serve_kit_end(&k);
}

/* ---------------------------------------------------------------- what is known */

static struct usage usage_of(struct serve_kit *k, const char *json)
{
    struct serve_answer a;
    serve_say(k, API_CHAT, json, &a);
    if (a.error.status) fail_msg("%s", a.error.message);
    serve_answer_free(&a);
    return a.result.usage;
}

/* n turns of about 100 tokens each; the last one begins with `last`. */
static const char *turns(int seed, int n, const char *last, const char *more)
{
    struct str s = {0};
    char word[101];
    str_printf(&s, "{'messages':[");
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < 100; k++) word[k] = (char)('a' + (seed + i * 7 + k * (k + i)) % 26);
        word[100] = 0;
        str_printf(&s, "%s{'role':'user','content':'%s%s'}", i ? ",{'role':'assistant','content':'yes'}," : "",
                   i == n - 1 ? last : "", word);
    }
    str_printf(&s, "],'max_tokens':1%s}", more);
    const char *json = serve_json("%s", s.p);
    str_free(&s);
    return json;
}

static void known(struct usage u, double share)
{
    if (u.cached < share * u.prompt) fail_msg("only %d of %d tokens were known", u.cached, u.prompt);
}

static void test_next_turn(void **state)
{
    struct serve_kit k;
    start(&k, 1);
    /* with and without thinking, whose last token differs from what comes back */
    for (int thinking = 0; thinking < 2; thinking++) {
        const char *more = thinking ? "" : ",'thinking':false";
        const struct usage one = usage_of(&k, turns('a' + thinking, 8, "", more)),
                           two = usage_of(&k, turns('a' + thinking, 9, "", more));
        assert_in_range(two.cached, one.prompt - 1, one.prompt);
    }
    serve_kit_end(&k);
}

/* Another wording of the last turn, and a longer history before in that session. */
static void test_another_last_turn(void **state)
{
    struct serve_kit k;
    start(&k, 1);
    usage_of(&k, turns('x', 14, "", ""));
    usage_of(&k, turns('q', 15, "", ""));
    usage_of(&k, turns('a', 8, "one", ""));
    const struct usage u = usage_of(&k, turns('a', 8, "two", ""));
    known(u, 7 / 8.0 - 0.01);
    serve_kit_end(&k);
}

static void test_questions_aside(void **state)
{
    struct serve_kit k;
    start(&k, 1);
    usage_of(&k, turns('a', 12, "", ""));
    for (int i = 0; i < 3; i++) usage_of(&k, turns('p' + i, 1, "", ""));
    known(usage_of(&k, turns('a', 13, "", "")), 0.9);
    serve_kit_end(&k);
}

static const char *shared(const char *word, int size, int most)
{
    return serve_json("{'messages':[{'role':'system','content':'%0300d'},{'role':'user','content':'%s %0*d'}],"
                      "'max_tokens':%d,'temperature':0,'thinking':false}",
                      1, word, size, 0, most);
}

/* Between two tokens, or while the next one waits for a layer of somebody's long prompt. */
static void shared_with_a_running_answer(int later, const struct serve_answer *alone,
                                         const struct serve_answer *other_alone)
{
    struct serve_kit k;
    struct serve_answer running, reading, other;
    start(&k, 3);
    serve_gate_close();
    serve_ask(&k, API_CHAT, shared("first", 200, 60), &running);
    serve_gate_await();
    for (int i = 0; i < 400 && scheduler_counts(k.scheduler).prefill_s == 0; i++) {
        serve_gate_pass(1); /* until the prompt has been read */
        serve_gate_await();
    }
    serve_ask(&k, API_CHAT, turns('z', 8, "", ""), &reading);
    for (int i = 0; i < 4 + later; i++) {
        serve_gate_pass(1);
        serve_gate_await();
    }
    serve_ask(&k, API_CHAT, shared("other", 100, 10), &other);
    serve_gate_open();
    serve_wait(&other);
    serve_wait(&running);
    serve_wait(&reading);
    assert_int_equal(serve_forks(), 1);
    known(other.result.usage, 0.7);
    same(&other, other_alone);
    same(&running, alone);
    serve_answer_free(&running);
    serve_answer_free(&reading);
    serve_answer_free(&other);
    serve_kit_end(&k);
}

/* A beginning is copied from a conversation at rest, and from one whose answer is being written. */
static void test_shared_beginning(void **state)
{
    struct serve_kit k;
    struct serve_answer alone, other_alone, again, other;
    start(&k, 2);
    serve_say(&k, API_CHAT, shared("first", 200, 60), &alone);
    serve_kit_end(&k);
    start(&k, 2);
    serve_say(&k, API_CHAT, shared("other", 100, 10), &other_alone);
    serve_kit_end(&k);
    start(&k, 2);
    serve_say(&k, API_CHAT, shared("first", 200, 60), &again);
    serve_answer_free(&again);
    serve_say(&k, API_CHAT, shared("other", 100, 10), &other);
    assert_int_equal(serve_forks(), 1);
    known(other.result.usage, 0.7);
    same(&other, &other_alone);
    serve_answer_free(&other);
    serve_kit_end(&k);
    for (int later = 0; later < 4; later++) shared_with_a_running_answer(later, &alone, &other_alone);
    serve_answer_free(&alone);
    serve_answer_free(&other_alone);
}

/* ---------------------------------------------------------------- cancelling */

static void test_cancel(void **state)
{
    struct serve_kit k;
    struct serve_answer a;
    start(&k, 1);
    for (int after = 0; after < 40; after += 3) {
        serve_gate_close();
        serve_ask(&k, API_CHAT, turns('a' + after, 6, "", ""), &a);
        serve_gate_await();
        for (int i = 0; i < after; i++) {
            serve_gate_pass(1);
            serve_gate_await();
        }
        scheduler_cancel(k.scheduler, a.number);
        const int steps = serve_steps();
        serve_gate_open();
        serve_wait(&a);
        assert_false(a.over);
        assert_in_range(serve_steps() - steps, 0, 2);
        serve_answer_free(&a);
    }
    known(usage_of(&k, turns('a', 3, "", "")), 0);
    assert_int_equal(scheduler_counts(k.scheduler).active, 0);
    serve_kit_end(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_together_as_alone),
        cmocka_unit_test(test_seeds),
        cmocka_unit_test(test_next_turn),
        cmocka_unit_test(test_another_last_turn),
        cmocka_unit_test(test_questions_aside),
        cmocka_unit_test(test_shared_beginning),
        cmocka_unit_test(test_cancel),
    };
    return cmocka_run_group_tests(tests, open_engine, close_engine);
}
