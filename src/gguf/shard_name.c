#include "gguf/shard_name.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include <unistd.h>

enum { MAX_DIGITS = 6, MAX_PIECES = 1000 };

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The number of 1 to 6 digits that ends before *end, which moves to its first digit. Returns the digits; 0: none. */
static int number_before(const char *start, const char **end, int *v)
{
    const char *p = *end;
    while (p > start && is_digit(p[-1])) p--;
    const int n = (int)(*end - p);
    if (n > MAX_DIGITS) return 0;
    *v = atoi(p);
    *end = p;
    return n;
}

static bool is_before(const char *start, const char **end, const char *text)
{
    const size_t n = strlen(text);
    if ((size_t)(*end - start) < n || memcmp(*end - n, text, n) != 0) return false;
    *end -= n;
    return true;
}

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bool shard_name_parse(const char *path, struct shard_name *s)
{
    const char *start = file_name(path), *end = path + strlen(path);
    *s = (struct shard_name){.path = path};
    if (!is_before(start, &end, ".gguf")) return false;
    s->n_width = number_before(start, &end, &s->n);
    if (!s->n_width || !is_before(start, &end, "-of-")) return false;
    s->from_end = end;
    s->width = number_before(start, &end, &s->no);
    s->stem = (int)(end - path);
    return s->width && end > start && end[-1] == '-' && s->no >= 1 && s->no <= s->n;
}

/* What cannot be looked at is taken to be there: opening it tells why. */
static bool is_there(const char *path)
{
    return access(path, F_OK) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

bool shard_name_sibling(const struct shard_name *s, int no, struct str *path)
{
    const int widths[] = {s->width, 1, s->n_width};
    for (int k = 0; k <= 3; k++) {
        str_clear(path);
        str_printf(path, "%.*s%0*d%s", s->stem, s->path, widths[k % 3], no, s->from_end);
        if (k < 3 && is_there(str_c(path))) return true;
    }
    return false;
}

/* The last piece: "of" tells, or the files that are there. */
static int last_piece(const char *path, int stem, int no, const char *of)
{
    struct str s = {0};
    int last = *of ? atoi(of + 2) : no;
    for (bool there = !*of; there && last < MAX_PIECES; last += there) {
        str_clear(&s);
        str_printf(&s, "%.*s.part%d", stem, path, last + 1);
        there = is_there(str_c(&s));
    }
    str_free(&s);
    return last;
}

bool piece_name_parse(const char *path, char number[8], struct str *command)
{
    const char *name = file_name(path), *at = strstr(name, ".part"), *of;
    if (!at) return false;
    const int stem = (int)(at - name);
    at += 5;
    for (of = at; is_digit(*of); of++) {
    }
    const int digits = (int)(of - at);
    if (digits > MAX_DIGITS || (*of && (strncmp(of, "of", 2) != 0 || !is_digit(of[2])))) return false;
    snprintf(number, 8, "%.*s", digits, at);
    const int no = atoi(number), last = last_piece(path, (int)(name - path) + stem, no, of);
    const bool has_end = stem > 5 && strncmp(name + stem - 5, ".gguf", 5) == 0;
    /* A pattern sorts 10 before 2. */
    if (last >= 10 && digits && *at != '0')
        str_printf(command, "cat %.*s.part{1..%d}%s", stem, name, last, of);
    else
        str_printf(command, "cat %.*s.part*", stem, name);
    str_printf(command, " > %.*s%s", stem, name, has_end ? "" : ".gguf");
    return true;
}
