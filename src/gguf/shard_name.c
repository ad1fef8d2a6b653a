#include "gguf/shard_name.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_DIGITS = 6 };

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

const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bool shard_name_parse(const char *path, struct shard_name *s)
{
    const char *start = last_part(path), *end = path + strlen(path);
    *s = (struct shard_name){.path = path};
    if (!is_before(start, &end, ".gguf")) return false;
    s->n_width = number_before(start, &end, &s->n);
    if (!s->n_width || !is_before(start, &end, "-of-")) return false;
    s->from_end = end;
    s->width = number_before(start, &end, &s->no);
    s->stem = (int)(end - path);
    return s->width && end > start && end[-1] == '-' && s->no >= 1 && s->no <= s->n;
}

bool part_is_there(const char *path)
{
    struct stat s;
    return lstat(path, &s) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

bool shard_name_sibling(const struct shard_name *s, int no, struct str *path)
{
    const int widths[] = {s->width, 1, s->n_width};
    for (int k = 0; k <= 3; k++) {
        str_clear(path);
        str_printf(path, "%.*s%0*d%s", s->stem, s->path, widths[k % 3], no, s->from_end);
        if (k < 3 && part_is_there(str_c(path))) return true;
    }
    return false;
}

/* ---- names that were changed */

bool shard_name_own(const char *path, struct str *own)
{
    const char *name = last_part(path), *of = NULL, *end;
    for (const char *p = name; (p = strstr(p, "-of-")); p++) of = p;
    if (!of || of == name || !is_digit(of[-1]) || !is_digit(of[4])) return false;
    for (end = of + 4; is_digit(*end); end++) {
    }
    str_add(own, path, (size_t)(end - path));
    str_puts(own, ".gguf");
    return true;
}

bool shard_name_stray(const struct shard_name *s, int no, struct str *path)
{
    struct str own = {0}, folder = {0};
    const struct dirent *entry = NULL;
    const char *name = last_part(s->path);
    str_printf(&own, "%.*s%0*d%s", s->stem - (int)(name - s->path), name, s->width, no, s->from_end);
    str_add(&folder, s->path, (size_t)(name - s->path));
    DIR *d = opendir(folder.n ? str_c(&folder) : ".");
    const size_t begin = own.n - strlen(".gguf");
    while (d && (entry = readdir(d)) && (strncmp(entry->d_name, own.p, begin) || !strcmp(entry->d_name, own.p))) {
    }
    if (entry) str_printf(path, "%s%s", str_c(&folder), entry->d_name);
    if (d) closedir(d);
    str_free(&own);
    str_free(&folder);
    return entry != NULL;
}

bool name_is_unfinished(const char *path)
{
    static const char *const ends[] = {".part",       ".partial", ".crdownload", ".download", ".opdownload",
                                       ".incomplete", ".aria2",   ".!qB",        ".tmp"};
    const size_t n = strlen(path);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const size_t m = strlen(ends[i]);
        if (n > m && strcmp(path + n - m, ends[i]) == 0) return true;
    }
    return false;
}
