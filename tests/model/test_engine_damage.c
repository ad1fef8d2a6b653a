/* Model files that become shorter while they are used or loaded: the step or the load ends with an error that names the
 * file, and the process goes on with other models. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "../support/engine_kit.h"
#include "../support/forge.h"
#include "../support/split_files.h"
#include "../support/temp_files.h"
#include "gguf/gguf.h"

enum { SHORT = 8192, N_SHARDS = 3 };

static void expect_damage(int rc, const struct ds4_error *e, const char *path)
{
    assert_int_equal(rc, DS4_E_IO);
    assert_int_equal(e->code, DS4_E_IO);
    if (!strstr(e->message, path) || !strstr(e->message, "damaged at byte")) fail_msg("\"%s\"", e->message);
}

/* ---------------------------------------------------------------- in use */

static const char *victim, *awaited; /* the file that is shortened; at which words */

static int shorten(const char *path)
{
    return truncate(path, SHORT);
}

static void shorten_once(void *arg, int done, int total)
{
    int *calls = arg;
    if (++*calls == 2) assert_int_equal(shorten(victim), 0);
}

/* What other models say while the damaged one is still open, and after it. */
static void others_go_on(void)
{
    const struct ds4_options o = kit_options(KIT_Q8);
    ds4_engine *g = kit_open(&o);
    ds4_session *s = kit_session(g);
    kit_sync(s, kit_tokens(), 40);
    kit_check(s, KIT_Q8, 40);
    ds4_session_free(s);
    ds4_engine_close(g);
}

static void use(void (*break_off)(ds4_engine *g, ds4_session *s))
{
    kit_clean(); /* a whole file */
    const struct ds4_options o = kit_options(KIT_F16);
    ds4_engine *g = kit_open(&o);
    ds4_session *s = kit_session(g);
    victim = kit_path(KIT_F16);
    kit_sync(s, kit_tokens(), 40);
    break_off(g, s);
    assert_int_equal(ds4_session_length(s), 40);
    others_go_on();
    ds4_session_free(s);
    ds4_engine_close(g);
    others_go_on();
    kit_clean();
}

static void in_decode(ds4_engine *g, ds4_session *s)
{
    struct ds4_error e = {0};
    kit_submit(s, kit_tokens() + 40, 1);
    assert_int_equal(shorten(victim), 0);
    expect_damage(ds4_engine_step(g, &e), &e, victim);
    assert_int_equal(ds4_session_collect(s, NULL, &e), DS4_FAILED);
    expect_damage(ds4_session_draft(s, kit_tokens() + 40, 1, NULL, &e), &e, victim);
}

static void before_prefill(ds4_engine *g, ds4_session *s)
{
    struct ds4_error e = {0};
    assert_int_equal(shorten(victim), 0);
    expect_damage(ds4_session_sync(s, kit_tokens(), 100, NULL, NULL, NULL, &e), &e, victim);
}

static void amid_prefill(ds4_engine *g, ds4_session *s)
{
    struct ds4_error e = {0};
    int calls = 0;
    expect_damage(ds4_session_sync(s, kit_tokens(), 200, shorten_once, &calls, NULL, &e), &e, victim);
    assert_true(calls >= 2);
}

static void test_decode(void **state)
{
    use(in_decode);
}

static void test_prefill(void **state)
{
    use(before_prefill);
    use(amid_prefill);
}

/* ---------------------------------------------------------------- being loaded */

/* Something is said in the middle of a load: then the victim loses all it has. */
static void shorten_when_said(void *arg, int level, const char *subject, const char *text)
{
    if (strstr(text, awaited)) assert_int_equal(truncate(victim, 0), 0);
}

/* Once shard 2 has been read: shard 1 is open as well then, shard 3 is not yet. */
static void test_split_load(void **state)
{
    static const struct split_form form = {.n = N_SHARDS};
    static const char *const says[N_SHARDS] = {"damaged at byte", "damaged at byte", "the file is empty"};
    char folder[TEMP_PATH], stem[TEMP_PATH + 8], path[256], given[256];
    struct err why = {0};
    int n;
    temp_folder(folder);
    snprintf(stem, sizeof stem, "%s/set", folder);
    struct ds4_options o = kit_options(KIT_F16);
    const char *const paths[] = {split_path(given, stem, &form, 1, N_SHARDS)};
    o.model_paths = paths;
    o.log = shorten_when_said, awaited = "-00002-of-00003.gguf: ";
    for (int shard = 1; shard <= N_SHARDS; shard++) {
        struct ds4_error e = {0};
        ds4_engine *g = NULL;
        if (split_write(kit_path(KIT_F16), stem, &form, &n, &why)) fail_msg("%s", why.msg);
        victim = split_path(path, stem, &form, shard, N_SHARDS);
        const int rc = ds4_engine_open(&o, &g, &e);
        if (rc != DS4_E_IO) fail_msg("shard %d: %d %s", shard, rc, e.message);
        assert_null(g);
        if (!strstr(e.message, victim) || !strstr(e.message, says[shard - 1])) fail_msg("\"%s\"", e.message);
        others_go_on();
    }
    temp_remove(folder);
}

/* The same at the end of a load. */
static void test_late_load(void **state)
{
    static const struct forge_edit odd = {KEY_ITEM, "tokenizer.ggml.merges", .text = "no such"};
    char path[TEMP_PATH];
    struct ds4_error e = {0};
    ds4_engine *g = NULL;
    temp_file(path);
    forge_write(kit_path(KIT_F16), path, &odd, 1);
    struct ds4_options o = kit_options(KIT_F16);
    const char *const paths[] = {victim = path};
    o.model_paths = paths;
    o.log = shorten_when_said, awaited = "merges name texts";
    expect_damage(ds4_engine_open(&o, &g, &e), &e, path);
    assert_null(g);
    others_go_on();
    temp_remove(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decode),
        cmocka_unit_test(test_prefill),
        cmocka_unit_test(test_split_load),
        cmocka_unit_test(test_late_load),
    };
    const int rc = cmocka_run_group_tests(tests, NULL, NULL);
    kit_clean();
    return rc;
}
