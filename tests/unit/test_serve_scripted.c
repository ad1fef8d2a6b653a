/* The scripted engine: which line speaks, in which tokens, how long it takes and how it fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "base/clock.h"
#include "serve/scripted.h"
#include "../support/serve_kit.h"

enum { MOST_TOKENS = 10000 };

struct run {
    struct served m;
    struct served_session *s;
    struct str said; /* tokens, '|' between them; "<eos>", "<full>" or "<failed: message>" behind the last */
    int steps;
};

static void model(struct run *r, const char *lines, int ctx, int chunk)
{
    struct ds4_error e = {0};
    *r = (struct run){0};
    serve_script(lines, ctx, chunk, &r->m);
    assert_int_equal(r->m.ops->session_create(r->m.model, ctx, &r->s, &e), 0);
}

static void close_model(struct run *r)
{
    r->m.ops->session_free(r->s);
    scripted_close(&r->m);
    str_free(&r->said);
}

/* Steps until the session is not busy. */
static enum ds4_state drive(struct run *r, struct ds4_error *e)
{
    enum ds4_state state;
    while ((state = r->m.ops->collect(r->s, NULL, e)) == DS4_BUSY) {
        r->m.ops->step(r->m.model, NULL);
        r->steps++;
    }
    return state;
}

/* The prompt, read: true, or false with the failure in said. */
static bool read_prompt(struct run *r, const char *text)
{
    struct prompt p = {0};
    struct ds4_tokens t = {0};
    struct ds4_error e = {0};
    struct ds4_sync_info found;
    str_clear(&r->said);
    r->steps = 0;
    serve_prompt(&r->m, text, &p);
    assert_int_equal(r->m.ops->encode(r->m.model, &p, &t, NULL, &e), 0);
    assert_int_equal(r->m.ops->begin(r->s, &p, &e), 0);
    assert_int_equal(r->m.ops->sync(r->s, t.p, (int)t.n, &found, &e), 0);
    const enum ds4_state state = drive(r, &e);
    if (state == DS4_FAILED) str_printf(&r->said, "<failed: %s>", e.message);
    prompt_free(&p);
    ds4_tokens_free(&t);
    return state == DS4_DONE;
}

/* One token further; false at the end. */
static bool say_token(struct run *r, const struct served_draw *d, struct served_choice *c)
{
    const char *bytes;
    struct ds4_error e = {0};
    const int rc = r->m.ops->next(r->s, d, c, &e);
    if (rc == DS4_E_LIMIT) str_puts(&r->said, "<full>");
    if (rc && rc != DS4_E_LIMIT) str_printf(&r->said, "<failed: %s>", e.message);
    if (rc) return false;
    const size_t n = r->m.ops->token_bytes(r->m.model, c->id, &bytes);
    if (r->m.ops->token_is_stop(r->m.model, c->id)) {
        str_puts(&r->said, "<eos>");
        return false;
    }
    str_add(&r->said, bytes, n);
    str_puts(&r->said, "|");
    assert_int_equal(r->m.ops->submit(r->s, &c->id, 1, &e), 0);
    assert_int_equal(drive(r, &e), DS4_DONE);
    return true;
}

static void say(struct run *r, const char *prompt, int most)
{
    const struct served_draw d = {0};
    struct served_choice c;
    if (!read_prompt(r, prompt)) return;
    for (int i = 0; i < most && say_token(r, &d, &c); i++) {
    }
}

static void expect(struct run *r, const char *prompt, const char *said)
{
    say(r, prompt, MOST_TOKENS);
    assert_string_equal(str_c(&r->said), said);
}

/* ---------------------------------------------------------------- lines and tokens */

static void test_choice_of_the_line(void **state)
{
    struct run r;
    model(&r,
          "{\"when\": \"red\", \"text\": \"R1\"}\n{\"when\": \"red\", \"text\": \"R2\", \"times\": 2}\n"
          "{\"when\": [\"blue\", \"green\"], \"text\": \"BG\", \"times\": 0}\n{\"text\": \"any\"}\n"
          "{\"when\": \"never\", \"text\": \"last\"}",
          1000, 0);
    expect(&r, "red", "R1|<eos>");
    expect(&r, "blue", "any|<eos>");
    expect(&r, "green and blue", "BG|<eos>");
    expect(&r, "red", "R2|<eos>");
    expect(&r, "red", "R2|<eos>");
    expect(&r, "red", "last|<eos>"); /* all are used up: the last one never is, whatever its when says */
    expect(&r, "blue and green", "BG|<eos>");
    expect(&r, "blue", "last|<eos>");
    close_model(&r);
    /* control tokens are spelled as they are */
    model(&r,
          "{\"when\": \"<\xef\xbd\x9cUser\xef\xbd\x9c>Hi<\xef\xbd\x9c"
          "Assistant\xef\xbd\x9c></think>\", \"text\": \"yes\"}\n{\"text\": \"no\"}",
          1000, 0);
    expect(&r, "Hi", "yes|<eos>");
    close_model(&r);
}

