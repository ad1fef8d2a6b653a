/* The journal of requests: what is in a line and what never is, who can read it, and a disk that is full. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <jansson.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "serve/http_parse.h"
#include "serve/journal.h"
#include "../support/temp_files.h"

static const char *const keys[] = {"sk-server-key"};
static const struct http_limits limits = {.head_bytes = 65536, .header_fields = 128};

static struct journal *open_journal(const char *path)
{
    struct journal *j;
    struct err e = {0};
    if (journal_open(path, keys, 1, &j, &e)) fail_msg("%s", e.msg);
    return j;
}

/* A request that has come and been answered. */
static void record(struct journal *j, const char *head, const char *body, size_t n, int status, const char *how)
{
    struct http_head h = {0};
    size_t used;
    assert_int_equal(http_head_feed(&h, head, strlen(head), &limits, &used), HTTP_READ_DONE);
    const struct http_request q = {
        .method = "POST", .path = "/v1/messages", .body = (char *)body, .n_body = n, .head = &h};
    struct journal_entry *e = journal_begin(j, &q);
    http_head_free(&h);
    journal_told(e, 0);
    journal_told(e, 100);
    journal_told(e, 23);
    journal_end(e, status, how);
}

#define HEAD                                                                                                           \
    "POST /v1/messages?beta=true&api_key=in-the-query HTTP/1.1\r\nHost: localhost\r\nContent-Type: "                   \
    "application/json\r\n"                                                                                             \
    "Content-Length: 2\r\nAuthorization: Bearer sk-one\r\nProxy-Authorization: Basic sk-two\r\nX-API-Key: "            \
    "sk-three\r\n"                                                                                                     \
    "Cookie: id=sk-four\r\nX-Auth-Token: sk-five\r\nX-Odd: it is sk-server-key\r\nanthropic-version: "                 \
    "2023-06-01\r\n\r\n"

static char *whole(const char *path, size_t *n)
{
    char *text;
    struct err e = {0};
    if (file_read(path, 1 << 26, &text, n, &e)) fail_msg("%s", e.msg);
    return text;
}

/* Line number i of the file, from 0; NULL: it is no JSON. */
static json_t *line_of(const char *path, int i)
{
    size_t n;
    char *text = whole(path, &n);
    const char *p = text;
    while (p && i--) p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL;
    assert_non_null(p);
    json_t *v = json_loadb(p, strcspn(p, "\n"), JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    mem_free(text);
    return v;
}

static const char *text_at(const json_t *v, const char *a, const char *b)
{
    v = json_object_get(v, a);
    if (b) v = json_object_get(v, b);
    return json_string_value(v);
}

static void test_a_line(void **state)
{
    char path[TEMP_PATH];
    temp_file(path);
    struct journal *j = open_journal(path);
    record(j, HEAD, "{\"a\": \"\xc3\xa9\n\"}", 12, 200, "complete");
    record(j, HEAD, "\xff\x00{", 3, 503, "error");
    record(j, HEAD, NULL, 0, 0, "client gone");
    journal_close(j);
    json_t *v = line_of(path, 0);
    assert_string_equal(text_at(v, "method", NULL), "POST");
    assert_string_equal(text_at(v, "path", NULL), "/v1/messages");
    assert_string_equal(text_at(v, "body", NULL), "{\"a\": \"\xc3\xa9\n\"}");
    assert_true(json_number_value(json_object_get(v, "time")) > 1.6e9);
    assert_int_equal(json_integer_value(json_object_get(v, "status")), 200);
    assert_string_equal(text_at(v, "headers", "Content-Type"), "application/json");
    assert_string_equal(text_at(v, "headers", "anthropic-version"), "2023-06-01");
    assert_int_equal(json_object_size(json_object_get(v, "headers")), 4);
    const json_t *answer = json_object_get(v, "answer");
    assert_int_equal(json_integer_value(json_object_get(answer, "bytes")), 123);
    const double all = json_real_value(json_object_get(answer, "seconds")),
                 first = json_real_value(json_object_get(answer, "first_seconds"));
    assert_true(first >= 0 && all >= first && all < 60);
    assert_string_equal(text_at(v, "answer", "end"), "complete");
    json_decref(v);
    v = line_of(path, 1);
    assert_null(json_object_get(v, "body"));
    assert_string_equal(text_at(v, "body_base64", NULL), "/wB7");
    assert_string_equal(text_at(v, "answer", "end"), "error");
    json_decref(v);
    v = line_of(path, 2);
    assert_true(json_is_null(json_object_get(v, "status")));
    assert_string_equal(text_at(v, "body", NULL), "");
    json_decref(v);
    temp_remove(path);
}

static void test_no_secrets(void **state)
{
    char path[TEMP_PATH];
    size_t n;
    temp_file(path);
    struct journal *j = open_journal(path);
    record(j, HEAD, "{}", 2, 200, "complete");
    journal_close(j);
    char *text = whole(path, &n);
    static const char *const never[] = {"sk-", "in-the-query", "Authorization", "Cookie", "beta=true"};
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        if (strstr(text, never[i])) fail_msg("%s is in %s", never[i], text);
    mem_free(text);
    temp_remove(path);
}

static int mode_of(const char *path)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return st.st_mode & 0777;
}

