/* base/file.h: mappings that lose pages, whole reads, atomic replacement. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../support/temp_files.h"
#include "base/file.h"
#include "base/mem.h"

static char folder[TEMP_PATH], path[200];

static int make_folder(void **state)
{
    temp_folder(folder);
    snprintf(path, sizeof path, "%s/data", folder);
    return 0;
}

static int remove_folder(void **state)
{
    return temp_remove(folder);
}

static void put_bytes(size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    for (size_t i = 0; i < n; i++) fputc((int)(i % 251), f);
    fclose(f);
}

static int files_in_folder(void)
{
    int n = 0;
    DIR *d = opendir(folder);
    for (const struct dirent *x; (x = readdir(d));) n += x->d_name[0] != '.';
    closedir(d);
    return n;
}

/* Whether reading a byte of the mapping ends the process. */
static bool is_gone(const struct file_map *m, uint64_t at)
{
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        signal(SIGBUS, SIG_DFL);
        volatile const uint8_t *const p = file_map_data(m);
        _exit(p[at] == at % 251 ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
    return WIFSIGNALED(status);
}

static void a_range_is_taken_out_of_a_mapping(void **state)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), size = 10 * page + 100;
    struct err e = {0};
    struct file_map *m;
    put_bytes(size);
    assert_int_equal(file_map_open(path, &m, &e), 0);
    file_map_release(m, page + 1, page - 2); /* no whole page */
    assert_false(is_gone(m, page + 1));
    file_map_release(m, 3 * page - 1, 2 * page + 2);
    assert_false(is_gone(m, 3 * page - 1));
    assert_true(is_gone(m, 3 * page));
    assert_true(is_gone(m, 5 * page - 1));
    assert_false(is_gone(m, 5 * page));
    file_map_release(m, 9 * page, UINT64_MAX); /* with what is behind the file's end */
    assert_false(is_gone(m, 9 * page - 1));
    assert_true(is_gone(m, size - 1));
    file_map_release(m, size, 1);
    file_map_close(m);
}

static void map_shows_the_file(void **state)
{
    struct err e = {0};
    struct file_map *m;
    put_bytes(10000);
    assert_int_equal(file_map_open(path, &m, &e), 0);
    assert_int_equal(file_map_size(m), 10000);
    assert_string_equal(file_map_path(m), path);
    for (size_t i = 0; i < 10000; i++) assert_int_equal(file_map_data(m)[i], i % 251);
    file_map_willneed(m, 5000, UINT64_MAX);
    file_map_willneed(m, 20000, 1);
    assert_false(file_map_lost(m, NULL));
    file_map_close(m);
    file_map_close(NULL);
}

static long faults(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_minflt + u.ru_majflt;
}

/* Bytes of every page from 5000 on that differ from the file's. Sanitizers would touch pages of their own. */
__attribute__((no_sanitize("address", "thread"))) static long wrong_bytes(const uint8_t *p, size_t n)
{
    long wrong = 0;
    for (size_t i = 5000; i < n; i += 4096) wrong += p[i] != i % 251;
    return wrong;
}

/* Pages of a range that was asked for are there without a fault, and hold what the file holds. */
static void map_is_populated(void **state)
{
    enum { SIZE = 8 << 20 };
    struct err e = {0};
    struct file_map *m;
    put_bytes(SIZE);
    assert_int_equal(file_map_open(path, &m, &e), 0);
    const bool populated = file_map_populate(m, 5000, UINT64_MAX);
    assert_true(file_map_populate(m, SIZE, 1)); /* nothing to do */
    const long before = faults();
    assert_int_equal(wrong_bytes(file_map_data(m), SIZE), 0);
    if (populated) assert_true(faults() - before < 8);
    file_map_close(m);
}

