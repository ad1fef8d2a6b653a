/* The file of the scripted engine: what each field means, and what is refused in which line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "serve/scripted_file.h"
#include "../support/temp_files.h"

static int read_text(const char *text, size_t n, struct script *s, struct err *e)
{
    char path[TEMP_PATH];
    temp_file(path);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, n, f), n);
    fclose(f);
    const int rc = script_read(path, s, e);
    temp_remove(path);
    return rc;
}

static struct script good(const char *text)
{
    struct script s;
    struct err e = {0};
    if (read_text(text, strlen(text), &s, &e)) fail_msg("%s", e.msg);
    return s;
}

static void refused(const char *text, int line, const char *what)
{
    struct script s;
    struct err e = {0};
    char where[20];
    snprintf(where, sizeof where, "line %d", line);
    const int rc = read_text(text, strlen(text), &s, &e);
    if (rc != ERR_FORMAT || (line && !strstr(e.msg, where)) || !strstr(e.msg, what))
        fail_msg("%s\n%d: \"%s\" without \"%s\" or \"%s\"", text, rc, e.msg, where, what);
    script_free(&s);
}

static void test_defaults(void **state)
{
    struct script s = good("{}");
    assert_int_equal(s.n, 1);
    const struct script_line *l = &s.line[0];
    assert_int_equal(l->bytes.n, 0);
    assert_int_equal(l->n_cuts, 0);
    assert_int_equal(l->n_when, 0);
    assert_int_equal(l->times, 1);
    assert_true(l->token_ms == 0 && l->layer_ms == 0);
    assert_false(l->full);
    assert_null(l->error);
    assert_int_equal(l->repeat, 1);
    assert_false(l->echo);
    assert_int_equal(l->echo_cut, 4);
    assert_true(l->logprob == 0 && l->n_alternatives == 0);
    assert_string_equal(s.family, "deepseek4");
    script_free(&s);
}

static void test_every_field(void **state)
{
    struct script s = good("{\"text\": \"h\\u00e9llo\", \"cuts\": 2, \"when\": [\"a\", \"b\"], \"times\": 0, "
                           "\"token_ms\": 1.5, \"layer_ms\": 20, \"stop\": \"length\", \"family\": \"qwen38\", "
                           "\"error\": \"lost\", \"error_at\": 3, \"repeat\": 7, \"echo\": true, \"logprob\": -0.5, "
                           "\"alts\": [[\"x\", -1], [\"yz\", -2.5]]}");
    const struct script_line *l = &s.line[0];
    assert_string_equal(l->bytes.p, "h\xc3\xa9llo");
    assert_int_equal(l->n_when, 2);
    assert_string_equal(l->when[1], "b");
    assert_int_equal(l->times, 0);
    assert_true(l->token_ms == 1.5 && l->layer_ms == 20);
    assert_true(l->full);
    assert_string_equal(s.family, "qwen38");
    assert_string_equal(l->error, "lost");
    assert_int_equal(l->error_at, 3);
    assert_int_equal(l->repeat, 7);
    assert_true(l->echo);
    assert_int_equal(l->echo_cut, 2);
    assert_true(l->logprob == -0.5);
    assert_int_equal(l->n_alternatives, 2);
    assert_string_equal(l->alternative[1].text, "yz");
    assert_int_equal(l->alternative[1].n, 2);
    assert_true(l->alternative[1].logprob == -2.5);
    script_free(&s);
}

static void test_lines(void **state)
{
    struct script s = good("\n  \t\n{\"text\": \"a\"}\r\n\n{\"when\": \"w\", \"error_at\": \"prefill\"}");
    assert_int_equal(s.n, 2);
    assert_string_equal(s.line[1].when[0], "w");
    assert_int_equal(s.line[1].error_at, SCRIPT_AT_PREFILL);
    script_free(&s);
    /* the first line's family is everybody's */
    s = good("{\"family\": \"qwen38\"}\n{}\n{\"family\": \"qwen38\"}");
    assert_string_equal(s.family, "qwen38");
    script_free(&s);
}

static void cuts(const char *line, const char *ends)
{
    struct script s = good(line);
    struct str got = {0};
    for (size_t i = 0; i < s.line[0].n_cuts; i++) str_printf(&got, i ? " %zu" : "%zu", s.line[0].cut[i]);
    assert_string_equal(str_c(&got), ends);
    str_free(&got);
    script_free(&s);
}

static void test_cuts(void **state)
{
    cuts("{\"text\": \"abcdefghij\"}", "4 8 10");
    cuts("{\"text\": \"abcdefgh\"}", "4 8");
    cuts("{\"text\": \"abc\", \"cuts\": \"bytes\"}", "1 2 3");
    cuts("{\"text\": \"\\u00e9\", \"cuts\": \"bytes\"}", "1 2");
    cuts("{\"text\": \"abc\", \"cuts\": \"whole\"}", "3");
    cuts("{\"text\": \"\", \"cuts\": \"whole\"}", "");
    cuts("{\"text\": \"abcdefg\", \"cuts\": 3}", "3 6 7");
    cuts("{\"text\": \"abc\", \"cuts\": 100}", "3");
    cuts("{\"text\": \"abcdefg\", \"cuts\": [1, 5]}", "1 5 7"); /* the end is implied */
    cuts("{\"text\": \"abcdefg\", \"cuts\": [1, 7]}", "1 7");
    cuts("{\"text\": \"abcdefg\", \"cuts\": []}", "7");
    cuts("{\"text\": \"\", \"cuts\": []}", "");
}

