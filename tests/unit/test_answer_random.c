/* Answers made by chance, from seeds: what is written by the rules is read back unchanged, what is damaged in any way
 * still gives whole characters, valid arguments and the same for every cut, and the work grows with the text alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>
#include "base/mem.h"
#include "text/json_text.h"
#include "../support/answer_cases.h"
#include "../support/answer_run.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define BAR      "\xef\xbd\x9c"
#define M        BAR "DSML" BAR

static uint64_t seed;

static size_t below(size_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(seed >> 33) % n;
}

/* ------------------------------------------------------------------------------------------------ written and read */

/* Pieces of values: what looks like markup but is none by the rules, and what JSON must escape. */
static const char *const pieces[] = {"word ",
                                     " ",
                                     "\n",
                                     "\n\n",
                                     "\r\n",
                                     "\t",
                                     "<",
                                     "</",
                                     "> .",
                                     "/",
                                     "&",
                                     "&lt;",
                                     "&amp;",
                                     "&quot;",
                                     "\"",
                                     "\\",
                                     "\\n",
                                     "'",
                                     "{",
                                     "}",
                                     "[1]",
                                     "null",
                                     "7",
                                     "\x01",
                                     "\x7f",
                                     "\xc3\xa9",
                                     "\xe6\xbc\xa2",
                                     "\xf0\x9f\x9a\x80",
                                     "\xe2\x80\xa8",
                                     "`",
                                     "```\n",
                                     "<think>",
                                     "</think>",
                                     "<" M "tool_calls>",
                                     "</" M "tool_calls>",
                                     "<" M "invoke name=\"list\">",
                                     "</" M "invoke>",
                                     "<" M "param",
                                     "</" M "para",
                                     BAR,
                                     "</" BAR,
                                     "DSML",
                                     "</parameter>.",
                                     "</" M "parameter>",
                                     "<tool_call>",
                                     "</tool_call>",
                                     "<function=list>",
                                     "</function>",
                                     "<parameter name=\"x\">",
                                     "</param>",
                                     "&lt;/parameter>",
                                     "&amp;lt;/parameter>"};

static void make_value(struct str *out)
{
    for (size_t n = below(12); n > 0; n--) str_puts(out, pieces[below(COUNT(pieces))]);
}

/* Prose that holds no markup. */
static void make_prose(struct str *out, bool empty)
{
    static const char *const words[] = {
        "a ", "b. ", "1 < 2 ", "<b>x</b> ", "`code` ", "\xc3\xa9 ", "</p>", "\xf0\x9f\x9a\x80 ", "\n\n- ", "&amp; "};
    if (empty && below(3) == 0) return;
    str_puts(out, "So ");
    for (size_t n = below(8); n > 0; n--) str_puts(out, words[below(COUNT(words))]);
    str_puts(out, ".");
}

static bool starts(const struct str *s, size_t at, const char *text)
{
    return s->n - at >= strlen(text) && memcmp(s->p + at, text, strlen(text)) == 0;
}

/* One parameter in the way of the family: only the end tag of a value is protected. DeepSeek's way cannot tell an
 * escaped end tag from one that was escaped to protect it, so its values hold none. */
static void write_parameter(struct str *out, bool xml, const char *key, const struct str *value)
{
    static const char dsml_end[] = "</" M "parameter>", xml_end[] = "</parameter>";
    str_printf(out, xml ? "<parameter=%s>\n" : "<" M "parameter name=\"%s\" string=\"true\">", key);
    for (size_t i = 0; i < value->n; i++) {
        size_t escaped = i + 1; /* behind "&", "amp;" any number of times */
        while (starts(value, escaped, "amp;")) escaped += 4;
        if (!xml && starts(value, i, dsml_end))
            str_puts(out, "&lt;");
        else if (xml && starts(value, i, xml_end))
            str_puts(out, "&lt;");
        else if (xml && value->p[i] == '&' && starts(value, escaped, "lt;/parameter>"))
            str_puts(out, "&amp;");
        else
            str_add(out, value->p + i, 1);
    }
    str_puts(out, xml ? "\n</parameter>\n" : "</" M "parameter>\n");
}

/* A call of `note` or `patch` and what must be read of it. */
static void write_call(struct str *out, struct str *want, bool xml)
{
    struct str a = {0}, b = {0};
    make_value(&a);
    make_value(&b);
    const bool custom = below(4) == 0;
    str_printf(out, xml ? "<tool_call>\n<function=%s>\n" : "<" M "invoke name=\"%s\">\n", custom ? "patch" : "note");
    if (custom) {
        write_parameter(out, xml, "input", &a);
        str_puts(want, "[C patch ");
        str_add(want, str_c(&a), a.n);
    } else {
        const bool path_first = below(2);
        write_parameter(out, xml, path_first ? "path" : "text", &a);
        write_parameter(out, xml, path_first ? "text" : "path", &b);
        str_printf(want, "[C note {\"%s\":", path_first ? "path" : "text");
        json_text_quote(want, str_c(&a), a.n);
        str_printf(want, ",\"%s\":", path_first ? "text" : "path");
        json_text_quote(want, str_c(&b), b.n);
        str_puts(want, "}");
    }
    str_puts(want, "]");
    str_puts(out, xml ? "</function>\n</tool_call>" : "</" M "invoke>\n");
    str_free(&a);
    str_free(&b);
}

