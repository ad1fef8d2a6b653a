/* Manual pages for the macros of man(7). */
#include <ctype.h>
#include <string.h>
#include "ds4.h"
#include "help.h"
#include "help_layout.h"

/* One character of text that is not looked at by roff. */
static void put_char(FILE *out, char c, bool dash)
{
    static const char special[] = "\\'\"~^`", *const names[] = {"rs", "aq", "dq", "ti", "ha", "ga"};
    const char *at = strchr(special, c);
    if (at)
        fprintf(out, "\\(%s", names[at - special]);
    else
        fprintf(out, c == '-' && dash ? "\\-" : "%c", c);
}

/* Words as they are typed: every dash is one. */
static void put_typed(FILE *out, const char *text)
{
    for (; *text; text++) put_char(out, *text, true);
}

/* Prose: dashes of words that begin with one, as options do, are for typing; others are hyphens. A newline ends a
 * paragraph. */
static void put_prose(FILE *out, const char *text)
{
    bool option = false, begins = true;
    for (const char *c = text; *c; c++) {
        if (*c == '.' && (c == text || c[-1] == '\n')) fputs("\\&", out);
        if (begins) option = *c == '-';
        begins = *c == ' ' || *c == '\n' || (begins && strchr("[(|\"'", *c));
        if (*c == '\n')
            fputs("\n.PP\n", out);
        else
            put_char(out, *c, option);
    }
    fputc('\n', out);
}

static void put_heading(FILE *out, const char *macro, const char *text, bool capitals)
{
    fprintf(out, "%s ", macro);
    for (; *text; text++) put_char(out, capitals ? (char)toupper((unsigned char)*text) : *text, true);
    fputc('\n', out);
}

static void put_text(FILE *out, const char *text)
{
    if (!text) return;
    fputs(".PP\n", out);
    put_prose(out, text);
}

static void put_in(FILE *out, const char *font, const char *text)
{
    fprintf(out, "\\f%s", font);
    put_typed(out, text);
    fputs("\\fR", out);
}

/* Appends the topics of help, which pages list of their own. */
static void add_topics(struct str *s, const struct help_program *p)
{
    str_puts(s, "; topics: ");
    for (int i = 0; i < p->n_parts; i++)
        if (p->parts[i].section->topic) str_printf(s, "%s, ", p->parts[i].section->topic);
    str_puts(s, "all");
}

static void put_row(FILE *out, const struct help_program *p, const struct option *o)
{
    struct str text = {0};
    fputs(".TP\n", out);
    put_in(out, "B", o->name);
    if (o->other) fputs(", ", out), put_in(out, "B", o->other);
    if (o->value) fputc(' ', out), put_in(out, "I", o->value);
    fputc('\n', out);
    layout_description(&text, o);
    if (o->kind == OPTION_HELP) add_topics(&text, p);
    str_puts(&text, ".");
    put_prose(out, str_c(&text));
    str_free(&text);
}

static void put_rows(FILE *out, const struct help_program *p, const struct help_section *s)
{
    struct option row;
    for (int i = 0; help_row(s, i, &row); i++) put_row(out, p, &row);
}

static void put_synopsis(FILE *out, const char *name, const char *command, const char *usage)
{
    fputs(".PP\n", out);
    put_in(out, "B", name);
    if (command) fputc(' ', out), put_in(out, "B", command);
    fputc(' ', out);
    put_typed(out, usage);
    fputc('\n', out);
}

static void put_command(FILE *out, const struct help_program *p, const struct help_section *s)
{
    put_heading(out, ".SS", s->topic, false);
    put_text(out, s->title);
    put_synopsis(out, p->name, s->topic, s->usage);
    put_text(out, s->text);
    put_rows(out, p, s);
}

/* Sections of options are parts of one chapter, and so are commands; others are chapters of their own. */
enum kind { OPTIONS, COMMANDS, CHAPTERS };

static enum kind kind_of(const struct help_section *s)
{
    return s->usage ? COMMANDS : s->n_options && *s->options[0].name == '-' ? OPTIONS : CHAPTERS;
}

static void put_sections(FILE *out, const struct help_program *p, enum kind kind, const char *chapter)
{
    for (int i = 0; i < p->n_parts; i++) {
        const struct help_section *s = p->parts[i].section;
        if (kind_of(s) != kind) continue;
        if (chapter) put_heading(out, ".SH", chapter, true);
        chapter = NULL;
        if (kind == COMMANDS) {
            put_command(out, p, s);
            continue;
        }
        put_heading(out, kind == OPTIONS ? ".SS" : ".SH", s->title, kind == CHAPTERS);
        put_text(out, s->text);
        put_rows(out, p, s);
    }
}

static void put_examples(FILE *out, const struct help_program *p)
{
    if (!p->n_examples) return;
    fputs(".SH EXAMPLES\n.PP\n.nf\n", out);
    for (int i = 0; i < p->n_examples; i++) put_typed(out, p->examples[i].command), fputc('\n', out);
    fputs(".fi\n", out);
}

void help_man(FILE *out, const struct help_program *p)
{
    fputs(".TH ", out);
    for (const char *c = p->name; *c; c++) put_char(out, (char)toupper((unsigned char)*c), true);
    fprintf(out, " 1 \"\" \"%s " DS4_VERSION "\"\n", p->name);
    fprintf(out, ".nh\n.ad l\n.SH NAME\n%s \\- %s\n.SH SYNOPSIS\n", p->name, p->summary);
    put_synopsis(out, p->name, NULL, p->usage);
    fputs(".SH DESCRIPTION\n", out);
    put_text(out, p->text);
    put_sections(out, p, OPTIONS, "options");
    put_sections(out, p, COMMANDS, "commands");
    put_sections(out, p, CHAPTERS, NULL);
    put_examples(out, p);
    fprintf(out, ".SH SEE ALSO\n%s\n", p->see_also);
}
