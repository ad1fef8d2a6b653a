/* Calls that come back: who gets which block, and what is forgotten first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <pthread.h>
#include "serve/tool_memory.h"

static void put(struct tool_memory *m, const char *key, const char *ids, const char *block, const char *reasoning)
{
    char id[8][CALL_ID_SIZE] = {{0}};
    struct str b = {0}, r = {0};
    size_t n = 0;
    for (const char *p = ids; *p; p++) snprintf(id[n++], CALL_ID_SIZE, "call_%c", *p);
    str_puts(&b, block);
    str_puts(&r, reasoning);
    tool_memory_put(m, key, id, n, &b, &r);
    str_free(&b);
    str_free(&r);
}

/* What is known of the calls: "block/reasoning", or "-". Valid until the next call. */
static const char *get(struct tool_memory *m, const char *key, const char *ids)
{
    static char out[256], id[8][CALL_ID_SIZE];
    const char *list[8];
    struct str b = {0}, r = {0};
    size_t n = 0;
    for (const char *p = ids; *p; p++) {
        snprintf(id[n], CALL_ID_SIZE, "call_%c", *p);
        list[n] = id[n];
        n++;
    }
    if (tool_memory_get(m, key, list, n, &b, &r))
        snprintf(out, sizeof out, "%s/%s", str_c(&b), str_c(&r));
    else
        snprintf(out, sizeof out, "-");
    str_free(&b);
    str_free(&r);
    return out;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void test_ids_are_random(void **state)
{
    enum { N = 4096 };
    static char id[N][CALL_ID_SIZE];
    int seen[32][16] = {{0}};
    for (int i = 0; i < N; i++) {
        tool_memory_id("toolu_", id[i]);
        assert_int_equal(strlen(id[i]), 6 + 32);
        assert_int_equal(strspn(id[i] + 6, "0123456789abcdef"), 32);
        assert_memory_equal(id[i], "toolu_", 6);
        for (int k = 0; k < 32; k++) seen[k][strtol((char[]){id[i][6 + k], 0}, NULL, 16)]++;
    }
    /* 256 of each digit at each place are expected; less than 128 happens to a fair source once in 10^15 */
    for (int k = 0; k < 32; k++)
        for (int d = 0; d < 16; d++) assert_in_range(seen[k][d], 128, 512);
    qsort(id, N, CALL_ID_SIZE, by_text);
    for (int i = 1; i < N; i++) assert_string_not_equal(id[i - 1], id[i]);
    char longest[CALL_ID_SIZE];
    tool_memory_id("fifteen_bytes__", longest);
    assert_int_equal(strlen(longest), 47);
}

static void test_only_under_the_same_key(void **state)
{
    struct tool_memory *m = tool_memory_new(10, 1000);
    put(m, "alice", "a", "A", "why");
    put(m, NULL, "n", "N", "");
    assert_string_equal(get(m, "alice", "a"), "A/why");
    assert_string_equal(get(m, "bob", "a"), "-");
    assert_string_equal(get(m, NULL, "a"), "-");
    assert_string_equal(get(m, NULL, "n"), "N/");
    assert_string_equal(get(m, "alice", "n"), "-");
    /* key and id together do not make another pair */
    put(m, "alicecall_", "x", "X", "");
    assert_string_equal(get(m, "alice", "x"), "-");
    tool_memory_free(m);
}

static void test_all_calls_of_one_answer(void **state)
{
    struct tool_memory *m = tool_memory_new(10, 1000);
    put(m, "k", "abc", "ABC", "r1");
    put(m, "k", "d", "D", "r2");
    assert_string_equal(get(m, "k", "abc"), "ABC/r1");
    assert_string_equal(get(m, "k", "cab"), "ABC/r1"); /* in any order */
    assert_string_equal(get(m, "k", "b"), "ABC/r1");
    assert_string_equal(get(m, "k", "abd"), "-"); /* of two answers */
    assert_string_equal(get(m, "k", "abz"), "-"); /* one unknown */
    assert_string_equal(get(m, "k", "zab"), "-");
    assert_string_equal(get(m, "k", ""), "-");
    put(m, "k", "e", "", "r3"); /* no block: nothing to replay */
    assert_string_equal(get(m, "k", "e"), "-");
    tool_memory_free(m);
}

static void test_what_is_found_is_appended(void **state)
{
    struct tool_memory *m = tool_memory_new(10, 1000);
    const char *id = "call_a";
    struct str b = {0}, r = {0};
    put(m, NULL, "a", "block", "thought");
    str_puts(&b, "before ");
    str_puts(&r, "and ");
    assert_true(tool_memory_get(m, NULL, &id, 1, &b, &r));
    assert_string_equal(str_c(&b), "before block");
    assert_string_equal(str_c(&r), "and thought");
    str_free(&b);
    str_free(&r);
    tool_memory_free(m);
}

static void test_oldest_use_goes_first(void **state)
{
    struct tool_memory *m = tool_memory_new(3, 1000);
    put(m, "k", "a", "A", "");
    put(m, "k", "b", "B", "");
    put(m, "k", "c", "C", "");
    assert_string_equal(get(m, "k", "a"), "A/"); /* used again: b is the oldest now */
    put(m, "k", "d", "D", "");
    assert_string_equal(get(m, "k", "b"), "-");
    assert_string_equal(get(m, "k", "a"), "A/");
    assert_string_equal(get(m, "k", "c"), "C/");
    put(m, "k", "ef", "EF", ""); /* two ids push out two: d, then a */
    assert_string_equal(get(m, "k", "d"), "-");
    assert_string_equal(get(m, "k", "a"), "-");
    assert_string_equal(get(m, "k", "c"), "C/");
    assert_string_equal(get(m, "k", "ef"), "EF/");
    tool_memory_free(m);
}

static void test_an_answer_lives_with_its_last_id(void **state)
{
    struct tool_memory *m = tool_memory_new(2, 1000);
    put(m, "k", "ab", "AB", "r");
    assert_string_equal(get(m, "k", "a"), "AB/r");
    put(m, "k", "c", "C", ""); /* b goes */
    assert_string_equal(get(m, "k", "ab"), "-");
    assert_string_equal(get(m, "k", "a"), "AB/r");
    tool_memory_free(m);
}

static void test_bytes_are_limited(void **state)
{
    /* a block, what was thought, and a key "k", zero, "call_x" of 8 bytes: 8 + 10 + 2 = 20 each */
    struct tool_memory *m = tool_memory_new(100, 60);
    put(m, "k", "a", "0123456789", "aa");
    put(m, "k", "b", "0123456789", "bb");
    put(m, "k", "c", "0123456789", "cc");
    assert_string_equal(get(m, "k", "a"), "0123456789/aa"); /* exactly full: all three are there */
    put(m, "k", "d", "x", "");
    assert_string_equal(get(m, "k", "b"), "-");
    assert_string_equal(get(m, "k", "c"), "0123456789/cc");
    /* what can never fit pushes nothing out */
    put(m, "k", "e", "0123456789012345678901234567890123456789012345678901234567890", "");
    assert_string_equal(get(m, "k", "e"), "-");
    assert_string_equal(get(m, "k", "a"), "0123456789/aa");
    assert_string_equal(get(m, "k", "d"), "x/");
    tool_memory_free(m);
    m = tool_memory_new(0, 1000);
    put(m, "k", "a", "A", "");
    assert_string_equal(get(m, "k", "a"), "-");
    tool_memory_free(m);
    tool_memory_free(NULL);
}

/* Every thread finds its own calls, whatever the others do. */
struct user {
    struct tool_memory *memory;
    const char *key;
    bool all; /* nothing is forgotten meanwhile */
};

static void *use_memory(void *arg)
{
    struct tool_memory *const m = ((struct user *)arg)->memory;
    const char *const key = ((struct user *)arg)->key;
    for (int i = 0; i < 2000; i++) {
        char id[1][CALL_ID_SIZE];
        const char *list = id[0];
        struct str block = {0}, reasoning = {0}, got = {0}, thought = {0};
        tool_memory_id("call_", id[0]);
        str_printf(&block, "%s%d", key, i);
        tool_memory_put(m, key, id, 1, &block, &reasoning);
        const bool found = tool_memory_get(m, key, &list, 1, &got, &thought);
        if (found ? strcmp(got.p, block.p) != 0 : ((struct user *)arg)->all) return arg;
        str_free(&block);
        str_free(&got);
        str_free(&thought);
    }
    return NULL;
}

static void four_threads(size_t max_ids, bool all)
{
    struct tool_memory *m = tool_memory_new(max_ids, 1000000);
    pthread_t thread[4];
    struct user user[4] = {{m, "a", all}, {m, "b", all}, {m, "c", all}, {m, "d", all}};
    for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&thread[i], NULL, use_memory, &user[i]), 0);
    for (int i = 0; i < 4; i++) {
        void *wrong;
        pthread_join(thread[i], &wrong);
        assert_null(wrong);
    }
    tool_memory_free(m);
}

static void test_threads(void **state)
{
    four_threads(8000, true);
    four_threads(20, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ids_are_random),          cmocka_unit_test(test_only_under_the_same_key),
        cmocka_unit_test(test_all_calls_of_one_answer), cmocka_unit_test(test_what_is_found_is_appended),
        cmocka_unit_test(test_oldest_use_goes_first),   cmocka_unit_test(test_an_answer_lives_with_its_last_id),
        cmocka_unit_test(test_bytes_are_limited),       cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
