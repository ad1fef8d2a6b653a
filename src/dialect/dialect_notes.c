/* What is said about a model, item by item, until somebody asks for it. */
#include <stdarg.h>
#include <string.h>
#include "base/mem.h"
#include "dialect/dialect_internal.h"

static bool has(const struct canonical *c, enum canonical_note kind, const char *text)
{
    for (uint64_t i = 0; i < c->notes[kind].n; i++)
        if (strcmp(((struct note *)pile_at(&c->notes[kind], i))->text, text) == 0) return true;
    return false;
}

__attribute__((format(printf, 4, 0))) static void add(struct canonical *c, enum canonical_note kind, const char *id,
                                                      const char *fmt, va_list ap)
{
    struct str text = {0};
    str_vprintf(&text, fmt, ap);
    text_defuse(text.p, text.n);
    c->notes[kind].bytes = sizeof(struct note);
    /* What is missing may be found missing by several that need it. */
    struct note *n = kind == NOTE_PROBLEM && has(c, kind, str_c(&text)) ? NULL : pile_add(&c->notes[kind]);
    if (!n) { /* nor memory: a model that cannot be opened for want of it will say so itself */
        str_free(&text);
        return;
    }
    *n = (struct note){mem_strdup(str_c(&text)), id};
    str_free(&text);
}

void dialect_note(struct canonical *c, enum canonical_note kind, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    add(c, kind, "", fmt, ap);
    va_end(ap);
}

void dialect_warn(struct canonical *c, const char *id, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    add(c, NOTE_WARNING, id, fmt, ap);
    va_end(ap);
}

int dialect_refused(struct canonical *c, int rc, struct err *e)
{
    if (!rc || !c->thorough || rc == ERR_MEMORY) return rc;
    dialect_note(c, NOTE_PROBLEM, "%s", e->msg);
    if (!c->refused.code) c->refused = *e;
    err_clear(e);
    return 0;
}

void dialect_free_notes(struct canonical *c)
{
    for (int k = 0; k < NOTE_COUNT; k++) {
        for (uint64_t i = 0; i < c->notes[k].n; i++) mem_free(((struct note *)pile_at(&c->notes[k], i))->text);
        pile_free(&c->notes[k]);
    }
}

const char *canonical_note(const struct canonical *c, enum canonical_note kind, int i, const char **id)
{
    if (i < 0 || (uint64_t)i >= c->notes[kind].n) return NULL;
    const struct note *n = pile_at(&c->notes[kind], (uint64_t)i);
    if (id) *id = n->id;
    return n->text;
}

int canonical_n_renamed(const struct canonical *c)
{
    return c->n_renamed;
}
