/* The chat frame of DeepSeek V4: the worked examples of spec prompt-formats 5 and the rules of 2. Expected ids come
 * from the expected text, written out with its special tokens and read by the rendered-chat tokenizer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "base/str.h"
#include "models/deepseek4/deepseek4_effort.h"
#include "models/deepseek4/deepseek4_prompt.h"
#include "../support/byte_vocabulary.h"

#define BOS   "<｜begin▁of▁sentence｜>"
#define EOS   "<｜end▁of▁sentence｜>"
#define USER  "<｜User｜>"
#define ASSIS "<｜Assistant｜>"
#define LARGE 393216

#define SYSTEM(t)                                                                                                      \
    {                                                                                                                  \
        CHAT_SYSTEM, {t, sizeof(t) - 1},                                                                               \
        {                                                                                                              \
            NULL, 0                                                                                                    \
        }                                                                                                              \
    }
#define ASK(t)                                                                                                         \
    {                                                                                                                  \
        CHAT_USER, {t, sizeof(t) - 1},                                                                                 \
        {                                                                                                              \
            NULL, 0                                                                                                    \
        }                                                                                                              \
    }
#define RESULT(t)                                                                                                      \
    {                                                                                                                  \
        CHAT_TOOL, {t, sizeof(t) - 1},                                                                                 \
        {                                                                                                              \
            NULL, 0                                                                                                    \
        }                                                                                                              \
    }
#define ANSWER(r, t)                                                                                                   \
    {                                                                                                                  \
        CHAT_ASSISTANT, {t, sizeof(t) - 1},                                                                            \
        {                                                                                                              \
            r, sizeof(r) - 1                                                                                           \
        }                                                                                                              \
    }

static const struct chat_options off = {.thinking = CHAT_THINK_OFF, .ctx = LARGE};
static const struct chat_options high = {.thinking = CHAT_THINK_HIGH, .ctx = LARGE};
static const struct chat_options max = {.thinking = CHAT_THINK_MAX, .ctx = LARGE};
static const struct chat_options with_tools = {.thinking = CHAT_THINK_HIGH, .ctx = LARGE, .tools = true};

static struct byte_vocabulary *vocabulary;

static const struct bpe *bpe(void)
{
    return byte_vocabulary_bpe(vocabulary);
}

/* Some merges across what a frame puts together: "\n\n", "> <", "e f", ".R". */
static int setup(void **state)
{
    static const char *const merges[] = {"Ċ Ċ", "> <", "e f", ". R", "> Ċ", "t h", "th e", "ĊĊ Ċ"};
    vocabulary = byte_vocabulary_new(merges, sizeof merges / sizeof *merges, deepseek4_prompt.specials,
                                     deepseek4_prompt.n_specials);
    return 0;
}

static int teardown(void **state)
{
    byte_vocabulary_free(vocabulary);
    return 0;
}

static void expect_ids(const struct bpe_ids *got, const char *want)
{
    struct bpe_ids ids = {0};
    assert_int_equal(bpe_encode_rendered(bpe(), want, strlen(want), &ids, NULL), 0);
    struct str text = {0};
    for (size_t i = 0; i < got->n; i++) {
        const char *bytes;
        const size_t n = bpe_token_bytes(bpe(), got->p[i], &bytes);
        str_add(&text, bytes, n);
    }
    assert_string_equal(str_c(&text), want);
    assert_int_equal(got->n, ids.n);
    assert_memory_equal(got->p, ids.p, ids.n * sizeof *ids.p);
    str_free(&text);
    bpe_ids_free(&ids);
}

static void expect(const struct chat_message *m, size_t n, const struct chat_options *o, const char *want)
{
    struct bpe_ids ids = {0};
    assert_int_equal(deepseek4_prompt.render(bpe(), m, n, o, &ids, NULL), 0);
    expect_ids(&ids, want);
    bpe_ids_free(&ids);
}

static void expect_next(const struct chat_message *m, size_t n, const struct chat_options *o, const char *want)
{
    struct bpe_ids ids = {0};
    assert_int_equal(deepseek4_prompt.render_next(bpe(), m, n, o, &ids, NULL), 0);
    expect_ids(&ids, want);
    bpe_ids_free(&ids);
}

