/* What ds4 says about a model and a machine: dumps, perplexity, decoding against prefill, the doctor. Numbers are those
 * that ds4.h gives for the same model; JSON is read by a library. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <jansson.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../support/demo_model.h"
#include "../support/shell_run.h"
#include "../support/synth_model.h"

enum { CTX = 512 };
static char model[TEMP_PATH], folder[TEMP_PATH], path[TEMP_PATH + 32];
static ds4_engine *engine;
static int n_vocab;

static int group_set_up(void **state)
{
    struct ds4_model_info info;
    demo_shell("-c 512", model, folder);
    engine = demo_engine_open(model, CTX);
    ds4_engine_info(engine, &info);
    n_vocab = info.n_vocab;
    return 0;
}

static int group_tear_down(void **state)
{
    ds4_engine_close(engine);
    return 0;
}

static const char *in_folder(const char *name)
{
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void write_text(const char *name, const char *text)
{
    FILE *f = fopen(in_folder(name), "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static json_t *read_json(const char *name)
{
    json_error_t e;
    json_t *j = json_load_file(in_folder(name), JSON_REJECT_DUPLICATES, &e);
    if (!j) fail_msg("%s:%d: %s", path, e.line, e.text);
    return j;
}

/* ---------------------------------------------------------------- members of objects */

static json_t *member(const json_t *j, const char *key)
{
    json_t *v = json_object_get(j, key);
    if (!v) fail_msg("no \"%s\"", key);
    return v;
}

static int integer(const json_t *j, const char *key)
{
    assert_true(json_is_integer(member(j, key)));
    return (int)json_integer_value(member(j, key));
}

static double number(const json_t *j, const char *key)
{
    assert_true(json_is_number(member(j, key)));
    return json_number_value(member(j, key));
}

static const char *string(const json_t *j, const char *key)
{
    assert_true(json_is_string(member(j, key)));
    return json_string_value(member(j, key));
}

static int broken; /* tokens that are no text, seen so far */

/* {id, text, bytes}: bytes are the token's, text the same if it is UTF-8, else each byte 128.. as the character of that
 * number. Only whole characters of two bytes occur beside ASCII here. */
static void check_token(const ds4_engine *g, const json_t *j, int32_t id)
{
    const char *bytes, *text = string(j, "text");
    const size_t n = ds4_token_bytes(g, id, &bytes);
    const json_t *list = member(j, "bytes");
    assert_int_equal(integer(j, "id"), id);
    assert_int_equal(json_array_size(list), n);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(json_integer_value(json_array_get(list, i)), (unsigned char)bytes[i]);
    if (n == 1 && (unsigned char)bytes[0] >= 128) {
        const unsigned char c = (unsigned char)bytes[0];
        const char want[3] = {(char)(0xC0 | c >> 6), (char)(0x80 | (c & 63)), 0};
        assert_string_equal(text, want);
        broken++;
    } else {
        assert_int_equal(strlen(text), n);
        assert_memory_equal(text, bytes, n);
    }
}

static int32_t best(const float *logits)
{
    int32_t at = 0;
    for (int32_t i = 1; i < n_vocab; i++)
        if (logits[i] > logits[at]) at = i;
    return at;
}

/* The softmax's denominator as a logarithm. */
static double log_sum(const float *logits)
{
    const double top = (double)logits[best(logits)];
    double sum = 0;
    for (int i = 0; i < n_vocab; i++) sum += exp((double)logits[i] - top);
    return top + log(sum);
}

/* ---------------------------------------------------------------- dumps */

static const char question[] = "<｜User｜>What is 4 + 5?<｜Assistant｜></think>";

