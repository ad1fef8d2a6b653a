/* libFuzzer target of the whole way from a file to a bound model: reader, file set, dialect, parameters, vocabulary,
 * binding and memory plan, without a computation. The input is the beginning of a file, of which zeros are the rest, so
 * that tensors have data; behind a mark follows the second file of a split set or of a list. Whatever passes has
 * tensors that lie in memory that can be read; whatever does not is refused in one line that names the file. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../support/temp_files.h"
#include "base/log.h"
#include "dialect/canonical.h"
#include "ds4.h"
#include "quant/quant.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { ZEROS = 1 << 20 };
static const char mark[] = "\nSECOND FILE\n", list_mark[] = "\nANOTHER ONE\n"; /* of one length */
static char folder[TEMP_PATH];

static void require(int condition)
{
    if (!condition) abort();
}

static void write_file(const char *to, const uint8_t *data, size_t n)
{
    const int fd = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    require(fd >= 0 && (n == 0 || write(fd, data, n) == (ssize_t)n));
    require(n == 0 || ftruncate(fd, (off_t)(n + ZEROS)) == 0);
    close(fd);
}

static char path[2][TEMP_PATH + 32];
static const char *const paths[2] = {path[0], path[1]};

/* Returns how many paths are to be opened. */
static int write_files(const uint8_t *data, size_t n)
{
    static const char *const names[3][2] = {
        {"m.gguf", ""}, {"m-00001-of-00002.gguf", "m-00002-of-00002.gguf"}, {"a.gguf", "b.gguf"}};
    const uint8_t *set = n ? memmem(data, n, mark, sizeof mark - 1) : NULL;
    const uint8_t *list = n && !set ? memmem(data, n, list_mark, sizeof mark - 1) : NULL;
    const int kind = set ? 1 : list ? 2 : 0;
    const size_t first = kind == 0 ? n : (size_t)((set ? set : list) - data), skip = first + sizeof mark - 1;
    for (int i = 0; i < 2; i++) snprintf(path[i], sizeof path[i], "%s/%s", folder, names[kind][i]);
    write_file(path[0], data, first);
    if (kind) write_file(path[1], data + skip, n - skip);
    return kind == 2 ? 2 : 1;
}

static volatile uint8_t touched;

/* First and last byte. */
static void touch(const struct tensor_view *v)
{
    const uint64_t row = quant_row_bytes(v->type, v->ne[0]);
    uint64_t last = row - 1;
    require(row > 0);
    for (int i = 1; i < 4; i++) last += (uint64_t)(v->ne[i] - 1) * v->stride[i];
    touched ^= v->data[0] ^ v->data[last];
}

static void check_refusal(int rc, int code, const char *message)
{
    require(rc < 0 && rc == code && code != DS4_E_ARG);
    require(strstr(message, folder) && !strchr(message, '\n'));
}

static void one_line(void *arg, enum log_level level, const char *subject, const char *text)
{
    require(!strchr(text, '\n'));
}

static bool is_canonical(int n_paths, bool look)
{
    struct canonical *c;
    struct err e = {0};
    log_to(one_line, NULL, LOG_DEBUG);
    const int rc = canonical_open(paths, n_paths, &(struct canonical_options){.look = look}, &c, &e);
    if (rc) {
        check_refusal(rc, e.code, e.msg);
        return false;
    }
    require(canonical_n_layers(c) > 0 && canonical_tokens(c) && canonical_merges(c));
    for (int i = 0; i < canonical_n_tensors(c); i++) {
        const struct tensor_view *v;
        require(canonical_tensor_at(c, i, &v) != NULL);
        require(v->data || look);
        if (v->data) touch(v);
    }
    canonical_close(c);
    return true;
}

static void no_log(void *arg, int level, const char *subject, const char *text)
{
    require(!strchr(text, '\n'));
}

static void open_engine(int n_paths)
{
    struct ds4_error e = {0};
    ds4_engine *g;
    const struct ds4_options o = {.model_paths = paths,
                                  .n_model_paths = n_paths,
                                  .backend = "ref",
                                  .memory_limit = UINT64_C(1) << 60,
                                  .report_only = true,
                                  .log = no_log};
    const int rc = ds4_engine_open(&o, &g, &e);
    if (rc)
        check_refusal(rc, e.code, e.message);
    else
        require(ds4_engine_report(g)[0] != 0);
    ds4_engine_close(rc ? NULL : g);
}

/* Everything that is wrong with it is looked for: the same verdict, and what it is refused for is among the notes. */
static void look_at_all(int n_paths, bool good)
{
    const struct canonical_options o = {.look = true, .scanned = true, .refused_too = true};
    struct canonical *c;
    struct err e = {0};
    const char *text;
    const int rc = canonical_open(paths, n_paths, &o, &c, &e);
    require(!good || rc == 0);
    if (rc) check_refusal(rc, e.code, e.msg);
    for (int k = 0; c && k < NOTE_COUNT; k++)
        for (int i = 0; (text = canonical_note(c, (enum canonical_note)k, i, NULL)); i++) require(!strchr(text, '\n'));
    if (c && rc && canonical_is_known(c) && canonical_dialect(c))
        require(canonical_note(c, NOTE_PROBLEM, 0, NULL) != NULL);
    canonical_close(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (!folder[0]) temp_folder(folder);
    const int n_paths = write_files(data, n);
    const bool good = is_canonical(n_paths, n & 1);
    if (good) open_engine(n_paths);
    look_at_all(n_paths, good);
    for (int i = 0; i < 2; i++) unlink(path[i]);
    return 0;
}
