/* A reader of lines; whatever is not as described ends the program. */
#include "bpe_golden.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/mem.h"

struct reader {
    const char *path;
    char *at; /* next line */
    size_t line;
};

_Noreturn static void stop(const struct reader *r, const char *why)
{
    fprintf(stderr, "%s:%zu: %s\n", r->path, r->line, why);
    exit(2);
}

/* The next line that is no comment, its end replaced by a zero. */
static char *line_next(struct reader *r)
{
    for (;;) {
        char *const line = r->at, *const end = strchr(line, '\n');
        r->line++;
        if (!end) stop(r, "the file ends too early");
        *end = '\0';
        r->at = end + 1;
        if (strncmp(line, "# ", 2) != 0) return line;
    }
}

/* A line "NAME COUNT". */
static size_t count_next(struct reader *r, const char *name)
{
    const char *const line = line_next(r);
    if (strncmp(line, name, strlen(name)) != 0 || line[strlen(name)] != ' ') stop(r, name);
    return strtoul(line + strlen(name) + 1, NULL, 10);
}

static struct bpe_text *texts_next(struct reader *r, const char *name, size_t *n)
{
    *n = count_next(r, name);
    struct bpe_text *t = mem_alloc((*n + 1) * sizeof *t);
    for (size_t i = 0; i < *n; i++) {
        t[i].p = r->at; /* a token may look like a comment */
        char *const end = strchr(r->at, '\n');
        if (!end) stop(r, "the file ends too early");
        *end = '\0';
        t[i].n = (size_t)(end - r->at);
        r->at = end + 1;
        r->line++;
    }
    return t;
}

static void case_parse(struct reader *r, char *line, struct bpe_golden_case *c)
{
    char *const pieces = strchr(line, '|');
    char *const ids = pieces ? strchr(pieces + 1, '|') : NULL;
    if (!ids) stop(r, "a string has no ids");
    c->n = (size_t)(pieces - line) / 2;
    c->text = mem_alloc(c->n + 1);
    for (size_t i = 0; i < c->n; i++) {
        const char hex[3] = {line[2 * i], line[2 * i + 1]};
        c->text[i] = (char)strtoul(hex, NULL, 16);
    }
    c->piece = mem_alloc((c->n + 1) * sizeof *c->piece);
    for (char *p = pieces + 1; p < ids; p++) c->piece[c->n_pieces++] = strtoul(p, &p, 10);
    for (char *p = ids + 1; *p; p += *p == ',') bpe_ids_add(&c->ids, (int32_t)strtol(p, &p, 10));
}

static void cases_read(struct reader *r, const char *name, bool rendered, struct bpe_golden *g)
{
    const size_t n = count_next(r, name);
    g->at = mem_grow(g->at, (g->n + n + 1) * sizeof *g->at);
    for (size_t i = 0; i < n; i++) {
        struct bpe_golden_case *const c = &g->at[g->n++];
        *c = (struct bpe_golden_case){.rendered = rendered};
        case_parse(r, line_next(r), c);
    }
}

void bpe_golden_read(const char *path, enum pretokenizer pre, struct bpe_golden *g)
{
    struct err e = {0};
    size_t n_file, n_tokens, n_merges, n_specials;
    *g = (struct bpe_golden){0};
    struct reader r = {.path = path};
    if (file_read(path, (uint64_t)1 << 30, &g->file, &n_file, &e) != 0) stop(&r, e.msg);
    r.at = g->file;
    struct bpe_text *tokens = texts_next(&r, "tokens", &n_tokens);
    struct bpe_text *merges = texts_next(&r, "merges", &n_merges);
    struct bpe_text *special_texts = texts_next(&r, "specials", &n_specials);
    const char **specials = mem_alloc((n_specials + 1) * sizeof *specials);
    for (size_t i = 0; i < n_specials; i++) specials[i] = special_texts[i].p;
    if (bpe_create(tokens, n_tokens, merges, n_merges, specials, n_specials, pre, NULL, &g->bpe, &e) != 0)
        stop(&r, e.msg);
    cases_read(&r, "plain", false, g);
    cases_read(&r, "rendered", true, g);
    mem_free(tokens);
    mem_free(merges);
    mem_free(special_texts);
    mem_free(specials);
}

void bpe_golden_free(struct bpe_golden *g)
{
    for (size_t i = 0; i < g->n; i++) {
        mem_free(g->at[i].text);
        mem_free(g->at[i].piece);
        bpe_ids_free(&g->at[i].ids);
    }
    mem_free(g->at);
    bpe_free(g->bpe);
    mem_free(g->file);
}