static void dumped_logits(void **state)
{
    struct ds4_tokens t = {0};
    ds4_session *s = demo_session(engine, CTX);
    shell_expect("$DS4 -p '<｜User｜>What is 4 + 5?<｜Assistant｜></think>' --dump-logits $FOLDER/logits.json", 0, "");
    json_t *j = read_json("logits.json");
    demo_tokenize(engine, question, &t);
    demo_sync(s, &t, t.n);
    const float *logits = ds4_session_logits(s);
    assert_string_equal(string(j, "source"), "ds4");
    assert_string_equal(string(j, "model"), model);
    assert_string_equal(string(j, "backend"), "cpu");
    assert_int_equal(integer(j, "quant_bits"), 16); /* the demo model's experts are BF16 */
    assert_int_equal(integer(j, "prompt_tokens"), t.n);
    assert_int_equal(integer(j, "ctx"), CTX);
    assert_int_equal(integer(j, "vocab"), n_vocab);
    check_token(engine, member(j, "argmax_token"), best(logits));
    assert_true((float)number(j, "argmax_logit") == logits[best(logits)]);
    const json_t *list = member(j, "logits");
    assert_int_equal(json_array_size(list), n_vocab);
    for (int i = 0; i < n_vocab; i++)
        assert_true((float)json_number_value(json_array_get(list, (size_t)i)) == logits[i]);
    json_decref(j);
    ds4_session_free(s);
    ds4_tokens_free(&t);
}

/* Names of files may have any bytes. */
static void escaped_name(void **state)
{
    static const char name[] = "a\"\\\n\x01\xff\xc3\xa9";
    char want[TEMP_PATH + 32];
    assert_int_equal(symlink(model, in_folder(name)), 0);
    shell_expect("M=$(printf 'a\"\\\\\\n\\001\\377\\303\\251'); " TEST_BUILD
                 "/ds4 -m \"$FOLDER/$M\" --raw -p a -c 64 --dump-logits $FOLDER/named.json 2>&1",
                 0, "");
    json_t *j = read_json("named.json");
    snprintf(want, sizeof want, "%s/a\"\\\n\x01\xc3\xbf\xc3\xa9", folder);
    assert_string_equal(string(j, "model"), want);
    json_decref(j);
}

/* One step: what was selected, and the top list with the session's logits. */
static void check_step(const json_t *step, const float *logits, int top_k)
{
    const json_t *top = member(step, "top_logprobs");
    const double sum = log_sum(logits);
    double last = INFINITY;
    check_token(engine, member(step, "selected"), best(logits));
    assert_int_equal(json_array_size(top), top_k);
    for (int i = 0; i < top_k; i++) {
        const json_t *entry = json_array_get(top, (size_t)i);
        const int id = integer(member(entry, "token"), "id");
        check_token(engine, member(entry, "token"), id);
        if (!i) assert_int_equal(id, best(logits));
        assert_true((float)number(entry, "logit") == logits[id]);
        assert_true(number(entry, "logit") <= last);
        assert_true(fabs(number(entry, "logprob") - ((double)logits[id] - sum)) < 1e-5);
        last = number(entry, "logit");
    }
}

/* Compares a dump with a greedy continuation; returns its number of steps, the last token is *last. */
static int check_steps(const char *name, const char *prompt, int top_k, int32_t *last)
{
    struct ds4_tokens t = {0};
    ds4_session *s = demo_session(engine, CTX);
    json_t *j = read_json(name);
    demo_tokenize(engine, prompt, &t);
    assert_string_equal(string(j, "source"), "ds4");
    assert_int_equal(integer(j, "prompt_tokens"), t.n);
    assert_int_equal(integer(j, "ctx"), CTX);
    assert_int_equal(integer(j, "top_k"), top_k);
    const json_t *steps = member(j, "steps");
    const int n = (int)json_array_size(steps);
    t.p = realloc(t.p, (t.n + (size_t)n) * sizeof *t.p);
    for (int i = 0; i < n; i++) {
        const json_t *step = json_array_get(steps, (size_t)i);
        demo_sync(s, &t, t.n);
        assert_int_equal(integer(step, "step"), i);
        check_step(step, ds4_session_logits(s), top_k);
        *last = best(ds4_session_logits(s));
        assert_true(i == n - 1 || !ds4_token_is_stop(engine, *last));
        t.p[t.n++] = *last;
    }
    json_decref(j);
    ds4_session_free(s);
    ds4_tokens_free(&t);
    return n;
}

