/* The demo model answers its published prompts as models/demo/samples.md says, word for word: small talk, arithmetic,
 * stories, tool calls, results of tools, texts with facts. Greedy, on the cpu backend, as a program would ask. */
#include "../support/demo_model.h"
#include "base/mem.h"
#include "base/str.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { ANSWER_MAX = 220, CTX = 2048 };

struct sample {
    char *title, *prompt, *answer;
};

struct samples {
    struct sample *at;
    int n;
};

/* ---------------------------------------------------------------- the file */

static char *field_read(FILE *f, const char *name)
{
    char word[16];
    size_t n = 0;
    if (!demo_text_word(f, word) || strcmp(word, name) != 0 || fscanf(f, "%zu", &n) != 1) fail_msg("no field %s", name);
    return demo_text_bytes(f, n);
}

static int samples_open(void **state)
{
    static struct samples all;
    FILE *f = demo_text_open("tests/golden/demo_samples.txt");
    size_t n = 0;
    char word[16];
    all.at = mem_alloc(64 * sizeof *all.at);
    while (demo_text_word(f, word)) {
        assert_true(all.n < 64 && !strcmp(word, "title") && fscanf(f, "%zu", &n) == 1);
        struct sample *s = &all.at[all.n++];
        s->title = demo_text_bytes(f, n);
        s->prompt = field_read(f, "prompt");
        s->answer = field_read(f, "answer");
    }
    fclose(f);
    *state = &all;
    return 0;
}

static int samples_close(void **state)
{
    struct samples *all = *state;
    for (int i = 0; all && i < all->n; i++) {
        mem_free(all->at[i].title);
        mem_free(all->at[i].prompt);
        mem_free(all->at[i].answer);
    }
    if (all) mem_free(all->at);
    return 0;
}

/* ---------------------------------------------------------------- asking */

/* Appends the greedy answer, its stop token included. */
static void answer(ds4_engine *g, ds4_session *s, const char *prompt, int n_vocab, struct str *out)
{
    struct ds4_tokens t = {0};
    struct ds4_error e = {0};
    demo_tokenize(g, prompt, &t);
    demo_sync(s, &t, t.n);
    for (int i = 0; i < ANSWER_MAX; i++) {
        const int32_t id = ds4_sample(ds4_session_logits(s), n_vocab, &(struct ds4_sampling){0}, t.n + (size_t)i);
        const char *bytes;
        const size_t n = ds4_token_bytes(g, id, &bytes);
        str_add(out, bytes, n);
        if (ds4_token_is_stop(g, id)) break;
        assert_int_equal(ds4_session_submit(s, &id, 1, &e), 0);
        while (ds4_engine_step(g, &e) > 0) {
        }
        assert_int_equal(ds4_session_collect(s, NULL, &e), DS4_DONE);
    }
    ds4_tokens_free(&t);
}

/* one_session: the prompts are put to one session one after the other, which keeps what they have in common. */
static void all_answers(const struct samples *all, const char *conversion, bool one_session)
{
    char path[TEMP_PATH];
    demo_model_convert(conversion, path);
    struct ds4_model_info info;
    ds4_engine *g = demo_engine_open(path, CTX);
    ds4_session *s = NULL;
    int wrong = 0;
    ds4_engine_info(g, &info);
    for (int i = 0; i < all->n; i++) {
        struct str got = {0};
        if (!s) s = demo_session(g, CTX);
        answer(g, s, all->at[i].prompt, info.n_vocab, &got);
        if (strcmp(str_c(&got), all->at[i].answer) != 0) {
            print_message("%s\n  expected: %s\n  got:      %s\n", all->at[i].title, all->at[i].answer, str_c(&got));
            wrong++;
        }
        str_free(&got);
        if (!one_session) {
            ds4_session_free(s);
            s = NULL;
        }
    }
    if (s) ds4_session_free(s);
    ds4_engine_close(g);
    temp_remove(path);
    assert_true(all->n > 30);
    assert_int_equal(wrong, 0);
}

static void answers_of_the_checkpoint(void **state)
{
    all_answers(*state, "", false);
}

static void answers_in_one_session(void **state)
{
    all_answers(*state, "--dense F32 --experts F32 --embedding F32", true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_of_the_checkpoint),
        cmocka_unit_test(answers_in_one_session),
    };
    return cmocka_run_group_tests(tests, samples_open, samples_close);
}
