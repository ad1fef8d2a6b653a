/* What is not read again: the next turn, tool turns, side questions, shared beginnings; and what the log says of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "../support/serve_kit.h"

/* n bytes of text that differs from that of another seed in every 4 bytes; one of the last 4. */
static const char *words(char seed, int n)
{
    static char text[4][40001];
    static unsigned at;
    char *p = text[at++ % 4];
    assert_in_range(n, 4, 40000);
    for (int i = 0; i < n; i++) p[i] = (char)(i % 4 == 0 ? seed : 'a' + i / 4 * (i % 4) % 26);
    p[n] = 0;
    return p;
}

static const char *const plain = "{'text':'An answer of some length.','cuts':3,'times':0}";

/* A conversation of one system message, then user and assistant in turn. */
static const char *chat(const char *system, const char *const *said, int n, const char *more)
{
    struct str s = {0};
    str_printf(&s, "{'messages':[{'role':'system','content':'%s'}", system);
    for (int i = 0; i < n; i++) str_printf(&s, ",{'role':'%s','content':'%s'}", i % 2 ? "assistant" : "user", said[i]);
    str_printf(&s, "]%s}", more);
    const char *json = serve_json("%s", s.p);
    str_free(&s);
    return json;
}

static struct usage usage_of(struct serve_kit *k, const char *json)
{
    struct serve_answer a;
    serve_say(k, API_CHAT, json, &a);
    if (a.error.status) fail_msg("%s", a.error.message);
    serve_answer_free(&a);
    return a.result.usage;
}

static void logged(const struct serve_kit *k, const char *part)
{
    if (!strstr(str_c(&k->log), part)) fail_msg("\"%s\" is not in the log:\n%s", part, str_c(&k->log));
}

/* ---------------------------------------------------------------- turns */

#define OFF ",'thinking':false"

static void test_next_turn(void **state)
{
    struct serve_kit k = {0};
    const char *const said[] = {words('u', 4000), "An answer of some length.", "and then?", "An answer of some length.",
                                "go on"};
    serve_kit_start(&k, serve_json("%s", plain));
    const struct usage one = usage_of(&k, chat("Be brief.", said, 1, OFF));
    assert_int_equal(one.cached, 0);
    logged(&k, "0 cached (no history to go on from)");
    /* the model's tokens are of 3 bytes, the prompt's of 4: still all of it is known */
    const struct usage two = usage_of(&k, chat("Be brief.", said, 3, OFF));
    assert_int_equal(two.cached, one.prompt + one.completion);
    char all[60];
    snprintf(all, sizeof all, "(goes on from all %d tokens)", one.prompt + one.completion);
    logged(&k, all);
    const struct usage three = usage_of(&k, chat("Be brief.", said, 5, OFF));
    assert_int_equal(three.cached, two.prompt + two.completion);
    /* the same again: nothing is read */
    const struct usage again = usage_of(&k, chat("Be brief.", said, 5, OFF));
    assert_int_equal(again.cached, again.prompt);
    logged(&k, "the prompt is a part of a history of");
    serve_kit_end(&k);
}

static void test_another_ending(void **state)
{
    struct serve_kit k = {0};
    const char *const said[] = {words('u', 4000), "An answer of some length.", "first try"};
    const char *const edited[] = {words('u', 4000), "An answer of some length.", "second"};
    const char *const corrected[] = {words('u', 4000), "An answer of some kind.", "second"};
    serve_kit_start(&k, serve_json("%s", plain));
    const struct usage one = usage_of(&k, chat("Be brief.", said, 1, OFF));
    usage_of(&k, chat("Be brief.", said, 3, OFF));
    struct usage u = usage_of(&k, chat("Be brief.", edited, 3, OFF));
    /* the answer, its end, and the user's token are known */
    assert_int_equal(u.cached, one.prompt + one.completion + 2);
    logged(&k, "history \"firs\", prompt \"seco\"");
    u = usage_of(&k, chat("Be brief.", corrected, 3, OFF));
    assert_in_range(u.cached, one.prompt, one.prompt + one.completion - 1);
    serve_kit_end(&k);
}

