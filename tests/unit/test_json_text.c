/* JSON as text. What a value looks like when it is written again was taken from Python's
 * json.dumps(ensure_ascii=False), where json_text.h does not say that it differs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "base/mem.h"
#include "text/json_text.h"

#define READ(t) json_text_read(t, sizeof(t) - 1)

static void expect(const struct str *got, const char *want, size_t n)
{
    assert_string_equal(str_c(got), want);
    assert_int_equal(got->n, n);
}

static void test_kinds(void **state)
{
    static const struct {
        const char *text;
        enum json_text_kind kind;
        const char *value;
    } cases[] = {
        {"null", JSON_TEXT_NULL, "null"},
        {" true ", JSON_TEXT_BOOL, "true"},
        {"\r\n\tfalse", JSON_TEXT_BOOL, "false"},
        {"0", JSON_TEXT_NUMBER, "0"},
        {"-0", JSON_TEXT_NUMBER, "-0"},
        {"-12.50E+07 ", JSON_TEXT_NUMBER, "-12.50E+07"},
        {"123456789012345678901234567890", JSON_TEXT_NUMBER, "123456789012345678901234567890"},
        {"\"\"", JSON_TEXT_STRING, "\"\""},
        {"\"\\u00e9\\\"\\/\x7f\"", JSON_TEXT_STRING, "\"\\u00e9\\\"\\/\x7f\""},
        {"[ ]", JSON_TEXT_ARRAY, "[ ]"},
        {"[1,[2],{}]", JSON_TEXT_ARRAY, "[1,[2],{}]"},
        {" {\"a\" : [ 1 , 2 ] , \"b\":{\"c\":null}} ", JSON_TEXT_OBJECT, "{\"a\" : [ 1 , 2 ] , \"b\":{\"c\":null}}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct json_text v = json_text_read(cases[i].text, strlen(cases[i].text));
        assert_int_equal(v.kind, cases[i].kind);
        assert_int_equal(v.n, strlen(cases[i].value));
        assert_memory_equal(v.p, cases[i].value, v.n);
    }
}

static void test_what_is_not_json(void **state)
{
    static const char *const bad[] = {
        "",           " ",           "nul",
        "nulls",      "True",        "NaN",
        "-",          "01",          "1.",
        ".5",         "1e",          "1e+",
        "+1",         "0x1",         "-a",
        "1 2",        "\"",          "\"\\\"",
        "\"\\x\"",    "\"\\u12g4\"", "\"\\u123\"",
        "\"a\nb\"",   "\"\\",        "'a'",
        "[",          "]",           "[1",
        "[1,",        "[1,]",        "[,1]",
        "[1 2]",      "[}",          "{",
        "{\"a\"}",    "{\"a\":}",    "{\"a\":1",
        "{\"a\":1,}", "{a:1}",       "{1:2}",
        "{\"a\" 1}",  "{]",          "{\"a\":1]",
        "[1}",        "[]]",         "{}{}",
        "[1],",       "\"a\"b",      "{,}",
        "[\"a\":1]",  "{\"a\",1}",   "{\"a\":1 \"b\":2}",
        "tru",        "fals\"",      "[tru]",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (json_text_read(bad[i], strlen(bad[i])).kind != JSON_TEXT_NONE) fail_msg("taken for JSON: %s", bad[i]);
    assert_int_equal(READ("1\0").kind, JSON_TEXT_NONE);
    assert_int_equal(READ("\"\0\"").kind, JSON_TEXT_NONE);
    assert_int_equal(READ("\"\\\0\"").kind, JSON_TEXT_NONE);
}

/* Every beginning of a text is read to its end and no further; whole is a value, the beginnings are none. */
static void test_beginnings(void **state)
{
    static const char whole[] = "{\"a\\u00e9\\n\":[-1.5e-7,true,false,null,\"x\"],\"b\":{}}";
    for (size_t n = 0; n < sizeof whole; n++) {
        char *const exact = mem_alloc(n + (n == 0));
        memcpy(exact, whole, n);
        assert_int_equal(json_text_read(exact, n).kind, n + 1 == sizeof whole ? JSON_TEXT_OBJECT : JSON_TEXT_NONE);
        mem_free(exact);
    }
}