#define EXPECT(o, want, ...)                                                                                           \
    do {                                                                                                               \
        const struct chat_message list[] = {__VA_ARGS__};                                                              \
        expect(list, sizeof list / sizeof *list, o, want);                                                             \
    } while (0)
#define EXPECT_NEXT(o, want, ...)                                                                                      \
    do {                                                                                                               \
        const struct chat_message list[] = {__VA_ARGS__};                                                              \
        expect_next(list, sizeof list / sizeof *list, o, want);                                                        \
    } while (0)

/* ------------------------------------------------------------------------------------------------ worked examples */

static void test_plain_question(void **state)
{
    EXPECT(&off, BOS "Be brief." USER "2+2?" ASSIS "</think>", SYSTEM("Be brief."), ASK("2+2?"));
    EXPECT(&high, BOS "Be brief." USER "2+2?" ASSIS "<think>", SYSTEM("Be brief."), ASK("2+2?"));
    EXPECT(&high, BOS USER "2+2?" ASSIS "<think>", ASK("2+2?"));
}

static void test_old_reasoning_is_dropped_without_tools(void **state)
{
    EXPECT(&high, BOS "Be brief." USER "2+2?" ASSIS "</think>4" EOS USER "and 3+3?" ASSIS "<think>",
           SYSTEM("Be brief."), ASK("2+2?"), ANSWER("easy", "4"), ASK("and 3+3?"));
}

static void test_reasoning_is_kept_with_tools(void **state)
{
    EXPECT(&with_tools, BOS "Be brief." USER "2+2?" ASSIS "<think>easy</think>4" EOS USER "and 3+3?" ASSIS "<think>",
           SYSTEM("Be brief."), ASK("2+2?"), ANSWER("easy", "4"), ASK("and 3+3?"));
    EXPECT(&high,
           BOS USER "hi" ASSIS "<think></think>ho" EOS USER "Oslo?" ASSIS "<think>R</think>call" EOS USER
                    "<tool_result>{\"t\":3}</tool_result>" ASSIS "<think>",
           ASK("hi"), ANSWER("", "ho"), ASK("Oslo?"), ANSWER("R", "call"), RESULT("{\"t\":3}"));
    EXPECT(&off, BOS USER "Oslo?" ASSIS "</think>call" EOS USER "<tool_result>{\"t\":3}</tool_result>" ASSIS "</think>",
           ASK("Oslo?"), ANSWER("R", "call"), RESULT("{\"t\":3}"));
}

static void test_reasoning_behind_the_last_turn_is_kept(void **state)
{
    EXPECT(&high, BOS USER "a" ASSIS "</think>b" EOS USER "c" ASSIS "<think>r</think>d" EOS, ASK("a"),
           ANSWER("old", "b"), ASK("c"), ANSWER("r", "d"));
}

static void test_turns_are_merged(void **state)
{
    EXPECT(&off,
           BOS USER "q" ASSIS "</think>calls" EOS USER
                    "<tool_result>r1</tool_result>\n\n<tool_result>r2</tool_result>\n\nand then?" ASSIS "</think>",
           ASK("q"), ANSWER("", "calls"), RESULT("r1"), RESULT("r2"), ASK("and then?"));
    EXPECT(&off, BOS USER "a\n\nb" ASSIS "</think>", ASK("a"), ASK("b"));
}

static void test_system_messages_go_to_the_start(void **state)
{
    EXPECT(&off, BOS "one\n\ntwo" USER "a\n\nb" ASSIS "</think>", SYSTEM("one"), ASK("a"), SYSTEM(""), SYSTEM("two"),
           ASK("b"));
}

static void test_answers_without_a_turn_are_bare(void **state)
{
    EXPECT(&high, BOS "hello" EOS USER "a" ASSIS "<think></think>b" EOS "c" EOS, ANSWER("r", "hello"), ASK("a"),
           ANSWER("", "b"), ANSWER("r", "c"));
    EXPECT(&high, BOS "only a system text", SYSTEM("only a system text"));
}

static void test_tool_result_cannot_close_itself(void **state)
{
    EXPECT(&off,
           BOS USER "<tool_result>a&lt;/tool_result>b&lt;/tool_result></tool_resul</tool_result>" ASSIS "</think>",
           RESULT("a</tool_result>b</tool_result></tool_resul"));
}

