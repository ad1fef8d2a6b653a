/* Markdown with colours: what gets which colour, that nothing else is added, and that cuts change nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "text/markdown.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* In what is wanted, {h q b c * i} stand for the colours of headings, quotes, bullets, code, bold and italic (several
 * for a combination), } for none. Written down from how Markdown reads these texts. */
static const struct {
    const char *text, *want;
} cases[] = {
    {"", ""},
    {"plain text.\nand more", "plain text.\nand more"},
    /* headings */
    {"# One\ntwo", "#{h} One}\ntwo"},
    {"###### six\n####### seven\n#no\n#\n", "######{h} six}\n####### seven\n#no\n#\n"},
    {"## a **b** c", "##{h} a **{h*}b{h}** c}"},
    {"text # no heading", "text # no heading"},
    /* emphasis */
    {"a **b c** d", "a **{*}b c}** d"},
    {"a *b c* d", "a *{i}b c}* d"},
    {"_a_ and __b__.", "_{i}a}_ and __{*}b}__."},
    {"***both*** no", "***{*i}both}*** no"},
    {"**a *b* c**", "**{*}a }*{*i}b}*{*} c}**"},
    {"2 * 3 * 4 and 2*3*4", "2 * 3 * 4 and 2*3*4"},
    {"snake_case_name and _in_side_", "snake_case_name and _{i}in}_{i}side}_"},
    {"这是**重点**内容", "这是**{*}重点}**内容"},
    {"**open\nnext", "**{*}open}\nnext"},
    {"**bold**text", "**{*}bold}**text"},
    {"\\*no\\* \\_no\\_ \\`no\\`", "\\*no\\* \\_no\\_ \\`no\\`"},
    {"\\\\*yes*", "\\\\*{i}yes}*"},
    {"*\n**\n***\n", "*\n**\n***\n"},
    /* inline code */
    {"a `b *c* d` e", "a `{c}b *c* d}` e"},
    {"``a ` b`` c", "``{c}a }`{c} b}`` c"},
    {"`open\nnext", "`{c}open}\nnext"},
    {"`a` at the start", "`{c}a}` at the start"},
    {"**`a` b**", "**`{c}a}`{*} b}**"},
    {"`a\\` b", "`{c}a\\}` b"},
    /* lists */
    {"- a\n  - b\n* c\n+ d", "{b}-} a\n  {b}-} b\n{b}*} c\n{b}+} d"},
    {"1. a\n12) b\n3.no\n4 no\n1234567890. no", "{b}1.} a\n{b}12)} b\n3.no\n4 no\n1234567890. no"},
    {"-no\n--\n---\n-", "-no\n--\n---\n-"},
    {"*a* b\n**a** b\n* *a*", "*{i}a}* b\n**{*}a}** b\n{b}*} *{i}a}*"},
    {"- **a**: `b`", "{b}-} **{*}a}**: `{c}b}`"},
    /* quotes */
    {"> a **b**\nc", "{q}> a **{q*}b{q}**}\nc"},
    {"> > - a\n>b", "{q}> > {qb}-{q} a}\n{q}>b}"},
    {"a > b", "a > b"},
    /* fenced code */
    {"```\na *b*\n# c\n```\n*d*", "```\n{c}a *b*}\n{c}# c}\n```\n*{i}d}*"},
    {"```c\nint a;\n\n  b\n```", "```c\n{c}int a;}\n\n{c}  b}\n```"},
    {"~~~\n```\n~~~\na", "~~~\n{c}```}\n~~~\na"},
    {"````\n```\n`a\n`````  \nb", "````\n{c}```}\n{c}`a}\n`````  \nb"},
    {"```\n``` c\n``` ```\n```", "```\n{c}``` c}\n{c}``` ```}\n```"},
    {"```\n```x\n```\na", "```\n{c}```x}\n```\na"},
    {"  ```\n  a\n  ```\nb", "  ```\n{c}  a}\n{c}  }```\nb"},
    {"```a```\n*b*", "```a```\n*{i}b}*"},
    {"``` \na", "``` \n{c}a}"},
    {"~~no~~", "~~no~~"},
    {"```\nnever closed", "```\n{c}never closed}"},
};

/* "{h*}" and "}" become SGR sequences. A colour that follows one directly begins with a reset, as the code writes it:
 * {q}...{q*} is one change. */