static void dumped_logprobs(void **state)
{
    int32_t last;
    shell_expect("$DS4 -p '<｜User｜>What is 4 + 5?<｜Assistant｜></think>' --dump-logprobs $FOLDER/p.json", 0, "");
    assert_true(check_steps("p.json", question, 20, &last) > 5);
    assert_true(ds4_token_is_stop(engine, last));
    shell_expect("$DS4 -p '<｜User｜>What is 4 + 5?<｜Assistant｜></think>' --dump-logprobs $FOLDER/p.json "
                 "--logprobs-top-k 128 -n 3",
                 0, "");
    assert_int_equal(check_steps("p.json", question, 128, &last), 3);
}

/* A random model finds all tokens alike, those of one byte beyond ASCII too. */
static void broken_characters(void **state)
{
    const struct synth_shape shape = synth_tiny();
    struct err e = {0};
    json_t *j;
    assert_int_equal(synth_deepseek4(in_folder("tiny.gguf"), &shape, &e), 0);
    ds4_engine *tiny = demo_engine_open(path, CTX);
    shell_expect(TEST_BUILD "/ds4 -m $FOLDER/tiny.gguf -c 64 --token-ids 5,6,7 --dump-logprobs $FOLDER/tiny.json "
                            "--logprobs-top-k 128 -n 2",
                 0, "");
    j = read_json("tiny.json");
    const json_t *top = member(json_array_get(member(j, "steps"), 1), "top_logprobs");
    broken = 0;
    for (size_t i = 0; i < json_array_size(top); i++) {
        const json_t *token = member(json_array_get(top, i), "token");
        check_token(tiny, token, integer(token, "id"));
    }
    assert_true(broken > 10);
    json_decref(j);
    ds4_engine_close(tiny);
}

static void dumps_end_with_the_context(void **state)
{
    shell_expect("$DS4 --raw -p 'Once upon a time there was a fox' -c 16 --dump-logprobs $FOLDER/end.json", 0, "");
    json_t *j = read_json("end.json");
    assert_int_equal((int)json_array_size(member(j, "steps")) + integer(j, "prompt_tokens"), 16);
    json_decref(j);
}

/* ---------------------------------------------------------------- perplexity */

static const char story[] =
    "A mole lived under the old oak. One day it came up to see the sun, and it was so bright that "
    "the mole closed its eyes.\nThe fox said: \"Good morning, mole!\" - 4 + 5 = 9, and "
    "<｜User｜> is only text here. The mole went home again and told its children of the sun.\n";

/* -log probabilities of t[32 .. 32+n), one evaluation after the other. */
static double nll_of(const struct ds4_tokens *t, int n)
{
    ds4_session *s = demo_session(engine, CTX);
    double nll = 0;
    for (int i = 32; i < 32 + n; i++) {
        demo_sync(s, t, (size_t)i);
        nll += log_sum(ds4_session_logits(s)) - (double)ds4_session_logits(s)[t->p[i]];
    }
    ds4_session_free(s);
    return nll;
}

static void check_perplexity(const char *options, int limit)
{
    struct ds4_tokens t = {0};
    struct ds4_error e = {0};
    struct str said = {0}, command = {0};
    unsigned long tokens;
    int scored, end = 0;
    double nll, mean, ppl;
    assert_int_equal(ds4_tokenize(engine, story, strlen(story), false, &t, &e), 0);
    assert_true(t.n > 32 + 40);
    const int n = limit && limit < (int)t.n - 32 ? limit : (int)t.n - 32;
    const double want = nll_of(&t, n);
    str_printf(&command, "$DS4 --perplexity-file $FOLDER/story %s", options);
    assert_int_equal(shell_run(str_c(&command), &said), 0);
    assert_int_equal(sscanf(str_c(&said), "tokens=%lu scored=%d nll=%lf avg_nll=%lf ppl=%lf\n%n", &tokens, &scored,
                            &nll, &mean, &ppl, &end),
                     5);
    assert_int_equal(end, said.n);
    assert_int_equal(tokens, t.n);
    assert_int_equal(scored, n);
    assert_true(fabs(nll - want) < 1e-4);
    assert_true(fabs(mean - want / n) < 1e-5);
    assert_true(fabs(ppl / exp(want / n) - 1) < 1e-5);
    str_free(&said);
    str_free(&command);
    ds4_tokens_free(&t);
}

