/* The scheduler with a scripted model: answers and their limits, who is served when, cancelling, failures, the end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "base/clock.h"
#include "../support/serve_kit.h"

/* ---------------------------------------------------------------- answers */

static void test_answers(void **state)
{
    struct serve_kit k = {0};
    serve_kit_start(&k, serve_json("{'when':'[think]','text':'hmm</think>yes','cuts':3}\n"
                                   "{'when':'[call]','text':'why</think>Let me see." SERVE_RUN(
                                       "ls") "','cuts':2}\n"
                                             "{'when':'[cut]','text':'" SERVE_RUN(
                                                 "ls") "','cuts':5,'times':0}\n"
                                                       "{'when':'[stop]','text':'one END two','cuts':'bytes'}\n"
                                                       "{'text':'hello','cuts':1,'times':0}"));
    serve_expect(&k, serve_user("Hi", ""), "[T hello]", FINISH_STOP);
    serve_expect(&k, serve_json("{'messages':[{'role':'user','content':'[think]'}]}"), "[R hmm][T yes]", FINISH_STOP);
    serve_expect(&k, serve_json("{'messages':[{'role':'user','content':'[call]'}]" SERVE_TOOLS "}"),
                 serve_json("[R why][T Let me see.][C run {'cmd':'ls'}]"), FINISH_CALLS);
    /* without tools it is text; a call that is cut stays open */
    struct serve_answer a;
    serve_say(&k, API_CHAT, serve_user("[cut]", ",'max_tokens':23" SERVE_TOOLS), &a);
    assert_string_equal(str_c(&a.line), serve_json("[C run {'cmd':'ls"));
    assert_int_equal(a.result.finish, FINISH_LENGTH);
    assert_int_equal(a.result.usage.completion, 23);
    serve_answer_free(&a);
    serve_say(&k, API_CHAT, serve_user("[stop]", ",'stop':['END','two']"), &a);
    assert_string_equal(str_c(&a.line), "[T one ]");
    assert_int_equal(a.result.finish, FINISH_STOP_STRING);
    assert_string_equal(a.stop_string, "END");
    serve_answer_free(&a);
    serve_kit_end(&k);
}

static void test_one_call(void **state)
{
    struct serve_kit k = {0};
    const char *two =
        "\\n\\n<" SERVE_DSML "tool_calls>\\n<" SERVE_DSML "invoke name=\\'run\\'>\\n</" SERVE_DSML
        "invoke>\\n<" SERVE_DSML "invoke name=\\'note\\'>\\n</" SERVE_DSML "invoke>\\n</" SERVE_DSML "tool_calls>";
    serve_kit_start(&k, serve_json("{'text':'%s','cuts':3,'times':0}", two));
    serve_expect(&k, serve_user("Go", SERVE_TOOLS), "[C run {}][C note {}]", FINISH_CALLS);
    serve_expect(&k, serve_user("Go", SERVE_TOOLS ",'parallel_tool_calls':false"), "[C run {}]", FINISH_CALLS);
    serve_kit_end(&k);
}

static void test_usage(void **state)
{
    struct serve_kit k = {0};
    struct serve_answer a;
    serve_kit_start(&k, serve_json("{'text':'aaaabbbb</think>xxxxyyyyzz','cuts':[4,8,16,20,24],'times':0}"));
    /* <bos> <User> Coun t me <Assistant> <think> */
    serve_say(&k, API_CHAT, serve_json("{'messages':[{'role':'user','content':'Count me'}]}"), &a);
    assert_int_equal(a.first.prompt, 6);
    assert_int_equal(a.first.cached, 0);
    assert_int_equal(a.result.usage.prompt, 6);
    assert_int_equal(a.result.usage.completion, 6);
    assert_int_equal(a.result.usage.reasoning, 3); /* with the token that ends it */
    assert_true(a.result.thinking_closed);
    serve_answer_free(&a);
    const struct scheduler_counts c = scheduler_counts(k.scheduler);
    assert_int_equal(c.requests, 1);
    assert_int_equal(c.finished[FINISH_STOP], 1);
    assert_int_equal(c.prompt_tokens, 6);
    assert_int_equal(c.completion_tokens, 6);
    assert_int_equal(c.active + c.queued, 0);
    serve_kit_end(&k);
}

