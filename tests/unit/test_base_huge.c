/* base/file.h: pieces of a mapping in huge pages of the system's cache. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "../support/temp_files.h"
#include "base/file.h"

enum { PIECES = 3, MORE = 12345 };
static const uint64_t size = PIECES * FILE_HUGE_BYTES + MORE;
static char folder[TEMP_PATH], path[TEMP_PATH + 8];

static uint8_t byte_at(uint64_t i)
{
    return (uint8_t)(i % 251 + i / FILE_HUGE_BYTES);
}

/* In small pages: written piece by piece, of no page's size. */
static int make_file(void **state)
{
    temp_folder(folder);
    snprintf(path, sizeof path, "%s/data", folder);
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    uint8_t part[3000];
    for (uint64_t at = 0; at < size; at += sizeof part) {
        const size_t n = size - at < sizeof part ? (size_t)(size - at) : sizeof part;
        for (size_t i = 0; i < n; i++) part[i] = byte_at(at + i);
        assert_int_equal(write(fd, part, n), (ssize_t)n);
    }
    close(fd);
    return 0;
}

static int remove_file(void **state)
{
    return temp_remove(folder);
}

static struct file_map *map(void)
{
    struct file_map *m;
    struct err e = {0};
    assert_int_equal(file_map_open(path, &m, &e), 0);
    assert_int_equal(file_map_size(m), size);
    return m;
}

static void expect_bytes(const struct file_map *m)
{
    const uint8_t *p = file_map_data(m);
    for (uint64_t i = 0; i < size; i++)
        if (p[i] != byte_at(i)) fail_msg("byte %llu is %d", (unsigned long long)i, p[i]);
}

static void mappings_have_the_borders_of_huge_pages(void **state)
{
    struct file_map *m = map();
    assert_int_equal((uintptr_t)file_map_data(m) % FILE_HUGE_BYTES, 0);
    expect_bytes(m);
    file_map_close(m);
}

/* Puts what is small into huge pages; how many pieces are in such in the end. */
static int make_all(const struct file_map *m, int tables, int fd)
{
    int whole = 0;
    for (uint64_t at = 0; at < PIECES * FILE_HUGE_BYTES; at += FILE_HUGE_BYTES) {
        const enum file_huge was = file_huge_look(tables, m, at);
        assert_int_not_equal(was, FILE_HUGE_ABSENT);
        if (was == FILE_HUGE_SMALL && !file_huge_make(tables, m, fd, at)) continue;
        assert_int_equal(file_huge_look(tables, m, at), FILE_HUGE_WHOLE);
        whole++;
    }
    return whole;
}

/* After this line there is a system that can look at its page tables, or the test is over. */
static int tables_or_skip(const struct file_map *m)
{
    const int tables = file_huge_open();
    if (tables < 0) {
        print_message("skipped: this system does not tell what lies in huge pages\n");
        skip();
    }
    file_huge_ask(m, 0, size);
    return tables;
}

static void pieces_come_into_huge_pages(void **state)
{
    struct file_map *m = map();
    const int tables = tables_or_skip(m), fd = open(path, O_RDONLY);
    const int whole = make_all(m, tables, fd);
    expect_bytes(m);
    close(fd);
    close(tables);
    file_map_close(m);
    if (whole == PIECES) return;
    print_message("skipped: %d of %d pieces are in huge pages: this file system, or this kernel, has none\n", whole,
                  PIECES);
    skip();
}

struct reader {
    const struct file_map *m;
    atomic_bool over;
    uint64_t wrong;
};

static void *read_on(void *arg)
{
    struct reader *r = arg;
    const uint8_t *p = file_map_data(r->m);
    do {
        for (uint64_t i = 0; i < size; i += 509) r->wrong += p[i] != byte_at(i);
    } while (!atomic_load(&r->over));
    return NULL;
}

static void others_read_meanwhile(void **state)
{
    struct file_map *m = map();
    const int tables = tables_or_skip(m), fd = open(path, O_RDONLY);
    struct reader r = {.m = m};
    pthread_t id;
    assert_int_equal(pthread_create(&id, NULL, read_on, &r), 0);
    for (int i = 0; i < 20; i++)
        for (uint64_t at = 0; at < PIECES * FILE_HUGE_BYTES; at += FILE_HUGE_BYTES) file_huge_make(tables, m, fd, at);
    atomic_store(&r.over, true);
    pthread_join(id, NULL);
    assert_int_equal(r.wrong, 0);
    close(fd);
    close(tables);
    file_map_close(m);
}

static void a_file_that_lost_its_end_is_told_as_ever(void **state)
{
    struct file_map *m = map();
    const int tables = tables_or_skip(m), fd = open(path, O_RDONLY);
    assert_int_equal(truncate(path, (off_t)FILE_HUGE_BYTES), 0);
    for (uint64_t at = 0; at < PIECES * FILE_HUGE_BYTES; at += FILE_HUGE_BYTES) {
        file_huge_look(tables, m, at);
        file_huge_make(tables, m, fd, at);
    }
    uint64_t lost;
    assert_false(file_map_lost(m, &lost));
    assert_int_equal(file_map_data(m)[FILE_HUGE_BYTES - 1], byte_at(FILE_HUGE_BYTES - 1));
    assert_int_equal(*(volatile const uint8_t *)(file_map_data(m) + FILE_HUGE_BYTES), 0);
    assert_true(file_map_lost(m, &lost));
    assert_int_equal(lost, FILE_HUGE_BYTES);
    close(fd);
    close(tables);
    file_map_close(m);
}

#define WITH_FILE(f) cmocka_unit_test_setup_teardown(f, make_file, remove_file)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FILE(mappings_have_the_borders_of_huge_pages),
        WITH_FILE(pieces_come_into_huge_pages),
        WITH_FILE(others_read_meanwhile),
        WITH_FILE(a_file_that_lost_its_end_is_told_as_ever),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