static void perplexity(void **state)
{
    write_text("story", story);
    check_perplexity("", 0);
    check_perplexity("-n 1", 1);
    check_perplexity("-n 17 -t 1", 17);
    check_perplexity("-n 18", 18);
    check_perplexity("-c 60", 28);
    write_text("short", "A few words.");
    shell_expect("$DS4 --perplexity-file $FOLDER/short 2>&1", 1, "more than 32 are needed");
    shell_expect("$DS4 --perplexity-file $FOLDER/story -c 32 2>&1", 1, "more than 32 are needed");
    shell_expect("$DS4 --perplexity-file $FOLDER/none 2>&1", 1, "No such file");
    shell_expect("$DS4 --perplexity-file $FOLDER/story -p a 2>&1", 2, "--perplexity-file takes no prompt");
}

static void perplexity_tells_progress(void **state)
{
    shell_expect("for i in 1 2 3 4 5 6; do cat $FOLDER/story; done >$FOLDER/long; "
                 "$DS4 -c 700 --perplexity-file $FOLDER/long 2>&1 >/dev/null",
                 0, "perplexity: 256 of ");
}

/* ---------------------------------------------------------------- decoding against prefill */

static void consistency(void **state)
{
    static const char prompt[] = "-p '<｜User｜>Tell me a story about a mole.<｜Assistant｜></think>'";
    struct str command = {0};
    for (int n = 0; n <= 12; n += 12) {
        char steps[32];
        snprintf(steps, sizeof steps, "%d steps, 2 lists", n);
        str_clear(&command);
        str_printf(&command,
                   "$DS4 %s --decode-consistency %d >$FOLDER/said && grep -q '^largest difference 0 at token ' "
                   "$FOLDER/said && grep -q '^rms difference 0$' $FOLDER/said && "
                   "echo $(grep -c '^step [0-9]*: ' $FOLDER/said) steps, $(grep -c '^top 10, ' $FOLDER/said) lists",
                   prompt, n);
        shell_expect(str_c(&command), 0, steps);
    }
    str_free(&command);
    shell_expect("$DS4 -p a -c 40 --decode-consistency 100 2>&1", 1, "give a larger --ctx");
    shell_expect("$DS4 -p a --decode-consistency -1 2>&1", 2, "'-1' is not a whole number");
}

/* ---------------------------------------------------------------- wrong use */

static void wrong_use(void **state)
{
    shell_expect("$DS4 -p a --dump-logits 2>&1", 2, "--dump-logits needs a value");
    shell_expect("$DS4 -p a --dump-logits $FOLDER 2>&1", 1, "is a folder");
    shell_expect("$DS4 -p a --dump-logprobs $FOLDER/no/x 2>&1", 1, "No such file");
    shell_expect("$DS4 -p a --logprobs-top-k 0 2>&1", 2, "'0' is not a whole number");
    shell_expect("$DS4 -p a --logprobs-top-k 129 2>&1", 2, "'129' is not a whole number");
    shell_expect(TEST_BUILD "/ds4 --perplexity-file $FOLDER/story 2>&1", 2, "no model");
}

static void order_of_several(void **state)
{
    shell_expect("$DS4 --raw -p a --inspect --dump-tokens --dump-logits $FOLDER/none.json | head -1", 0, "[");
    shell_expect("$DS4 --inspect --perplexity-file $FOLDER/none", 0, "memory needed");
    shell_expect("$DS4 -p a --decode-consistency 1 --dump-logits $FOLDER/one.json && test -s $FOLDER/one.json && "
                 "test ! -e $FOLDER/none.json && echo written",
                 0, "written");
}

/* ---------------------------------------------------------------- the doctor */

/* The text behind the line's name; NULL: there is no such line. */
static const char *doctor_line(const struct str *said, const char *name)
{
    const size_t n = strlen(name);
    for (const char *p = str_c(said); p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL)
        if (!strncmp(p, name, n) && p[n] == ' ') return p + n + strspn(p + n, " ");
    return NULL;
}