static void test_limits(void **state)
{
    struct serve_kit k = {.options = {.ctx = 64, .max_tokens = 5}};
    struct serve_answer a;
    serve_kit_start(&k, serve_json("{'when':'[full]','text':'abcd','repeat':100,'times':0}\n"
                                   "{'when':'[says full]','text':'abcd','stop':'length','times':0}\n"
                                   "{'text':'abcdefghijklmnopqrstuvwxyz','cuts':2,'times':0}"));
    serve_expect(&k, serve_user("Hi", ",'max_tokens':1"), "[T ab]", FINISH_LENGTH);
    serve_expect(&k, serve_user("Hi", ",'max_tokens':13"), "[T abcdefghijklmnopqrstuvwxyz]", FINISH_LENGTH);
    serve_expect(&k, serve_user("Hi", ",'max_tokens':14"), "[T abcdefghijklmnopqrstuvwxyz]", FINISH_STOP);
    serve_expect(&k, serve_user("Hi", ""), "[T abcdefghij]", FINISH_LENGTH); /* the server's own limit */
    serve_expect(&k, serve_user("[says full]", ""), "[T abcd]", FINISH_LENGTH);
    /* 0: the prompt is read, nothing is said, and it is there for the next request */
    serve_say(&k, API_CHAT, serve_user("A prompt to be warmed", ",'max_tokens':0"), &a);
    assert_string_equal(str_c(&a.line), "");
    assert_int_equal(a.result.finish, FINISH_LENGTH);
    assert_int_equal(a.result.usage.completion, 0);
    serve_answer_free(&a);
    serve_say(&k, API_CHAT, serve_user("A prompt to be warmed", ",'max_tokens':1"), &a);
    assert_int_equal(a.first.cached, a.first.prompt);
    serve_answer_free(&a);
    /* the context is full */
    serve_say(&k, API_CHAT, serve_user("[full]", ",'max_tokens':1000"), &a);
    assert_int_equal(a.result.finish, FINISH_LENGTH);
    assert_int_equal(a.result.usage.prompt + a.result.usage.completion, 64);
    serve_answer_free(&a);
    /* a prompt needs room for a token: <bos> <User> text <Assistant> </think> */
    char text[4 * 60 + 1];
    memset(text, 'x', sizeof text);
    text[4 * 60] = 0;
    serve_say(&k, API_CHAT, serve_user(text, ""), &a);
    assert_int_equal(a.error.status, 400);
    assert_string_equal(a.error.code, "context_length_exceeded");
    assert_string_equal(a.error.param, "messages");
    assert_int_equal(a.error.n_prompt, 64);
    assert_int_equal(a.error.n_ctx, 64);
    serve_answer_free(&a);
    text[4 * 59] = 0;
    serve_expect(&k, serve_user(text, ""), "[T ab]", FINISH_LENGTH);
    serve_kit_end(&k);
}

static void test_time_limit(void **state)
{
    struct serve_kit k = {.options = {.time_limit = 0.2, .max_tokens = 100000}};
    struct serve_answer a;
    serve_kit_start(&k, serve_json("{'text':'abcd','repeat':100000,'token_ms':5,'times':0}"));
    const double begun = clock_s();
    serve_say(&k, API_CHAT, serve_user("Hi", ""), &a);
    assert_true(clock_s() - begun >= 0.2);
    assert_int_equal(a.result.finish, FINISH_LENGTH);
    assert_in_range(a.result.usage.completion, 1, 41);
    serve_answer_free(&a);
    serve_kit_end(&k);
}