static void test_depth(void **state)
{
    for (int over = 0; over < 2; over++) {
        struct str s = {0}, out = {0};
        const int depth = JSON_TEXT_DEPTH + over;
        for (int i = 0; i < depth; i++) str_puts(&s, i % 3 ? "[" : "{\"a\":");
        str_puts(&s, "1");
        for (int i = depth; i-- > 0;) str_puts(&s, i % 3 ? "]" : "}");
        const struct json_text v = json_text_read(s.p, s.n);
        assert_int_equal(v.kind, over ? JSON_TEXT_NONE : JSON_TEXT_OBJECT);
        if (!over) {
            json_text_minified(&out, v);
            expect(&out, s.p, s.n);
        }
        str_free(&s);
        str_free(&out);
    }
}

static void test_items(void **state)
{
    static const char *const keys[] = {"\"a\"", "\"\"", "\"a\""}, *const values[] = {"1", "[ {\"]\": \"}\"} ]", "{}"};
    struct json_text key, item;
    struct json_text_items it = json_text_items(READ(" { \"a\" : 1 ,\"\":[ {\"]\": \"}\"} ], \"a\" :{} }"));
    size_t n = 0;
    for (; json_text_next(&it, &key, &item); n++) {
        assert_true(n < 3);
        assert_int_equal(key.n, strlen(keys[n]));
        assert_memory_equal(key.p, keys[n], key.n);
        assert_int_equal(item.n, strlen(values[n]));
        assert_memory_equal(item.p, values[n], item.n);
    }
    assert_int_equal(n, 3);
    assert_int_equal(key.kind, JSON_TEXT_STRING);
    assert_int_equal(item.kind, JSON_TEXT_OBJECT);
    assert_false(json_text_next(&it, &key, &item));

    it = json_text_items(READ("[ \"x\",2 ]"));
    assert_true(json_text_next(&it, NULL, &item) && item.kind == JSON_TEXT_STRING);
    assert_true(json_text_next(&it, &key, &item) && item.kind == JSON_TEXT_NUMBER);
    assert_int_equal(key.kind, JSON_TEXT_NONE);
    assert_false(json_text_next(&it, NULL, &item));
    static const char *const empty[] = {"[]", "[ ]", "{ }", "{}", "1", "\"[1]\"", "x"};
    for (size_t i = 0; i < sizeof empty / sizeof *empty; i++) {
        it = json_text_items(json_text_read(empty[i], strlen(empty[i])));
        assert_false(json_text_next(&it, &key, &item));
    }
}

static void test_member(void **state)
{
    const struct json_text v = READ("{\"a\":1,\"b\\u0000\":2,\"b\":3,\"\\u0061\":[4]}");
    assert_int_equal(json_text_member(v, "a").kind, JSON_TEXT_ARRAY);
    assert_memory_equal(json_text_member(v, "b").p, "3", 1);
    assert_int_equal(json_text_member(v, "").kind, JSON_TEXT_NONE);
    assert_int_equal(json_text_member(READ("[\"a\"]"), "a").kind, JSON_TEXT_NONE);
    assert_int_equal(json_text_member(READ("{"), "a").kind, JSON_TEXT_NONE);
}

