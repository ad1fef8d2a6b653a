#include "gguf/piece_name.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "gguf/gguf.h"
#include "gguf/name_list.h"
#include "gguf/shard_name.h"

enum { MAX_DIGITS = 6, MAX_PIECES = 1000, NAMED = 6 };

struct piece {
    const char *path;
    int folder, stem; /* bytes of path before the name, and before the number */
    int letters;      /* that the number is written in; 0: digits */
    int width;        /* of digits; 1: no zeros in front */
    int first, no;
    int of;           /* pieces as the name says; 0: it does not */
    const char *tail; /* behind the number */
};

static int count(const char *p, char from, char to)
{
    int n = 0;
    while (p[n] >= from && p[n] <= to) n++;
    return n;
}

static int letters_value(const char *p, int n)
{
    int v = 0;
    for (int i = 0; i < n; i++) v = 26 * v + (p[i] - 'a');
    return v;
}

static void put_number(struct str *s, const struct piece *p, int i)
{
    char text[8] = "";
    for (int k = p->letters - 1, v = i; k >= 0; k--, v /= 26) text[k] = (char)('a' + v % 26);
    if (p->letters)
        str_puts(s, text);
    else
        str_printf(s, "%0*d", p->width, i);
    str_puts(s, p->tail);
}

/* from: the folder's end, for the name alone, or 0. */
static void put_piece(struct str *s, const struct piece *p, int from, int i)
{
    str_add(s, p->path + from, (size_t)(p->stem - from));
    put_number(s, p, i);
}

/* False: it is not there, and a link to nothing is neither: it cannot be joined. */
static bool piece_size(const struct piece *p, int i, uint64_t *bytes)
{
    struct str path = {0};
    struct stat st;
    put_piece(&path, p, 0, i);
    const bool there = stat(str_c(&path), &st) == 0;
    *bytes = there ? (uint64_t)st.st_size : 0;
    str_free(&path);
    return there;
}

static bool is_there(const struct piece *p, int i)
{
    uint64_t bytes;
    return piece_size(p, i, &bytes);
}

/* ---- what names are pieces */

static void take_digits(struct piece *p, const char *at, int n)
{
    p->stem = (int)(at - p->path);
    p->no = atoi(at);
    p->width = *at == '0' ? n : 1;
    p->tail = at + n;
}

static bool parse_part(struct piece *p, const char *name)
{
    const char *at = strstr(name, ".part");
    const int n = at ? count(at + 5, '0', '9') : 0;
    if (!n || n > MAX_DIGITS) return false;
    take_digits(p, at + 5, n);
    if (!*p->tail) return true;
    const int more = strncmp(p->tail, "of", 2) == 0 ? count(p->tail + 2, '0', '9') : 0;
    p->of = more && more <= MAX_DIGITS ? atoi(p->tail + 2) : 0;
    return more && !p->tail[2 + more];
}

/* What stands behind ".gguf" and perhaps a mark: two letters, one behind "split-", or digits. */
static bool parse_ending(struct piece *p, const char *name)
{
    const char *gguf = strstr(name, ".gguf"), *dot = strrchr(name, '.');
    const char *at = gguf ? gguf + 5 : name[0] == 'x' ? name + 1 : "";
    if (gguf && *at && strchr(".-_", *at)) at++;
    const bool split = strncmp(at, "split-", 6) == 0;
    if (split) at += 6;
    const int letters = count(at, 'a', 'z'), want = split ? 1 : 2;
    if (letters == want && !at[want]) {
        p->stem = (int)(at - p->path);
        p->letters = want;
        p->no = letters_value(at, want);
        p->tail = at + want;
        return true;
    }
    if (!gguf) at = dot ? dot + 1 : "";
    const int digits = count(at, '0', '9');
    if (digits < (gguf ? 2 : 3) || digits > 4 || at[digits]) return false;
    take_digits(p, at, digits);
    p->width = digits;
    return true;
}

/* Other words have two letters too: a first piece begins with "a", or lies beside. */
static bool parse(struct piece *p, const char *path)
{
    const char *name = last_part(path);
    *p = (struct piece){.path = path, .folder = (int)(name - path)};
    if (!parse_part(p, name) && !parse_ending(p, name)) return false;
    p->first = p->letters || p->no == 0 || is_there(p, 0) ? 0 : 1;
    return !p->letters || p->no < 26 || is_there(p, 0);
}

/* ---- the command */

/* In quotes, where a shell would take it for something else. */
static void put_word(struct str *s, const char *p, size_t n)
{
    static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/+=:@%,-";
    bool plain = n > 0 && *p != '-';
    for (size_t i = 0; i < n && plain; i++) plain = memchr(safe, p[i], sizeof safe - 1) != NULL;
    if (plain) {
        str_add(s, p, n);
        return;
    }
    str_puts(s, *p == '-' ? "./'" : "'");
    for (size_t i = 0; i < n; i++) p[i] == '\'' ? str_puts(s, "'\\''") : str_add(s, p + i, 1);
    str_puts(s, "'");
}

/* All pieces up to last: their names, or a pattern that sorts as they do. */
static void put_pieces(struct str *s, const struct piece *p, int last)
{
    const int n = p->letters ? p->letters : p->width;
    const bool named = last - p->first < NAMED;
    for (int i = p->first; named && i <= last; i++) {
        struct str name = {0};
        put_piece(&name, p, p->folder, i);
        str_puts(s, " ");
        put_word(s, str_c(&name), name.n);
        str_free(&name);
    }
    if (named) return;
    str_puts(s, " ");
    put_word(s, p->path + p->folder, (size_t)(p->stem - p->folder));
    if (n == 1 && !p->letters) str_printf(s, "{%d..%d}", p->first, last);
    for (int i = 0; i < n && (n > 1 || p->letters); i++) str_puts(s, p->letters ? "[a-z]" : "[0-9]");
    str_puts(s, p->tail);
}

