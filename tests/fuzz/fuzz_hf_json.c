/* Fuzz target: the JSON files of a checkpoint's folder. The first byte says which one the rest is: config.json,
 * tokenizer.json, the index of the shards, or config.json of Qwen3.8. A refusal says why; what is read can be written
 * to a model. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../../cmd/ds4-gguf/deepseek4_layout.h"
#include "../../cmd/ds4-gguf/hf_deepseek4.h"
#include "../../cmd/ds4-gguf/hf_folder.h"
#include "../../cmd/ds4-gguf/hf_qwen38.h"
#include "../../cmd/ds4-gguf/hf_tokenizer.h"
#include "../support/temp_files.h"
#include "base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { MOST_TOKENS = 4096 };
static char folder[TEMP_PATH], tables[TEMP_PATH], path[TEMP_PATH + 40];
static struct hf_folder *qwen; /* in tables: what of a Qwen model's parameters is in tensors */

static void require(int condition)
{
    if (!condition) abort();
}

static void write_in(const char *where, const char *name, const void *data, size_t n)
{
    snprintf(path, sizeof path, "%s/%s", where, name);
    unlink(path); /* some file systems wait for the disk where a file is cut short and written anew */
    FILE *f = fopen(path, "wb");
    require(f && fwrite(data, 1, n, f) == n && fclose(f) == 0);
}

static void write_file(const char *name, const void *data, size_t n)
{
    write_in(folder, name, data, n);
}

/* Hash constants of 3-grams by 8 heads of two rows each, and the table in two pieces. */
static void begin_qwen(void)
{
    static const char head[] =
        "{\"m.ple_embedding.layer_multipliers\":{\"dtype\":\"I64\",\"shape\":[3],\"data_offsets\":[0,24]},"
        "\"m.ple_embedding.ngram_heads_offsets\":{\"dtype\":\"I64\",\"shape\":[16],\"data_offsets\":[24,152]},"
        "\"m.ple_embedding.ngram_heads_vocab_sizes\":{\"dtype\":\"I64\",\"shape\":[16],\"data_offsets\":[152,280]},"
        "\"m.ngram_embedding.shard_0\":{\"dtype\":\"BF16\",\"shape\":[16,4],\"data_offsets\":[280,408]},"
        "\"m.ngram_embedding.shard_1\":{\"dtype\":\"BF16\",\"shape\":[16,4],\"data_offsets\":[408,536]}}";
    static struct {
        uint64_t n;
        char head[sizeof head - 1];
        uint8_t data[536];
    } __attribute__((packed)) file = {.n = sizeof head - 1};
    uint64_t number[35] = {3, 5, 7};
    for (uint64_t h = 0; h < 16; h++) number[3 + h] = 2 * h, number[19 + h] = 2;
    memcpy(file.head, head, sizeof file.head);
    memcpy(file.data, number, sizeof number);
    temp_folder(tables);
    write_in(tables, "model.safetensors", &file, sizeof file);
    require(hf_folder_open(tables, &qwen, NULL) == 0);
}

/* Two shards with a tensor each, for an index to name. */
static void begin(void)
{
    static const char one[] = "\x38\0\0\0\0\0\0\0{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}   12";
    static const char two[] = "\x38\0\0\0\0\0\0\0{\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}   34";
    temp_folder(folder);
    write_file("1.safetensors", one, sizeof one - 1);
    write_file("2.safetensors", two, sizeof two - 1);
    begin_qwen();
}

static void check_config(struct err *e)
{
    struct deepseek4_params p;
    struct layout_tensor *t = NULL;
    int n = 0;
    if (hf_deepseek4_config(path, &p, e)) return;
    require(p.V > 0 && p.L > 0 && p.n_ratios > 0);
    if (p.L > 100 || deepseek4_tensors(&p, &t, &n, e)) return;
    require(n > p.L);
    mem_free(t);
}

static void check_qwen(struct err *e)
{
    struct qwen38_params p;
    struct layout_tensor *t = NULL;
    int n = 0;
    if (hf_qwen38_config(path, qwen, &p, e)) return;
    require(p.V > 0 && qwen38_layers(&p) > 0 && p.row_count >= 32 && p.eos < p.V && p.n_mul == p.G);
    if (p.Lall > 100 || qwen38_tensors(&p, &t, &n, e)) return;
    require(n > p.Lall && t[n - 1].role == ROLE_TABLE);
    mem_free(t);
}

static void check_tokenizer(struct err *e)
{
    struct vocabulary v;
    if (!hf_tokenizer_read(path, MOST_TOKENS, &v, e)) {
        require(v.tokens.n > 0 && v.tokens.n <= MOST_TOKENS);
        for (size_t i = 0; i < v.tokens.n; i++) require(v.types[i] >= 0);
    }
    vocabulary_free(&v);
}

static void check_index(struct err *e)
{
    struct hf_folder *f = NULL;
    if (hf_folder_open(folder, &f, e)) return;
    require(hf_folder_intact(f, e) == 0);
    hf_folder_find(f, "a");
    hf_folder_close(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const char *const names[] = {"config.json", "tokenizer.json", "model.safetensors.index.json", "config.json"};
    static void (*const check[])(struct err * e) = {check_config, check_tokenizer, check_index, check_qwen};
    struct err e = {0};
    if (!folder[0]) begin();
    if (n < 1 || data[0] < '0' || data[0] > '3') return 0;
    write_file(names[data[0] - '0'], data + 1, n - 1);
    check[data[0] - '0'](&e);
    require(!e.code || e.msg[0]);
    return 0;
}
