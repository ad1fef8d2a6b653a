/* Tools, calls and results in the frame of DeepSeek V4: the worked examples of spec prompt-formats 5, and the rules of
 * 3 and 4. Expected prompts are written by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "models/deepseek4/deepseek4_prompt.h"
#include "../support/prompt_shown.h"

#define BOS   "⟦<｜begin▁of▁sentence｜>⟧"
#define EOS   "⟦<｜end▁of▁sentence｜>⟧"
#define USER  "⟦<｜User｜>⟧"
#define ASSIS "⟦<｜Assistant｜>⟧"
#define TH    "⟦<think>⟧"
#define ETH   "⟦</think>⟧"
#define D     "⟦｜DSML｜⟧"

static const struct chat_options off = {.thinking = CHAT_THINK_OFF, .ctx = 32768};
static const struct chat_options high = {.thinking = CHAT_THINK_HIGH, .ctx = 32768};

/* The whole block for these schema lines. */
#define BLOCK(schemas)                                                                                                 \
    "## Tools\n"                                                                                                       \
    "\n"                                                                                                               \
    "You have access to a set of tools to help answer the user's question. You can invoke tools by writing a \"<" D    \
    "tool_calls>\" block like the following:\n"                                                                        \
    "\n"                                                                                                               \
    "<" D "tool_calls>\n"                                                                                              \
    "<" D "invoke name=\"$TOOL_NAME\">\n"                                                                              \
    "<" D "parameter name=\"$PARAMETER_NAME\" string=\"true|false\">$PARAMETER_VALUE</" D "parameter>\n"               \
    "...\n"                                                                                                            \
    "</" D "invoke>\n"                                                                                                 \
    "<" D "invoke name=\"$TOOL_NAME2\">\n"                                                                             \
    "...\n"                                                                                                            \
    "</" D "invoke>\n"                                                                                                 \
    "</" D "tool_calls>\n"                                                                                             \
    "\n"                                                                                                               \
    "String parameters should be specified as is and set `string=\"true\"`. For all other types (numbers, booleans, "  \
    "arrays, objects), pass the value in JSON format and set `string=\"false\"`. Only where a string itself contains " \
    "`</" D "parameter>`, write that as `&lt;/" D "parameter>`.\n"                                                     \
    "\n"                                                                                                               \
    "If thinking_mode is enabled (triggered by " TH "), you MUST output your complete reasoning inside " TH "..." ETH  \
    " BEFORE any tool calls or final response.\n"                                                                      \
    "\n"                                                                                                               \
    "Otherwise, output directly after " ETH " with tool calls or final response.\n"                                    \
    "\n"                                                                                                               \
    "### Available Tool Schemas\n"                                                                                     \
    "\n" schemas "\n"                                                                                                  \
    "You MUST strictly follow the above defined tool name and parameter schemas to invoke tool calls.\n"

#define WEATHER                                                                                                        \
    "{\"name\": \"get_weather\", \"description\": \"Wetter für \\\"x\\\" <think>\", \"parameters\": {\"type\": "      \
    "\"object\", \"properties\": {\"city\": {\"type\": \"string\"}, \"days\": {\"type\": \"integer\"}}}}"

static const struct chat_tool tools[] = {{TEXT("get_weather"), TEXT(WEATHER)},
                                         {TEXT("note"), TEXT("{\"name\": \"note\"}")}};

/* ------------------------------------------------------------------------------------------------ the block */

static void test_tools_stand_behind_the_system_text(void **state)
{
    const struct chat_options o = {.tools = tools, .n_tools = 1}, both = {.tools = tools, .n_tools = 2};
    const struct chat_message m[] = {SYSTEM("Be brief."), ASK("Hi"), SYSTEM("Really.")};
    prompt_expect(&deepseek4_prompt, m, 2, &o, BOS "Be brief.\n\n" BLOCK(WEATHER "\n") USER "Hi" ASSIS ETH);
    prompt_expect(&deepseek4_prompt, m, 3, &both,
                  BOS "Be brief.\n\nReally.\n\n" BLOCK(WEATHER "\n{\"name\": \"note\"}\n") USER "Hi" ASSIS ETH);
    prompt_expect(&deepseek4_prompt, m + 1, 1, &o, BOS "\n\n" BLOCK(WEATHER "\n") USER "Hi" ASSIS ETH);
}