/* Reasoning is dropped with the next question: of the old prompt all but its last token stays. */
static void test_old_reasoning(void **state)
{
    struct serve_kit k = {0};
    const char *const said[] = {words('u', 4000), "yes", "and then?"};
    serve_kit_start(&k, serve_json("{'text':'I wonder about this and that.</think>yes','times':0}"));
    const struct usage one = usage_of(&k, chat("Be brief.", said, 1, ""));
    const struct usage two = usage_of(&k, chat("Be brief.", said, 3, ""));
    assert_int_equal(two.cached, one.prompt - 1);
    assert_in_range(two.prompt - two.cached, 1, 10); /* the answer and the new question */
    logged(&k, "history \"<think>\", prompt \"</think>\"");
    serve_kit_end(&k);
}

/* A text that the tokenizer cuts into fewer tokens than the model did may fit where the history's tokens do not. */
static void test_context_too_small_for_the_models_tokens(void **state)
{
    struct serve_kit k = {.options = {.ctx = 100}};
    const char *const said[] = {"Hi", words('a', 88), "go on"};
    struct str script = {0};
    str_printf(&script, "{'text':'%s','cuts':1,'times':0}", words('a', 88));
    serve_kit_start(&k, serve_json("%s", script.p));
    const struct usage one = usage_of(&k, chat("Be brief.", said, 1, OFF));
    assert_int_equal(one.completion, 88);
    const struct usage two = usage_of(&k, chat("Be brief.", said, 3, OFF));
    assert_int_equal(two.cached, one.prompt);
    assert_in_range(two.prompt, 30, 40);
    str_free(&script);
    serve_kit_end(&k);
}

/* ---------------------------------------------------------------- tool turns */

/* What the model wrote, spelled in a way that nobody else would: blanks, and the order of things. */
#define ODD                                                                                                            \
    "Let me look.\\n\\n<" SERVE_DSML "tool_calls>\\n\\n  <" SERVE_DSML "invoke name=\\'run\\'>\\n  <" SERVE_DSML       \
    "parameter name=\\'cmd\\' string=\\'true\\'>ls</" SERVE_DSML "parameter>\\n </" SERVE_DSML                         \
    "invoke>\\n\\n</" SERVE_DSML "tool_calls>"
static const char *const tool_script = "{'when':'<tool_result>','text':'ok</think>Two files.','times':0}\n"
                                       "{'text':'I had better look.</think>" ODD "','cuts':3,'times':0}";

static const char *after_call(const struct serve_answer *a, const char *reasoning, const char *id)
{
    return serve_json("{'messages':[{'role':'user','content':'%s'},{'role':'assistant','content':'Let me look.'%s,"
                      "'tool_calls':[{'id':'%s','type':'function','function':{'name':'run','arguments':'{\\'cmd\\': "
                      "\\'ls\\'}'}}]},{'role':'tool','tool_call_id':'%s','content':'a b'}]" SERVE_TOOLS "}",
                      words('u', 400), reasoning, id ? id : a->call[0], id ? id : a->call[0]);
}

/* The token that ends the block is never computed, and text is compared from border to border. */
enum { TAIL = 4 };

static void tool_turn(const char *reasoning, const char *key, const char *id, bool known)
{
    struct serve_kit k = {0};
    struct serve_answer a, b;
    serve_kit_start(&k, serve_json("%s", tool_script));
    serve_ask_as(&k, "alice", API_CHAT,
                 serve_json("{'messages':[{'role':'user','content':'%s'}]" SERVE_TOOLS "}", words('u', 400)), &a);
    serve_wait(&a);
    assert_string_equal(str_c(&a.line), serve_json("[R I had better look.][T Let me look.][C run {'cmd':'ls'}]"));
    serve_ask_as(&k, key, API_CHAT, after_call(&a, reasoning, id), &b);
    serve_wait(&b);
    assert_string_equal(str_c(&b.line), "[R ok][T Two files.]");
    const int all = a.result.usage.prompt + a.result.usage.completion;
    if (known)
        assert_in_range(b.result.usage.cached, all - TAIL, all);
    else
        assert_in_range(b.result.usage.cached, a.result.usage.prompt - 1, all - TAIL - 1);
    serve_answer_free(&a);
    serve_answer_free(&b);
    serve_kit_end(&k);
}

