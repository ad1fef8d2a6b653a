/* The check as text: "name", blanks to column 16, what there is to say of it. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "base/str.h"
#include "check_internal.h"

enum { SHOWN_FLAWS = 10, SHOWN_FILES = 4 };

static void line(const char *name, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void line(const char *name, const char *fmt, ...)
{
    struct str text = {0};
    va_list ap;
    va_start(ap, fmt);
    str_vprintf(&text, fmt, ap);
    va_end(ap);
    text_defuse(text.p, text.n);
    printf("%-16s%s\n", name, str_c(&text));
    str_free(&text);
}

static double gib(uint64_t bytes)
{
    return (double)bytes / (1 << 30);
}

static const char *file_name(const struct gguf_set *s, int i)
{
    const char *path = gguf_path(gguf_set_file(s, i)), *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static const char *part_of(const struct check *c)
{
    if (!c->part) return "";
    return gguf_set_kv_find(c->part, "split.count") ? " (only this shard was looked at)"
                                                    : " (only this file was looked at)";
}

static void file_lines(const struct check *c)
{
    const int n = gguf_set_n_files(c->files);
    struct str names = {0};
    for (int i = 0; i < n && i < SHOWN_FILES; i++) str_printf(&names, "%s%s", i ? ", " : "", file_name(c->files, i));
    if (n > SHOWN_FILES) str_printf(&names, ", ... %s", file_name(c->files, n - 1));
    const uint64_t tensors = gguf_set_n_tensors(c->files);
    line("files", "%d %s%s, %" PRIu64 " tensor%s, %" PRIu64 " bytes: %s%s", n,
         gguf_set_is_split(c->files) ? "shard" : "file", n == 1 ? "" : "s", tensors, tensors == 1 ? "" : "s",
         c->census.file_bytes, str_c(&names), part_of(c));
    str_free(&names);
}

static void notes_line(const struct check *c, const char *name, enum canonical_note kind)
{
    const char *text;
    struct str all = {0};
    for (int i = 0; (text = canonical_note(c->model, kind, i, NULL)); i++)
        str_printf(&all, "%s%s", i ? ", " : "", text);
    if (kind == NOTE_RENAMED && all.n)
        line(name, "%d tensors: %s%s", canonical_n_renamed(c->model), str_c(&all),
             canonical_n_renamed(c->model) > 3 ? ", ..." : "");
    else if (all.n)
        line(name, "%s", str_c(&all));
    str_free(&all);
}

static void model_lines(const struct check *c)
{
    const struct canonical *m = c->model;
    if (!canonical_is_known(m)) return;
    const int layers = canonical_n_layers(m); /* none: a draft or a table */
    if (layers)
        line("model", "%s: %s, %d layer%s", canonical_name(m), canonical_title(m), layers, layers == 1 ? "" : "s");
    else
        line("model", "%s: %s", canonical_name(m), canonical_title(m));
    if (canonical_dialect(m)) line("dialect", "%s", canonical_dialect(m));
    notes_line(c, "renamed", NOTE_RENAMED);
    notes_line(c, "split", NOTE_SPLIT);
    notes_line(c, "derived", NOTE_DERIVED);
    notes_line(c, "defaults", NOTE_DEFAULT);
    notes_line(c, "ignored", NOTE_IGNORED);
    const double bits = canonical_expert_bits(m);
    if (bits > 0) line("experts", "%.2f bits a weight", bits);
}

/* ---- damage */

/* Unless the last line tells it. */
static void problem_line(const struct check *c, const struct str *text)
{
    if (!strstr(c->why_not.msg, str_c(text))) line("problem", "%s", str_c(text));
}

static void flaw_line(const struct check *c, const struct gguf_flaw *f)
{
    const struct gguf_str *name = &f->tensor->name;
    const bool vital = check_is_vital(c, f);
    struct str text = {0};
    str_printf(&text, "%.*s holds NaN or Inf in row %" PRId64 ": %s", (int)(name->n < 200 ? name->n : 200), name->p,
               f->row, vital ? CANONICAL_VITAL_DAMAGE : CANONICAL_DAMAGE);
    if (vital)
        problem_line(c, &text);
    else
        line("warning W8", "%s", str_c(&text));
    str_free(&text);
}