static void test_tools_may_stand_first(void **state)
{
    const struct chat_options o = {.tools = tools, .n_tools = 1, .tools_first = true};
    const struct chat_message m[] = {SYSTEM("Be brief."), SYSTEM("Really."), ASK("Hi")};
    prompt_expect(&deepseek4_prompt, m, 3, &o, BOS BLOCK(WEATHER "\n") "\nBe brief.\n\nReally." USER "Hi" ASSIS ETH);
    prompt_expect(&deepseek4_prompt, m + 2, 1, &o, BOS BLOCK(WEATHER "\n") USER "Hi" ASSIS ETH);
    const struct chat_options none = {.tools_first = true};
    prompt_expect(&deepseek4_prompt, m, 3, &none, BOS "Be brief.\n\nReally." USER "Hi" ASSIS ETH);
}

static void test_offered_tools_keep_reasoning(void **state)
{
    const struct chat_options o = {.thinking = CHAT_THINK_HIGH, .tools = tools, .n_tools = 1};
    const struct chat_message m[] = {ASK("a"), ANSWER("old", "b"), ASK("c")};
    prompt_expect(&deepseek4_prompt, m, 3, &o,
                  BOS "\n\n" BLOCK(WEATHER "\n") USER "a" ASSIS TH "old" ETH "b" EOS USER "c" ASSIS TH);
    prompt_expect_next(&deepseek4_prompt, m + 1, 2, 1, &o, EOS USER "c" ASSIS TH);
}

static void test_a_hundred_tools(void **state)
{
    struct chat_tool list[100];
    struct str schemas = {0}, want = {0};
    for (size_t i = 0; i < 100; i++) {
        list[i] = tools[i % 2];
        str_printf(&schemas, "%s\n", i % 2 ? "{\"name\": \"note\"}" : WEATHER);
    }
    const struct chat_options o = {.tools = list, .n_tools = 100};
    static const struct chat_message m[] = {ASK("Hi")};
    static const char around[] = BOS "\n\n" BLOCK("@") USER "Hi" ASSIS ETH;
    const char *const at = strchr(around, '@');
    str_add(&want, around, (size_t)(at - around));
    str_add(&want, schemas.p, schemas.n);
    str_puts(&want, at + 1);
    prompt_expect(&deepseek4_prompt, m, 1, &o, want.p);
    str_free(&schemas);
    str_free(&want);
}

/* ------------------------------------------------------------------------------------------------ calls */

#define CALLS(invokes)           "\n\n<" D "tool_calls>\n" invokes "</" D "tool_calls>"
#define INVOKE(name, parameters) "<" D "invoke name=\"" name "\">\n" parameters "</" D "invoke>\n"
#define STRING(name, value)      "<" D "parameter name=\"" name "\" string=\"true\">" value "</" D "parameter>\n"
#define JSON(name, value)        "<" D "parameter name=\"" name "\" string=\"false\">" value "</" D "parameter>\n"

static void test_call_and_result(void **state)
{
    static const struct chat_call calls[] = {CALL("1", "get_weather", "{\"city\":\"Oslo\",\"days\":2}")};
    const struct chat_message m[] = {ASK("Weather in Oslo?"), CALLING("R", "", calls), RESULT("1", "{\"t\":3}")};
#define SUFFIX EOS USER "<tool_result>{\"t\":3}</tool_result>" ASSIS TH
    prompt_expect(&deepseek4_prompt, m, 3, &high,
                  BOS USER "Weather in Oslo?" ASSIS TH
                           "R" ETH CALLS(INVOKE("get_weather", STRING("city", "Oslo") JSON("days", "2"))) SUFFIX);
    prompt_expect_next(&deepseek4_prompt, m, 3, 2, &high, SUFFIX);
    prompt_expect_next(&deepseek4_prompt, m + 2, 1, 0, &high, SUFFIX);
}

