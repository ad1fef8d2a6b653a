/* Stop strings: one prefix matcher (Knuth-Morris-Pratt) for each string, so that the work is linear in the text. */
#include "text/stop_strings.h"
#include <string.h>
#include "base/mem.h"

struct stop_string {
    char *text; /* owned */
    size_t n;
    size_t *back;   /* [n]: longest proper prefix of text[0..i] that also ends there */
    size_t matched; /* the last bytes are text[0..matched), the longest such beginning */
    int index;      /* as given to create */
};

struct stop_strings {
    struct stop_string *string;
    size_t n;
    struct str held; /* the bytes that may start a stop string */
    size_t held_at;  /* offset of held.p[0] in all the text */
    int hit;         /* index of the string that was met for certain, or -1 */
    int found;       /* candidate: a string that is complete while one that started before it may still be; or -1 */
    size_t found_at; /* where it starts */
};

static void prepare(struct stop_string *s, const char *text, int index)
{
    s->text = mem_strdup(text);
    s->n = strlen(text);
    s->index = index;
    s->back = mem_alloc(s->n * sizeof *s->back);
    for (size_t i = 1, k = 0; i < s->n; i++) {
        while (k && text[i] != text[k]) k = s->back[k - 1];
        if (text[i] == text[k]) k++;
        s->back[i] = k;
    }
}

struct stop_strings *stop_strings_create(const char *const *strings, size_t n)
{
    struct stop_strings *const s = mem_alloc(sizeof *s);
    s->string = mem_alloc((n + 1) * sizeof *s->string);
    for (size_t i = 0; i < n; i++)
        if (*strings[i]) prepare(&s->string[s->n++], strings[i], (int)i);
    s->hit = s->found = -1;
    return s;
}

void stop_strings_free(struct stop_strings *s)
{
    if (!s) return;
    for (size_t i = 0; i < s->n; i++) {
        mem_free(s->string[i].text);
        mem_free(s->string[i].back);
    }
    mem_free(s->string);
    str_free(&s->held);
    mem_free(s);
}

/* One byte more for a string; true: it is complete. A string may go on from a shorter beginning after that. */
static bool advance(struct stop_string *s, char c)
{
    if (s->matched == s->n) s->matched = s->back[s->n - 1];
    while (s->matched && s->text[s->matched] != c) s->matched = s->back[s->matched - 1];
    if (s->text[s->matched] == c) s->matched++;
    return s->matched == s->n;
}

/* The text before `start` is certain: appends what of it was held. */
static void release(struct stop_strings *s, size_t start, struct str *out)
{
    const size_t n = start - s->held_at;
    if (n == 0) return;
    str_add(out, s->held.p, n);
    memmove(s->held.p, s->held.p + n, s->held.n - n);
    s->held.n -= n;
    s->held_at = start;
}

/* The text up to the byte before `end` was read. first: where the earliest beginning that is still open starts. */
static void decide(struct stop_strings *s, size_t first, struct str *out)
{
    if (s->found < 0 || first < s->found_at) return;
    release(s, s->found_at, out);
    s->hit = s->found;
}

int stop_strings_feed(struct stop_strings *s, const char *bytes, size_t n, struct str *out)
{
    size_t first = s->held_at;
    for (size_t i = 0; i < n && s->hit < 0; i++) {
        str_add(&s->held, bytes + i, 1);
        const size_t end = s->held_at + s->held.n;
        first = end;
        for (size_t k = 0; k < s->n; k++) {
            struct stop_string *const t = &s->string[k];
            const bool whole = advance(t, bytes[i]);
            const size_t start = end - t->matched;
            if (whole && (s->found < 0 || start < s->found_at)) {
                s->found = t->index;
                s->found_at = start;
            }
            if (!whole && start < first) first = start;
        }
        decide(s, first, out);
        if (s->hit < 0 && s->held.n > 2 * (end - first) + 64) release(s, first, out);
    }
    if (s->hit < 0 && n) release(s, s->found >= 0 && s->found_at < first ? s->found_at : first, out);
    return s->hit;
}

int stop_strings_end(struct stop_strings *s, struct str *out)
{
    if (s->hit >= 0) return s->hit;
    decide(s, s->held_at + s->held.n, out);
    if (s->hit < 0) release(s, s->held_at + s->held.n, out);
    return s->hit;
}
