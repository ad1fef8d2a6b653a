#include "gguf/name_list.h"

enum { MOST_SHOWN = 10 };

void name_list_add(struct name_list *l, const char *name)
{
    if (l->n++ >= MOST_SHOWN) return;
    if (l->last.n) str_printf(&l->text, "%s%s", l->text.n ? ", " : "", str_c(&l->last));
    str_clear(&l->last);
    str_puts(&l->last, name);
}

void name_list_put(const struct name_list *l, struct str *out)
{
    const int more = l->n - MOST_SHOWN;
    const char *between = !l->text.n ? "" : more > 0 ? ", " : " and ";
    str_printf(out, "%s%s%s", str_c(&l->text), between, str_c(&l->last));
    if (more > 0) str_printf(out, " and %d more", more);
}

void name_list_free(struct name_list *l)
{
    str_free(&l->text);
    str_free(&l->last);
}