/* Off unless asked for; a sequence of 64 tokens is noticed, one of 65 is not, nor is anything shorter than 1024. */
static void test_repetition(void **state)
{
    static const struct {
        int period, tokens;
        bool guard, cut;
    } cases[] = {{1, 1500, false, false}, {1, 1500, true, true},   {1, 1025, true, false},  {3, 1500, true, true},
                 {64, 1500, true, true},  {65, 1500, true, false}, {64, 1088, true, false}, {64, 1090, true, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct serve_kit k = {.options = {.max_tokens = 5000, .repetition_guard = cases[i].guard}};
        struct serve_answer a;
        struct str text = {0};
        const int period = cases[i].period, n = cases[i].tokens;
        for (int j = 0; j < n; j++) str_printf(&text, "%03d", j % period);
        serve_kit_start(&k, serve_json("{'text':'start %s','cuts':3}", text.p));
        serve_say(&k, API_CHAT, serve_user("Hi", ""), &a);
        assert_int_equal(a.result.finish, cases[i].cut ? FINISH_LENGTH : FINISH_STOP);
        /* two tokens of "start ", one sequence, 1024 that repeat it and the one too many */
        assert_int_equal(a.result.usage.completion, cases[i].cut ? 2 + period + 1025 : 2 + n);
        assert_int_equal(strstr(str_c(&k.log), "were repeated for more than 1024") != NULL, cases[i].cut);
        serve_answer_free(&a);
        str_free(&text);
        serve_kit_end(&k);
    }
}

static void test_thinking_budget(void **state)
{
    struct serve_kit k = {0};
    struct serve_answer a;
    serve_kit_start(&k, serve_json("{'text':'aaaabbbbccccddddeeeeffff</think>yes','cuts':4,'times':0}"));
    static const char ask[] = "{'messages':[{'role':'user','content':'Hi'}],'thinking':{'type':'enabled',"
                              "'budget_tokens':%d},'max_tokens':%d}";
    serve_say(&k, API_CHAT, serve_json(ask, 3, 1000), &a);
    assert_string_equal(str_c(&a.line), "[R aaaabbbbcccc][T yes]");
    assert_int_equal(a.result.usage.reasoning, 4); /* with </think> */
    assert_int_equal(a.result.usage.completion, 5);
    serve_answer_free(&a);
    /* a budget beyond what was thought changes nothing; one beyond the limit leaves half of that for the answer */
    serve_say(&k, API_CHAT, serve_json(ask, 100, 1000), &a);
    assert_string_equal(str_c(&a.line), "[R aaaabbbbccccddddeeeeffff][T yes]");
    serve_answer_free(&a);
    serve_say(&k, API_CHAT, serve_json(ask, 100, 4), &a);
    assert_string_equal(str_c(&a.line), "[R aaaabbbb][T yes]");
    serve_answer_free(&a);
    serve_kit_end(&k);
}

static void test_tool_choice(void **state)
{
    struct serve_kit k = {0};
    struct serve_answer a;
    serve_kit_start(&k, serve_json("{'when':'[talks]','text':'p</think>I would rather talk.','cuts':1,'times':0}\n"
                                   "{'text':'plan</think>Sure." SERVE_RUN("ls") "','cuts':3,'times':0}"));
    static const char ask[] = "{'messages':[{'role':'user','content':'%s'}],'tool_choice':%s" SERVE_TOOLS "}";
    serve_expect(&k, serve_json(ask, "Go", "'auto'"), serve_json("[R plan][T Sure.][C run {'cmd':'ls'}]"),
                 FINISH_CALLS);
    serve_expect(&k, serve_json(ask, "Go", "'required'"), serve_json("[R plan][C run {'cmd':'ls'}]"), FINISH_CALLS);
    serve_expect(&k, serve_json(ask, "Go", "{'type':'function','function':{'name':'run'}}"),
                 serve_json("[R plan][C run {'cmd':'ls'}]"), FINISH_CALLS);
    serve_say(&k, API_CHAT, serve_json(ask, "Go", "'none'"), &a);
    assert_int_equal(a.n_calls, 0);
    assert_int_equal(a.result.finish, FINISH_STOP);
    serve_answer_free(&a);
    /* what does not become a call is an error, never an answer; of what the server put there nothing is told, and no
     * stop string is looked for in it */
    const char *choices[] = {"'required'", "{'type':'function','function':{'name':'note'}}"};
    const char *stop = "'required','logprobs':true,'stop':['\\n\\n','tool_calls']";
    for (int i = 0; i < 2; i++) {
        serve_say(&k, API_CHAT, serve_json(ask, "[talks]", choices[i]), &a);
        assert_int_equal(a.error.status, 500);
        assert_non_null(strstr(a.error.message, "tool_choice"));
        assert_string_equal(str_c(&a.line), "[R p]");
        serve_answer_free(&a);
    }
    serve_say(&k, API_CHAT, serve_json(ask, "[talks]", stop), &a);
    assert_int_equal(a.error.status, 500);
    assert_string_equal(str_c(&a.line), "[R p]");
    assert_string_equal(str_c(&a.logprobs), "");
    serve_answer_free(&a);
    serve_expect(&k, serve_json(ask, "Go", stop), serve_json("[R plan][C run {'cmd':'ls'}]"), FINISH_CALLS);
    serve_expect(&k, serve_json(ask, "[talks]", "'required','max_tokens':20"), "[R p]", FINISH_LENGTH);
    serve_kit_end(&k);
}

static void test_logprobs(void **state)
{
    struct serve_kit k = {0};
    struct serve_answer a;
    serve_kit_start(&k, serve_json("{'text':'abcdefgh','logprob':-0.5,'alts':[['x',-1],['y',-2]],'times':0}"));
    serve_say(&k, API_CHAT, serve_user("Hi", ",'logprobs':true,'top_logprobs':2"), &a);
    assert_string_equal(str_c(&a.logprobs), "abcd:-0.5(x:-1 y:-2) efgh:-0.5(x:-1 y:-2) ");
    serve_answer_free(&a);
    serve_say(&k, API_CHAT, serve_user("Hi", ""), &a);
    assert_string_equal(str_c(&a.logprobs), "");
    serve_answer_free(&a);
    serve_kit_end(&k);
}

/* ---------------------------------------------------------------- who is served when */

static void test_in_order_of_arrival(void **state)
{
    enum { N = 6 };
    struct serve_kit k = {0};
    struct serve_answer a[N];
    serve_kit_start(&k, serve_json("{'text':'some words','times':0}"));
    serve_gate_close();
    for (int i = 0; i < N; i++) serve_ask(&k, API_CHAT, serve_user("Hi", ""), &a[i]);
    serve_gate_await();
    assert_int_equal(scheduler_counts(k.scheduler).active, 1);
    assert_int_equal(scheduler_counts(k.scheduler).queued, N - 1);
    serve_gate_open();
    for (int i = 0; i < N; i++) {
        serve_wait(&a[i]);
        assert_int_equal(a[i].order, i + 1);
        assert_string_equal(str_c(&a[i].line), "[T some words]");
        serve_answer_free(&a[i]);
    }
    serve_kit_end(&k);
}

/* A long answer does not hold up short ones while there is a session for them. */
static void test_beside_a_long_answer(void **state)
{
    struct serve_kit k = {.options = {.sessions = 2, .max_tokens = 100000}};
    struct serve_answer a[4];
    serve_kit_start(&k, serve_json("{'when':'[long]','text':'long','repeat':2000}\n{'text':'short','times':0}"));
    serve_gate_close();
    serve_ask(&k, API_CHAT, serve_user("[long]", ""), &a[0]);
    for (int i = 1; i < 4; i++) serve_ask(&k, API_CHAT, serve_user("Hi", ""), &a[i]);
    serve_gate_open();
    for (int i = 0; i < 4; i++) {
        serve_wait(&a[i]);
        assert_int_equal(a[i].order, i ? i : 4);
        serve_answer_free(&a[i]);
    }
    serve_kit_end(&k);
}

/* ---- answers together are the answers alone ---- */

static const char *const many_lines =
    "{'when':'[0]','text':'hmm</think>zero','cuts':3,'times':0}\n"
    "{'when':'[1]','text':'one one one one one one one one','cuts':1,'times':0}\n"
    "{'when':'[2]','text':'why</think>Look." SERVE_RUN(
        "ls -l") "','cuts':2,'times':0}\n"
                 "{'when':'[3]','text':'again ','cuts':5,'repeat':30,'times':0}\n"
                 "{'when':'[4]','text':'one END two','cuts':1,'times':0}\n"
                 "{'when':'[5]','text':'" SERVE_RUN("rm") "','cuts':7,'times':0}\n"
                                                          "{'when':'[6]','base64':'w6nDqcO/','cuts':1,'times':0}\n"
                                                          "{'text':'t</think>" SERVE_RUN("x") "','cuts':4,'times':0}";
enum { MANY = 8 };

static const char *ask_many(int i)
{
    return serve_json("{'messages':[{'role':'user','content':'question [%d]%0*d'}],'thinking':%s,'stop':['END']%s}", i,
                      50 * i + 1, 0, i % 2 ? "false" : "true", SERVE_TOOLS);
}

static void test_together_as_alone(void **state)
{
    struct serve_kit k = {0};
    struct serve_answer alone[MANY], together[2 * MANY];
    serve_kit_start(&k, serve_json("%s", many_lines));
    for (int i = 0; i < MANY; i++) serve_say(&k, API_CHAT, ask_many(i), &alone[i]);
    serve_kit_end(&k);
    assert_string_equal(str_c(&alone[0].line), "[R hmm][T zero]");
    assert_string_equal(str_c(&alone[2].line), serve_json("[R why][T Look.][C run {'cmd':'ls -l'}]"));
    for (int sessions = 2; sessions <= 8; sessions += 3) {
        k = (struct serve_kit){.options = {.sessions = sessions}};
        serve_kit_start(&k, serve_json("%s", many_lines));
        for (int i = 0; i < 2 * MANY; i++) serve_ask(&k, API_CHAT, ask_many(i % MANY), &together[i]);
        for (int i = 0; i < 2 * MANY; i++) {
            const struct serve_answer *a = &alone[i % MANY];
            serve_wait(&together[i]);
            assert_string_equal(str_c(&together[i].line), str_c(&a->line));
            assert_int_equal(together[i].result.finish, a->result.finish);
            assert_int_equal(together[i].result.usage.completion, a->result.usage.completion);
            assert_int_equal(together[i].result.usage.reasoning, a->result.usage.reasoning);
            serve_answer_free(&together[i]);
        }
        serve_kit_end(&k);
    }
    for (int i = 0; i < MANY; i++) serve_answer_free(&alone[i]);
}

/* ---------------------------------------------------------------- clients that go away */

static void cancelled(struct serve_kit *k, struct serve_answer *a, const char *told)
{
    const int steps = serve_steps();
    scheduler_cancel(k->scheduler, a->number);
    serve_gate_pass(1);
    serve_wait(a);
    assert_in_range(serve_steps() - steps, 0, 1);
    assert_false(a->over); /* nobody listens: neither end nor error */
    assert_string_equal(str_c(&a->line), told);
    serve_answer_free(a);
}

static void test_cancel(void **state)
{
    struct serve_kit k = {0};
    struct serve_answer running, queued, next;
    char text[4 * 5000 + 1];
    memset(text, 'x', sizeof text);
    text[4 * 5000] = 0;
    serve_kit_start(&k, serve_json("{'text':'abcd','repeat':100,'times':0}"));
    scheduler_cancel(k.scheduler, 1); /* nobody */
    serve_gate_close();
    serve_ask(&k, API_CHAT, serve_user("Hi", ""), &running);
    serve_ask(&k, API_CHAT, serve_user("Hi", ""), &queued);
    serve_gate_await();
    cancelled(&k, &queued, ""); /* in the queue */
    serve_gate_pass(3);         /* the last layers of the prompt; "Hi" is one chunk of 4 layers */
    serve_gate_await();
    serve_gate_pass(1); /* the first token is part of the history */
    serve_gate_await();
    cancelled(&k, &running, "[T abcdabcd"); /* within the answer: the second token was told when it was drawn */
    /* while the prompt is read: three chunks of 2048; what was read of it stays */
    serve_ask(&k, API_CHAT, serve_user(text, ""), &running);
    serve_gate_await();
    serve_gate_pass(4 + 2);
    serve_gate_await();
    cancelled(&k, &running, "");
    serve_gate_open();
    serve_say(&k, API_CHAT, serve_user(text, ",'max_tokens':2"), &next);
    assert_string_equal(str_c(&next.line), "[T abcdabcd]");
    assert_int_equal(next.first.cached, 2048);
    serve_answer_free(&next);
    const struct scheduler_counts c = scheduler_counts(k.scheduler);
    assert_int_equal(c.cancelled, 3);
    assert_int_equal(c.active, 0);
    /* what was not read is not counted as read: 5 tokens of "Hi", the first chunk, then the whole of the text */
    assert_int_equal(c.prompt_tokens, 5 + 2048 + 5004);
    assert_int_equal(c.cached_tokens, 2048);
    static const char told[] =
        "prompt 5004 tokens, 0 cached (differs at token 2: history \"Hi\", prompt \"xxxx\"), 2048 more read at ";
    if (!strstr(str_c(&k.log), told)) fail_msg("%s", str_c(&k.log));
    serve_kit_end(&k);
}

/* The others are not disturbed. */
static void test_cancel_one_of_several(void **state)
{
    struct serve_kit k = {.options = {.sessions = 3}};
    struct serve_answer a[3];
    serve_kit_start(&k, serve_json("{'text':'abcdefgh','repeat':20,'times':0}"));
    serve_gate_close();
    for (int i = 0; i < 3; i++) serve_ask(&k, API_CHAT, serve_user("Hi", ",'max_tokens':30"), &a[i]);
    serve_gate_await();
    serve_gate_pass(8);
    serve_gate_await();
    scheduler_cancel(k.scheduler, a[1].number);
    serve_gate_open();
    for (int i = 0; i < 3; i++) serve_wait(&a[i]);
    assert_false(a[1].over);
    assert_int_equal(a[0].result.usage.completion, 30);
    assert_int_equal(a[2].result.usage.completion, 30);
    assert_string_equal(str_c(&a[0].line), str_c(&a[2].line));
    for (int i = 0; i < 3; i++) serve_answer_free(&a[i]);
    serve_kit_end(&k);
}

/* Clients that wait are reminded every second, in the queue, while the prompt is read, and within the answer. */
static void test_signs_of_life(void **state)
{
    struct serve_kit k = {0};
    struct serve_answer a, queued;
    serve_kit_start(&k, serve_json("{'text':'abcdefgh','token_ms':1300}\n{'text':'quick'}"));
    serve_ask(&k, API_CHAT, serve_user("Hi", ""), &a);
    serve_ask(&k, API_CHAT, serve_user("Hi", ""), &queued);
    serve_wait(&a);
    serve_wait(&queued);
    assert_in_range(a.alive, 2, 10); /* one for either token at least */
    assert_in_range(queued.alive, 2, 10);
    serve_answer_free(&a);
    serve_answer_free(&queued);
    serve_kit_end(&k);
}

/* ---------------------------------------------------------------- failures */

/* What concerns one session is its request's failure; the next one is served. */
static void test_failure_of_a_session(void **state)
{
    static const struct {
        enum serve_call call;
        int code;
    } cases[] = {{SERVE_SYNC, DS4_E_IO},        {SERVE_SUBMIT, DS4_E_MEMORY}, {SERVE_COLLECT, DS4_E_FORMAT},
                 {SERVE_NEXT, DS4_E_IO},        {SERVE_ENCODE, DS4_E_MEMORY}, {SERVE_COLLECT, DS4_E_IO},
                 {SERVE_COLLECT, DS4_E_MEMORY}, {SERVE_SYNC, DS4_E_LIMIT}};
    struct serve_kit k = {.options = {.sessions = 2}};
    struct serve_answer a, other;
    serve_kit_start(&k, serve_json("{'when':'other','text':'unharmed','times':0}\n{'text':'fine','times':0}"));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        serve_fail(cases[i].call, cases[i].code, "no such luck");
        serve_say(&k, API_CHAT, serve_user("Hi", ""), &a);
        assert_int_equal(a.error.status, 500);
        assert_string_equal(a.error.type, "server_error");
        assert_non_null(strstr(a.error.message, "no such luck"));
        assert_int_equal(a.error.retry_after, 0);
        assert_false(scheduler_failed(k.scheduler, NULL, 0));
        serve_answer_free(&a);
        serve_say(&k, API_CHAT, serve_user("Hi", ""), &a);
        assert_string_equal(str_c(&a.line), "[T fine]");
        serve_answer_free(&a);
    }
    /* beside another answer */
    serve_gate_close();
    serve_ask(&k, API_CHAT, serve_user("other", ""), &other);
    serve_gate_await();
    serve_gate_pass(4);
    serve_gate_await();
    serve_ask(&k, API_CHAT, serve_user("Hi", ""), &a);
    serve_fail(SERVE_SYNC, DS4_E_IO, "no such luck");
    serve_gate_open();
    serve_wait(&a);
    serve_wait(&other);
    assert_int_equal(a.error.status, 500);
    assert_string_equal(str_c(&other.line), "[T unharmed]");
    serve_answer_free(&a);
    serve_answer_free(&other);
    serve_kit_end(&k);
}

