/* base64: the vectors of RFC 4648 section 10, and what is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "base/base64.h"

static void vectors(void **state)
{
    static const char *const pair[][2] = {{"", ""},
                                          {"Zg==", "f"},
                                          {"Zm8=", "fo"},
                                          {"Zm9v", "foo"},
                                          {"Zm9vYg==", "foob"},
                                          {"Zm9vYmE=", "fooba"},
                                          {"Zm9vYmFy", "foobar"},
                                          {"+/+/", "\xfb\xff\xbf"}};
    for (size_t i = 0; i < sizeof pair / sizeof *pair; i++) {
        struct str out = {0};
        assert_true(base64_decode(pair[i][0], strlen(pair[i][0]), &out));
        assert_string_equal(str_c(&out), pair[i][1]);
        str_clear(&out);
        base64_encode(&out, pair[i][1], strlen(pair[i][1]));
        assert_string_equal(str_c(&out), pair[i][0]);
        str_free(&out);
    }
}

static void refused(void **state)
{
    static const char *const bad[] = {
        "Z", "Zg", "Zg=", "Zh==", "Zm9=", "====", "=Zg=", "Zg==Zg==", "Zm 9", "Zm9v\n", "Zm-_", "Z===", "Zm9v="};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct str out = {0};
        str_puts(&out, "kept");
        if (base64_decode(bad[i], strlen(bad[i]), &out)) fail_msg("\"%s\" is taken for base64", bad[i]);
        assert_int_equal(out.n, 4);
        str_free(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(vectors), cmocka_unit_test(refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