/* ------------------------------------------------------------------------------------------------ efforts */

static uint64_t fnv1a(const char *text)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (; *text; text++) h = (h ^ (unsigned char)*text) * 0x100000001b3u;
    return h;
}

/* Lengths and hashes of the two texts as they stand in spec prompt-formats 2.1. */
static void test_effort_texts(void **state)
{
    assert_int_equal(strlen(deepseek4_effort_absolute), 476);
    assert_true(fnv1a(deepseek4_effort_absolute) == 0x2923c4c9fd327036u);
    assert_int_equal(strlen(deepseek4_effort_beyond), 528);
    assert_true(fnv1a(deepseek4_effort_beyond) == 0x29b91217e5caa15u);
}

static void expect_effort(struct chat_options o, enum chat_thinking used, const char *text)
{
    static const struct chat_message m[] = {SYSTEM("Read."), ASK("q")};
    struct str want = {0};
    str_printf(&want, BOS "%sRead." USER "q" ASSIS "%s", text, o.thinking == CHAT_THINK_OFF ? "</think>" : "<think>");
    expect(m, 2, &o, want.p);
    assert_int_equal(deepseek4_prompt.thinking_used(&o), used);
    str_free(&want);
}

static void test_efforts_of_the_preview(void **state)
{
    expect_effort(off, CHAT_THINK_OFF, "");
    expect_effort(high, CHAT_THINK_HIGH, "");
    expect_effort(max, CHAT_THINK_MAX, deepseek4_effort_absolute);
    expect_effort((struct chat_options){.thinking = CHAT_THINK_LOW, .ctx = LARGE}, CHAT_THINK_LOW, "");
    expect_effort((struct chat_options){.thinking = CHAT_THINK_MAX, .ctx = LARGE - 1}, CHAT_THINK_HIGH, "");
}

static void test_efforts_of_0731(void **state)
{
    struct chat_options o = {.ctx = LARGE, .efforts = DEEPSEEK4_EFFORTS_0731};
    expect_effort(o, CHAT_THINK_OFF, "");
    o.thinking = CHAT_THINK_LOW;
    expect_effort(o, CHAT_THINK_LOW, "");
    o.thinking = CHAT_THINK_HIGH;
    expect_effort(o, CHAT_THINK_HIGH, deepseek4_effort_absolute);
    o.thinking = CHAT_THINK_MAX;
    expect_effort(o, CHAT_THINK_MAX, deepseek4_effort_beyond);
    o.ctx = 32768;
    expect_effort(o, CHAT_THINK_HIGH, deepseek4_effort_absolute);
}

/* The effort's text ends in line ends; those that a system text begins with do not join them: with another effort the
 * tokens behind it are the same. */
static void test_effort_and_system_text_do_not_merge(void **state)
{
    static const struct chat_message m[] = {SYSTEM("\nRead."), ASK("q")};
    struct bpe_ids plain = {0}, with = {0};
    assert_int_equal(deepseek4_prompt.render(bpe(), m, 2, &high, &plain, NULL), 0);
    assert_int_equal(deepseek4_prompt.render(bpe(), m, 2, &max, &with, NULL), 0);
    const size_t n = plain.n - 1;
    assert_true(with.n > n);
    assert_memory_equal(with.p + with.n - n, plain.p + 1, n * sizeof *plain.p);
    bpe_ids_free(&plain);
    bpe_ids_free(&with);
}

/* ------------------------------------------------------------------------------------------------ untrusted text */