static void write_answer(struct str *out, struct str *want, bool xml)
{
    struct str reasoning = {0}, text = {0};
    make_prose(&reasoning, false);
    make_prose(&text, true);
    str_printf(out, xml ? "%s\n</think>\n\n%s%s" : "%s</think>%s%s", str_c(&reasoning), str_c(&text),
               text.n || !xml ? "\n\n" : "");
    str_printf(want, "[R %s]", str_c(&reasoning));
    if (text.n) str_printf(want, "[T %s]", str_c(&text));
    if (!xml) str_puts(out, "<" M "tool_calls>\n");
    for (size_t n = 1 + below(3); n > 0; n--) {
        write_call(out, want, xml);
        if (xml && n > 1) str_puts(out, "\n");
    }
    if (!xml) str_puts(out, "</" M "tool_calls>");
    str_puts(want, xml ? " calls" : " over calls");
    str_free(&reasoning);
    str_free(&text);
}

static void random_run(struct answer_run *r, const struct answer_options *o, const char *text, size_t n,
                       enum answer_cause cause)
{
    size_t *const ends = mem_alloc((n + 1) * sizeof *ends);
    size_t count = 0;
    const size_t often = 1 + below(12);
    for (size_t at = 1; at < n; at++)
        if (below(often) == 0) ends[count++] = at;
    ends[count++] = n;
    answer_run(r, o, text, ends, count, cause);
    mem_free(ends);
}

static void test_what_is_written_is_read_back(void **state)
{
    struct answer_run r = {0};
    for (uint64_t i = 0; i < 4000; i++) {
        seed = i;
        const bool xml = below(2);
        const struct answer_options o = {.syntax = xml ? &answer_xml : &answer_dsml,
                                         .thinking = true,
                                         .tools = answer_tools,
                                         .n_tools = answer_n_tools};
        struct str text = {0}, want = {0};
        write_answer(&text, &want, xml);
        for (int cut = 0; cut < 2; cut++) {
            random_run(&r, &o, text.p, text.n, CAUSE_STOP);
            if (strcmp(str_c(&r.line), want.p) != 0) print_message("seed %d: %s\n", (int)i, text.p);
            assert_string_equal(str_c(&r.line), want.p);
        }
        str_free(&text);
        str_free(&want);
    }
    answer_run_free(&r);
}

/* ------------------------------------------------------------------------------------------------ damaged */

static const char *const markup[] = {"<" M "tool_calls>",
                                     "</" M "tool_calls>",
                                     "<" M "invoke name=\"note\">",
                                     "<" M "invoke name=\"shell\">",
                                     "</" M "invoke>",
                                     "<" M "parameter name=\"text\" string=\"true\">",
                                     "<" M "parameter name=\"seconds\" string=\"false\">",
                                     "<" M "parameter name=\"x\">",
                                     "</" M "parameter>",
                                     "</parameter>",
                                     "</" M "x>",
                                     "&lt;/" M "parameter>",
                                     "<tool_call>",
                                     "</tool_call>",
                                     "<function=note>",
                                     "<function=look>",
                                     "</function>",
                                     "<parameter=text>",
                                     "<parameter=what>",
                                     "<think>",
                                     "</think>",
                                     "```\n",
                                     "`",
                                     "\n",
                                     " ",
                                     "{",
                                     "}",
                                     "\"",
                                     "\\",
                                     "1",
                                     "\xf0\x9f\x9a"};

static void insert(struct str *s, size_t at, const char *bytes, size_t n)
{
    struct str made = {0};
    str_add(&made, s->p, at);
    str_add(&made, bytes, n);
    str_add(&made, s->p + at, s->n - at);
    str_free(s);
    *s = made;
}

static void damage(struct str *s)
{
    for (size_t n = 1 + below(4); n > 0 && s->n > 4; n--) {
        const size_t at = below(s->n), len = 1 + below(s->n - at < 30 ? s->n - at : 30);
        switch (below(5)) {
        case 0: /* lost bytes */
            memmove(s->p + at, s->p + at + len, s->n - at - len);
            s->n -= len;
            break;
        case 1: { /* bytes that come twice */
            char copy[32];
            memcpy(copy, s->p + at, len);
            insert(s, at, copy, len);
            break;
        }
        case 2:
            s->p[at] = (char)below(256);
            break;
        case 3:
            s->n = at + 1;
            break; /* an early end */
        default: {
            const char *const piece = markup[below(COUNT(markup))];
            insert(s, at, piece, strlen(piece));
        }
        }
    }
}