static void test_tokens_of_the_answer(void **state)
{
    struct run r;
    model(&r,
          "{\"text\": \"abcdefghij\"}\n{\"text\": \"abc\", \"cuts\": \"bytes\", \"repeat\": 2}\n"
          "{\"text\": \"ab</think>\", \"cuts\": [1, 4]}\n{\"text\": \"\"}\n{\"base64\": \"w6k=\", \"cuts\": \"bytes\", "
          "\"stop\": \"length\"}\n{\"text\": \"x\", \"times\": 0}",
          1000, 0);
    expect(&r, "1", "abcd|efgh|ij|<eos>");
    expect(&r, "2", "a|b|c|a|b|c|<eos>");
    expect(&r, "3", "a|b</|think>|<eos>");
    expect(&r, "4", "<eos>");
    expect(&r, "5", "\xc3|\xa9|<full>");
    close_model(&r);
}

static void test_tokens_of_a_prompt(void **state)
{
    struct run r;
    struct prompt p = {0};
    struct ds4_tokens t = {0};
    size_t at[8];
    const char *bytes;
    model(&r, "{}", 1000, 0);
    serve_prompt(&r.m, "abcdefghi", &p); /* <bos><User> abcd efgh i <Assistant></think> */
    assert_int_equal(p.n, 5);
    assert_int_equal(r.m.ops->encode(r.m.model, &p, &t, at, NULL), 0);
    assert_int_equal(t.n, 7);
    const size_t parts[] = {0, 1, 2, 5, 6};
    assert_memory_equal(at, parts, sizeof parts);
    assert_int_equal(r.m.ops->token_bytes(r.m.model, t.p[4], &bytes), 1);
    assert_memory_equal(bytes, "i", 1);
    for (size_t i = 0; i < 7; i++) assert_int_equal(r.m.ops->token_is_control(r.m.model, t.p[i]), i < 2 || i > 4);
    /* a text that looks like a control token is another token, and no stop */
    struct prompt q = {0};
    struct ds4_tokens u = {0};
    prompt_special(&q, "<\xef\xbd\x9c"
                       "end\xe2\x96\x81of\xe2\x96\x81sentence\xef\xbd\x9c>");
    prompt_text(&q, "<\xef\xbd\x9c", 4);
    assert_int_equal(r.m.ops->encode(r.m.model, &q, &u, NULL, NULL), 0);
    assert_true(r.m.ops->token_is_stop(r.m.model, u.p[0]));
    assert_false(r.m.ops->token_is_control(r.m.model, u.p[1]));
    prompt_free(&p);
    prompt_free(&q);
    ds4_tokens_free(&t);
    ds4_tokens_free(&u);
    close_model(&r);
}

static void test_echo(void **state)
{
    struct run r;
    model(&r, "{\"text\": \"say: \", \"echo\": true, \"cuts\": \"whole\", \"times\": 0}", 1000, 0);
    expect(&r, "a<b>&\"\xc3\xa9",
           "say: |[[\"\\u003c\\uFF5Cbegin\\u2581of\\u2581sentence\\uFF5C\\u003e\"], "
           "[\"\\u003c\\uFF5CUser\\uFF5C\\u003e\"], "
           "\"a\\u003cb\\u003e\\u0026\\\"\\u00E9\", [\"\\u003c\\uFF5CAssistant\\uFF5C\\u003e\"], "
           "[\"\\u003c/think\\u003e\"]]|<eos>");
    close_model(&r);
}

static void test_families(void **state)
{
    struct run r;
    struct served_info info;
    model(&r, "{\"family\": \"qwen38\", \"when\": \"<|im_start|>user\\nHi<|im_end|>\", \"text\": \"q\"}\n{}", 1000, 0);
    r.m.ops->info(r.m.model, &info);
    assert_string_equal(info.family, "qwen38");
    assert_string_equal(info.codec->family, "qwen38");
    expect(&r, "Hi", "q|<eos>");
    close_model(&r);
}

