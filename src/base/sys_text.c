#include "base/sys_text.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TEXT = 1 << 16 };

static bool read_file(const char *path, struct str *s)
{
    str_clear(s);
    FILE *f = fopen(path, "r");
    if (!f) return false;
    char buf[1024];
    size_t n;
    while (s->n < MAX_TEXT && (n = fread(buf, 1, sizeof buf, f)) > 0) str_add(s, buf, n);
    const bool ok = !ferror(f);
    fclose(f);
    return ok;
}

bool sys_text(const char *folder, const char *name, struct str *s)
{
    struct str path = {0};
    str_printf(&path, "%s/%s", folder, name);
    const bool ok = read_file(str_c(&path), s);
    str_free(&path);
    return ok;
}

static const char *skip_blanks(const char *p)
{
    while (*p == ' ' || *p == '\t') p++;
    return p;
}

bool sys_number(const char *p, uint64_t *v)
{
    p = skip_blanks(p);
    if (*p < '0' || *p > '9') return false;
    *v = strtoull(p, NULL, 10);
    return true;
}

bool sys_number_in(const char *folder, const char *name, uint64_t *v)
{
    struct str s = {0};
    const bool ok = sys_text(folder, name, &s) && sys_number(str_c(&s), v);
    str_free(&s);
    return ok;
}

const char *sys_value(const char *text, const char *word)
{
    const size_t n = strlen(word);
    for (const char *p = text; p && *p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL)
        if (!strncmp(p, word, n) && (p[n] == ' ' || p[n] == '\t')) return skip_blanks(p + n);
    return NULL;
}

void sys_list(const char *list, bool *has, int n)
{
    for (const char *p = list; *p >= '0' && *p <= '9';) {
        char *end;
        const long a = strtol(p, &end, 10);
        const long b = *end == '-' ? strtol(end + 1, &end, 10) : a;
        for (long i = a; i <= b && i < n; i++) has[i] = true;
        p = *end == ',' ? end + 1 : "";
    }
}
