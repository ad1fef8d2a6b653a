/* Random tensors, the same bytes on every machine, and a vocabulary. */
#include "synth_tensors.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "base/mem.h"
#include "quant/quant.h"
#include "text/byte_alphabet.h"

/* ---- random numbers: xorshift64*, every step exact */

static uint64_t rng_next(uint64_t *state)
{
    uint64_t x = *state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    return x * 0x2545f4914f6cdd1du;
}

static uint64_t rng_seed(uint64_t seed, const char *name)
{
    uint64_t h = 0xcbf29ce484222325u ^ seed * 0x9e3779b97f4a7c15u;
    for (; *name; name++) h = (h ^ (uint8_t)*name) * 0x100000001b3u;
    h ^= h >> 29;
    return h ? h : 1;
}

/* Sum of eight uniforms of 16 bits, centred and scaled to variance 1: the integer sum is exact, one product rounds. */
static double rng_normal(uint64_t *state)
{
    int64_t sum = 0;
    for (int i = 0; i < 2; i++) {
        const uint64_t x = rng_next(state);
        sum += (int64_t)(x & 0xffff) + (int64_t)(x >> 16 & 0xffff) + (int64_t)(x >> 32 & 0xffff) + (int64_t)(x >> 48);
    }
    return (double)(2 * sum - 8 * 65535) * 9.344061825059267e-06; /* 1 / (2 * sqrt(8 * (65536^2 - 1) / 12)) */
}

/* ---- the list of tensors */

struct synth_tensor *synth_add(struct synth_list *y, uint32_t type, enum synth_fill fill, double std, int n_dims,
                               const uint64_t *ne, const char *fmt, ...)
{
    if (y->n == y->cap) {
        y->cap = y->cap ? 2 * y->cap : 64;
        y->at = mem_grow(y->at, (size_t)y->cap * sizeof *y->at);
    }
    struct synth_tensor *p = &y->at[y->n++];
    memset(p, 0, sizeof *p);
    const int k = y->layer < 0 ? 0 : snprintf(p->name, sizeof p->name, "blk.%d.", y->layer);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(p->name + k, sizeof p->name - (size_t)k, fmt, ap);
    va_end(ap);
    p->type = type, p->fill = fill, p->std = std, p->n_dims = n_dims;
    for (int i = 0; i < 3; i++) p->ne[i] = i < n_dims ? ne[i] : 1;
    return p;
}

void synth_matrix(struct synth_list *y, uint32_t type, double std, int width, int rows, const char *name)
{
    synth_add(y, type, FILL_NORMAL, std / sqrt(width), 2, (uint64_t[]){(uint64_t)width, (uint64_t)rows}, "%s.weight",
              name);
}

void synth_vector(struct synth_list *y, double std, int n, const char *name)
{
    synth_add(y, QT_F32, FILL_NORMAL, std, 1, (uint64_t[]){(uint64_t)n}, "%s", name);
}

void synth_norm(struct synth_list *y, int n, const char *name)
{
    synth_add(y, QT_F32, FILL_AROUND_ONE, 0.2, 1, (uint64_t[]){(uint64_t)n}, "%s.weight", name);
}

/* ---- vocabulary */

