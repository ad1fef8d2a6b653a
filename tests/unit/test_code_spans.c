/* Where Markdown is inside code: each text is given with a mark for every byte, '#' where a letter there would be code.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "text/code_spans.h"

static const struct {
    const char *text, *code; /* code[i]: a letter ahead of byte i would be code; the last one: behind the text */
} cases[] = {
    {"a b", "...."},
    {"a `b` c", "...##..."},
    {"a ``b`c`` d", "...######..."}, /* behind the first backtick of the two it is open already */
    {"a `b\nc` d", "...####..."},
    {"a `b\n\nc` d", "...###..###"}, /* a blank line ends the paragraph: the second one opens */
    {"a `b\n \t\nc", "...#####.."},
    {"\\`a \\\\`b", ".......##"},
    {"`\\`a", ".##.."},
    {"```\na`b\n```\nc", ".###########.."},
    {"```sh x\na\n```", ".#############"},
    {"```a``` b", ".######..."},
    {"~~~\na\n```\n~~~~\nb", ""},
    {"````\n```\n````\nb", ""},
    {"```\na ```\n``` b\n```\n", ""},
    {" > ```\n> a\n> ```\nb", ""},
    {"- ```\n  a\n  ```\nb", ""},
    {"1. ```\n   a\n   ```\nb", ""},
    {"a ~~b~~ c", "..........."},
};

static bool open_after(const char *text, size_t n)
{
    struct code_spans c = {0};
    code_spans_feed(&c, text, n);
    return code_spans_open(&c);
}

static void test_marks(void **state)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t at = 0; cases[i].code[at]; at++) {
            const bool want = cases[i].code[at] == '#';
            if (open_after(cases[i].text, at) != want) print_message("case %d at %d\n", (int)i, (int)at);
            assert_int_equal(open_after(cases[i].text, at), want);
        }
}

/* Fences: everything from the line behind the first to the last line is code, the rest is not. */
static void test_fences_close(void **state)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *const text = cases[i].text;
        if (cases[i].code[0]) continue;
        const char *const a = strchr(text, 'a');
        const size_t n = strlen(text);
        if (a) assert_true(open_after(text, (size_t)(a - text)));
        assert_false(open_after(text, n));
        assert_true(open_after(text, n - 4)); /* in the last line of the fence, or ahead of it */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_marks), cmocka_unit_test(test_fences_close)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