static void test_two_calls_and_text_in_the_same_turn(void **state)
{
    static const struct chat_call calls[] = {
        CALL("call_1", "get_weather",
             "{\"city\": \"Oslo\", \"n\": [1, {\"x\": null}], \"s\": \"a && b\", \"t\": true, \"e\": \"\"}"),
        CALL("call_2", "get_weather", "{}")};
    const struct chat_message m[] = {ASK("Hi"), CALLING("R", "", calls), RESULT("call_2", "two"),
                                     RESULT("call_1", "one"), ASK("go on")};
    prompt_expect(&deepseek4_prompt, m, 5, &high,
                  BOS USER "Hi" ASSIS TH "R" ETH CALLS(
                      INVOKE("get_weather", STRING("city", "Oslo") JSON("n", "[1, {\"x\": null}]") STRING("s", "a && b")
                                                JSON("t", "true") STRING("e", "")) INVOKE("get_weather", "\n")) EOS USER
                  "<tool_result>one</tool_result>\n\n<tool_result>two</tool_result>\n\ngo on" ASSIS TH);
}

/* One call of f with these arguments, thinking off. */
static void expect_arguments(const char *arguments, size_t n, const char *want)
{
    const struct chat_call call = {.name = TEXT("f"), .arguments = {arguments, n}};
    const struct chat_message m[] = {ASK("q"), {.role = CHAT_ASSISTANT, .calls = &call, .n_calls = 1}};
    prompt_expect(&deepseek4_prompt, m, 2, &off, want);
}

#define EXPECT_ARGUMENTS(arguments, parameters)                                                                        \
    expect_arguments(arguments, sizeof(arguments) - 1, BOS USER "q" ASSIS ETH CALLS(INVOKE("f", parameters)) EOS)

static void test_values(void **state)
{
    EXPECT_ARGUMENTS("{\"cmd\":\"a && b\"}", STRING("cmd", "a && b"));
    EXPECT_ARGUMENTS("{\"a\":[1,{\"x\":null}]}", JSON("a", "[1, {\"x\": null}]"));
    EXPECT_ARGUMENTS("{\"a\":\"line1\\nline2\"}", STRING("a", "line1\nline2"));
    EXPECT_ARGUMENTS("{\"a\":\"\",\"b\":true,\"c\":null,\"d\":-1.50e3}",
                     STRING("a", "") JSON("b", "true") JSON("c", "null") JSON("d", "-1.50e3"));
    EXPECT_ARGUMENTS("{\"a\":\"\\u0000\\ud83d\\ude00\\u00e9\\/\"}", STRING("a", "␀😀é/"));
    EXPECT_ARGUMENTS(" { \"z\" : 1 , \"a\" : { \"b\" : [ ] } } ", JSON("z", "1") JSON("a", "{\"b\": []}"));
    EXPECT_ARGUMENTS("{\"a\":1,\"a\":\"2\"}", JSON("a", "1") STRING("a", "2"));
    EXPECT_ARGUMENTS("{}", "\n");
    EXPECT_ARGUMENTS("", "\n");
}

static void test_arguments_that_are_no_object(void **state)
{
    EXPECT_ARGUMENTS("[1, 2]", STRING("arguments", "[1, 2]"));
    EXPECT_ARGUMENTS("\"x\"", STRING("arguments", "\"x\""));
    EXPECT_ARGUMENTS("{\"a\":1", STRING("arguments", "{\"a\":1"));
    EXPECT_ARGUMENTS("ls -l\n<｜DSML｜x></｜DSML｜parameter>",
                     STRING("arguments", "ls -l\n<｜DSML｜x>&lt;/｜DSML｜parameter>"));
    EXPECT_ARGUMENTS("null", STRING("arguments", "null"));
    EXPECT_ARGUMENTS(" ", STRING("arguments", " "));
}

