#include "prompt_shown.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static void show_text(const char *p, size_t n, struct str *out)
{
    for (size_t i = 0; i < n; i++) {
        if (p[i] == '\0')
            str_puts(out, "␀");
        else
            str_add(out, p + i, 1);
    }
}

void prompt_show(const struct prompt *p, struct str *out)
{
    for (const struct prompt_part *part = p->part; part < p->part + p->n; part++) {
        if (part->special)
            str_printf(out, "⟦%s⟧", part->special);
        else
            show_text(p->text.p + part->start, part->n, out);
    }
}

static void expect(struct prompt *p, const char *want)
{
    struct str shown = {0};
    prompt_show(p, &shown);
    assert_string_equal(str_c(&shown), want);
    str_free(&shown);
    prompt_free(p);
}

void prompt_expect(const struct prompt_codec *c, const struct chat_message *m, size_t n, const struct chat_options *o,
                   const char *want)
{
    struct prompt p = {0};
    struct err e = {0};
    assert_int_equal(c->render(m, n, o, &p, &e), 0);
    expect(&p, want);
}

void prompt_expect_next(const struct prompt_codec *c, const struct chat_message *m, size_t n, size_t from,
                        const struct chat_options *o, const char *want)
{
    struct prompt p = {0};
    struct err e = {0};
    assert_int_equal(c->render_next(m, n, from, o, &p, &e), 0);
    expect(&p, want);
}
