/* What a server asks of an answer while it grows: is the next byte syntax, is the model still thinking, what forces a
 * call, and which pieces are sent when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "../support/answer_run.h"

#define M                                                                                                              \
    "\xef\xbd\x9c"                                                                                                     \
    "DSML\xef\xbd\x9c"

/* A letter for the kind, the bytes, and a bar. */
static void sink(void *arg, enum answer_kind kind, const char *bytes, size_t n)
{
    static const char letters[] = "RTBAE";
    struct str *const seen = arg;
    if (!seen) return;
    str_printf(seen, "%c", letters[kind]);
    str_add(seen, bytes, n);
    str_puts(seen, "|");
}

static struct answer *start(const struct answer_syntax *syntax, bool thinking, struct str *seen)
{
    const struct answer_options o = {
        .syntax = syntax, .thinking = thinking, .tools = answer_tools, .n_tools = answer_n_tools};
    return answer_create(&o, sink, seen);
}

struct stretch {
    const char *bytes;
    bool syntax; /* after each of them, the next byte is syntax */
};

static void check_syntax(const struct answer_syntax *syntax, bool thinking, const struct stretch *s, size_t n)
{
    struct answer *const a = start(syntax, thinking, NULL);
    for (size_t i = 0; i < n; i++)
        for (const char *p = s[i].bytes; *p; p++) {
            answer_feed(a, p, 1);
            if (answer_is_syntax(a) != s[i].syntax) print_message("stretch %d at \"%s\"\n", (int)i, p);
            assert_int_equal(answer_is_syntax(a), s[i].syntax);
        }
    answer_finish(a, CAUSE_STOP);
    assert_false(answer_is_syntax(a));
    answer_free(a);
}

#define CHECK(syntax, thinking, ...)                                                                                   \
    do {                                                                                                               \
        const struct stretch stretches[] = {__VA_ARGS__};                                                              \
        check_syntax(syntax, thinking, stretches, sizeof stretches / sizeof *stretches);                               \
    } while (0)

static void test_syntax_of_dsml(void **state)
{
    CHECK(&answer_dsml, true, {"Hm, <b>.</think>Well.\n\n<" M "tool_calls", false},
          {">\n<" M "invoke name=\"shell\">\n<" M "parameter name=\"command\" string=\"true\"", true},
          {"> ls <", false}, {"/", true}, /* two bytes of the end tag */
          {"b <", false},                 /* it was none */
          {"/" M "par", true}, {"king & ", false});
    CHECK(&answer_dsml, false, {"<" M "tool_calls", false},
          {">\n<" M "invoke name=\"look\">\n<" M "parameter name=\"what\" string=\"true\"", true}, {">a<", false},
          {"/" M "parameter>\n<" M "parameter name=\"what\" string=\"false\"> { ", true},
          {"\"", false}, /* a string of JSON */
          {"a\\\" </" M "parameter>", false}, {"\" : [1, true, ", true}, {"\"x", false},
          {"\"]}</" M "parameter>\n</" M "invoke>\n</" M "tool_calls", true}, {">\n\nmore", false}); /* final */
    /* a block in reasoning is tracked like any other; a block that fails and one in code are not blocks */
    CHECK(&answer_dsml, true, {"Hm <" M "tool_calls", false}, {"> <" M "invoke name=\"list\"> <", true},
          {"x and so on", false});
    CHECK(&answer_dsml, false, {"<" M "tool_calls", false}, {"> ", true}, {"no", false});
}

static void test_syntax_of_xml(void **state)
{
    CHECK(&answer_xml, false, {"<tool_call", false}, {">\n<function=pick>\n<parameter=label", true}, {">\n5\n<", false},
          {"/parameter>\n<parameter=count>\n5", true}, /* no string by its schema: JSON */
          {"\n</parameter>\n<parameter=place>\n{", true}, {"\"a", false},
          {"\": 1}\n</parameter>\n</function>\n</tool_call", true}, {">\n", false}, {"<tool_call", false},
          {"> ", true});
}