/* A link is its file, a copy is not. */
static void map_knows_the_same_file(void **state)
{
    struct err e = {0};
    struct file_map *m[3];
    uint64_t id[3][2];
    char linked[400];
    put_bytes(100);
    snprintf(linked, sizeof linked, "%s/link", folder);
    assert_int_equal(symlink(path, linked), 0);
    const char *const names[] = {path, linked, "Makefile"};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(file_map_open(names[i], &m[i], &e), 0);
        file_map_id(m[i], id[i]);
    }
    assert_memory_equal(id[0], id[1], sizeof id[0]);
    assert_memory_not_equal(id[0], id[2], sizeof id[0]);
    for (int i = 0; i < 3; i++) file_map_close(m[i]);
    assert_int_equal(unlink(linked), 0);
}

static void expect_refused(const char *name, const char *fragment)
{
    struct err e = {0};
    struct file_map *m;
    assert_int_equal(file_map_open(name, &m, &e), ERR_IO);
    assert_null(m);
    assert_non_null(strstr(e.msg, name));
    assert_non_null(strstr(e.msg, fragment));
}

static void map_refuses_what_is_no_file(void **state)
{
    struct err e = {0};
    char *text;
    size_t n;
    expect_refused(path, "No such file");
    put_bytes(0);
    expect_refused(path, "empty");
    expect_refused(folder, "a folder, not a file");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    expect_refused(path, "not a regular file"); /* and nobody has to write to it */
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("../no/where", path), 0);
    expect_refused(path, " is a link to ../no/where, which is not there: put the file there, or make the link anew");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("../../blobs/aa", path), 0);
    expect_refused(path, " is a link to ../../blobs/aa, which is not there: its download was not finished, or the "
                         "cache was cleared; download it again");
    assert_int_equal(file_read(path, 100, &text, &n, &e), ERR_IO);
    assert_non_null(strstr(e.msg, "which is not there: its download was not finished"));
    assert_int_equal(unlink(path), 0);
}

/* A second mapping stays untouched, the lost pages read as zero, and the lowest lost page is reported. */
static void truncated_file_reads_as_zeros(void **state)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct err e = {0};
    struct file_map *m, *other;
    put_bytes(8 * page);
    assert_int_equal(file_map_open(path, &m, &e), 0);
    assert_int_equal(file_map_open("Makefile", &other, &e), 0);
    assert_int_equal(truncate(path, (off_t)(2 * page)), 0);
    const volatile uint8_t *data = file_map_data(m);
    assert_int_equal(data[page + 1], (page + 1) % 251);
    assert_false(file_map_lost(m, NULL));
    assert_int_equal(data[5 * page + 7], 0);
    uint64_t at = 0;
    assert_true(file_map_lost(m, &at));
    assert_int_equal(at, 5 * page);
    assert_int_equal(data[3 * page], 0);
    assert_int_equal(data[7 * page], 0);
    assert_true(file_map_lost(m, &at));
    assert_int_equal(at, 3 * page);
    assert_false(file_map_lost(other, NULL));
    file_map_close(m);
    assert_int_equal(file_map_open("Makefile", &m, &e), 0);
    assert_false(file_map_lost(m, NULL));
    file_map_close(m);
    file_map_close(other);
}

/* Maps path in a child whose action for SIGBUS is the default, runs fn there and returns the signal that ended the
 * child, 0 for a normal exit. */