static bool ends(const char *p, int n, const char *with)
{
    const int m = (int)strlen(with);
    return n >= m && memcmp(p + n - m, with, (size_t)m) == 0;
}

/* The name before the cut. */
static void put_whole(struct str *s, const struct piece *p)
{
    static const char *const marks[] = {"split-", "part", ".", "-", "_"};
    static const char *const complete[] = {".gguf", ".7z", ".zip", ".tar", ".gz", ".xz", ".zst"};
    const char *name = p->path + p->folder;
    struct str whole = {0};
    int n = p->stem - p->folder;
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (ends(name, n, marks[i])) n -= (int)strlen(marks[i]);
    bool is_complete = false;
    for (size_t i = 0; i < sizeof complete / sizeof *complete; i++) is_complete |= ends(name, n, complete[i]);
    if (n == 1 && *name == 'x')
        str_puts(&whole, "model");
    else
        str_add(&whole, name, (size_t)n);
    if (!is_complete) str_puts(&whole, ".gguf");
    put_word(s, str_c(&whole), whole.n);
    str_free(&whole);
}

/* ---- what is not there */

/* Which of the pieces up to *last are missing. Pieces behind the last that is there are not known of, unless the name
 * counts them. */
static void find_missing(const struct piece *p, int *last, struct name_list *missing)
{
    const int most = p->letters == 1 ? 26 : p->letters ? 26 * 26 : MAX_PIECES;
    struct str name = {0};
    *last = p->of ? p->first + p->of - 1 : p->no;
    for (int i = *last + 1; !p->of && i < most; i++)
        if (is_there(p, i)) *last = i;
    if (*last >= MAX_PIECES) *last = MAX_PIECES;
    for (int i = p->first; i <= *last; i++) {
        if (is_there(p, i)) continue;
        str_clear(&name);
        put_piece(&name, p, p->folder, i);
        name_list_add(missing, str_c(&name));
    }
    str_free(&name);
}

/* Bytes of the whole file, as the records say that the first piece begins with; 0: they are not all in it, or it was
 * packed before it was cut. */
static uint64_t whole_bytes(const struct piece *p)
{
    struct str path = {0};
    struct gguf *g;
    put_piece(&path, p, 0, p->first);
    const bool opens = gguf_open_headers(str_c(&path), &g, NULL) == 0;
    const uint64_t end = opens ? gguf_data_end(g) : 0;
    if (opens) gguf_close(g);
    str_free(&path);
    return end;
}

/* Pieces that are all there as far as names tell, and too short for the whole: one of them, or the number of them. */
struct shortage {
    uint64_t have, whole;
    int cut;  /* the first that is shorter than the first piece, or -1 */
    int last; /* piece of the whole, where all before it are as long as the first */
};

static bool is_short(const struct piece *p, int last, struct shortage *s)
{
    uint64_t first = 0, bytes;
    *s = (struct shortage){.whole = whole_bytes(p), .cut = -1};
    for (int i = p->first; i <= last; i++) {
        piece_size(p, i, &bytes);
        s->have += bytes;
        if (i == p->first) first = bytes;
        if (bytes < first && s->cut < 0) s->cut = i;
    }
    const uint64_t more = first ? (s->whole - 1) / first : 0;
    s->last = more < MAX_PIECES ? p->first + (int)more : MAX_PIECES;
    if (p->of || s->last < last) s->last = last;
    return s->have < s->whole;
}

static void tell_short(struct str *what, const struct piece *p, int last, const struct shortage *s)
{
    str_printf(what, "the pieces here have %" PRIu64 " of %" PRIu64 " bytes", s->have, s->whole);
    if (s->cut >= 0) {
        str_puts(what, ", and ");
        put_piece(what, p, p->folder, s->cut);
        str_puts(what, " is shorter than the first: continue its download");
    } else if (p->of) {
        str_puts(what, ": get again what is smaller than where it was published");
    } else {
        str_puts(what, ": get ");
        put_piece(what, p, p->folder, last + 1);
        str_puts(what, " and what follows into the same folder");
    }
}

/* ---- the sentence */

bool piece_name_tell(const char *path, struct str *what)
{
    struct piece p;
    struct shortage s = {0};
    struct name_list missing = {0};
    int last;
    if (!parse(&p, path)) return false;
    find_missing(&p, &last, &missing);
    const bool lacks = !missing.n && is_short(&p, last, &s), alone = !missing.n && last == p.first && !p.of;
    const bool counted = p.of || !(missing.n || lacks || alone);
    str_printf(what, "is piece %d ", p.no - p.first + 1);
    if (counted) str_printf(what, "of %d ", last - p.first + 1);
    str_puts(what, "of a file that was cut; ");
    if (lacks) {
        tell_short(what, &p, last, &s);
    } else if (alone) {
        str_puts(what, "no other piece is beside it: get the others, from ");
        put_piece(what, &p, p.folder, p.no + 1);
        str_puts(what, " on, into the same folder");
    } else if (missing.n) {
        name_list_put(&missing, what);
        str_puts(what, missing.n == 1 ? " is missing: get it into the same folder"
                                      : " are missing: get them into the same folder");
    }
    if (lacks || alone || missing.n)
        str_puts(what, ", and join all: cat");
    else
        str_printf(what, "join them%s: cat", p.folder ? ", in their folder" : "");
    put_pieces(what, &p, lacks ? s.last : alone ? last + NAMED : last);
    str_puts(what, " > ");
    put_whole(what, &p);
    name_list_free(&missing);
    return true;
}
