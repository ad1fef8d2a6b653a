/* libFuzzer target: parses the input as a GGUF file and reads everything the interface gives out. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include "base/log.h"
#include "gguf/gguf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static volatile uint8_t touched;

static void touch(const void *p, uint64_t n)
{
    const uint8_t *b = p;
    for (uint64_t i = 0; i < n; i++) touched ^= b[i];
}

static void no_log(void *arg, enum log_level level, const char *subject, const char *text)
{
}

static void read_value(const struct gguf_kv *kv, uint64_t i)
{
    uint64_t u;
    int64_t s;
    double d;
    bool b;
    struct gguf_str str;
    struct err e = {0};
    gguf_u64(kv, i, &u, &e);
    gguf_i64(kv, i, &s, &e);
    gguf_f64(kv, i, &d, &e);
    gguf_bool(kv, i, &b, &e);
    if (!gguf_string(kv, i, &str, &e)) touch(str.p, str.n);
}

static void read_kv(const struct gguf *g, const struct gguf_kv *kv)
{
    touch(kv->key.p, kv->key.n);
    for (uint64_t i = 0; i < kv->count && i < 100; i++) read_value(kv, i);
    if (kv->count) read_value(kv, kv->count - 1);
    read_value(kv, kv->count);
    char key[64] = {0};
    for (uint64_t i = 0; i < kv->key.n && i < sizeof key - 1; i++) key[i] = kv->key.p[i];
    gguf_kv_find(g, key);
}

/* What the reader promises about a tensor that it let pass. */
static void read_tensor(const struct gguf *g, const struct gguf_tensor *t)
{
    if (gguf_tensor_find(g, t->name.p, t->name.n) != t) abort();
    if (t->n_dims < 0 || t->n_dims > 4 || t->offset >= gguf_size(g) || t->bytes > gguf_size(g) - t->offset) abort();
    touch(gguf_data(g) + t->offset, t->bytes < 64 ? t->bytes : 64);
    if (t->bytes) touch(gguf_data(g) + t->offset + t->bytes - 1, 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct gguf *g;
    struct err e = {0};
    log_to(no_log, NULL, LOG_DEBUG);
    if (gguf_parse(data, n, "fuzz", &g, &e)) {
        if (g || !e.code || !e.msg[0]) abort();
        return 0;
    }
    for (uint64_t i = 0; i < gguf_n_kv(g); i++) read_kv(g, gguf_kv_at(g, i));
    for (uint64_t i = 0; i < gguf_n_tensors(g); i++) read_tensor(g, gguf_tensor_at(g, i));
    if (gguf_kv_at(g, gguf_n_kv(g)) || gguf_tensor_at(g, gguf_n_tensors(g))) abort();
    gguf_close(g);
    return 0;
}