static int signal_of(void (*fn)(const struct file_map *m))
{
    const pid_t pid = fork();
    if (!pid) {
        const struct rlimit none = {0, 0};
        struct file_map *m;
        setrlimit(RLIMIT_CORE, &none);
        signal(SIGBUS, SIG_DFL);
        if (file_map_open(path, &m, NULL)) _exit(1);
        fn(m);
        _exit(0);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void send_sigbus(const struct file_map *m)
{
    raise(SIGBUS);
}

static void fault_elsewhere(const struct file_map *m)
{
    const int fd = open(path, O_RDONLY);
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const volatile uint8_t *p = mmap(NULL, 4 * page, PROT_READ, MAP_PRIVATE, fd, 0);
    const volatile uint8_t v = p[3 * page];
    (void)v;
}

static void fault_in_mapping(const struct file_map *m)
{
    uint64_t at = 0;
    const volatile uint8_t *p = file_map_data(m);
    if (truncate(path, 0) || p[9] != 0 || !file_map_lost(m, &at) || at != 0) _exit(2);
}

static void other_bus_errors_keep_the_default_action(void **state)
{
    put_bytes(10);
    assert_int_equal(signal_of(send_sigbus), SIGBUS);
    assert_int_equal(signal_of(fault_elsewhere), SIGBUS);
    assert_int_equal(signal_of(fault_in_mapping), 0);
}

static void read_whole(void **state)
{
    struct err e = {0};
    char *data;
    size_t n;
    const size_t sizes[] = {0, 1, 65534, 65535, 65536, 200000};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        put_bytes(sizes[i]);
        assert_int_equal(file_read(path, sizes[i], &data, &n, &e), 0);
        assert_int_equal(n, sizes[i]);
        assert_int_equal(data[n], 0);
        for (size_t k = 0; k < n; k++) assert_int_equal((uint8_t)data[k], k % 251);
        mem_free(data);
        if (!sizes[i]) continue;
        assert_int_equal(file_read(path, sizes[i] - 1, &data, &n, &e), ERR_LIMIT);
        assert_null(data);
        assert_non_null(strstr(e.msg, "longer than"));
        err_clear(&e);
    }
    assert_int_equal(file_read(folder, 100, &data, &n, &e), ERR_IO);
    assert_non_null(strstr(e.msg, "cannot read: Is a directory"));
    err_clear(&e);
    assert_int_equal(file_read("/nowhere/x", 100, &data, &n, &e), ERR_IO);
    assert_string_equal(e.msg, "/nowhere/x: cannot open: No such file or directory");
}

/* A file whose size is not known beforehand. */
static void read_a_pipe(void **state)
{
    char cmd[300], *data;
    size_t n;
    struct err e = {0};
    assert_int_equal(mkfifo(path, 0600), 0);
    snprintf(cmd, sizeof cmd, "head -c 300000 /dev/zero > '%s' &", path);
    assert_int_equal(system(cmd), 0);
    assert_int_equal(file_read(path, 1000000, &data, &n, &e), 0);
    assert_int_equal(n, 300000);
    mem_free(data);
}

static void writer_replaces_at_commit_only(void **state)
{
    static uint8_t big[3 << 20];
    struct err e = {0};
    struct file_writer *w;
    char *data;
    size_t n;
    put_bytes(3);
    const uid_t owner = geteuid() ? geteuid() : 65534; /* root can play the owner of other people's files */
    if (!geteuid()) assert_int_equal(chown(path, owner, 65534), 0);
    assert_int_equal(chmod(path, 0640), 0);
    assert_int_equal(file_writer_open(path, &w, &e), 0);
    for (size_t i = 0; i < sizeof big; i++) big[i] = (uint8_t)(i * 7 + 1);
    for (size_t i = 0; i < 1000; i++) assert_int_equal(file_writer_put(w, big + i, 1, &e), 0);
    assert_int_equal(file_writer_put(w, big + 1000, sizeof big - 1000, &e), 0);
    assert_int_equal(file_writer_put(w, "end", 3, &e), 0);
    assert_int_equal(file_writer_at(w), sizeof big + 3);
    assert_int_equal(file_read(path, 10, &data, &n, &e), 0);
    assert_int_equal(n, 3);
    mem_free(data);
    assert_int_equal(file_writer_commit(w, &e), 0);
    assert_int_equal(file_read(path, 10 << 20, &data, &n, &e), 0);
    assert_int_equal(n, sizeof big + 3);
    assert_memory_equal(data, big, sizeof big);
    assert_memory_equal(data + sizeof big, "end", 3);
    mem_free(data);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    assert_int_equal(st.st_uid, owner);
    assert_int_equal(files_in_folder(), 1);
}

static void writer_abort_leaves_nothing(void **state)
{
    struct err e = {0};
    struct file_writer *w, *w2;
    assert_int_equal(file_writer_open(path, &w, &e), 0);
    assert_int_equal(file_writer_open(path, &w2, &e), 0);
    assert_true(files_in_folder() == 0 || files_in_folder() == 2); /* 0: where files without names can be had */
    file_writer_put(w, "x", 1, &e);
    file_writer_abort(w);
    file_writer_abort(w2);
    file_writer_abort(NULL);
    assert_int_equal(files_in_folder(), 0);
    assert_int_equal(file_writer_open("/nowhere/x", &w, &e), ERR_IO);
    assert_null(w);
    assert_non_null(strstr(e.msg, "/nowhere/x: cannot create"));
}

/* Neither half a file nor the temporary one is left by a process that is killed. */
static void writer_killed_leaves_nothing(void **state)
{
    struct err e = {0};
    struct file_writer *w;
    assert_int_equal(file_writer_open(path, &w, &e), 0);
    const int named = files_in_folder();
    file_writer_abort(w);
    if (named) skip(); /* a file system that cannot */
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        static const char bytes[3 << 20];
        if (!file_writer_open(path, &w, &e) && !file_writer_put(w, bytes, sizeof bytes, &e)) kill(getpid(), SIGKILL);
        _exit(1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(files_in_folder(), 0);
}

static void writer_reports_a_refused_rename(void **state)
{
    struct err e = {0};
    struct file_writer *w;
    assert_int_equal(file_writer_open(path, &w, &e), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(file_writer_commit(w, &e), ERR_IO);
    assert_non_null(strstr(e.msg, "cannot replace"));
    assert_int_equal(files_in_folder(), 1);
}

/* What is no file stays what it is: a pipe gets the bytes. */
static void writer_never_replaces_a_pipe(void **state)
{
    char cmd[600], got[250], *data;
    struct err e = {0};
    struct file_writer *w;
    struct stat st;
    size_t n;
    assert_int_equal(mkfifo(path, 0600), 0);
    snprintf(got, sizeof got, "%s.got", path);
    snprintf(cmd, sizeof cmd, "cat '%s' > '%s' &", path, got);
    assert_int_equal(system(cmd), 0);
    assert_int_equal(file_writer_open(path, &w, &e), 0);
    assert_int_equal(file_writer_put(w, "text", 4, &e), 0);
    assert_int_equal(file_writer_commit(w, &e), 0);
    assert_int_equal(lstat(path, &st), 0);
    assert_true(S_ISFIFO(st.st_mode));
    for (n = 0; n < 4; usleep(1000)) {
        assert_int_equal(file_read(got, 10, &data, &n, &e), 0);
        if (n) assert_memory_equal(data, "text", n);
        mem_free(data);
    }
    assert_int_equal(files_in_folder(), 2);
}

static void writer_follows_a_link(void **state)
{
    char target[250], *data;
    struct err e = {0};
    struct file_writer *w;
    struct stat st;
    size_t n;
    put_bytes(3);
    snprintf(target, sizeof target, "%s.target", path);
    assert_int_equal(rename(path, target), 0);
    assert_int_equal(symlink(target, path), 0);
    assert_int_equal(file_writer_open(path, &w, &e), 0);
    assert_int_equal(file_writer_put(w, "text", 4, &e), 0);
    assert_int_equal(file_writer_commit(w, &e), 0);
    assert_int_equal(lstat(path, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(file_read(target, 10, &data, &n, &e), 0);
    assert_int_equal(n, 4);
    mem_free(data);
    assert_int_equal(files_in_folder(), 2);
}

/* A model that is in use is not written over, whatever name it is given; afterwards it is a file like others. */
static void writer_refuses_a_mapped_file(void **state)
{
    char linked[400];
    struct err e = {0};
    struct file_map *m;
    struct file_writer *w;
    put_bytes(100);
    snprintf(linked, sizeof linked, "%s/link", folder);
    assert_int_equal(symlink(path, linked), 0);
    assert_int_equal(file_map_open(path, &m, &e), 0);
    assert_int_equal(file_writer_open(linked, &w, &e), ERR_ARG);
    assert_null(w);
    assert_non_null(strstr(e.msg, linked));
    assert_non_null(strstr(e.msg, "is one of the files that are read here"));
    file_map_close(m);
    assert_int_equal(file_writer_open(linked, &w, &e), 0);
    file_writer_abort(w);
    assert_int_equal(files_in_folder(), 2);
}

/* A name that cannot be is refused at once, the longest that can be is written and replaced. */
static void writer_knows_long_names(void **state)
{
    char name[700];
    struct err e = {0};
    struct file_writer *w;
    for (int n = 255; n <= 256; n++) {
        memset(name, 'x', sizeof name);
        memcpy(name, folder, strlen(folder));
        name[strlen(folder)] = '/';
        name[strlen(folder) + 1 + (size_t)n] = 0;
        for (int times = 0; times < 2; times++) {
            const int rc = file_writer_open(name, &w, &e);
            assert_int_equal(rc, n == 255 ? 0 : ERR_IO);
            if (!rc) assert_int_equal(file_writer_commit(w, &e), 0);
        }
    }
    assert_non_null(strstr(e.msg, "cannot create: File name too long"));
    assert_int_equal(files_in_folder(), 1);
}

static void same_file_by_any_name(void **state)
{
    char linked[400];
    put_bytes(1);
    snprintf(linked, sizeof linked, "%s/link", folder);
    assert_int_equal(link(path, linked), 0);
    assert_true(file_same(path, linked));
    assert_false(file_same(path, folder));
    assert_false(file_same(path, "/nowhere/x"));
    assert_false(file_same("/nowhere/x", "/nowhere/x"));
}

static void writer_refuses_a_folder(void **state)
{
    struct err e = {0};
    struct file_writer *w;
    assert_int_equal(file_writer_open(folder, &w, &e), ERR_IO);
    assert_null(w);
    assert_non_null(strstr(e.msg, "is a folder"));
    assert_int_equal(files_in_folder(), 0);
}

/* A full disk, played by the limit of file sizes: the first failure sticks and commit returns it. */
static void writer_keeps_the_first_failure(void **state)
{
    static const uint8_t block[1 << 20];
    struct err e = {0}, again = {0};
    struct file_writer *w;
    struct rlimit old, small;
    getrlimit(RLIMIT_FSIZE, &old);
    signal(SIGXFSZ, SIG_IGN);
    small = (struct rlimit){1 << 20, old.rlim_max};
    assert_int_equal(file_writer_open(path, &w, &e), 0);
    setrlimit(RLIMIT_FSIZE, &small);
    assert_int_equal(file_writer_put(w, block, sizeof block, &e), 0);
    assert_int_equal(file_writer_put(w, block, sizeof block, &e), ERR_IO);
    setrlimit(RLIMIT_FSIZE, &old);
    assert_non_null(strstr(e.msg, "cannot write: File too large"));
    assert_int_equal(file_writer_put(w, block, 1, NULL), ERR_IO);
    assert_int_equal(file_writer_commit(w, &again), ERR_IO);
    assert_string_equal(again.msg, e.msg);
    assert_int_equal(files_in_folder(), 0);
}

#define IN_FOLDER(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(map_shows_the_file),
        IN_FOLDER(a_range_is_taken_out_of_a_mapping),
        IN_FOLDER(map_is_populated),
        IN_FOLDER(map_knows_the_same_file),
        IN_FOLDER(map_refuses_what_is_no_file),
        IN_FOLDER(truncated_file_reads_as_zeros),
        IN_FOLDER(other_bus_errors_keep_the_default_action),
        IN_FOLDER(read_whole),
        IN_FOLDER(read_a_pipe),
        IN_FOLDER(writer_replaces_at_commit_only),
        IN_FOLDER(writer_abort_leaves_nothing),
        IN_FOLDER(writer_killed_leaves_nothing),
        IN_FOLDER(writer_reports_a_refused_rename),
        IN_FOLDER(writer_never_replaces_a_pipe),
        IN_FOLDER(writer_follows_a_link),
        IN_FOLDER(writer_refuses_a_mapped_file),
        IN_FOLDER(writer_knows_long_names),
        IN_FOLDER(same_file_by_any_name),
        IN_FOLDER(writer_refuses_a_folder),
        IN_FOLDER(writer_keeps_the_first_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