static void test_unquote(void **state)
{
    struct str out = {0};
#define UNQUOTED(text, want)                                                                                           \
    json_text_unquote(&out, READ(text));                                                                               \
    assert_int_equal(out.n, sizeof(want) - 1);                                                                         \
    assert_memory_equal(str_c(&out), want, sizeof(want) - 1);                                                          \
    str_clear(&out)
    UNQUOTED("\"\"", "");
    UNQUOTED("\"a\\\"b\\\\c\\/d\\b\\f\\n\\r\\t\"", "a\"b\\c/d\b\f\n\r\t");
    UNQUOTED("\"\\u0000\\u0041\\u00e9\\u20ac\\uFFFF\"", "\0A\xc3\xa9\xe2\x82\xac\xef\xbf\xbf");
    UNQUOTED("\"\\u007f\\u0080\\u07ff\\u0800\"", "\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80");
    UNQUOTED("\"\\ud83d\\ude00\\uDBFF\\uDFFF\"", "\xf0\x9f\x98\x80\xf4\x8f\xbf\xbf");
    UNQUOTED("\"\\ud83d\"", "\xef\xbf\xbd");
    UNQUOTED("\"\\ude00\\ud83d\"", "\xef\xbf\xbd\xef\xbf\xbd");
    UNQUOTED("\"\\ud83d\\u0041\"", "\xef\xbf\xbd"
                                   "A");
    UNQUOTED("\"\\ud83d\\ud83d\\ude00\"", "\xef\xbf\xbd\xf0\x9f\x98\x80");
    UNQUOTED("\"\\ud83d\\n\\\\u0041\"", "\xef\xbf\xbd\n\\u0041");
    UNQUOTED("\"\xff\xc3\"", "\xff\xc3");
    UNQUOTED("12", "");
    str_free(&out);
}

static void test_quote(void **state)
{
    struct str out = {0};
#define QUOTED(text, want)                                                                                             \
    json_text_quote(&out, text, sizeof(text) - 1);                                                                     \
    expect(&out, want, sizeof(want) - 1);                                                                              \
    str_clear(&out)
    QUOTED("", "\"\"");
    QUOTED("a\"b\\c/d\b\f\n\r\t\v\x1f\x7f", "\"a\\\"b\\\\c/d\\b\\f\\n\\r\\t\\u000b\\u001f\x7f\"");
    QUOTED("\0\x1b", "\"\\u0000\\u001b\"");
    QUOTED("é€😀\xe2\x80\xa8\xc2\x85", "\"é€😀\xe2\x80\xa8\xc2\x85\"");
    QUOTED("a\xff\xc3(\xed\xa0\x80\xe2\x82", "\"a\uFFFD\uFFFD(\uFFFD\uFFFD\uFFFD\uFFFD\"");
    str_free(&out);
}

static void test_written_again(void **state)
{
    static const struct {
        const char *text, *official, *minified;
    } cases[] = {
        {"{\"b\":1,\"a\":[1,2,{}],\"c\":{\"x\":null}}", "{\"b\": 1, \"a\": [1, 2, {}], \"c\": {\"x\": null}}",
         "{\"b\":1,\"a\":[1,2,{}],\"c\":{\"x\":null}}"},
        {"{\n  \"a, b: c\" :\t\"x , y\\n\"\r\n}", "{\"a, b: c\": \"x , y\\n\"}", "{\"a, b: c\":\"x , y\\n\"}"},
        {"[ ]", "[]", "[]"},
        {"\"\\u00e9\\u0041\\/\\u2028\\u0007\\u007f\\u0000\"", "\"éA/\xe2\x80\xa8\\u0007\x7f\\u0000\"",
         "\"éA/\xe2\x80\xa8\\u0007\x7f\\u0000\""},
        {"[9007199254740993, 18446744073709551616,-0,1e3,1.50,0.1]",
         "[9007199254740993, 18446744073709551616, -0, 1e3, 1.50, 0.1]",
         "[9007199254740993,18446744073709551616,-0,1e3,1.50,0.1]"},
        {"{\"a\":1,\"a\":2}", "{\"a\": 1, \"a\": 2}", "{\"a\":1,\"a\":2}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct json_text v = json_text_read(cases[i].text, strlen(cases[i].text));
        struct str official = {0}, minified = {0};
        json_text_official(&official, v);
        json_text_minified(&minified, v);
        expect(&official, cases[i].official, strlen(cases[i].official));
        expect(&minified, cases[i].minified, strlen(cases[i].minified));
        str_free(&official);
        str_free(&minified);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),         cmocka_unit_test(test_what_is_not_json),
        cmocka_unit_test(test_beginnings),    cmocka_unit_test(test_depth),
        cmocka_unit_test(test_items),         cmocka_unit_test(test_member),
        cmocka_unit_test(test_unquote),       cmocka_unit_test(test_quote),
        cmocka_unit_test(test_written_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
