/* The check as one JSON object; what is not known is null or missing. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "base/str.h"
#include "check_internal.h"
#include "json_text.h"

static void text_member(struct str *out, const char *name, const char *text)
{
    str_printf(out, ",\n  \"%s\": ", name);
    if (text)
        json_string(out, text, strlen(text));
    else
        str_puts(out, "null");
}

static void number_member(struct str *out, const char *name, double v)
{
    str_printf(out, ",\n  \"%s\": ", name);
    json_float(out, v);
}

static void files_member(struct str *out, const struct check *c)
{
    str_puts(out, ",\n  \"files\": [");
    for (int i = 0; c->files && i < gguf_set_n_files(c->files); i++) {
        const struct gguf *g = gguf_set_file(c->files, i);
        str_puts(out, i ? ",\n    {\"path\": " : "\n    {\"path\": ");
        json_string(out, gguf_path(g), strlen(gguf_path(g)));
        str_printf(out, ", \"bytes\": %" PRIu64 ", \"tensors\": %" PRIu64 "}", gguf_size(g), gguf_n_tensors(g));
    }
    str_puts(out, "]");
}

static void notes_member(struct str *out, const struct check *c, const char *name, enum canonical_note kind)
{
    const char *text;
    str_printf(out, ",\n  \"%s\": [", name);
    for (int i = 0; (text = canonical_note(c->model, kind, i, NULL)); i++) {
        str_puts(out, i ? ", " : "");
        json_string(out, text, strlen(text));
    }
    str_puts(out, "]");
}

static void flaw(struct str *out, const struct check *c, const struct gguf_flaw *f)
{
    const char *meaning = check_is_vital(c, f) ? CANONICAL_VITAL_DAMAGE : CANONICAL_DAMAGE;
    str_puts(out, "{\"id\": \"W8\", \"tensor\": ");
    json_string(out, f->tensor->name.p, (size_t)f->tensor->name.n);
    str_printf(out, ", \"row\": %" PRId64 ", \"text\": \"holds NaN or Inf: %s\"}", f->row, meaning);
}

static void warnings_member(struct str *out, const struct check *c)
{
    const char *text, *id;
    int n = 0;
    str_puts(out, ",\n  \"warnings\": [");
    for (int i = 0; c->model && (text = canonical_note(c->model, NOTE_WARNING, i, &id)); i++) {
        str_puts(out, n++ ? ",\n    {\"id\": " : "\n    {\"id\": ");
        if (*id)
            json_string(out, id, strlen(id));
        else
            str_puts(out, "null");
        str_puts(out, ", \"text\": ");
        json_string(out, text, strlen(text));
        str_puts(out, "}");
    }
    for (int i = 0; i < c->scan.n_flaws; i++) {
        str_puts(out, n++ ? ",\n    " : "\n    ");
        flaw(out, c, &c->scan.flaws[i]);
    }
    str_puts(out, "]");
}

static void census_member(struct str *out, const struct check *c)
{
    int n = 0;
    str_puts(out, ",\n  \"census\": {");
    for (int g = 0; g < CENSUS_GROUPS; g++) {
        const struct census_sum *s = &c->census.group[g];
        if (!s->n) continue;
        str_printf(out, "%s\n    \"%s\": {\"tensors\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"types\": {",
                   n++ ? "," : "", file_census_name((enum census_group)g), s->n, s->bytes);
        for (int i = 0; i < s->n_types; i++) {
            struct str type = {0};
            census_type_name(&type, s, i);
            str_printf(out, "%s\"%s\": %" PRIu64, i ? ", " : "", str_c(&type), s->types[i].n);
            str_free(&type);
        }
        str_puts(out, "}}");
    }
    str_puts(out, "}");
}

static void model_members(struct str *out, const struct check *c)
{
    const struct canonical *m = c->model;
    if (canonical_is_known(m)) {
        text_member(out, "model", canonical_name(m));
        text_member(out, "family", canonical_title(m));
        text_member(out, "dialect", canonical_dialect(m));
        number_member(out, "layers", canonical_n_layers(m));
        number_member(out, "expert_bits", canonical_expert_bits(m));
    }
    number_member(out, "renamed_tensors", canonical_n_renamed(m));
    notes_member(out, c, "renamed", NOTE_RENAMED);
    notes_member(out, c, "split", NOTE_SPLIT);
    notes_member(out, c, "derived", NOTE_DERIVED);
    notes_member(out, c, "defaults", NOTE_DEFAULT);
    notes_member(out, c, "ignored", NOTE_IGNORED);
    notes_member(out, c, "problems", NOTE_PROBLEM);
}

static void machine_members(struct str *out, const struct check *c)
{
    const struct ds4_memory_plan *p = &c->plan;
    if (c->scanned)
        str_printf(out,
                   ",\n  \"scan\": {\"bytes\": %" PRIu64
                   ", \"seconds\": %.3f, \"damaged_tensors\": %d, \"zero_bytes\": %" PRIu64 "}",
                   c->scan.bytes, c->scan_s, c->scan.n_flaws, c->scan.zeros.bytes);
    if (!c->engine && c->files)
        str_printf(out, ",\n  \"memory\": {\"weights\": %" PRIu64 ", \"available\": %" PRIu64 "}", c->census.all.bytes,
                   p->available);
    if (!c->engine) return;
    str_printf(out, ",\n  \"memory\": {\"needed\": %" PRIu64 ", \"available\": %" PRIu64 ", \"ctx\": %d, \"fits\": %s}",
               p->total, p->available, p->ctx, check_fits(c) ? "true" : "false");
    str_printf(out, ",\n  \"active_bytes\": %" PRIu64, p->active);
    if (c->memory > 0 && p->active) number_member(out, "tokens_per_s_at_most", c->memory / (double)p->active);
}

void check_print_json(const struct check *c)
{
    struct str out = {0};
    str_printf(&out, "{\n  \"will_run\": %s", c->why_not.code ? "false" : "true");
    if (c->why_not.code) text_member(&out, "why_not", c->why_not.msg);
    files_member(&out, c);
    if (c->model) model_members(&out, c);
    if (c->files) census_member(&out, c);
    warnings_member(&out, c);
    machine_members(&out, c);
    str_puts(&out, "\n}\n");
    fputs(str_c(&out), stdout);
    str_free(&out);
}
