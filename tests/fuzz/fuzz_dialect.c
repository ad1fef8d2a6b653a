/* libFuzzer target of the whole way from a file to a bound model: reader, file set, dialect, parameters, vocabulary,
 * binding and memory plan, without a computation. The input is the beginning of a file, of which zeros are the rest, so
 * that tensors have data; behind a mark follows the second file of a split set. Whatever passes has tensors that lie in
 * memory that can be read; whatever does not is refused in one line that names the file. */
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
static const char mark[] = "\nSECOND FILE\n";
static char folder[TEMP_PATH];

static void require(int condition)
{
    if (!condition) abort();
}

static const char *in_folder(char path[TEMP_PATH + 32], const char *name)
{
    snprintf(path, TEMP_PATH + 32, "%s/%s", folder, name);
    return path;
}

static void write_file(const char *name, const uint8_t *data, size_t n)
{
    char path[TEMP_PATH + 32];
    const int fd = open(in_folder(path, name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    require(fd >= 0 && (n == 0 || write(fd, data, n) == (ssize_t)n));
    require(n == 0 || ftruncate(fd, (off_t)(n + ZEROS)) == 0);
    close(fd);
}

/* The name of what is to be opened. */
static const char *write_files(const uint8_t *data, size_t n)
{
    const uint8_t *second = n ? memmem(data, n, mark, sizeof mark - 1) : NULL;
    if (!second) {
        write_file("m.gguf", data, n);
        return "m.gguf";
    }
    const size_t first = (size_t)(second - data), skip = first + sizeof mark - 1;
    write_file("m-00001-of-00002.gguf", data, first);
    write_file("m-00002-of-00002.gguf", data + skip, n - skip);
    return "m-00002-of-00002.gguf";
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

static bool is_canonical(const char *path, bool look)
{
    struct canonical *c;
    struct err e = {0};
    log_to(one_line, NULL, LOG_DEBUG);
    const int rc = canonical_open(&path, 1, &(struct canonical_options){.look = look}, &c, &e);
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

static void open_engine(const char *path)
{
    struct ds4_error e = {0};
    ds4_engine *g;
    const struct ds4_options o = {.model_paths = &path,
                                  .n_model_paths = 1,
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char path[TEMP_PATH + 32];
    if (!folder[0]) temp_folder(folder);
    in_folder(path, write_files(data, n));
    if (is_canonical(path, n & 1)) open_engine(path);
    unlink(path);
    return 0;
}