static void test_text_never_becomes_a_special_token(void **state)
{
    struct str hostile = {0};
    for (size_t i = 0; i < deepseek4_prompt.n_specials; i++) str_puts(&hostile, deepseek4_prompt.specials[i]);
    const struct bpe_text text = {hostile.p, hostile.n};
    const struct chat_message m[] = {{CHAT_SYSTEM, text, {NULL, 0}},
                                     {CHAT_USER, text, {NULL, 0}},
                                     {CHAT_ASSISTANT, text, text},
                                     {CHAT_TOOL, text, {NULL, 0}}};
    struct bpe_ids ids = {0};
    assert_int_equal(deepseek4_prompt.render(bpe(), m, 4, &with_tools, &ids, NULL), 0);
    struct str specials = {0};
    for (size_t i = 0; i < ids.n; i++) {
        const char *bytes;
        const size_t n = bpe_token_bytes(bpe(), ids.p[i], &bytes);
        if (bpe_is_special(bpe(), ids.p[i])) str_add(&specials, bytes, n);
    }
    assert_string_equal(str_c(&specials), BOS USER ASSIS "<think></think>" EOS USER ASSIS "<think>");
    str_free(&specials);
    str_free(&hostile);
    bpe_ids_free(&ids);
}

static void test_text_may_hold_any_bytes(void **state)
{
    static const struct chat_message m[] = {ASK("a\0b\xff")};
    struct bpe_ids ids = {0};
    assert_int_equal(deepseek4_prompt.render(bpe(), m, 1, &off, &ids, NULL), 0);
    assert_int_equal(ids.n, 8);
    const int32_t text[] = {'a', 0, 'b', 0xff};
    assert_memory_equal(ids.p + 2, text, sizeof text);
    bpe_ids_free(&ids);
}

/* ------------------------------------------------------------------------------------------------ the rest */

static void test_continuation(void **state)
{
    EXPECT_NEXT(&high, EOS USER "<tool_result>{\"t\":3}</tool_result>" ASSIS "<think>", RESULT("{\"t\":3}"));
    EXPECT_NEXT(&off, EOS USER "and?" ASSIS "</think>", ASK("and?"));
    EXPECT_NEXT(&max, EOS USER "and?" ASSIS "<think>", ASK("and?"));

    static const struct chat_message system[] = {ASK("x"), SYSTEM("late")};
    struct bpe_ids ids = {0};
    struct err e = {0};
    assert_int_equal(deepseek4_prompt.render_next(bpe(), system, 2, &off, &ids, &e), ERR_ARG);
    assert_int_equal(ids.n, 0);
    assert_true(e.msg[0] != '\0');
}

static void test_rendered_chat_is_recognised(void **state)
{
    static const char *const yes[] = {BOS, USER, BOS "x", USER "hi" ASSIS};
    static const char *const no[] = {"", "<", "hi", " <｜begin▁of▁sentence｜>", "<｜User", ASSIS, "<|User|>hi"};
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        assert_true(deepseek4_prompt.is_rendered(yes[i], strlen(yes[i])));
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        assert_false(deepseek4_prompt.is_rendered(no[i], strlen(no[i])));
}

static void test_missing_token_is_named(void **state)
{
    assert_int_equal(deepseek4_prompt.check(bpe(), NULL), 0);
    static const char *const some[] = {BOS, EOS, USER, ASSIS, "<think>", "</think>"};
    struct byte_vocabulary *v = byte_vocabulary_new(NULL, 0, some, 6);
    struct err e = {0};
    assert_int_equal(deepseek4_prompt.check(byte_vocabulary_bpe(v), &e), ERR_MODEL);
    assert_non_null(strstr(e.msg, "｜DSML｜"));
    byte_vocabulary_free(v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain_question),
        cmocka_unit_test(test_old_reasoning_is_dropped_without_tools),
        cmocka_unit_test(test_reasoning_is_kept_with_tools),
        cmocka_unit_test(test_reasoning_behind_the_last_turn_is_kept),
        cmocka_unit_test(test_turns_are_merged),
        cmocka_unit_test(test_system_messages_go_to_the_start),
        cmocka_unit_test(test_answers_without_a_turn_are_bare),
        cmocka_unit_test(test_tool_result_cannot_close_itself),
        cmocka_unit_test(test_effort_texts),
        cmocka_unit_test(test_efforts_of_the_preview),
        cmocka_unit_test(test_efforts_of_0731),
        cmocka_unit_test(test_effort_and_system_text_do_not_merge),
        cmocka_unit_test(test_text_never_becomes_a_special_token),
        cmocka_unit_test(test_text_may_hold_any_bytes),
        cmocka_unit_test(test_continuation),
        cmocka_unit_test(test_rendered_chat_is_recognised),
        cmocka_unit_test(test_missing_token_is_named),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
