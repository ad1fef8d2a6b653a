/* Prompts as parts, and what they are as text and as ids. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "text/chat.h"
#include "../support/byte_vocabulary.h"
#include "../support/prompt_shown.h"

static const char *const specials[] = {"<a>", "<ab>", "|A", "|AB|"};
static const struct prompt_codec codec = {.specials = specials, .n_specials = 4};

static void expect_shown(struct prompt *p, const char *want)
{
    struct str shown = {0};
    prompt_show(p, &shown);
    assert_string_equal(str_c(&shown), want);
    str_free(&shown);
}

static void test_parts(void **state)
{
    struct prompt p = {0};
    prompt_text(&p, "x", 1);
    prompt_text(&p, NULL, 0);
    prompt_puts(&p, "y<a>");
    prompt_turn(&p, "<a>");
    prompt_special(&p, "<ab>");
    prompt_puts(&p, "");
    prompt_text(&p, "\0z", 2);
    assert_int_equal(p.n, 4);
    expect_shown(&p, "xy<a>⟦<a>⟧⟦<ab>⟧␀z");
    assert_true(p.part[1].turn && !p.part[0].turn && !p.part[2].turn);
    struct str spelled = {0};
    prompt_spell(&p, &spelled);
    assert_int_equal(spelled.n, 14);
    assert_memory_equal(spelled.p, "xy<a><a><ab>\0z", 15);
    str_free(&spelled);

    struct prompt q = {0};
    prompt_puts(&q, "w");
    prompt_append(&q, &p);
    prompt_append(&q, &p);
    expect_shown(&q, "wxy<a>⟦<a>⟧⟦<ab>⟧␀zxy<a>⟦<a>⟧⟦<ab>⟧␀z");
    assert_int_equal(q.n, 7);
    assert_true(q.part[1].turn && q.part[4].turn);
    prompt_free(&p);
    prompt_free(&q);
    assert_int_equal(p.n + p.text.n + p.cap, 0);
}

static void test_marked_text(void **state)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"", ""},
        {"x", "x"},
        {"<a>", "⟦<a>⟧"},
        {"x<ab>y<a>", "x⟦<ab>⟧y⟦<a>⟧"},
        {"<a<a><ab|AB|A|", "<a⟦<a>⟧<ab⟦|AB|⟧A|"},
        {"|AB|A|AB", "⟦|AB|⟧A⟦|A⟧B"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct prompt p = {0};
        prompt_marked(&p, cases[i].text, strlen(cases[i].text), &codec);
        expect_shown(&p, cases[i].want);
        prompt_free(&p);
    }
}

/* ids 0-255 bytes, then "xy", "y<", "a>" and the special tokens. */
enum { XY = 256, ID_A = 258 };

static void expect_ids(const struct prompt *p, const struct bpe *b, const int32_t *ids, size_t n, const size_t *at)
{
    struct bpe_ids got = {0};
    size_t where[16];
    bpe_ids_add(&got, 7);
    assert_int_equal(prompt_encode(b, p, &got, where, NULL), 0);
    assert_int_equal(got.n, n + 1);
    assert_int_equal(got.p[0], 7);
    assert_memory_equal(got.p + 1, ids, n * sizeof *ids);
    for (size_t i = 0; i < p->n; i++) assert_int_equal(where[i], at[i] + 1);
    got.n = 0;
    assert_int_equal(prompt_encode(b, p, &got, NULL, NULL), 0);
    assert_int_equal(got.n, n);
    bpe_ids_free(&got);
}

static void test_ids(void **state)
{
    static const char *const merges[] = {"x y", "> x"};
    struct byte_vocabulary *v = byte_vocabulary_new(merges, 2, specials, 2);
    struct prompt p = {0};
    prompt_special(&p, "<a>");
    prompt_puts(&p, "xy");
    prompt_puts(&p, "<a>");
    prompt_special(&p, "<ab>");
    prompt_special(&p, "<ab>");
    prompt_puts(&p, "x");
    static const int32_t ids[] = {ID_A, XY, '<', 'a', '>', ID_A + 1, ID_A + 1, 'x'};
    static const size_t at[] = {0, 1, 5, 6, 7};
    expect_ids(&p, byte_vocabulary_bpe(v), ids, 8, at);
    prompt_free(&p);
    byte_vocabulary_free(v);
}

/* A control token that the vocabulary lacks is text of the span it stands in: "x" and "<ab>" and "xy" merge over its
 * borders. */
static void test_ids_of_missing_tokens(void **state)
{
    static const char *const merges[] = {"x y", "> x"};
    struct byte_vocabulary *v = byte_vocabulary_new(merges, 2, specials, 1);
    struct prompt p = {0};
    prompt_special(&p, "<a>");
    prompt_puts(&p, "z");
    prompt_special(&p, "<ab>");
    prompt_puts(&p, "xz");
    prompt_special(&p, "<a>");
    prompt_special(&p, "<ab>");
    static const int32_t ids[] = {ID_A, 'z', '<', 'a', 'b', '>', 'x', 'z', ID_A, '<', 'a', 'b', '>'};
    struct bpe_ids whole = {0};
    assert_int_equal(bpe_encode(byte_vocabulary_bpe(v), "z<ab>xz", 7, &whole, NULL), 0);
    struct bpe_ids got = {0};
    size_t at[6];
    assert_int_equal(prompt_encode(byte_vocabulary_bpe(v), &p, &got, at, NULL), 0);
    assert_int_equal(got.n, whole.n + 6);
    assert_memory_equal(got.p + 1, whole.p, whole.n * sizeof *whole.p);
    assert_memory_equal(got.p + 1 + whole.n, ids + 8, 5 * sizeof *ids);
    const size_t want[] = {0, 1, 1, 1, whole.n + 1, whole.n + 2};
    assert_memory_equal(at, want, sizeof want);
    bpe_ids_free(&whole);
    bpe_ids_free(&got);
    prompt_free(&p);
    byte_vocabulary_free(v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_marked_text),
        cmocka_unit_test(test_ids),
        cmocka_unit_test(test_ids_of_missing_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