static void test_tool_turn(void **state)
{
    tool_turn(",'reasoning_content':'I had better look.'", "alice", NULL, true); /* clients that send it back */
    tool_turn(",'reasoning_content':'look.'", "alice", NULL, true);              /* only the last piece of a stream */
    tool_turn(",'reasoning_content':'I had better not.'", "alice", NULL, false); /* something else */
    tool_turn("", "alice", NULL, true);                                          /* and those that do not */
    tool_turn(",'reasoning_content':'I had better look.'", "bob", NULL, false);  /* another key knows no call */
    tool_turn("", "alice", "call_00000000000000000000000000000000", false);
}

/* Calls of several turns stay known, and a turn without reasoning of its own gets none. */
static void test_many_tool_turns(void **state)
{
    struct serve_kit k = {0};
    struct str messages = {0};
    int all = TAIL;
    serve_kit_start(&k, serve_json("{'text':'hm</think>" ODD "','cuts':3,'times':0}"));
    str_printf(&messages, "{'role':'user','content':'%s'}", words('u', 400));
    for (int i = 0; i < 5; i++) {
        struct serve_answer a;
        serve_say(&k, API_CHAT, serve_json("{'messages':[%s]" SERVE_TOOLS "}", messages.p), &a);
        assert_int_equal(a.n_calls, 1);
        assert_in_range(a.result.usage.cached, all - TAIL, all);
        all = a.result.usage.prompt + a.result.usage.completion;
        str_printf(&messages,
                   ",{'role':'assistant','content':'Let me look.','tool_calls':[{'id':'%s','function':{'name':'run',"
                   "'arguments':'{}'}}]},{'role':'tool','tool_call_id':'%s','content':'r%d'}",
                   a.call[0], a.call[0], i);
        serve_answer_free(&a);
    }
    str_free(&messages);
    serve_kit_end(&k);
}

/* ---------------------------------------------------------------- several conversations */

/* With one session: questions aside (titles, counts, summaries) leave the long history where it is. */
static void test_questions_aside(void **state)
{
    struct serve_kit k = {0};
    const char *const said[] = {words('u', 16000), "An answer of some length.", "and then?",
                                "An answer of some length.", "go on"};
    const char *const aside[] = {"Name this chat."}, *const other[] = {"Is this a new topic?"};
    serve_kit_start(&k, serve_json("%s", plain));
    const struct usage one = usage_of(&k, chat("Be brief.", said, 1, OFF));
    assert_in_range(one.prompt, 4000, 4100);
    for (int i = 0; i < 3; i++) {
        usage_of(&k, chat("You name chats.", aside, 1, OFF));
        usage_of(&k, chat("You look for topics.", other, 1, OFF));
    }
    const struct usage two = usage_of(&k, chat("Be brief.", said, 3, OFF));
    assert_int_equal(two.cached, one.prompt + one.completion);
    usage_of(&k, chat("You name chats.", aside, 1, OFF));
    const struct usage three = usage_of(&k, chat("Be brief.", said, 5, OFF));
    assert_int_equal(three.cached, two.prompt + two.completion);
    serve_kit_end(&k);
}

/* Two conversations in turn, with one session. */
static void test_two_conversations(void **state)
{
    struct serve_kit k = {0};
    const char *const a[] = {words('a', 4000), "An answer of some length.", "and then?"};
    const char *const b[] = {words('b', 4000), "An answer of some length.", "and then?"};
    serve_kit_start(&k, serve_json("%s", plain));
    const struct usage one = usage_of(&k, chat("Be brief.", a, 1, OFF)),
                       two = usage_of(&k, chat("Be brief.", b, 1, OFF));
    assert_int_equal(usage_of(&k, chat("Be brief.", a, 3, OFF)).cached, one.prompt + one.completion);
    assert_int_equal(usage_of(&k, chat("Be brief.", b, 3, OFF)).cached, two.prompt + two.completion);
    serve_kit_end(&k);
}