/* Nothing is known of the result but what answer_run demands of every one, and that the cut does not matter. */
static void test_damaged_answers(void **state)
{
    struct answer_run whole = {0}, r = {0};
    for (uint64_t i = 0; i < 20000; i++) {
        seed = i;
        const struct answer_case *const c = &answer_cases[below(answer_n_cases)];
        const struct answer_options o = {.syntax = below(8)                   ? c->syntax
                                                   : c->syntax == &answer_xml ? &answer_dsml
                                                                              : &answer_xml,
                                         .thinking = below(4) ? c->thinking : !c->thinking,
                                         .one_call = below(4) == 0,
                                         .tools = answer_tools,
                                         .n_tools = answer_n_tools};
        const enum answer_cause cause = (enum answer_cause)below(3);
        struct str text = {0};
        str_puts(&text, c->text);
        damage(&text);
        answer_run_whole(&whole, &o, str_c(&text), text.n, cause);
        for (int cut = 0; cut < 3; cut++) {
            if (cut == 0)
                answer_run_bytes(&r, &o, str_c(&text), text.n, cause);
            else
                random_run(&r, &o, str_c(&text), text.n, cause);
            const bool same = r.line.n == whole.line.n && memcmp(str_c(&r.line), str_c(&whole.line), r.line.n) == 0 &&
                              r.block.n == whole.block.n &&
                              memcmp(str_c(&r.block), str_c(&whole.block), r.block.n) == 0;
            if (!same)
                print_message("seed %d, %s:\n%.*s\n%s\n%s\n", (int)i, c->name, (int)text.n, text.p, str_c(&whole.line),
                              str_c(&r.line));
            assert_true(same);
        }
        str_free(&text);
    }
    answer_run_free(&whole);
    answer_run_free(&r);
}

/* ------------------------------------------------------------------------------------------------ work */

static void ignore(void *arg, enum answer_kind kind, const char *bytes, size_t n)
{
    *(size_t *)arg += n;
}

#define NOTE    "<" M "tool_calls>\n<" M "invoke name=\"note\">\n"
#define IN_TEXT NOTE "<" M "parameter name=\"text\" string=\"true\">"
static const struct {
    const struct answer_syntax *syntax;
    bool thinking;
    const char *start, *unit;
} heavy[] = {
    {&answer_dsml, false,
     NOTE "<" M "parameter name=\"path\" string=\"true\"></" M "parameter><" M
          "parameter name=\"text\" string=\"true\">",
     "<a href=\"x\"> </" BAR " </" BAR "DSM & \xe6\xbc\xa2\n"},
    {&answer_dsml, false, IN_TEXT, "\n<" M "parameter name=\"path\" string=\"true\">"},
    {&answer_dsml, false, IN_TEXT, "</" M "invoke>"},
    {&answer_dsml, false, IN_TEXT, "</" M "x> "},
    {&answer_dsml, false, IN_TEXT, "&lt;/" M "paramete"},
    {&answer_dsml, false, IN_TEXT, "\n"},
    {&answer_dsml, false, IN_TEXT,
     "<" M "parameter name=\"a                                                                     "},
    {&answer_dsml, true, IN_TEXT, "<" M "tool_calls> </" M "invoke>"},
    {&answer_dsml, false, "", IN_TEXT},
    {&answer_dsml, false, "", "<" M "invoke name=\"note\">"},
    {&answer_dsml, false, NOTE "<" M "parameter name=\"text\" string=\"false\">", "[\"a\",     "},
    {&answer_dsml, false, "", " "},
    {&answer_dsml, false, "", "<` \n"},
    {&answer_xml, false, "<tool_call><function=look><parameter=what>", "&amp;"},
    {&answer_xml, false, "<tool_call><function=look><parameter=what>", "<b>\n</param>\n"},
    {&answer_xml, false, "", "<function=note>\n"},
};

/* Seconds of processor time for about n bytes, one by one. */
static double work(size_t i, size_t n)
{
    struct str text = {0};
    str_puts(&text, heavy[i].start);
    while (text.n < n) str_puts(&text, heavy[i].unit);
    const struct answer_options o = {
        .syntax = heavy[i].syntax, .thinking = heavy[i].thinking, .tools = answer_tools, .n_tools = answer_n_tools};
    size_t sum = 0;
    const clock_t start = clock();
    struct answer *const a = answer_create(&o, ignore, &sum);
    for (size_t k = 0; k < text.n && !answer_feed(a, text.p + k, 1); k++) sum += answer_is_syntax(a);
    answer_finish(a, CAUSE_STOP);
    answer_free(a);
    const double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    str_free(&text);
    return seconds;
}

/* Eight times the bytes are about eight times the work; squared growth would be sixty-four times. */
static void test_work_is_linear(void **state)
{
    for (size_t i = 0; i < COUNT(heavy); i++) {
        const double small = work(i, 30000), large = work(i, 240000);
        if (large > 24 * small + 0.05) print_message("case %d: %.4f s, %.4f s\n", (int)i, small, large);
        assert_true(large <= 24 * small + 0.05);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_written_is_read_back),
        cmocka_unit_test(test_damaged_answers),
        cmocka_unit_test(test_work_is_linear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
