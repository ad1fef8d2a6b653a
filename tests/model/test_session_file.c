/* Sessions on file: what comes back, in another process too, goes on with the same bits; what does not fit or is not
 * whole is refused and leaves the session alone; a process that dies while it saves leaves the old file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../support/engine_kit.h"
#include "../support/model_run.h"
#include "../support/temp_files.h"
#include "base/err.h"
#include "base/file.h"
#include "base/mem.h"

static char file[TEMP_PATH];

static int make_file(void **state)
{
    temp_file(file);
    return 0;
}

static void save(ds4_session *s, const char *path)
{
    struct ds4_error e = {0};
    if (ds4_session_save(s, path, &e)) fail_msg("%s", e.message);
}

static void load(ds4_session *s, const char *path)
{
    struct ds4_error e = {0};
    if (ds4_session_load(s, path, &e)) fail_msg("%s", e.message);
}

/* A session of the first n tokens, saved by an engine that is gone afterwards. */
static void save_tokens(const struct ds4_options *o, int n, const char *path)
{
    ds4_engine *g = kit_open(o);
    ds4_session *s = kit_session(g);
    if (n) kit_sync(s, kit_tokens(), n);
    save(s, path);
    ds4_session_free(s);
    ds4_engine_close(g);
}

/* The same in a process of its own. */
static void save_elsewhere(const struct ds4_options *o, int n, const char *path)
{
    int status;
    const pid_t pid = fork();
    if (!pid) {
        save_tokens(o, n, path);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void read_file(const char *path, char **data, size_t *n)
{
    struct err e = {0};
    if (file_read(path, UINT64_C(1) << 30, data, n, &e)) fail_msg("%s", e.msg);
}

static void write_file(const char *path, const void *data, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

/* ---------------------------------------------------------------- going on */

/* One more token is one token to compute, and then many: always what an uninterrupted session has. */
static void goes_on(ds4_session *s, enum kit_model m, int n)
{
    struct ds4_error e = {0};
    struct ds4_sync_info info;
    assert_int_equal(ds4_session_length(s), n);
    if (n) kit_check(s, m, n);
    assert_int_equal(ds4_session_sync(s, kit_tokens(), n + 1, NULL, NULL, &info, &e), 0);
    assert_int_equal(info.reused, n);
    assert_int_equal(info.evaluated, 1);
    kit_check(s, m, n + 1);
    for (int i = 1; i < 20; i++) {
        kit_eval(s, kit_tokens() + n + i, 1);
        kit_check(s, m, n + i + 1);
    }
    kit_eval(s, kit_tokens() + n + 20, 130);
    kit_check(s, m, n + 150);
    kit_rewind(s, n + 3);
    kit_eval(s, kit_tokens() + n + 3, 1);
    kit_check(s, m, n + 4);
}

static void comes_back(void **state)
{
    static const int at[] = {0, 1, 127, 128, 300, 523};
    for (int m = 0; m < KIT_MODEL_COUNT; m++) {
        const struct ds4_options o = kit_options((enum kit_model)m);
        for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
            save_elsewhere(&o, at[i], file);
            ds4_engine *g = kit_open(&o);
            ds4_session *s = kit_session(g);
            kit_eval(s, &(int32_t){5}, 1); /* something to replace */
            load(s, file);
            goes_on(s, (enum kit_model)m, at[i]);
            ds4_session_free(s);
            ds4_engine_close(g);
        }
    }
}

/* Kernel set, threads, chunks and context may be others. */
static void other_circumstances(void **state)
{
    struct ds4_error e = {0};
    struct ds4_options o = kit_options(KIT_Q2);
    save_tokens(&o, 300, file);
    o.isa = "scalar", o.threads = 1, o.prefill_chunk = 7, o.ctx = 1000;
    ds4_engine *g = kit_open(&o);
    ds4_session *s;
    assert_int_equal(ds4_session_create(g, 600, &s, &e), 0);
    load(s, file);
    goes_on(s, KIT_Q2, 300);
    ds4_session_free(s);
    ds4_engine_close(g);
}

/* A context without room for one token more is enough to load. */
static void fits_exactly(void **state)
{
    struct ds4_error e = {0};
    const struct ds4_options o = kit_options(KIT_Q8);
    save_tokens(&o, 300, file);
    ds4_engine *g = kit_open(&o);
    ds4_session *s;
    assert_int_equal(ds4_session_create(g, 300, &s, &e), 0);
    load(s, file);
    kit_check(s, KIT_Q8, 300);
    ds4_session_free(s);
    ds4_engine_close(g);
}

/* The same session gives the same bytes. */
static void same_bytes(void **state)
{
    char *a, *b;
    size_t n_a, n_b;
    const struct ds4_options o = kit_options(KIT_Q8);
    save_tokens(&o, 200, file);
    read_file(file, &a, &n_a);
    ds4_engine *g = kit_open(&o);
    ds4_session *s = kit_session(g);
    load(s, file);
    save(s, file); /* over the file that it came from */
    read_file(file, &b, &n_b);
    assert_int_equal(n_a, n_b);
    assert_memory_equal(a, b, n_a);
    mem_free(a);
    mem_free(b);
    ds4_session_free(s);
    ds4_engine_close(g);
}

/* Rows taken in pieces of any size are the rows taken at once. */
static void pieces(void **state)
{
    struct model_run r;
    model_run_open(&r, kit_path(KIT_Q8), &(struct model_run_options){.backend = "cpu"});
    model_run_all(&r, kit_tokens(), 300, 64, NULL);
    const size_t all = r.family->rows_bytes(r.state);
    unsigned char *whole = mem_alloc(all), *part = mem_alloc(all);
    assert_true(all > 10000);
    assert_int_equal(r.family->rows_take(r.state, 0, all, whole), all);
    for (size_t most = 512; most < all; most += most / 2 + 37) {
        memset(part, 0xA5, all);
        size_t at = 0, n;
        while (at < all && (n = r.family->rows_take(r.state, at, most < all - at ? most : all - at, part + at)) > 0)
            assert_true(n <= most), at += n;
        assert_int_equal(at, all);
        assert_memory_equal(whole, part, all);
    }
    assert_int_equal(r.family->rows_take(r.state, all, all, part), 0);
    mem_free(whole);
    mem_free(part);
    model_run_close(&r);
}

/* ---------------------------------------------------------------- refusals */

enum { KEPT = 40 };

/* The message names the file and says this; the session is as before. */
static void refused(ds4_session *s, const char *path, int code, const char *part)
{
    struct ds4_error e = {0};
    const int rc = ds4_session_load(s, path, &e);
    if (rc != code || e.code != code || !strstr(e.message, path) || !strstr(e.message, part))
        fail_msg("%d instead of %d, \"%s\" in: %s", rc, code, part, e.message);
    kit_check(s, KIT_Q8, KEPT);
}

static void wrong_files(void **state)
{
    const struct ds4_options o = kit_options(KIT_Q8), o16 = kit_options(KIT_F16);
    struct ds4_options exact = o, ref = o;
    exact.kv_sim_off = true;
    ref.backend = "ref";
    ds4_engine *g = kit_open(&o);
    ds4_session *s = kit_session(g);
    kit_sync(s, kit_tokens(), KEPT);
    save_tokens(&o16, 30, file);
    refused(s, file, DS4_E_MODEL, "another model file");
    save_tokens(&ref, 30, file);
    refused(s, file, DS4_E_MODEL, "made with the backend \"ref\", this is \"cpu\"");
    save_tokens(&exact, 30, file);
    refused(s, file, DS4_E_MODEL, "made with --kv-sim off, this is on");
    refused(s, "README.md", DS4_E_FORMAT, "not a session file");
    refused(s, "src", DS4_E_IO, "a folder, not a file");
    refused(s, "/tmp/ds4 no such file", DS4_E_IO, "No such file");
    save_tokens(&o, 30, file);
    load(s, file);
    goes_on(s, KIT_Q8, 30);
    ds4_session_free(s);
    ds4_engine_close(g);
}

static void draft_or_not(void **state)
{
    struct ds4_options o = kit_options(KIT_QWEN);
    for (int draft = 0; draft < 2; draft++) {
        struct ds4_error e = {0};
        o.draft = draft;
        save_tokens(&o, 40, file);
        o.draft = !draft;
        ds4_engine *g = kit_open(&o);
        ds4_session *s = kit_session(g);
        kit_sync(s, kit_tokens(), 7);
        assert_int_equal(ds4_session_load(s, file, &e), DS4_E_MODEL);
        assert_non_null(
            strstr(e.message, draft ? "with --draft, this is without it" : "without --draft, this is with it"));
        kit_check(s, KIT_QWEN, 7);
        ds4_session_free(s);
        ds4_engine_close(g);
    }
}

static void too_many_tokens(void **state)
{
    struct ds4_error e = {0};
    const struct ds4_options o = kit_options(KIT_Q8);
    ds4_engine *g = kit_open(&o);
    ds4_session *s;
    assert_int_equal(ds4_session_create(g, 299, &s, &e), 0);
    kit_sync(s, kit_tokens(), KEPT);
    save_tokens(&o, 300, file);
    refused(s, file, DS4_E_LIMIT, "300 tokens, the context room for 299");
    ds4_session_free(s);
    ds4_engine_close(g);
}

/* Offsets of the header as the comment in session_file.c has it. */
enum { AT_VERSION = 8, AT_LENGTH = 12, HEADER = 112 };

static const char *what_a_flip_says(size_t at)
{
    return at < AT_VERSION  ? "not a session file"
           : at < AT_LENGTH ? "version"
           : at < HEADER    ? "damaged: the checksum of its header"
                            : "damaged: the checksum of its contents";
}

static void flipped_bytes(void **state)
{
    const struct ds4_options o = kit_options(KIT_Q8);
    ds4_engine *g = kit_open(&o);
    ds4_session *s = kit_session(g);
    char *data;
    size_t n;
    kit_sync(s, kit_tokens(), KEPT);
    save_tokens(&o, 150, file);
    read_file(file, &data, &n);
    for (size_t i = 0; i < n; i += i < HEADER + 32 || i + 24 > n ? 1 : n / 197) {
        data[i] ^= 1 << i % 8;
        write_file(file, data, n);
        refused(s, file, DS4_E_FORMAT, what_a_flip_says(i));
        data[i] ^= 1 << i % 8;
    }
    data[AT_VERSION] = 2;
    write_file(file, data, n);
    refused(s, file, DS4_E_FORMAT, "version 2; this ds4 reads version 1");
    mem_free(data);
    ds4_session_free(s);
    ds4_engine_close(g);
}

static void cut_files(void **state)
{
    const struct ds4_options o = kit_options(KIT_Q8);
    ds4_engine *g = kit_open(&o);
    ds4_session *s = kit_session(g);
    char *data;
    size_t n;
    kit_sync(s, kit_tokens(), KEPT);
    save_tokens(&o, 150, file);
    read_file(file, &data, &n); /* a zero byte follows */
    write_file(file, data, n + 1);
    refused(s, file, DS4_E_FORMAT, "damaged: it has");
    for (size_t i = n - 1; i > 0; i -= i > n - 24 || i < HEADER + 32 + n / 197 ? 1 : n / 197) {
        assert_int_equal(truncate(file, (off_t)i), 0);
        refused(s, file, DS4_E_FORMAT, i < AT_LENGTH ? "not a session file" : "cut off");
    }
    assert_int_equal(truncate(file, 0), 0);
    refused(s, file, DS4_E_IO, "the file is empty");
    mem_free(data);
    ds4_session_free(s);
    ds4_engine_close(g);
}

/* Neither is possible in the middle of something. */
static void busy(void **state)
{
    struct ds4_error e = {0};
    const struct ds4_options o = kit_options(KIT_Q8);
    ds4_engine *g = kit_open(&o);
    ds4_session *s = kit_session(g);
    save(s, file);
    kit_submit(s, kit_tokens(), 3);
    assert_int_equal(ds4_session_save(s, file, &e), DS4_E_ARG);
    assert_int_equal(ds4_session_load(s, file, &e), DS4_E_ARG);
    while (ds4_engine_step(g, NULL) > 0) {
    }
    assert_int_equal(ds4_session_collect(s, NULL, NULL), DS4_DONE);
    kit_check(s, KIT_Q8, 3);
    ds4_session_free(s);
    ds4_engine_close(g);
}

/* ---------------------------------------------------------------- saving that fails */

static void die(int signal_number)
{
    (void)signal_number;
    kill(getpid(), SIGKILL);
}

/* Saves in a process that may write no more than so many bytes to a file: at the next one it is killed as by kill -9,
 * or, if not deadly, gets an error. */
static int save_up_to(const struct ds4_options *o, const char *path, size_t most, bool deadly)
{
    int status;
    const pid_t pid = fork();
    if (!pid) {
        struct ds4_error e = {0};
        ds4_engine *g = kit_open(o);
        ds4_session *s = kit_session(g);
        kit_sync(s, kit_tokens(), 200);
        signal(SIGXFSZ, deadly ? die : SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){.rlim_cur = most, .rlim_max = most});
        const int rc = ds4_session_save(s, path, &e);
        kit_check(s, KIT_Q8, 200);
        _exit(rc == 0 ? 0 : rc == DS4_E_IO && strstr(e.message, path) ? 1 : 2);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void old_file_stays(void **state)
{
    const struct ds4_options o = kit_options(KIT_Q8);
    char *old, *now;
    size_t n, n_now;
    struct stat st;
    save_tokens(&o, 200, file);
    assert_int_equal(stat(file, &st), 0);
    const size_t full = (size_t)st.st_size;
    save_tokens(&o, 100, file);
    read_file(file, &old, &n);
    for (int i = 0; i < 8; i++) {
        const size_t most = i == 7 ? full - 1 : full * (size_t)i / 7;
        const int killed = save_up_to(&o, file, most, true), failed = save_up_to(&o, file, most, false);
        assert_true(WIFSIGNALED(killed) && WTERMSIG(killed) == SIGKILL);
        assert_true(WIFEXITED(failed) && WEXITSTATUS(failed) == 1);
        read_file(file, &now, &n_now);
        assert_int_equal(n_now, n);
        assert_memory_equal(now, old, n);
        mem_free(now);
    }
    assert_int_equal(save_up_to(&o, file, full, true), 0);
    read_file(file, &now, &n_now);
    assert_int_equal(n_now, full);
    mem_free(old);
    mem_free(now);
}

static void no_place(void **state)
{
    struct ds4_error e = {0};
    const struct ds4_options o = kit_options(KIT_Q8);
    ds4_engine *g = kit_open(&o);
    ds4_session *s = kit_session(g);
    kit_sync(s, kit_tokens(), 20);
    assert_int_equal(ds4_session_save(s, "/tmp/ds4 no such folder/x", &e), DS4_E_IO);
    assert_non_null(strstr(e.message, "/tmp/ds4 no such folder/x"));
    assert_int_equal(ds4_session_save(s, "/tmp", &e), DS4_E_IO);
    kit_check(s, KIT_Q8, 20);
    ds4_session_free(s);
    ds4_engine_close(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draft_or_not),
        cmocka_unit_test(comes_back),
        cmocka_unit_test(other_circumstances),
        cmocka_unit_test(fits_exactly),
        cmocka_unit_test(same_bytes),
        cmocka_unit_test(pieces),
        cmocka_unit_test(wrong_files),
        cmocka_unit_test(too_many_tokens),
        cmocka_unit_test(flipped_bytes),
        cmocka_unit_test(cut_files),
        cmocka_unit_test(busy),
        cmocka_unit_test(old_file_stays),
        cmocka_unit_test(no_place),
    };
    return cmocka_run_group_tests(tests, make_file, kit_teardown);
}