static void test_base64(void **state)
{
    struct script s = good("{\"base64\": \"/wAKgA==\"}");
    assert_int_equal(s.line[0].bytes.n, 4);
    assert_memory_equal(s.line[0].bytes.p, "\xff\x00\x0a\x80", 4);
    script_free(&s);
    refused("{\"base64\": \"abc\"}", 1, "base64");
    refused("{\"base64\": \"ab=c\"}", 1, "base64");
    refused("{\"base64\": \"ab\\ncd\"}", 1, "base64");
    refused("{\"base64\": 5}", 1, "base64");
    refused("{\"text\": \"a\", \"base64\": \"YQ==\"}", 1, "both");
}

static void test_refused(void **state)
{
    refused("", 0, "no line");
    refused("\n\n", 0, "no line");
    refused("{}\n{\"text\": }", 2, "JSON");
    refused("{}\n\n{\"texts\": \"a\"}", 3, "texts");
    refused("[1]", 1, "object");
    refused("{\"text\": \"a\", \"text\": \"b\"}", 1, "JSON");
    refused("{\"text\": 5}", 1, "text");
    refused("{\"cuts\": 0}", 1, "cuts");
    refused("{\"cuts\": -1}", 1, "cuts");
    refused("{\"cuts\": 1.5}", 1, "cuts");
    refused("{\"cuts\": \"words\"}", 1, "cuts");
    refused("{\"cuts\": null}", 1, "cuts");
    refused("{\"text\": \"abc\", \"cuts\": [0, 1]}", 1, "cuts");
    refused("{\"text\": \"abc\", \"cuts\": [2, 2]}", 1, "cuts");
    refused("{\"text\": \"abc\", \"cuts\": [2, 1]}", 1, "cuts");
    refused("{\"text\": \"abc\", \"cuts\": [4]}", 1, "cuts");
    refused("{\"text\": \"abc\", \"cuts\": [\"1\"]}", 1, "cuts");
    refused("{\"when\": 5}", 1, "when");
    refused("{\"when\": [\"a\", 5]}", 1, "when");
    refused("{\"times\": -1}", 1, "times");
    refused("{\"times\": 1.5}", 1, "times");
    refused("{\"times\": \"two\"}", 1, "times");
    refused("{\"token_ms\": -1}", 1, "token_ms");
    refused("{\"token_ms\": \"1\"}", 1, "token_ms");
    refused("{\"layer_ms\": 1e300}", 1, "layer_ms");
    refused("{\"stop\": \"end\"}", 1, "stop");
    refused("{\"stop\": 1}", 1, "stop");
    refused("{\"family\": \"llama\"}", 1, "family");
    refused("{\"family\": 1}", 1, "family");
    refused("{}\n{\"family\": \"qwen38\"}", 2, "family");
    refused("{\"family\": \"qwen38\"}\n{\"family\": \"deepseek4\"}", 2, "family");
    refused("{\"error\": 5}", 1, "error");
    refused("{\"error\": \"x\", \"error_at\": \"start\"}", 1, "error_at");
    refused("{\"error\": \"x\", \"error_at\": -1}", 1, "error_at");
    refused("{\"repeat\": 0}", 1, "repeat");
    refused("{\"echo\": 1}", 1, "echo");
    refused("{\"logprob\": \"x\"}", 1, "logprob");
    refused("{\"alts\": {}}", 1, "alts");
    refused("{\"alts\": [[\"a\"]]}", 1, "alts");
    refused("{\"alts\": [[\"a\", \"b\"]]}", 1, "alts");
    refused("{\"alts\": [[1, 2]]}", 1, "alts");
}

static void test_too_many_alternatives(void **state)
{
    struct str line = {0};
    str_puts(&line, "{\"alts\": [");
    for (int i = 0; i < 21; i++) str_puts(&line, i ? ", [\"a\", -1]" : "[\"a\", -1]");
    str_puts(&line, "]}");
    refused(line.p, 1, "20");
    str_free(&line);
}

static void test_missing_file(void **state)
{
    struct script s;
    struct err e = {0};
    assert_int_equal(script_read("/nonexistent/script", &s, &e), ERR_IO);
    assert_non_null(strstr(e.msg, "/nonexistent/script"));
    script_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),     cmocka_unit_test(test_every_field),
        cmocka_unit_test(test_lines),        cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_base64),       cmocka_unit_test(test_refused),
        cmocka_unit_test(test_missing_file), cmocka_unit_test(test_too_many_alternatives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
