/* base/str.h and base/strmap.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include "base/str.h"
#include "base/strmap.h"

static void str_grows_and_stays_terminated(void **state)
{
    struct str s = {0};
    assert_string_equal(str_c(&s), "");
    str_clear(&s);
    for (int i = 0; i < 1000; i++) str_printf(&s, "%03d,", i);
    assert_int_equal(s.n, 4000);
    assert_memory_equal(s.p + 4 * 317, "317,", 4);
    assert_int_equal(s.p[4000], 0);
    str_add(&s, "a\0b", 3);
    str_puts(&s, "c");
    assert_int_equal(s.n, 4004);
    assert_memory_equal(s.p + 4000, "a\0bc\0", 5);
    str_clear(&s);
    assert_int_equal(s.n, 0);
    assert_string_equal(str_c(&s), "");
    str_add(&s, NULL, 0);
    assert_string_equal(str_c(&s), "");
    str_free(&s);
    assert_null(s.p);
}

enum { N_KEYS = 20000 };

static void map_finds_every_key_after_growth(void **state)
{
    static char keys[N_KEYS][24];
    struct strmap *m = strmap_new(0);
    assert_non_null(m);
    for (uint64_t i = 0; i < N_KEYS; i++) {
        snprintf(keys[i], sizeof keys[i], "blk.%d.weight", (int)i);
        assert_int_equal(strmap_put(m, keys[i], strlen(keys[i]), i * 3), 1);
    }
    assert_int_equal(strmap_count(m), N_KEYS);
    for (uint64_t i = 0; i < N_KEYS; i++) {
        uint64_t v = 0;
        assert_true(strmap_get(m, keys[i], strlen(keys[i]), &v));
        assert_int_equal(v, i * 3);
    }
    assert_false(strmap_get(m, "blk.20000.weight", 16, NULL));
    strmap_free(m);
}

static void map_keeps_the_first_value(void **state)
{
    struct strmap *m = strmap_new(10);
    uint64_t v = 0;
    assert_int_equal(strmap_put(m, "key", 3, 1), 1);
    assert_int_equal(strmap_put(m, "key", 3, 2), 0);
    assert_true(strmap_get(m, "key", 3, &v));
    assert_int_equal(v, 1);
    assert_int_equal(strmap_count(m), 1);
    strmap_free(m);
    strmap_free(NULL);
}

/* Keys are bytes with a length: prefixes, zeros, the empty key and lengths around the hash's words are all distinct. */
static void map_tells_lengths_and_zeros_apart(void **state)
{
    static const char zeros[40], text[] = "abcdefghijklmnopqrstuvwxyzabcdefghijklmn";
    struct strmap *m = strmap_new(4);
    for (size_t n = 0; n <= 40; n++) {
        assert_int_equal(strmap_put(m, zeros, n, n), 1);
        if (n) assert_int_equal(strmap_put(m, text, n, 100 + n), 1);
    }
    for (size_t n = 0; n <= 40; n++) {
        uint64_t v = 0;
        assert_true(strmap_get(m, zeros, n, &v));
        assert_int_equal(v, n);
        assert_true(!n || (strmap_get(m, text, n, &v) && v == 100 + n));
    }
    strmap_free(m);
}

/* What a terminal would obey, and what is no character, is seen and does nothing. */
static void text_from_outside_is_defused(void **state)
{
    static const struct {
        const char *from, *to;
        size_t n;
    } cases[] = {
        {"plain \xC3\xA9 \xEF\xBD\x9C \xF0\x9F\x91\x8B", "plain \xC3\xA9 \xEF\xBD\x9C \xF0\x9F\x91\x8B", 17},
        {"\x1B[31m\x07\n\t\x7F", "?[31m????", 9},
        {"a\0b", "a?b", 3},
        {"\xC2\x9B"
         "2J",
         "??2J", 4}, /* C1: CSI */
        {"\xC2\xA0.", "\xC2\xA0.", 3},
        {"\x9B"
         "2J",
         "?2J", 3},
        {"\xC1\x9B\xE0\x82\x9B\xF0\x80\x82\x9B", "?????????", 9}, /* overlong */
        {"\xE2\x82", "??", 2},
        {"\xF8\x88\x80\x80\x80\xFF", "??????", 6},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[64];
        memcpy(text, cases[i].from, cases[i].n);
        text_defuse(text, cases[i].n);
        assert_memory_equal(text, cases[i].to, cases[i].n);
    }
    text_defuse(NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(str_grows_and_stays_terminated),    cmocka_unit_test(text_from_outside_is_defused),
        cmocka_unit_test(map_finds_every_key_after_growth),  cmocka_unit_test(map_keeps_the_first_value),
        cmocka_unit_test(map_tells_lengths_and_zeros_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
