/* Texts of a file, which end with their length, against texts of the tables. */
#include "dialect/dialect_internal.h"
#include <string.h>

bool dialect_is(const struct gguf_str *s, const char *text)
{
    return s->n == strlen(text) && memcmp(s->p, text, (size_t)s->n) == 0;
}

bool dialect_begins(const struct gguf_str *s, const char *start)
{
    const size_t n = strlen(start);
    return s->n >= n && memcmp(s->p, start, n) == 0;
}

bool dialect_ends(const struct gguf_str *s, const char *end)
{
    const size_t n = strlen(end);
    return s->n >= n && memcmp(s->p + s->n - n, end, n) == 0;
}

bool dialect_contains(const struct gguf_str *s, const char *part)
{
    return s->n > 0 && memmem(s->p, (size_t)s->n, part, strlen(part)) != NULL;
}

bool dialect_text(const struct gguf_kv *kv, struct gguf_str *s)
{
    return kv && kv->type == GGUF_STRING && gguf_string(kv, 0, s, NULL) == 0;
}

bool dialect_text_is(const struct gguf_kv *kv, const char *text)
{
    struct gguf_str s;
    return dialect_text(kv, &s) && dialect_is(&s, text);
}

bool dialect_text_has(const struct gguf_kv *kv, const char *part)
{
    struct gguf_str s;
    return dialect_text(kv, &s) && dialect_contains(&s, part);
}

const char *dialect_file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}
