/* Incremental UTF-8: every way of cutting a stream gives the same text, and broken bytes become U+FFFD as Unicode
 * recommends (one for each maximal broken part). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "text/utf8.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define FFFD     "\xef\xbf\xbd"

static const struct {
    const char *bytes, *want;
} cases[] = {
    {"", ""},
    {"plain text", "plain text"},
    {"é 你 👍 \xed\x9f\xbf \xee\x80\x80 \xf4\x8f\xbf\xbf", "é 你 👍 \xed\x9f\xbf \xee\x80\x80 \xf4\x8f\xbf\xbf"},
    {"a\x80z", "a" FFFD "z"},
    {"\xff\xfe", FFFD FFFD},
    {"\xc0\xaf", FFFD FFFD},                   /* overlong */
    {"\xe0\x80\xaf", FFFD FFFD FFFD},          /* overlong */
    {"\xed\xa0\x80", FFFD FFFD FFFD},          /* surrogate */
    {"\xf4\x90\x80\x80", FFFD FFFD FFFD FFFD}, /* above U+10FFFF */
    {"\xe4\xbdx", FFFD "x"},                   /* two bytes of three, then a letter */
    {"\xe4\xbd\xe4\xbd\xa0", FFFD "你"},
    {"\xf0\x9f\x91", FFFD}, /* ends early */
    {"x\xc3", "x" FFFD},
    {"\xe4", FFFD},
    {"\xf0\x9f\xf0\x9f\x91\x8d", FFFD "👍"},
    /* the example of the Unicode standard, table 3-8 */
    {"\x61\xf1\x80\x80\xe1\x80\xc2\x62\x80\x63\x80\xbf\x64", "a" FFFD FFFD FFFD "b" FFFD "c" FFFD FFFD "d"},
    {"\xe2\x82\xac 8 bytes of ASCII \xff 0123456789abcdef", "€ 8 bytes of ASCII " FFFD " 0123456789abcdef"},
};

static void test_whole(void **state)
{
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct utf8_stream u = {0};
        struct str out = {0};
        utf8_feed(&u, cases[i].bytes, strlen(cases[i].bytes), &out);
        utf8_end(&u, &out);
        assert_string_equal(str_c(&out), cases[i].want);
        str_free(&out);
    }
}

/* All ways to cut the stream at two places, and byte by byte. */
static void test_every_cut_gives_the_same(void **state)
{
    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *const bytes = cases[i].bytes;
        const size_t n = strlen(bytes);
        struct str out = {0};
        struct utf8_stream u = {0};
        for (size_t a = 0; a <= n; a++)
            for (size_t b = a; b <= n; b++) {
                str_clear(&out);
                utf8_feed(&u, bytes, a, &out);
                utf8_feed(&u, bytes + a, b - a, &out);
                utf8_feed(&u, bytes + b, n - b, &out);
                utf8_end(&u, &out);
                assert_string_equal(str_c(&out), cases[i].want);
            }
        str_clear(&out);
        for (size_t a = 0; a < n; a++) utf8_feed(&u, bytes + a, 1, &out);
        utf8_end(&u, &out);
        assert_string_equal(str_c(&out), cases[i].want);
        str_free(&out);
    }
}

static void test_nothing_is_held_back_without_need(void **state)
{
    struct utf8_stream u = {0};
    struct str out = {0};
    utf8_feed(&u, "ab\xe4\xbd", 4, &out);
    assert_string_equal(str_c(&out), "ab");
    utf8_feed(&u, "\xa0", 1, &out);
    assert_string_equal(str_c(&out), "ab你");
    utf8_feed(&u, "\xf0\x9f", 2, &out);
    utf8_feed(&u, "c", 1, &out);
    assert_string_equal(str_c(&out), "ab你" FFFD "c");
    utf8_end(&u, &out);
    assert_string_equal(str_c(&out), "ab你" FFFD "c");
    str_free(&out);
}

/* Every code point in its UTF-8 form is whole, every proper beginning of it waits for more. */
static void test_every_code_point(void **state)
{
    for (uint32_t c = 0; c <= 0x10ffff; c++) {
        char s[4];
        int n = 1;
        if (c < 0x80) {
            s[0] = (char)c;
        } else if (c < 0x800) {
            n = 2;
            s[0] = (char)(0xc0 | c >> 6);
        } else if (c < 0x10000) {
            n = 3;
            s[0] = (char)(0xe0 | c >> 12);
        } else {
            n = 4;
            s[0] = (char)(0xf0 | c >> 18);
        }
        for (int i = 1; i < n; i++) s[i] = (char)(0x80 | (c >> 6 * (n - 1 - i) & 0x3f));
        if (c >= 0xd800 && c < 0xe000) {
            assert_int_equal(utf8_at(s, 3), -1);
            continue;
        }
        for (int have = 1; have < n; have++) assert_int_equal(utf8_at(s, (size_t)have), 0);
        assert_int_equal(utf8_at(s, (size_t)n), n);
    }
}

static void test_valid_run(void **state)
{
    assert_int_equal(utf8_valid_run("", 0), 0);
    assert_int_equal(utf8_valid_run("0123456789\xff", 11), 10);
    assert_int_equal(utf8_valid_run("abcdefgé", 9), 9);
    assert_int_equal(utf8_valid_run("abcdefgé", 8), 7);
    assert_int_equal(utf8_valid_run("\x80", 1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),
        cmocka_unit_test(test_every_cut_gives_the_same),
        cmocka_unit_test(test_nothing_is_held_back_without_need),
        cmocka_unit_test(test_every_code_point),
        cmocka_unit_test(test_valid_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
