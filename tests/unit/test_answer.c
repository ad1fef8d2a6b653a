/* Answers taken apart: every case gives what is written down for it, however it is cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "../support/answer_cases.h"
#include "../support/answer_cuts.h"
#include "../support/answer_run.h"

static struct answer_options options_of(const struct answer_case *c)
{
    return (struct answer_options){.syntax = c->syntax,
                                   .thinking = c->thinking,
                                   .one_call = c->one_call,
                                   .tools = answer_tools,
                                   .n_tools = c->no_tools ? 0 : answer_n_tools};
}

static size_t differs(const char *name, const struct str *got, const char *want)
{
    if (strcmp(str_c(got), want) == 0) return 0;
    print_message("%s\n  got:    %s\n  wanted: %s\n", name, str_c(got), want);
    return 1;
}

static void test_every_case(void **state)
{
    struct answer_run r = {0};
    size_t wrong = 0;
    for (size_t i = 0; i < answer_n_cases; i++) {
        const struct answer_case *const c = &answer_cases[i];
        const struct answer_options o = options_of(c);
        answer_run_whole(&r, &o, c->text, strlen(c->text), c->cause);
        wrong += differs(c->name, &r.line, c->want);
        if (c->block) wrong += differs(c->name, &r.block, c->block);
    }
    answer_run_free(&r);
    assert_int_equal(wrong, 0);
}

static void same(const struct answer_run *want, const struct answer_run *got, const char *name)
{
    if (strcmp(str_c(&want->line), str_c(&got->line)) != 0) print_message("%s\n", name);
    assert_string_equal(str_c(&got->line), str_c(&want->line));
    assert_string_equal(str_c(&got->block), str_c(&want->block));
    assert_string_equal(str_c(&got->note), str_c(&want->note));
}

struct cutting {
    const char *name;
    const struct answer_options *options;
    const char *text;
    enum answer_cause cause;
    struct answer_run whole, run;
};

static void cut_as(void *arg, const size_t *ends, size_t n_ends)
{
    struct cutting *c = arg;
    answer_run(&c->run, c->options, c->text, ends, n_ends, c->cause);
    same(&c->whole, &c->run, c->name);
}

static void cut_in_every_way(const char *name, const struct answer_options *o, const char *text, size_t n,
                             enum answer_cause cause)
{
    struct cutting c = {.name = name, .options = o, .text = text, .cause = cause};
    answer_run_whole(&c.whole, o, text, n, cause);
    answer_cuts(text, n, &answer_cuts_full, cut_as, &c);
    answer_run_free(&c.whole);
    answer_run_free(&c.run);
}

static void test_every_cut_gives_the_same(void **state)
{
    for (size_t i = 0; i < answer_n_cases; i++) {
        const struct answer_case *const c = &answer_cases[i];
        const struct answer_options o = options_of(c);
        cut_in_every_way(c->name, &o, c->text, strlen(c->text), c->cause);
    }
}

/* A case longer than what all splits are tried for: prose and a long argument full of what looks like tags. */
static void test_cuts_of_a_long_answer(void **state)
{
    struct str text = {0};
    str_puts(&text, "Let me think.</think>I write it.\n\n<\xef\xbd\x9c"
                    "DSML\xef\xbd\x9ctool_calls>\n<\xef\xbd\x9c"
                    "DSML\xef\xbd\x9cinvoke name=\"note\">\n<\xef\xbd\x9c"
                    "DSML\xef\xbd\x9cparameter name=\"path\" string=\"true\">a</\xef\xbd\x9c"
                    "DSML\xef\xbd\x9cparameter>\n<\xef\xbd\x9c"
                    "DSML\xef\xbd\x9cparameter name=\"text\" string=\"true\">");
    for (int i = 0; i < 60; i++)
        str_printf(&text,
                   "%d: <b>1 < 2 && x</b> </\xef\xbd\x9c"
                   "DSML &lt;/\xef\xbd\x9c"
                   "DS \xe6\xbc\xa2 plain words to the end of it\n",
                   i);
    str_puts(&text, "</\xef\xbd\x9c"
                    "DSML\xef\xbd\x9cparameter>\n</\xef\xbd\x9c"
                    "DSML\xef\xbd\x9cinvoke>\n</\xef\xbd\x9c"
                    "DSML\xef\xbd\x9ctool_calls>");
    const struct answer_options o = {
        .syntax = &answer_dsml, .thinking = true, .tools = answer_tools, .n_tools = answer_n_tools};
    assert_true(text.n > answer_cuts_full.all_splits);
    cut_in_every_way("long", &o, text.p, text.n, CAUSE_STOP);
    str_free(&text);
}

/* Zero bytes are bytes like others, in text and in arguments. */
static void test_zero_bytes(void **state)
{
    static const char text[] =
        "a\0b</think>c\0\n\n<tool_calls><invoke name=\"look\"><parameter name=\"what\" string=\"true\">d\0e</parameter>"
        "</invoke></tool_calls>";
    static const char want[] = "[R a\0b][T c\0][C look {\"what\":\"d\\u0000e\"}] over calls";
    const struct answer_options o = {
        .syntax = &answer_dsml, .thinking = true, .tools = answer_tools, .n_tools = answer_n_tools};
    struct answer_run r = {0};
    answer_run_bytes(&r, &o, text, sizeof text - 1, CAUSE_STOP);
    assert_int_equal(r.line.n, sizeof want - 1);
    assert_memory_equal(r.line.p, want, sizeof want - 1);
    answer_run_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_case),
        cmocka_unit_test(test_every_cut_gives_the_same),
        cmocka_unit_test(test_cuts_of_a_long_answer),
        cmocka_unit_test(test_zero_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