static void expand(const char *want, struct str *out)
{
    static const char *const letters = "hqbc*i", *const sgr[] = {"1;35", "32", "35", "36", "1", "3"};
    bool on = false;
    for (const char *p = want; *p; p++) {
        if (*p != '{' && *p != '}') {
            str_add(out, p, 1);
            continue;
        }
        const char *before = on || *p == '}' ? "0" : "";
        str_printf(out, "\033[%s", before);
        on = *p == '{';
        for (const char *at; on && (at = strchr(letters, p[1])) && *at; p++) {
            str_printf(out, "%s%s", *before ? ";" : "", sgr[at - letters]);
            before = sgr[at - letters];
        }
        if (on && p[1] == '}') p++;
        str_puts(out, "m");
    }
}

/* The wanted forms close a colour with } and open the next with {x}; where both meet, as in "}`{c}", the text between
 * them is plain. */
static void test_colours(void **state)
{
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct str got = {0}, want = {0};
        struct markdown m = {0};
        expand(cases[i].want, &want);
        markdown_feed(&m, cases[i].text, strlen(cases[i].text), &got);
        markdown_end(&m, &got);
        if (strcmp(str_c(&got), str_c(&want)))
            fail_msg("%s\ngot:    %s\033[0m\nwanted: %s\033[0m", cases[i].text, str_c(&got), str_c(&want));
        str_free(&got);
        str_free(&want);
    }
}

static void strip(struct str *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (s->p[i] == '\033')
            while (s->p[i] != 'm') i++;
        else
            s->p[n++] = s->p[i];
    }
    s->n = n;
}

/* Everything in one text, cut at every two places. */
static void test_cuts(void **state)
{
    struct str all = {0}, once = {0};
    for (size_t i = 0; i < COUNT(cases); i++) str_printf(&all, "%s\n", cases[i].text);
    struct markdown m = {0};
    markdown_feed(&m, all.p, all.n, &once);
    markdown_end(&m, &once);
    for (size_t a = 0; a <= all.n; a++)
        for (size_t b = a; b <= all.n; b += a % 7 * 13 + 1) {
            struct str cut = {0};
            markdown_feed(&m, all.p, a, &cut);
            markdown_feed(&m, all.p + a, b - a, &cut);
            markdown_feed(&m, all.p + b, all.n - b, &cut);
            markdown_end(&m, &cut);
            if (cut.n != once.n || memcmp(cut.p, once.p, cut.n)) fail_msg("cut at %zu and %zu", a, b);
            str_free(&cut);
        }
    str_free(&all);
    str_free(&once);
}

/* Ended anywhere, the text is all there and no colour is left on. */
static void test_nothing_is_lost(void **state)
{
    for (size_t i = 0; i < COUNT(cases); i++)
        for (size_t n = 0; n <= strlen(cases[i].text); n++) {
            struct str got = {0};
            struct markdown m = {0};
            markdown_feed(&m, cases[i].text, n, &got);
            markdown_end(&m, &got);
            const char *last = NULL;
            for (const char *p = str_c(&got); (p = strchr(p, '\033')); p++) last = p;
            assert_true(!last || !strncmp(last, "\033[0m", 4));
            strip(&got);
            assert_int_equal(got.n, n);
            if (n) assert_memory_equal(got.p, cases[i].text, n);
            str_free(&got);
        }
}

/* How many bytes are not written yet after a text. */
static void test_little_is_held(void **state)
{
    static const struct {
        const char *text;
        size_t held;
    } few[] = {{"**bo", 0}, {"a `", 0}, {"# head", 0}, {"```", 0},      {"> ", 0},       {"-", 1},
               {"- ", 0},   {"12", 2},  {"12.", 3},    {"```\n``", 2},  {"```\na``", 0}, {"a -", 0},
               {"*", 1},    {"**", 0},  {"1x", 0},     {"```\n```", 3}, {"```\n  `", 1}, {"1234567890", 0}};
    for (size_t i = 0; i < COUNT(few); i++) {
        struct str got = {0};
        struct markdown m = {0};
        markdown_feed(&m, few[i].text, strlen(few[i].text), &got);
        strip(&got);
        if (strlen(few[i].text) - got.n != few[i].held) fail_msg("\"%s\": %zu bytes", few[i].text, got.n);
        str_free(&got);
    }
}

/* The colour is told again to a terminal that has lost it. */
static void test_forgotten(void **state)
{
    struct str got = {0};
    struct markdown m = {0};
    markdown_feed(&m, "a **b", 5, &got);
    markdown_forgotten(&m);
    str_clear(&got);
    markdown_feed(&m, "c** d", 5, &got);
    assert_string_equal(str_c(&got), "\033[1mc\033[0m** d");
    str_free(&got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_colours),        cmocka_unit_test(test_cuts),      cmocka_unit_test(test_nothing_is_lost),
        cmocka_unit_test(test_little_is_held), cmocka_unit_test(test_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