static void test_thinking_is_known(void **state)
{
    static const struct {
        const char *bytes;
        bool inside;
    } steps[] = {{"So <", true}, {"/think", true}, {">", false}, {" x <think> y", false}};
    struct answer *a = start(&answer_dsml, true, NULL);
    assert_true(answer_inside_thinking(a));
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        answer_feed(a, steps[i].bytes, strlen(steps[i].bytes));
        assert_int_equal(answer_inside_thinking(a), steps[i].inside);
    }
    answer_finish(a, CAUSE_STOP);
    answer_free(a);
    /* a call inside of it is none of it, unless it turns out to be no call */
    a = start(&answer_dsml, true, NULL);
    const char call[] = "So <" M "tool_calls><" M "invoke name=\"list\">", rest[] = "no</think>";
    answer_feed(a, call, 10);
    assert_true(answer_inside_thinking(a));
    answer_feed(a, call + 10, sizeof call - 11);
    assert_false(answer_inside_thinking(a));
    answer_feed(a, rest, 2);
    assert_true(answer_inside_thinking(a));
    answer_feed(a, rest + 2, sizeof rest - 3);
    assert_false(answer_inside_thinking(a));
    answer_finish(a, CAUSE_STOP);
    answer_free(a);
    a = start(&answer_xml, false, NULL);
    assert_false(answer_inside_thinking(a));
    answer_free(a);
}

static void check_forced(const struct answer_syntax *syntax, bool thinking, const char *before, const char *name,
                         const char *want, const char *rest, const char *line)
{
    struct str forced = {0}, seen = {0};
    struct answer *const a = start(syntax, thinking, &seen);
    answer_feed(a, before, strlen(before));
    answer_force_call(a, name, name ? strlen(name) : 0, &forced);
    assert_string_equal(str_c(&forced), want);
    answer_feed(a, forced.p, forced.n);
    answer_feed(a, rest, strlen(rest));
    assert_int_equal(answer_finish(a, CAUSE_STOP), END_CALLS);
    assert_string_equal(str_c(&seen), line);
    answer_free(a);
    str_free(&forced);
    str_free(&seen);
}

static void test_a_forced_call(void **state)
{
    static const char open[] = "\n\n<" M "tool_calls>\n<" M "invoke name=\"",
                      end[] = "</" M "invoke>\n</" M "tool_calls>";
    char named[200];
    strcat(strcpy(named, open), "list\">\n");
    check_forced(&answer_dsml, true, "Hm.</think>", "list", named, end, "RHm.|Blist|A{}|E|");
    strcat(strcpy(named, "list\">"), end);
    check_forced(&answer_dsml, false, "", NULL, open, named, "Blist|A{}|E|");
    check_forced(&answer_dsml, false, "Well.\n", NULL, open + 1, named, "TWell.|Blist|A{}|E|");
    check_forced(&answer_dsml, false, "Well.\n\n", NULL, open + 2, named, "TWell.|Blist|A{}|E|");
    /* the frame of a prompt without thinking ends in the blank line already */
    check_forced(&answer_xml, false, "", "list", "<tool_call>\n<function=list>\n", "</function>\n</tool_call>",
                 "Blist|A{}|E|");
    check_forced(&answer_xml, true, "Hm.\n</think>", NULL,
                 "\n\n<tool_call>\n<function=", "list>\n</function>\n</tool_call>", "RHm.|Blist|A{}|E|");
}

static void test_no_call_is_forced_into_a_block(void **state)
{
    struct str forced = {0};
    struct answer *const a = start(&answer_dsml, true, NULL);
    const char call[] = "So <" M "tool_calls><" M "invoke name=\"list\">";
    answer_feed(a, call, sizeof call - 1);
    answer_force_call(a, "list", 4, &forced);
    assert_int_equal(forced.n, 0);
    answer_feed(a, "no</think>", 10);
    answer_force_call(a, "list", 4, &forced);
    assert_true(forced.n > 0);
    answer_free(a);
    str_free(&forced);
}