static void test_only_its_owner_reads_it(void **state)
{
    char folder[TEMP_PATH], path[TEMP_PATH + 10];
    temp_folder(folder);
    snprintf(path, sizeof path, "%s/journal", folder);
    journal_close(open_journal(path));
    assert_int_equal(mode_of(path), 0600);
    FILE *f = fopen(path, "w");
    fputs("{\"what\": \"was there\"}\n", f);
    fclose(f);
    chmod(path, 0644);
    struct journal *j = open_journal(path);
    assert_int_equal(mode_of(path), 0600);
    record(j, HEAD, "{}", 2, 200, "complete");
    journal_close(j);
    json_t *before = line_of(path, 0), *after = line_of(path, 1);
    assert_string_equal(text_at(before, "what", NULL), "was there");
    assert_string_equal(text_at(after, "method", NULL), "POST");
    json_decref(before);
    json_decref(after);
    struct err e = {0};
    snprintf(path, sizeof path, "%s/none/x", folder);
    assert_int_equal(journal_open(path, keys, 1, &j, &e), ERR_IO);
    assert_non_null(strstr(e.msg, path));
    temp_remove(folder);
}

static void test_none(void **state)
{
    record(NULL, HEAD, "{}", 2, 200, "complete");
    journal_close(NULL);
}

/* ---------------------------------------------------------------- trouble */

static int warnings;

static void count(void *arg, enum log_level level, const char *subject, const char *text)
{
    if (level <= LOG_WARN) warnings++;
}

static void test_full_disk(void **state)
{
    warnings = 0;
    log_to(count, NULL, LOG_INFO);
    struct journal *j = open_journal("/dev/full");
    for (int i = 0; i < 3; i++) record(j, HEAD, "{}", 2, 200, "complete");
    journal_close(j);
    assert_int_equal(warnings, 1);
    log_to(NULL, NULL, LOG_WARN);
}

/* A line that went out in part does not spoil the next one. */
static void test_torn_line(void **state)
{
    char path[TEMP_PATH];
    struct rlimit all, few;
    size_t n;
    warnings = 0;
    log_to(count, NULL, LOG_INFO);
    temp_file(path);
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &all);
    struct journal *j = open_journal(path);
    record(j, HEAD, "{}", 2, 200, "complete");
    mem_free(whole(path, &n));
    few = (struct rlimit){n + 50, all.rlim_max};
    setrlimit(RLIMIT_FSIZE, &few);
    record(j, HEAD, "{}", 2, 201, "complete");
    record(j, HEAD, "{}", 2, 202, "complete");
    setrlimit(RLIMIT_FSIZE, &all);
    record(j, HEAD, "{}", 2, 203, "complete");
    journal_close(j);
    json_t *torn = line_of(path, 1), *next = line_of(path, 2);
    assert_null(torn);
    assert_int_equal(json_integer_value(json_object_get(next, "status")), 203);
    assert_int_equal(warnings, 1);
    json_decref(next);
    signal(SIGXFSZ, SIG_DFL);
    log_to(NULL, NULL, LOG_WARN);
    temp_remove(path);
}

static void *many(void *j)
{
    char body[5000];
    memset(body, 'x', sizeof body);
    for (int i = 0; i < 100; i++) record(j, HEAD, body, sizeof body, 200, "complete");
    return NULL;
}

static void test_threads(void **state)
{
    char path[TEMP_PATH];
    size_t n, lines = 0;
    pthread_t thread[4];
    temp_file(path);
    struct journal *j = open_journal(path);
    for (int i = 0; i < 4; i++) pthread_create(&thread[i], NULL, many, j);
    for (int i = 0; i < 4; i++) pthread_join(thread[i], NULL);
    journal_close(j);
    char *text = whole(path, &n);
    for (char *p = text, *end; (end = strchr(p, '\n')); p = end + 1) {
        json_t *v = json_loadb(p, (size_t)(end - p), 0, NULL);
        assert_non_null(v);
        json_decref(v);
        lines++;
    }
    assert_int_equal(lines, 400);
    mem_free(text);
    temp_remove(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_line),
        cmocka_unit_test(test_no_secrets),
        cmocka_unit_test(test_only_its_owner_reads_it),
        cmocka_unit_test(test_none),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_torn_line),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
