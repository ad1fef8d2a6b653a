/* Tables that grow by pieces: every element stays where it was, zeroed when it comes, and there is no end to them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include "base/mem.h"
#include "base/pile.h"

struct element {
    uint64_t number;
    char rest[40];
};

static void elements_never_move(void **state)
{
    enum { N = 5000 };
    struct pile p = {.bytes = sizeof(struct element)};
    struct element **at = mem_alloc(N * sizeof *at);
    for (uint64_t i = 0; i < N; i++) {
        at[i] = pile_add(&p);
        assert_non_null(at[i]);
        assert_int_equal(at[i]->number, 0);
        assert_int_equal(at[i]->rest[39], 0);
        *at[i] = (struct element){.number = i, .rest = {[39] = 1}};
        assert_int_equal(p.n, i + 1);
    }
    for (uint64_t i = 0; i < N; i++) {
        assert_ptr_equal(pile_at(&p, i), at[i]);
        assert_int_equal(at[i]->number, i);
    }
    pile_free(&p);
    assert_int_equal(p.n, 0);
    struct element *e = pile_add(&p); /* used again */
    assert_int_equal(e->number, 0);
    pile_free(&p);
    pile_free(&p);
    mem_free(at);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(elements_never_move)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
