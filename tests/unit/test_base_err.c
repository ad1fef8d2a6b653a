/* base/err.h and base/log.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include "base/err.h"
#include "base/log.h"

static void set_keeps_the_first_error(void **state)
{
    struct err e = {0};
    assert_int_equal(err_set(&e, ERR_IO, "%s: %d", "a.gguf", 7), ERR_IO);
    assert_int_equal(err_set(&e, ERR_ARG, "later"), ERR_ARG);
    assert_int_equal(e.code, ERR_IO);
    assert_string_equal(e.msg, "a.gguf: 7");
    assert_int_equal(err_set(NULL, ERR_LIMIT, "x"), ERR_LIMIT);
}

static void wrap_puts_context_in_front(void **state)
{
    struct err e = {0};
    assert_int_equal(err_wrap(&e, "unused"), 0);
    assert_string_equal(e.msg, "");
    err_set(&e, ERR_FORMAT, "bad magic");
    assert_int_equal(err_wrap(&e, "loading %s", "m"), ERR_FORMAT);
    assert_string_equal(e.msg, "loading m: bad magic");
    assert_int_equal(err_wrap(NULL, "x"), 0);
    err_clear(&e);
    assert_int_equal(e.code, 0);
    assert_string_equal(e.msg, "");
}

/* Every cut position: no part of a three-byte character stays, which would become '?'. */
static void long_messages_are_cut_between_characters(void **state)
{
    char text[2000];
    for (int lead = 0; lead < 3; lead++) {
        memset(text, 'x', (size_t)lead);
        for (int i = 0; i < 500; i++) memcpy(text + lead + 3 * i, "\xe2\x82\xac", 4);
        struct err e = {0};
        err_set(&e, ERR_ARG, "%s", text);
        for (int wrapped = 0; wrapped < 2; wrapped++) {
            assert_true(strlen(e.msg) >= sizeof e.msg - 6);
            assert_non_null(strstr(e.msg, " ... "));
            assert_null(strchr(e.msg, '?'));
            err_wrap(&e, "%s", text);
        }
    }
}

/* A path of any length leaves room for what is wrong with it. */
static void long_messages_keep_both_ends(void **state)
{
    static char path[100001];
    struct err e = {0};
    memset(path, 'p', sizeof path - 1);
    err_set(&e, ERR_IO, "model %s: cannot open", path);
    err_wrap(&e, "%s, part 2 of %s", path, path);
    assert_memory_equal(e.msg, "pppp", 4);
    assert_string_equal(e.msg + strlen(e.msg) - 13, ": cannot open");
    assert_int_equal(strlen(e.msg), sizeof e.msg - 1);
}

struct seen {
    int n;
    enum log_level level;
    char text[100];
};

static void keep(void *arg, enum log_level level, const char *subject, const char *text)
{
    struct seen *s = arg;
    s->n++;
    s->level = level;
    snprintf(s->text, sizeof s->text, "%s|%s", subject, text);
}

static void log_passes_levels_up_to_the_limit(void **state)
{
    struct seen s = {0};
    log_to(keep, &s, LOG_WARN);
    log_msg(LOG_WARN, "model", "%d of %d", 1, 2);
    assert_int_equal(s.n, 1);
    assert_int_equal(s.level, LOG_WARN);
    assert_string_equal(s.text, "model|1 of 2");
    log_msg(LOG_INFO, "model", "hidden");
    assert_int_equal(s.n, 1);
    log_to(NULL, NULL, LOG_INFO);
    log_msg(LOG_DEBUG, "model", "hidden");
    assert_int_equal(s.n, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(set_keeps_the_first_error),
        cmocka_unit_test(wrap_puts_context_in_front),
        cmocka_unit_test(long_messages_are_cut_between_characters),
        cmocka_unit_test(long_messages_keep_both_ends),
        cmocka_unit_test(log_passes_levels_up_to_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