/* A beginning that is shared is copied, and the conversation that it came from goes on as if nothing had been. */
static void test_shared_beginning(void **state)
{
    struct serve_kit k = {.options = {.sessions = 2}};
    const char *system = words('s', 8000);
    const char *const a[] = {words('a', 8000), "An answer of some length.", "and then?"};
    const char *const b[] = {words('b', 400)};
    serve_kit_start(&k, serve_json("%s", plain));
    const struct usage one = usage_of(&k, chat(system, a, 1, OFF)), two = usage_of(&k, chat(system, b, 1, OFF));
    assert_int_equal(serve_forks(), 1);
    assert_in_range(two.cached, 2000, 2003); /* the first token, the system text, the user's token */
    assert_int_equal(usage_of(&k, chat(system, a, 3, OFF)).cached, one.prompt + one.completion);
    serve_kit_end(&k);
}

/* The same of a conversation whose answer is being written. */
static void test_shared_beginning_of_a_running_answer(void **state)
{
    struct serve_kit k = {.options = {.sessions = 2}};
    const char *system = words('s', 8000);
    const char *const a[] = {"first"}, *const b[] = {"other"};
    struct serve_answer first, other;
    serve_kit_start(&k, serve_json("{'when':'first','text':'abcd','repeat':200}\n{'text':'short','times':0}"));
    serve_gate_close();
    serve_ask(&k, API_CHAT, chat(system, a, 1, OFF), &first);
    serve_gate_await();
    serve_gate_pass(8); /* a prompt of one chunk: 4 layers, then tokens */
    serve_gate_await();
    serve_ask(&k, API_CHAT, chat(system, b, 1, OFF), &other);
    serve_gate_open();
    serve_wait(&other);
    serve_wait(&first);
    assert_int_equal(serve_forks(), 1);
    assert_in_range(other.result.usage.cached, 2000, 2003);
    assert_int_equal(other.order, 1);
    assert_int_equal(first.result.usage.completion, 200);
    assert_int_equal(first.line.n, strlen("[T ]") + 800);
    serve_answer_free(&first);
    serve_answer_free(&other);
    serve_kit_end(&k);
}

/* ---------------------------------------------------------------- the log */

static void test_log(void **state)
{
    struct serve_kit k = {0};
    struct serve_answer a;
    const char *const said[] = {"Hi"};
    serve_kit_start(&k, serve_json("{'when':'[bad]','text':'%s','times':0}\n{'text':'hm</think>yes','cuts':'whole',"
                                   "'times':0}",
                                   "<" SERVE_DSML "tool_calls>\\n<" SERVE_DSML "invoke name=\\'gone\\'>\\n</" SERVE_DSML
                                   "invoke>\\n</" SERVE_DSML "tool_calls>"));
    usage_of(&k, chat("Be brief.", said, 1, ""));
    logged(&k, "request: test #1: queued ");
    logged(&k, "prompt 8 tokens, 0 cached (no history to go on from)");
    logged(&k, "answer 1 tokens (1 reasoning)");
    logged(&k, ", stop\n");
    serve_ask(&k, API_CHAT, serve_user("x\\n\\u001b[31m\\u009b y", ""), &a); /* nothing that a terminal would obey */
    serve_wait(&a);
    serve_answer_free(&a);
    usage_of(&k, serve_user("x\\nzzz", ""));
    assert_null(strchr(str_c(&k.log), '\x1b'));
    logged(&k, "\"x\\n");
    /* a block that is no call is told of */
    serve_say(&k, API_CHAT, serve_user("[bad]", SERVE_TOOLS), &a);
    assert_int_equal(a.n_calls, 0);
    assert_int_equal(a.result.finish, FINISH_STOP);
    logged(&k, "request: #4: ");
    logged(&k, "gone");
    serve_answer_free(&a);
    serve_kit_end(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_next_turn),
        cmocka_unit_test(test_another_ending),
        cmocka_unit_test(test_old_reasoning),
        cmocka_unit_test(test_context_too_small_for_the_models_tokens),
        cmocka_unit_test(test_tool_turn),
        cmocka_unit_test(test_many_tool_turns),
        cmocka_unit_test(test_questions_aside),
        cmocka_unit_test(test_two_conversations),
        cmocka_unit_test(test_shared_beginning),
        cmocka_unit_test(test_shared_beginning_of_a_running_answer),
        cmocka_unit_test(test_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