static void test_logprobs(void **state)
{
    struct run r;
    struct served_choice c;
    model(&r, "{\"text\": \"abcdefgh\", \"logprob\": -0.25, \"alts\": [[\"x\", -1], [\"y\", -2]]}", 1000, 0);
    assert_true(read_prompt(&r, "Hi"));
    say_token(&r, &(struct served_draw){.logprobs = true, .alternatives = 1}, &c);
    assert_true(c.logprob == -0.25f && c.n_alternatives == 1 && c.alternative[0].logprob == -1);
    assert_memory_equal(c.alternative[0].bytes, "x", 1);
    say_token(&r, &(struct served_draw){.logprobs = true, .alternatives = 20}, &c);
    assert_int_equal(c.n_alternatives, 2);
    close_model(&r);
}

/* ---------------------------------------------------------------- forced text */

/* After `before` tokens the server puts text in; then the rest is said. */
static void forced(const char *line, int before, const char *text, const char *rest)
{
    struct run r;
    struct served_choice c;
    const struct served_draw d = {0};
    model(&r, line, 1000, 0);
    say(&r, "Hi", before);
    str_clear(&r.said);
    r.m.ops->forced(r.s, text, strlen(text));
    while (say_token(&r, &d, &c)) {
    }
    if (strcmp(str_c(&r.said), rest)) fail_msg("%s: %s: \"%s\" instead of \"%s\"", line, text, str_c(&r.said), rest);
    close_model(&r);
}

static void test_forced_text(void **state)
{
    static const char line[] = "{\"text\": \"aabbccXddeeXff\", \"cuts\": 2}";
    forced(line, 1, "X", "d|de|eX|ff|<eos>"); /* behind the next place: within a token, then cut as before */
    forced(line, 0, " \n X\t\r\n", "d|de|eX|ff|<eos>");
    forced(line, 4, "X", "ff|<eos>");
    forced(line, 2, "Y", "cc|Xd|de|eX|ff|<eos>");  /* nowhere: the position stays */
    forced(line, 2, "aa", "cc|Xd|de|eX|ff|<eos>"); /* not behind it */
    forced(line, 2, " \n", "cc|Xd|de|eX|ff|<eos>");
    forced(line, 0, "ff", "<eos>");
    /* over the repetitions: within one, from one into the next, not beyond the last */
    forced("{\"text\": \"abcd\", \"cuts\": 2, \"repeat\": 3}", 1, "d", "ab|cd|ab|cd|<eos>");
    forced("{\"text\": \"abcd\", \"cuts\": 2, \"repeat\": 3}", 1, "da", "b|cd|ab|cd|<eos>");
    forced("{\"text\": \"abcd\", \"cuts\": 2, \"repeat\": 3}", 5, "da", "cd|<eos>");
    forced("{\"text\": \"ab\", \"cuts\": 1, \"repeat\": 6}", 1, "babab", "a|b|a|b|a|b|<eos>");
}

/* ---------------------------------------------------------------- work */

static void test_prefill_in_layers(void **state)
{
    struct run r;
    model(&r, "{\"times\": 0}", 100000, 100);
    char text[4 * 300 + 1];
    memset(text, 'a', sizeof text);
    text[4 * 300] = 0;
    expect(&r, text, "<eos>"); /* 304 tokens in chunks of 100: four of them, 4 layers each */
    assert_int_equal(r.steps, 16);
    expect(&r, text, "<eos>"); /* all is there */
    assert_int_equal(r.steps, 0);
    text[4 * 300 - 1] = 'b'; /* the last tokens differ: one chunk */
    expect(&r, text, "<eos>");
    assert_int_equal(r.steps, 4);
    close_model(&r);
}

static double seconds(struct run *r, const char *prompt)
{
    const double begun = clock_s();
    say(r, prompt, MOST_TOKENS);
    return clock_s() - begun;
}

/* Delays are at least what was asked for. */
static void test_delays(void **state)
{
    struct run r;
    model(
        &r,
        "{\"text\": \"abcd\", \"cuts\": 1, \"token_ms\": 15}\n{\"text\": \"ab\", \"layer_ms\": 12}\n{\"text\": \"x\"}",
        1000, 0);
    assert_true(seconds(&r, "tokens") >= 0.060);
    assert_true(seconds(&r, "layers") >= 0.048);
    close_model(&r);
}