static void scan_lines(const struct check *c)
{
    const struct gguf_scan *s = &c->scan;
    const double gb = (double)s->bytes * 1e-9;
    if (!c->scanned) {
        if (!c->options->headers) line("damage", "not looked for: the data could not be read");
        return;
    }
    line("damage", "%s in the scales and plain numbers of %.3f GB; read in %.1f s, %.2f GB/s",
         s->zeros.bytes ? (s->n_flaws ? "zeros, and NaN or Inf" : "zeros")
         : s->n_flaws   ? "NaN or Inf"
                        : "none: no NaN or Inf",
         gb, c->scan_s, c->scan_s > 0 ? gb / c->scan_s : 0);
    struct str zeros = {0};
    if (s->zeros.bytes) check_zeros_text(c, &zeros);
    if (s->zeros.bytes) problem_line(c, &zeros);
    str_free(&zeros);
    for (int i = 0; i < s->n_flaws && i < SHOWN_FLAWS; i++) flaw_line(c, &s->flaws[i]);
    if (s->n_flaws > SHOWN_FLAWS) line("warning W8", "%d more tensors hold NaN or Inf", s->n_flaws - SHOWN_FLAWS);
}

/* ---- this machine */

static void machine_lines(const struct check *c)
{
    const struct ds4_memory_plan *p = &c->plan;
    const double active = (double)p->active;
    const bool known = c->model && canonical_is_known(c->model) && canonical_n_layers(c->model) > 0;
    if (!c->engine && known)
        line("memory",
             "%.2f GiB of weights, %.2f available; what else is needed is not known of a model that cannot "
             "be opened",
             gib(c->census.all.bytes), gib(p->available));
    if (!c->engine) return;
    line("memory", "%.2f GiB needed for %d tokens of context, %.2f available%s", gib(p->total), p->ctx,
         gib(p->available), check_fits(c) ? "" : ": this does not fit");
    if (c->why_not.code) return;
    if (c->memory > 0 && active > 0)
        line("speed", "up to %.2f tokens/s of an answer: %.3f GB of weights each, memory reads %.2f GB/s",
             c->memory / active, active * 1e-9, c->memory * 1e-9);
    if (c->disk > 0 && active > 0)
        line("from disk", "%.2f tokens/s where no weight is in memory: the disk reads %.2f GB/s", c->disk / active,
             c->disk * 1e-9);
}

/* ---- why not */

static int n_problems(const struct check *c)
{
    int n = 0;
    while (canonical_note(c->model, NOTE_PROBLEM, n, NULL)) n++;
    return n;
}

/* Where the last line tells the first problem, behind it; else NULL. */
static const char *told_last(const struct check *c)
{
    const char *first = c->model ? canonical_note(c->model, NOTE_PROBLEM, 0, NULL) : NULL;
    const char *at = first ? strstr(c->why_not.msg, first) : NULL;
    return at ? at + strlen(first) : NULL;
}

/* Behind the first problem: those that have lines of their own are left out. */
static void last_line(const struct check *c)
{
    const char *rest = told_last(c), *text;
    int more;
    printf("will not run: ");
    if (!rest) {
        puts(c->why_not.msg);
        return;
    }
    printf("%.*s", (int)(rest - c->why_not.msg), c->why_not.msg);
    for (int i = 1; (text = canonical_note(c->model, NOTE_PROBLEM, i, NULL)); i++)
        if (strncmp(rest, "; ", 2) == 0 && strncmp(rest + 2, text, strlen(text)) == 0) rest += 2 + strlen(text);
    if (sscanf(rest, "; and %d more", &more) == 1) rest = strstr(rest, " more") + 5;
    if (n_problems(c) > 1) printf("; and %d more (above)", n_problems(c) - 1);
    puts(rest);
}

static void concern_lines(const struct check *c)
{
    const char *text, *id;
    char name[20];
    for (int i = 0; (text = canonical_note(c->model, NOTE_WARNING, i, &id)); i++) {
        snprintf(name, sizeof name, "warning%s%s", *id ? " " : "", id);
        line(name, "%s", text);
    }
    if (!told_last(c) || n_problems(c) > 1)
        for (int i = 0; (text = canonical_note(c->model, NOTE_PROBLEM, i, NULL)); i++) line("problem", "%s", text);
}

void check_print_text(const struct check *c)
{
    if (c->files) file_lines(c);
    if (c->model) model_lines(c);
    if (c->files && !c->part) {
        putchar('\n');
        file_census_print(&c->census);
        putchar('\n');
    }
    if (c->files) scan_lines(c);
    machine_lines(c);
    if (c->model) concern_lines(c);
    if (c->files) putchar('\n');
    if (c->why_not.code)
        last_line(c);
    else if (c->scan.n_flaws)
        puts("will run, but the file is damaged (W8): answers that meet the damage stop" CANONICAL_DAMAGE_REMEDY);
    else
        puts("will run");
}
