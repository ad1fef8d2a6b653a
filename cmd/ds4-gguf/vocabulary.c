/* Lists of texts and the tokenizer records. */
#include "vocabulary.h"
#include <string.h>
#include "base/mem.h"

void text_list_add(struct text_list *l, const char *text, size_t n)
{
    if (l->n + 2 > l->cap) {
        l->cap = l->cap ? 2 * l->cap : 256;
        l->at = mem_grow(l->at, l->cap * sizeof *l->at);
    }
    l->at[l->n++] = l->bytes.n;
    str_add(&l->bytes, text, n);
    l->at[l->n] = l->bytes.n;
}

void text_list_free(struct text_list *l)
{
    str_free(&l->bytes);
    mem_free(l->at);
    *l = (struct text_list){0};
}

void vocabulary_free(struct vocabulary *v)
{
    text_list_free(&v->tokens);
    text_list_free(&v->merges);
    mem_free(v->types);
    *v = (struct vocabulary){0};
}

static int put_texts(struct gguf_writer *w, const char *key, const struct text_list *l, struct err *e)
{
    struct gguf_str *s = mem_try((l->n + 1) * sizeof *s);
    if (!s) return err_set(e, ERR_MEMORY, "not enough memory for the vocabulary");
    for (size_t i = 0; i < l->n; i++) s[i] = (struct gguf_str){str_c(&l->bytes) + l->at[i], l->at[i + 1] - l->at[i]};
    gguf_put_arr_str(w, key, s, l->n);
    mem_free(s);
    return 0;
}

static void put_id(struct gguf_writer *w, const char *key, int64_t id)
{
    if (id >= 0) gguf_put_u32(w, key, (uint32_t)id);
}

int vocabulary_put(struct gguf_writer *w, const struct vocabulary *v, struct err *e)
{
    gguf_put_str(w, "tokenizer.ggml.model", "gpt2", 4);
    gguf_put_str(w, "tokenizer.ggml.pre", v->pre, strlen(v->pre));
    int rc = put_texts(w, "tokenizer.ggml.tokens", &v->tokens, e);
    if (!rc) rc = put_texts(w, "tokenizer.ggml.merges", &v->merges, e);
    gguf_put_arr_i32(w, "tokenizer.ggml.token_type", v->types, v->tokens.n);
    put_id(w, "tokenizer.ggml.bos_token_id", v->bos);
    put_id(w, "tokenizer.ggml.eos_token_id", v->eos);
    put_id(w, "tokenizer.ggml.padding_token_id", v->pad);
    gguf_put_bool(w, "tokenizer.ggml.add_bos_token", false);
    gguf_put_bool(w, "tokenizer.ggml.add_eos_token", false);
    return rc;
}