void synth_write_vocabulary(struct gguf_writer *w, int V, const char *const *special, int n_special, const char *pre,
                            int bos, int eos)
{
    const size_t n_tokens = (size_t)V, n_first = (size_t)n_special;
    char(*text)[40] = mem_alloc(n_tokens * sizeof *text);
    struct gguf_str *tokens = mem_alloc(n_tokens * sizeof *tokens);
    int32_t *kind = mem_alloc(n_tokens * sizeof *kind);
    size_t n = 0;
    for (; n < n_first && n < n_tokens; n++) snprintf(text[n], sizeof text[n], "%s", special[n]);
    for (int pass = 0; pass < 2; pass++) {
        for (int b = 0; b < 256 && n < n_tokens; b++) {
            const bool printable = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
            if (printable == (pass == 0)) text[n][byte_alphabet_text((uint8_t)b, text[n])] = 0, n++;
        }
    }
    for (; n < n_tokens; n++) snprintf(text[n], sizeof text[n], "tok%zu", n);
    for (size_t i = 0; i < n_tokens; i++)
        tokens[i] = (struct gguf_str){text[i], strlen(text[i])}, kind[i] = i < 2 ? 3 : 1;
    gguf_put_str(w, "tokenizer.ggml.model", "gpt2", 4);
    gguf_put_str(w, "tokenizer.ggml.pre", pre, strlen(pre));
    gguf_put_arr_str(w, "tokenizer.ggml.tokens", tokens, n_tokens);
    gguf_put_arr_i32(w, "tokenizer.ggml.token_type", kind, n_tokens);
    gguf_put_arr_str(w, "tokenizer.ggml.merges", &(struct gguf_str){"t h", 3}, 1);
    if (bos >= 0) gguf_put_u32(w, "tokenizer.ggml.bos_token_id", (uint32_t)bos);
    gguf_put_u32(w, "tokenizer.ggml.eos_token_id", (uint32_t)eos);
    mem_free(kind);
    mem_free(tokens);
    mem_free(text);
}

/* ---- values */

/* K different experts, in random order. */
static void hash_row(uint64_t *rng, int32_t *row, uint64_t K, int E)
{
    for (uint64_t i = 0; i < K; i++) {
        uint64_t j;
        do {
            row[i] = (int32_t)((rng_next(rng) >> 32) % (uint64_t)E);
            for (j = 0; row[j] != row[i]; j++) {
            }
        } while (j < i);
    }
}

static int fill_row(const struct synth_tensor *p, uint64_t *rng, float *row, const float *ones, void *raw)
{
    if (p->fill == FILL_HASH) {
        hash_row(rng, raw, p->ne[0], p->most);
        return 0;
    }
    for (uint64_t i = 0; i < p->ne[0]; i++)
        row[i] = (float)((p->fill == FILL_AROUND_ONE ? 1 : 0) + p->std * rng_normal(rng));
    for (uint64_t i = 0; i < p->ne[0] && p->fill == FILL_DECAY; i++) row[i] = -expf(row[i] - 1);
    return quant_encode(p->type, row, (int64_t)p->ne[0], ones, raw);
}

static int write_tensor(struct gguf_writer *w, const struct synth_tensor *p, uint64_t seed, struct err *e)
{
    const size_t bytes = quant_row_bytes(p->type, (int64_t)p->ne[0]);
    if (bytes == 0) return err_set(e, ERR_ARG, "%s: no row of %d values in this type", p->name, (int)p->ne[0]);
    float *row = mem_alloc(p->ne[0] * sizeof *row), *ones = mem_alloc(p->ne[0] * sizeof *ones);
    void *raw = mem_alloc(bytes);
    for (uint64_t i = 0; i < p->ne[0]; i++) ones[i] = 1;
    uint64_t rng = rng_seed(seed, p->name);
    int rc = 0;
    for (uint64_t i = 0; i < p->ne[1] * p->ne[2] && rc == 0; i++) {
        rc = fill_row(p, &rng, row, ones, raw);
        gguf_write(w, raw, bytes);
    }
    if (rc != 0) rc = err_set(e, ERR_ARG, "%s: its type has no encoder", p->name);
    mem_free(raw);
    mem_free(ones);
    mem_free(row);
    return rc;
}

int synth_write(struct gguf_writer *w, struct synth_list *y, uint64_t seed, struct err *e)
{
    int rc = 0;
    for (int i = 0; i < y->n; i++) gguf_declare(w, y->at[i].name, y->at[i].type, y->at[i].n_dims, y->at[i].ne);
    for (int i = 0; i < y->n && rc == 0; i++) rc = write_tensor(w, &y->at[i], seed, e);
    mem_free(y->at);
    *y = (struct synth_list){0};
    return rc;
}
