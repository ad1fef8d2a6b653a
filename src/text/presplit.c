/* Pre-tokenizing with PCRE2: the patterns one after the other, each inside the pieces of the one before. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/presplit.h"

#include <assert.h>
#include <pcre2.h>
#include <stdint.h>
#include "base/mem.h"
#include "text/presplit_patterns.h"
#include "text/utf8.h"

struct presplit {
    pcre2_code *step[PRESPLIT_MAX_STEPS]; /* n_steps in use */
    int n_steps;
    pcre2_match_context *limits;
};

struct split_run {
    const struct presplit *split;
    pcre2_match_data *match; /* used by all steps: a result is copied out before the next match */
    presplit_piece *piece;
    void *arg;
    struct err *e;
};

static int pcre2_failed(int code, const char *doing, struct err *e)
{
    PCRE2_UCHAR text[160] = "";
    pcre2_get_error_message(code, text, sizeof text);
    return err_set(e, ERR_MEMORY, "tokenizer: PCRE2 failed while %s: %s", doing, (const char *)text);
}

static int compile(const char *pattern, pcre2_code **out, struct err *e)
{
    int code;
    PCRE2_SIZE at;
    *out = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, PCRE2_UTF | PCRE2_UCP, &code, &at, NULL);
    if (!*out) return pcre2_failed(code, "compiling a pattern of the pre-tokenizer", e);
    /* Where there is no JIT, or the system forbids it, the interpreter gives the same matches. */
    pcre2_jit_compile(*out, PCRE2_JIT_COMPLETE);
    return 0;
}

int presplit_create(enum pretokenizer kind, struct presplit **out, struct err *e)
{
    assert(kind >= 0 && kind < PRETOKENIZER_COUNT);
    *out = NULL;
    struct presplit *s = mem_alloc(sizeof *s);
    s->limits = pcre2_match_context_create(NULL);
    int rc = s->limits ? 0 : err_set(e, ERR_MEMORY, "tokenizer: no memory for the pre-tokenizer");
    /* The patterns are linear; the default limits are counts that a long run of white space would reach. */
    if (rc == 0) {
        pcre2_set_match_limit(s->limits, UINT32_MAX);
        pcre2_set_depth_limit(s->limits, UINT32_MAX);
        pcre2_set_heap_limit(s->limits, UINT32_MAX);
    }
    const char *const *pattern = presplit_patterns[kind];
    while (rc == 0 && s->n_steps < PRESPLIT_MAX_STEPS && pattern[s->n_steps]) {
        rc = compile(pattern[s->n_steps], &s->step[s->n_steps], e);
        s->n_steps++;
    }
    if (rc != 0) {
        presplit_free(s);
        return rc;
    }
    *out = s;
    return 0;
}

void presplit_free(struct presplit *s)
{
    if (!s) return;
    for (int i = 0; i < s->n_steps; i++) pcre2_code_free(s->step[i]);
    pcre2_match_context_free(s->limits);
    mem_free(s);
}

/* Cuts valid UTF-8 by the patterns from step on. Each call of pcre2_match gets the piece as a subject of its own, so
 * that a look-ahead ends where the piece ends. */
static int split_valid(const struct split_run *r, int step, const char *text, size_t n)
{
    if (n == 0) return 0;
    if (step == r->split->n_steps) return r->piece(r->arg, text, n, r->e);
    size_t at = 0;
    while (at < n) {
        const int found =
            pcre2_match(r->split->step[step], (PCRE2_SPTR)text, n, at, PCRE2_NO_UTF_CHECK, r->match, r->split->limits);
        if (found == PCRE2_ERROR_NOMATCH) break;
        if (found < 0) return pcre2_failed(found, "splitting text", r->e);
        const PCRE2_SIZE *const range = pcre2_get_ovector_pointer(r->match);
        const size_t from = range[0], to = range[1];
        assert(from >= at && to > from && to <= n);
        int rc = split_valid(r, step + 1, text + at, from - at);
        if (rc == 0) rc = split_valid(r, step + 1, text + from, to - from);
        if (rc != 0) return rc;
        at = to;
    }
    return split_valid(r, step + 1, text + at, n - at);
}

/* Length of the run of broken bytes at the start of text. */
static size_t broken_run(const char *text, size_t n)
{
    size_t i = 0;
    while (i < n) {
        const int len = utf8_at(text + i, n - i);
        if (len > 0) break;
        if (len == 0) return n;
        i += (size_t)-len;
    }
    return i;
}

int presplit_run(const struct presplit *s, const char *text, size_t n, presplit_piece *piece, void *arg, struct err *e)
{
    pcre2_match_data *match = pcre2_match_data_create(1, NULL);
    if (!match) return err_set(e, ERR_MEMORY, "tokenizer: no memory to split text");
    const struct split_run r = {.split = s, .match = match, .piece = piece, .arg = arg, .e = e};
    int rc = 0;
    size_t at = 0;
    while (rc == 0 && at < n) {
        const size_t valid = utf8_valid_run(text + at, n - at);
        rc = split_valid(&r, 0, text + at, valid);
        at += valid;
        const size_t broken = broken_run(text + at, n - at);
        if (rc == 0 && broken > 0) rc = piece(arg, text + at, broken, e);
        at += broken;
    }
    pcre2_match_data_free(match);
    return rc;
}