/* The number that the line begins with. */
static double doctor_number(const struct str *said, const char *name, double least, double most)
{
    const char *line = doctor_line(said, name);
    if (!line) fail_msg("no line \"%s\" in:\n%s", name, str_c(said));
    char *end;
    const double v = strtod(line, &end);
    if (end == line || !(v >= least && v <= most)) fail_msg("%s: %.40s", name, line);
    return v;
}

static void doctor_machine(void **state)
{
    struct str said = {0};
    assert_int_equal(shell_run(TEST_BUILD "/ds4 --doctor -t 1 2>&1", &said), 0);
    assert_true(doctor_number(&said, "processors", 1, 65536) == (double)sysconf(_SC_NPROCESSORS_ONLN));
    assert_non_null(strstr(doctor_line(&said, "processors"), "1 thread is used\n"));
    assert_non_null(strstr(doctor_line(&said, "kernels"), "scalar"));
    assert_non_null(strstr(doctor_line(&said, "kernels"), "; best: "));
    doctor_number(&said, "memory", 0.1, 1e6);
    assert_non_null(strstr(doctor_line(&said, "huge pages"), "transparent: "));
    doctor_number(&said, "memory read", 0.01, 1e5);
    doctor_number(&said, "int8 products", 0.001, 1e6);
    assert_null(doctor_line(&said, "model"));
    assert_null(doctor_line(&said, "disk read"));
    str_free(&said);
}

static void doctor_model(void **state)
{
    struct ds4_memory_plan plan;
    struct str said = {0};
    ds4_engine_plan(engine, &plan);
    assert_int_equal(shell_run("$DS4 --doctor 2>&1", &said), 0);
    const double memory = doctor_number(&said, "memory read", 0.01, 1e5);
    doctor_number(&said, "disk read", 0.0001, 1e5);
    assert_non_null(strstr(doctor_line(&said, "model"), "(deepseek4), 5 layers, routed experts of 16 bits"));
    doctor_number(&said, "memory needed", 0.01, 1e3);
    const double active = doctor_number(&said, "active weights", 0, 1);
    assert_true(fabs(active - (double)plan.active * 1e-9) < 1e-6);
    const double limit = doctor_number(&said, "decode limit", 0, 1e9);
    assert_true(fabs(limit / (memory / active) - 1) < 0.02);
    assert_null(doctor_line(&said, "from disk"));
    str_free(&said);
}

static void doctor_short_of_memory(void **state)
{
    struct str said = {0};
    assert_int_equal(shell_run("$DS4 --doctor --memory 0.01 2>&1", &said), 0);
    assert_non_null(strstr(doctor_line(&said, "memory needed"), "this does not fit"));
    doctor_number(&said, "from disk", 0.01, 1e9);
    str_free(&said);
    shell_expect(TEST_BUILD "/ds4 --doctor -m $FOLDER/none 2>&1", 1, "No such file");
    shell_expect(TEST_BUILD "/ds4 --doctor -t 0 2>&1", 2, "'0' is not a number of threads");
}

/* What taskset leaves is all there is: one thread. */
static void doctor_on_one_core(void **state)
{
    cpu_set_t set;
    int cpu = 0;
    char line[120];
    assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
    while (!CPU_ISSET(cpu, &set)) cpu++;
    snprintf(line, sizeof line, "taskset -c %d " TEST_BUILD "/ds4 --doctor 2>&1", cpu);
    shell_expect(line, 0, "1 in the affinity mask on 1 cores of 1 memory node");
    shell_expect(line, 0, "; 1 thread is used\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dumped_logits),
        cmocka_unit_test(escaped_name),
        cmocka_unit_test(dumped_logprobs),
        cmocka_unit_test(broken_characters),
        cmocka_unit_test(dumps_end_with_the_context),
        cmocka_unit_test(perplexity),
        cmocka_unit_test(perplexity_tells_progress),
        cmocka_unit_test(consistency),
        cmocka_unit_test(wrong_use),
        cmocka_unit_test(order_of_several),
        cmocka_unit_test(doctor_machine),
        cmocka_unit_test(doctor_model),
        cmocka_unit_test(doctor_on_one_core),
        cmocka_unit_test(doctor_short_of_memory),
    };
    return cmocka_run_group_tests(tests, group_set_up, group_tear_down);
}
