/* How far a history serves a prompt: equal tokens, other tokens for the same bytes, and what must never be taken for
 * the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "serve/prefix.h"
#include "serve/scripted_vocabulary.h"

enum { MOST = 64 };

static size_t token_bytes(const void *v, int32_t id, const char **bytes)
{
    return scripted_vocabulary_bytes((struct scripted_vocabulary *)v, id, NULL, bytes);
}

static bool token_is_control(const void *v, int32_t id)
{
    bool control;
    const char *bytes;
    scripted_vocabulary_bytes((struct scripted_vocabulary *)v, id, &control, &bytes);
    return control;
}

static const struct served_ops ops = {.token_bytes = token_bytes, .token_is_control = token_is_control};

/* Tokens of a line: separated by '|'; one that begins with '!' is a control token, with '*' text that the model
 * wrote. */
static int tokens_of(struct scripted_vocabulary *v, const char *line, int32_t *token, bool *sampled)
{
    int n = 0;
    for (const char *p = line; *line;) {
        const size_t size = strcspn(p, "|");
        const bool control = *p == '!', model = *p == '*';
        assert_true(n < MOST);
        sampled[n] = model;
        token[n++] = scripted_vocabulary_id(v, control, p + (control || model), size - (control || model));
        if (!p[size]) break;
        p += size + 1;
    }
    return n;
}

static void expect(const char *history, const char *prompt, int reused, int from, bool respelt)
{
    struct scripted_vocabulary *v = scripted_vocabulary_new();
    const struct served m = {&ops, v};
    int32_t a[MOST], b[MOST];
    bool sampled[MOST], unused[MOST];
    struct history h = {a, sampled, tokens_of(v, history, a, sampled)};
    const int n = tokens_of(v, prompt, b, unused);
    const struct prefix p = prefix_find(&m, &h, b, n);
    if (p.reused != reused || p.from != from || p.respelt != respelt)
        fail_msg("%s / %s: %d %d %d instead of %d %d %d", history, prompt, p.reused, p.from, p.respelt, reused, from,
                 respelt);
    scripted_vocabulary_free(v);
}

static void test_equal_tokens(void **state)
{
    expect("", "", 0, 0, false);
    expect("", "a|b", 0, 0, false);
    expect("a|b", "", 0, 0, false);
    expect("a|b", "a|b", 2, 2, false);
    expect("a|b", "a|b|c", 2, 2, false);
    expect("a|b|c", "a|b", 2, 2, false);
    expect("a|b|c", "a|x|c", 1, 1, false);
    expect("x|b", "a|b", 0, 0, false);
    expect("!<s>|a", "!<s>|a|b", 2, 2, false);
}

static void test_other_tokens_for_the_same_bytes(void **state)
{
    expect("ab|c", "a|bc|d", 2, 2, true);
    expect("a|b|c", "abc|d", 3, 1, true);
    expect("abc", "a|b|c|d", 1, 3, true);
    expect("x|ab|c|y", "x|a|bc|y|z", 4, 4, true);
    /* equal again behind the place, then different */
    expect("ab|c|d|e", "a|bc|d|f", 3, 3, true);
    /* twice */
    expect("ab|c|d|ef|g", "a|bc|d|e|fg|h", 5, 5, true);
}

static void test_borders_must_meet(void **state)
{
    expect("ab|cd", "ab|c", 1, 1, false); /* the prompt ends within a token of the history */
    expect("ab|c", "ab|cd", 1, 1, false); /* and the other way round */
    expect("ab|c|xy", "a|bc|x", 2, 2, true);
    expect("ab|cd|e", "a|bc|x", 0, 0, false); /* the bytes part before the borders meet */
    expect("q|ab|cd|e", "q|a|bc|x", 1, 1, false);
}

static void test_clients_make_no_control_tokens(void **state)
{
    /* what a client wrote before is not what the frame puts now, nor the other way round */
    expect("a|<u>|b", "a|!<u>|b", 1, 1, false);
    expect("a|!<u>|b", "a|<u>|b", 1, 1, false);
    expect("a|<|u>|b", "a|!<u>|b", 1, 1, false);
    expect("a|!<u>|b", "a|<|u>|b", 1, 1, false);
    /* what the model wrote as text may come back as a control token: that is how its calls are replayed */
    expect("a|*<u>|b", "a|!<u>|b", 3, 3, true);
    expect("a|*<|*u>|b", "a|!<u>|b", 4, 3, true);
    expect("a|*x<|*u>|b", "a|x|!<u>|b", 4, 4, true);
    /* but not if a part of it is not the model's */
    expect("a|*<|u>|b", "a|!<u>|b", 1, 1, false);
    /* a control token of the history is never text of the prompt, whoever wrote it */
    expect("a|!<u>|*b", "a|<u>|b", 1, 1, false);
}

static void test_tokens_without_bytes(void **state)
{
    expect("a||b", "a|b", 3, 2, true);
    expect("a|b", "a||b", 2, 3, true);
}

/* ---- random cuts against a slow look at all borders ---- */

static uint64_t rng = 88172645463325252u;

static unsigned draw(unsigned n)
{
    rng ^= rng << 13;
    rng ^= rng >> 7;
    rng ^= rng << 17;
    return (unsigned)(rng >> 33) % n;
}

/* Cuts text into tokens of 1..4 bytes; at: where each begins, and the end behind them. */
static int cut(struct scripted_vocabulary *v, const char *text, int n, int32_t *token, int *at)
{
    int k = 0;
    for (int i = 0; i < n;) {
        int size = 1 + (int)draw(4);
        if (size > n - i) size = n - i;
        at[k] = i;
        token[k++] = scripted_vocabulary_id(v, false, text + i, (size_t)size);
        i += size;
    }
    at[k] = n;
    return k;
}

static void test_random_cuts(void **state)
{
    for (int round = 0; round < 20000; round++) {
        struct scripted_vocabulary *v = scripted_vocabulary_new();
        const struct served m = {&ops, v};
        char x[MOST], y[MOST];
        int32_t a[MOST], b[MOST];
        int at_a[MOST], at_b[MOST], best_a = 0, best_b = 0;
        bool sampled[MOST] = {0};
        int n_x = (int)draw(40), n_y = (int)draw(40), same = 0;
        for (int i = 0; i < MOST; i++) x[i] = y[i] = (char)('a' + draw(3));
        if (draw(2)) y[draw(40)] = 'z';
        while (same < n_x && same < n_y && x[same] == y[same]) same++;
        const struct history h = {a, sampled, cut(v, x, n_x, a, at_a)};
        const int n = cut(v, y, n_y, b, at_b);
        for (int i = 0; i <= h.n; i++)
            for (int j = 0; j <= n; j++)
                if (at_a[i] == at_b[j] && at_a[i] <= same) best_a = i, best_b = j;
        const struct prefix p = prefix_find(&m, &h, b, n);
        assert_int_equal(p.reused, best_a);
        assert_int_equal(p.from, best_b);
        bool equal = p.reused == p.from;
        for (int i = 0; equal && i < p.reused; i++) equal = a[i] == b[i];
        assert_int_equal(p.respelt, !equal);
        scripted_vocabulary_free(v);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_tokens),         cmocka_unit_test(test_other_tokens_for_the_same_bytes),
        cmocka_unit_test(test_borders_must_meet),    cmocka_unit_test(test_clients_make_no_control_tokens),
        cmocka_unit_test(test_tokens_without_bytes), cmocka_unit_test(test_random_cuts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