static void test_closing_tags_in_values(void **state)
{
    EXPECT_ARGUMENTS("{\"a\":\"x</｜DSML｜parameter>y</｜DSML｜invoke>\"}",
                     STRING("a", "x&lt;/｜DSML｜parameter>y</｜DSML｜invoke>"));
    EXPECT_ARGUMENTS("{\"a\":[\"x</｜DSML｜parameter>\"]}", JSON("a", "[\"x\\u003c/｜DSML｜parameter>\"]"));
    EXPECT_ARGUMENTS("{\"a\":\"&lt;b&gt; &amp; \\\"q\\\"\"}", STRING("a", "&lt;b&gt; &amp; \"q\""));
}

static void test_names_are_attributes(void **state)
{
    static const struct chat_call calls[] = {CALL("1", "a<b>&\"c\"", "{\"x\\\">&lt;<\":1}")};
    const struct chat_message m[] = {ASK("q"), CALLING("", "", calls)};
    prompt_expect(
        &deepseek4_prompt, m, 2, &off,
        BOS USER "q" ASSIS ETH CALLS(INVOKE("a&lt;b&gt;&amp;&quot;c&quot;", JSON("x&quot;&gt;&amp;lt;&lt;", "1"))) EOS);
}

static void test_calls_follow_the_text(void **state)
{
    static const struct chat_call calls[] = {CALL("1", "f", "{}")};
    const struct chat_message m[] = {ASK("q"), CALLING("r", "I look.", calls)};
    prompt_expect(&deepseek4_prompt, m, 2, &high, BOS USER "q" ASSIS TH "r" ETH "I look." CALLS(INVOKE("f", "\n")) EOS);
    /* no turn before it: no assistant token, no reasoning, but the calls */
    prompt_expect(&deepseek4_prompt, m + 1, 1, &high, BOS "I look." CALLS(INVOKE("f", "\n")) EOS);
    const struct chat_message twice[] = {ASK("q"), ANSWER("", "a"), CALLING("r", "b", calls), RESULT("1", "R")};
    prompt_expect(&deepseek4_prompt, twice, 4, &high,
                  BOS USER "q" ASSIS TH ETH "a" EOS "b" CALLS(INVOKE("f", "\n")) EOS USER
                  "<tool_result>R</tool_result>" ASSIS TH);
}

/* A block is repeated with the tokens it was made of, with its own white space and its own faults. */
static void test_known_blocks_are_repeated(void **state)
{
    static const struct chat_call calls[] = {CALL("1", "f", "{\"a\":1}")};
    struct chat_message m[] = {ASK("q"), CALLING("r", "text", calls), RESULT("1", "R")};
#define SAMPLED(d, th) "\n<" d "tool_calls>  <" d "invoke name='f'>" th "</" d "tool_calls>"
    m[1].block = (struct bpe_text)TEXT(SAMPLED("｜DSML｜", "<think>"));
    prompt_expect(&deepseek4_prompt, m, 3, &high,
                  BOS USER "q" ASSIS TH "r" ETH "text" SAMPLED(D, TH) EOS USER "<tool_result>R</tool_result>" ASSIS TH);
    m[1].n_calls = 0;
    prompt_expect(&deepseek4_prompt, m, 2, &off, BOS USER "q" ASSIS ETH "text" EOS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tools_stand_behind_the_system_text),
        cmocka_unit_test(test_tools_may_stand_first),
        cmocka_unit_test(test_offered_tools_keep_reasoning),
        cmocka_unit_test(test_a_hundred_tools),
        cmocka_unit_test(test_call_and_result),
        cmocka_unit_test(test_two_calls_and_text_in_the_same_turn),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_arguments_that_are_no_object),
        cmocka_unit_test(test_closing_tags_in_values),
        cmocka_unit_test(test_names_are_attributes),
        cmocka_unit_test(test_calls_follow_the_text),
        cmocka_unit_test(test_known_blocks_are_repeated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