/* The model has failed: whoever is served or waits hears it at once, and nobody is served any more. */
static void model_fails(const char *line)
{
    struct serve_kit k = {.options = {.sessions = 2}};
    struct serve_answer a[4], late;
    char reason[100];
    serve_kit_start(&k, line);
    serve_gate_close();
    for (int i = 0; i < 4; i++) serve_ask(&k, API_CHAT, serve_user(i ? "Hi" : "[bad]", ""), &a[i]);
    serve_gate_open();
    for (int i = 0; i < 4; i++) {
        serve_wait(&a[i]);
        assert_int_equal(a[i].error.status, 503);
        assert_int_equal(a[i].error.retry_after, 60);
        assert_non_null(strstr(a[i].error.message, "device lost"));
        serve_answer_free(&a[i]);
    }
    assert_true(scheduler_failed(k.scheduler, reason, sizeof reason));
    assert_string_equal(reason, "device lost");
    serve_say(&k, API_CHAT, serve_user("Hi", ""), &late);
    assert_int_equal(late.error.status, 503);
    assert_int_equal(late.error.retry_after, 60);
    assert_non_null(strstr(late.error.message, "device lost"));
    assert_int_equal(scheduler_counts(k.scheduler).failed, 4);
    serve_kit_end(&k);
}