/* The events of each feed, '/' between feeds. */
static void check_pieces(bool thinking, const char *const *feeds, const char *want)
{
    struct str seen = {0};
    struct answer *const a = start(&answer_dsml, thinking, &seen);
    for (; *feeds; feeds++) {
        answer_feed(a, *feeds, strlen(*feeds));
        str_puts(&seen, "/");
    }
    answer_finish(a, CAUSE_STOP);
    assert_string_equal(str_c(&seen), want);
    answer_free(a);
    str_free(&seen);
}

static void test_what_is_sent_when(void **state)
{
    /* text: all but white space and what may be a tag; characters are whole */
    check_pieces(true, (const char *[]){"a <", "b \xc3", "\xa9</thi", "nk> x", "\n\n", "y <" M "tool", "s", NULL},
                 "Ra|/R <b |/R\xc3\xa9|/T x|//T\n\ny|/T <" M "tools|/");
    /* arguments: as soon as the call cannot be refused any more */
    check_pieces(false,
                 (const char *[]){"<" M "tool_calls>\n<" M "invoke name=\"note\">\n<" M
                                  "parameter name=\"path\" string=\"true\">p</" M "parameter>\n",
                                  "<" M "parameter name=\"text\" string=\"true\"", ">ab", "c\"\n", "\n</",
                                  "d</" M "parameter>", "</" M "invoke>", NULL},
                 "//Bnote|A{\"path\":\"p\",\"text\":\"ab|/Ac\\\"|//A\\n\\n</d|/A\"}|E|/");
    /* otherwise the call is held until it is complete */
    check_pieces(false,
                 (const char *[]){"<" M "tool_calls>\n<" M "invoke name=\"shell\">\n<" M
                                  "parameter name=\"command\" string=\"true\">",
                                  "ls", "</" M "parameter>\n</" M "invoke>", NULL},
                 "//Bshell|A{\"command\":\"ls\"}|E|/");
    /* the input of a custom tool is its only parameter */
    check_pieces(false,
                 (const char *[]){"<" M "tool_calls>\n<" M "invoke name=\"patch\">\n<" M
                                  "parameter name=\"input\" string=\"true\">",
                                  "a\"", "b", "</" M "parameter></" M "invoke>", NULL},
                 "Bpatch|/Aa\"|/Ab|/E|/");
}

static void test_text_is_not_held_without_tools(void **state)
{
    struct str seen = {0};
    const struct answer_options o = {.syntax = &answer_dsml};
    struct answer *const a = answer_create(&o, sink, &seen);
    answer_feed(a, "a \n", 3);
    answer_feed(a, "<" M "tool", sizeof "<" M "tool" - 1);
    assert_string_equal(str_c(&seen), "Ta \n|T<" M "tool|");
    answer_finish(a, CAUSE_STOP);
    answer_free(a);
    str_free(&seen);
}

static void test_notes(void **state)
{
    struct answer *a = start(&answer_dsml, false, NULL);
    const char good[] = "<" M "tool_calls><" M "invoke name=\"list\"></" M "invoke></" M "tool_calls>";
    assert_true(answer_feed(a, good, sizeof good - 1));
    assert_true(answer_feed(a, "x", 1));
    assert_int_equal(answer_finish(a, CAUSE_STOP), END_CALLS);
    assert_null(answer_note(a));
    answer_free(a);
    a = start(&answer_dsml, false, NULL);
    const char undeclared[] = "<" M "tool_calls><" M "invoke name=\"fly\x01\">";
    assert_false(answer_feed(a, undeclared, sizeof undeclared - 1));
    assert_int_equal(answer_finish(a, CAUSE_STOP), END_STOP);
    assert_string_equal(answer_note(a), "no tool \"fly?\" is declared");
    size_t n;
    assert_null(answer_block(a, &n));
    assert_int_equal(n, 0);
    answer_free(a);
    answer_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_syntax_of_dsml),
        cmocka_unit_test(test_syntax_of_xml),
        cmocka_unit_test(test_thinking_is_known),
        cmocka_unit_test(test_a_forced_call),
        cmocka_unit_test(test_no_call_is_forced_into_a_block),
        cmocka_unit_test(test_what_is_sent_when),
        cmocka_unit_test(test_text_is_not_held_without_tools),
        cmocka_unit_test(test_notes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