static void test_failures(void **state)
{
    struct run r;
    model(&r,
          "{\"text\": \"abcdefgh\", \"error\": \"lost\", \"error_at\": \"prefill\"}\n"
          "{\"text\": \"abcdefgh\", \"error\": \"first\"}\n{\"text\": \"abcdefgh\", \"error\": \"second\", "
          "\"error_at\": 1}\n"
          "{\"text\": \"abcdefgh\", \"error\": \"end\", \"error_at\": 2}\n{\"text\": \"abcdefgh\", \"error\": \"x\", "
          "\"error_at\": 3}\n{\"text\": \"fine\"}",
          1000, 0);
    expect(&r, "1", "<failed: lost>");
    expect(&r, "2", "<failed: first>");
    expect(&r, "3", "abcd|<failed: second>");
    expect(&r, "4", "abcd|efgh|<failed: end>");
    expect(&r, "5", "abcd|efgh|<eos>");
    expect(&r, "6", "fine|<eos>");
    close_model(&r);
}

static void test_cancel(void **state)
{
    struct run r;
    struct ds4_error e = {0};
    const int32_t token[8] = {0};
    int done;
    model(&r, "{\"times\": 0}", 100, 2);
    r.m.ops->cancel(r.s); /* without work: nothing */
    struct ds4_sync_info found;
    assert_int_equal(r.m.ops->sync(r.s, token, 8, &found, &e), 0);
    for (int i = 0; i < 5; i++) r.m.ops->step(r.m.model, NULL); /* a chunk of 2, and a layer of the next */
    r.m.ops->cancel(r.s);
    r.m.ops->step(r.m.model, NULL);
    assert_int_equal(r.m.ops->collect(r.s, &done, &e), DS4_CANCELLED);
    assert_int_equal(done, 2);
    assert_int_equal(r.m.ops->length(r.s), 2);
    assert_int_equal(r.m.ops->collect(r.s, NULL, &e), DS4_IDLE); /* told once */
    assert_int_equal(r.m.ops->sync(r.s, token, 8, &found, &e), 0);
    assert_int_equal(found.reused, 2);
    assert_int_equal(drive(&r, &e), DS4_DONE);
    close_model(&r);
}

static void test_context(void **state)
{
    struct run r;
    struct ds4_error e = {0};
    const int32_t token[8] = {0};
    model(&r, "{\"times\": 0}", 6, 0);
    assert_int_equal(r.m.ops->submit(r.s, token, 4, &e), 0);
    assert_int_equal(drive(&r, &e), DS4_DONE);
    assert_int_equal(r.m.ops->submit(r.s, token, 3, &e), DS4_E_LIMIT);
    assert_int_equal(r.m.ops->submit(r.s, token, 2, &e), 0);
    assert_int_equal(drive(&r, &e), DS4_DONE);
    struct ds4_sync_info found;
    assert_int_equal(r.m.ops->sync(r.s, token, 7, &found, &e), DS4_E_LIMIT);
    close_model(&r);
}

static void test_fork(void **state)
{
    struct run r;
    struct served_session *copy;
    struct ds4_error e = {0};
    const int32_t a[4] = {1, 2, 3, 4}, b[4] = {1, 2, 5, 6};
    struct ds4_sync_info found;
    model(&r, "{\"times\": 0}", 100, 0);
    assert_int_equal(r.m.ops->sync(r.s, a, 4, &found, &e), 0);
    assert_int_equal(drive(&r, &e), DS4_DONE);
    assert_int_equal(r.m.ops->fork(r.s, &copy, &e), 0);
    assert_int_equal(copy->ops->sync(copy, b, 4, &found, &e), 0);
    assert_int_equal(found.reused, 2);
    assert_int_equal(found.first_diff, 2);
    assert_int_equal(r.m.ops->length(r.s), 4); /* the source stays */
    assert_memory_equal(r.m.ops->tokens(r.s), a, sizeof a);
    r.m.ops->session_free(copy);
    close_model(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_choice_of_the_line),
        cmocka_unit_test(test_tokens_of_the_answer),
        cmocka_unit_test(test_tokens_of_a_prompt),
        cmocka_unit_test(test_echo),
        cmocka_unit_test(test_families),
        cmocka_unit_test(test_logprobs),
        cmocka_unit_test(test_forced_text),
        cmocka_unit_test(test_prefill_in_layers),
        cmocka_unit_test(test_delays),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_context),
        cmocka_unit_test(test_fork),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