static void test_failure_of_the_model(void **state)
{
    static const char others[] = "\n{'text':'long','repeat':100000,'token_ms':5,'times':0}";
    model_fails(serve_json("{'when':'[bad]','text':'abcd','error':'device lost','error_at':'prefill'}%s", others));
    model_fails(serve_json("{'when':'[bad]','text':'abcd','error':'device lost'}%s", others));
    model_fails(serve_json("{'when':'[bad]','text':'abcdefgh','cuts':1,'error':'device lost','error_at':5}%s", others));
}

/* ---------------------------------------------------------------- the end */

static void test_the_last_answers(void **state)
{
    struct serve_kit k = {0};
    struct serve_answer a[3], late;
    struct api_error why;
    serve_kit_start(&k, serve_json("{'text':'to the end','times':0}"));
    serve_gate_close();
    for (int i = 0; i < 3; i++) serve_ask(&k, API_CHAT, serve_user("Hi", ""), &a[i]);
    assert_true(scheduler_open(k.scheduler, &why));
    scheduler_stop(k.scheduler);
    assert_false(scheduler_open(k.scheduler, &why));
    assert_int_equal(why.status, 503);
    serve_say(&k, API_CHAT, serve_user("Hi", ""), &late);
    assert_int_equal(late.error.status, 503);
    assert_int_equal(late.error.retry_after, 5);
    assert_non_null(strstr(late.error.message, "shutting down"));
    serve_gate_open();
    for (int i = 0; i < 3; i++) {
        serve_wait(&a[i]);
        assert_string_equal(str_c(&a[i].line), "[T to the end]");
        serve_answer_free(&a[i]);
    }
    serve_kit_end(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_one_call),
        cmocka_unit_test(test_usage),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_time_limit),
        cmocka_unit_test(test_repetition),
        cmocka_unit_test(test_thinking_budget),
        cmocka_unit_test(test_tool_choice),
        cmocka_unit_test(test_logprobs),
        cmocka_unit_test(test_in_order_of_arrival),
        cmocka_unit_test(test_beside_a_long_answer),
        cmocka_unit_test(test_together_as_alone),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_cancel_one_of_several),
        cmocka_unit_test(test_signs_of_life),
        cmocka_unit_test(test_failure_of_a_session),
        cmocka_unit_test(test_failure_of_the_model),
        cmocka_unit_test(test_the_last_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
