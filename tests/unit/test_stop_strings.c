/* Stop strings: the one that starts first ends the text, whatever the cut, and only what may start one is held. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "text/stop_strings.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

static const struct {
    const char *text, *stops[4];
    const char *want;
    int index;
} cases[] = {
    {"red blue green", {"blue"}, "red ", 0},
    {"red blue green", {"green", "blue", "d b"}, "re", 2},
    {"red blue", {"blues", "x"}, "red blue", -1},
    {"red", {"red"}, "", 0},
    {"", {"red"}, "", -1},
    {"red", {NULL}, "red", -1},
    {"red", {"", "e"}, "r", 1},
    {"bluebell", {"bluebell", "blue"}, "", 1}, /* the same start: the shorter */
    {"abcd", {"bc", "abcd"}, "", 1},           /* complete later, but started first */
    {"abce", {"bc", "abcd"}, "a", 0},          /* the one that started first came to nothing */
    {"abc", {"bc", "abcd"}, "a", 0},           /* not even complete when the text ends */
    {"xabcdabce", {"cda", "abcdabcf", "bcdabce"}, "xa", 2},
    {"aaaab", {"aab"}, "aa", 0},
    {"abababac!", {"abac"}, "abab", 0},
    {"ababab", {"abac"}, "ababab", -1},
    {"line one\n\nline two", {"\n\n"}, "line one", 0},
    {"これで終わりです", {"終わり"}, "これで", 0},
    {"これで終わり", {"終わる"}, "これで終わり", -1},
};

static size_t n_stops(const char *const *stops)
{
    size_t n = 0;
    while (n < 4 && stops[n]) n++;
    return n;
}

static void run(size_t i, size_t cut_a, size_t cut_b)
{
    struct stop_strings *const s = stop_strings_create(cases[i].stops, n_stops(cases[i].stops));
    const size_t ends[] = {cut_a, cut_b, strlen(cases[i].text)};
    struct str out = {0};
    size_t from = 0;
    int hit = -1;
    for (size_t k = 0; k < 3; k++) {
        hit = stop_strings_feed(s, cases[i].text + from, ends[k] - from, &out);
        from = ends[k];
    }
    const int end = stop_strings_end(s, &out);
    if (hit >= 0) assert_int_equal(end, hit);
    assert_int_equal(end, cases[i].index);
    assert_string_equal(str_c(&out), cases[i].want);
    str_free(&out);
    stop_strings_free(s);
}

static void test_every_cut(void **state)
{
    for (size_t i = 0; i < COUNT(cases); i++)
        for (size_t a = 0; a <= strlen(cases[i].text); a++)
            for (size_t b = a; b <= strlen(cases[i].text); b++) run(i, a, b);
}

static void test_only_what_may_start_one_is_held(void **state)
{
    static const char *const stops[] = {"END.", "e end"};
    static const struct {
        const char *bytes, *out;
    } feeds[] = {{"the ", "th"}, {"sun", "e sun"}, {" E", " "}, {"N", ""},
                 {"x", "ENx"},   {"EEEN", "EE"},   {"D", ""},   {"!", "END!"}};
    struct stop_strings *const s = stop_strings_create(stops, 2);
    struct str out = {0};
    for (size_t i = 0; i < COUNT(feeds); i++) {
        str_clear(&out);
        assert_int_equal(stop_strings_feed(s, feeds[i].bytes, strlen(feeds[i].bytes), &out), -1);
        assert_string_equal(str_c(&out), feeds[i].out);
    }
    str_clear(&out);
    assert_int_equal(stop_strings_feed(s, "aEND.b", 6, &out), 0);
    assert_string_equal(str_c(&out), "a");
    assert_int_equal(stop_strings_feed(s, "c", 1, &out), 0);
    assert_string_equal(str_c(&out), "a");
    str_free(&out);
    stop_strings_free(s);
    stop_strings_free(NULL);
}

/* By chance, over two letters, so that everything overlaps: compared with a search from the left. */
static void test_against_a_plain_search(void **state)
{
    uint32_t seed = 1;
    for (int round = 0; round < 20000; round++) {
        char text[17] = {0}, stop[3][6] = {{0}};
        seed = seed * 1664525u + 1013904223u;
        for (int i = 0; i < 16; i++) text[i] = "ab"[seed >> (8 + i) & 1];
        for (int k = 0; k < 3; k++) {
            seed = seed * 1664525u + 1013904223u;
            for (uint32_t i = 0; i < 2 + (seed >> 30); i++) stop[k][i] = "ab"[seed >> (8 + i) & 1];
        }
        const char *const stops[] = {stop[0], stop[1], stop[2]};
        const char *first = text + 16;
        int want = -1;
        for (int k = 0; k < 3; k++) {
            const char *const at = strstr(text, stop[k]);
            if (!at || at > first || (at == first && want >= 0 && strlen(stop[k]) >= strlen(stop[want]))) continue;
            first = at;
            want = k;
        }
        struct stop_strings *const s = stop_strings_create(stops, 3);
        struct str out = {0};
        for (int i = 0; i < 16; i += 1 + round % 3)
            stop_strings_feed(s, text + i, (size_t)(i + 1 + round % 3 > 16 ? 16 - i : 1 + round % 3), &out);
        const int got = stop_strings_end(s, &out);
        assert_true(got < 0 ? want < 0 : want >= 0 && strcmp(stop[got], stop[want]) == 0);
        assert_int_equal(out.n, first - text);
        assert_memory_equal(str_c(&out), text, out.n);
        str_free(&out);
        stop_strings_free(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_cut),
        cmocka_unit_test(test_only_what_may_start_one_is_held),
        cmocka_unit_test(test_against_a_plain_search),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
