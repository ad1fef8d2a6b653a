/* base/checksum.h. Expected values: the formula of checksum.c, computed with Python's integers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "base/checksum.h"

static uint64_t of(const void *data, size_t n)
{
    struct checksum c = {0};
    checksum_add(&c, data, n);
    return checksum_value(&c);
}

static void values(void **state)
{
    static const char fox[] = "The quick brown fox jumps over the lazy dog";
    assert_int_equal(of(NULL, 0), 0x10f38d46fa63e48f);
    assert_int_equal(of("a", 1), 0x844c3b71cd660378);
    assert_int_equal(of("12345678", 8), 0xe122077fd1d6b0da);
    assert_int_equal(of(fox, sizeof fox - 1), 0x867ab47d51e24dc5);
}

static void cuts_do_not_matter(void **state)
{
    unsigned char bytes[41];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)(i * 37 + 11);
    for (size_t a = 0; a <= sizeof bytes; a++)
        for (size_t b = a; b <= sizeof bytes; b++) {
            struct checksum c = {0};
            checksum_add(&c, bytes, a);
            assert_int_equal(checksum_value(&c), of(bytes, a));
            checksum_add(&c, bytes + a, b - a);
            checksum_add(&c, bytes + b, sizeof bytes - b);
            assert_int_equal(checksum_value(&c), of(bytes, sizeof bytes));
        }
}

static void changes_are_seen(void **state)
{
    unsigned char bytes[64] = {0};
    uint64_t seen[sizeof bytes * 8 + sizeof bytes];
    size_t n = 0;
    for (size_t i = 0; i < sizeof bytes; i++) seen[n++] = of(bytes, i); /* zeros count too */
    for (size_t bit = 0; bit < sizeof bytes * 8; bit++) {
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        seen[n++] = of(bytes, sizeof bytes);
        bytes[bit / 8] = 0;
    }
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++) assert_int_not_equal(seen[i], seen[j]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values),
        cmocka_unit_test(cuts_do_not_matter),
        cmocka_unit_test(changes_are_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
