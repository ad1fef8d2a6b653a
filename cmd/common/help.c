/* Pages of help: what is on them and in which order. */
#include "help.h"
#include <string.h>
#include "help_layout.h"

enum page { PAGE_FIRST, PAGE_TOPIC, PAGE_ALL };

bool help_row(const struct help_section *s, int i, struct option *row)
{
    if (i >= s->n_options) return s->row && s->row(i - s->n_options, row);
    *row = s->options[i];
    return true;
}

const struct help_section *help_find(const struct help_program *p, const char *topic)
{
    for (int i = 0; i < p->n_parts; i++) {
        const struct help_section *s = p->parts[i].section;
        if (s->topic && !strcmp(s->topic, topic)) return s;
    }
    return NULL;
}

static void print_text(struct layout *l, const char *text)
{
    if (!text) return;
    layout_blank(l);
    layout_text(l, LAYOUT_PARAGRAPH, 0, text);
}

/* "NAME [COMMAND] - what it is", how it is used, paragraphs. */
static void print_head(struct layout *l, const struct help_program *p, const struct help_section *command)
{
    const char *usage = command ? command->usage : p->usage, *part = command ? " " : "";
    const char *name = command ? command->topic : "";
    struct str line = {0};
    str_printf(&line, "%s%s%s - %s", p->name, part, name, command ? command->title : p->summary);
    layout_text(l, LAYOUT_TITLE, 0, str_c(&line));
    layout_blank(l);
    str_clear(&line);
    str_printf(&line, "%s%s%s %s", p->name, part, name, usage);
    layout_headed(l, LAYOUT_PLAIN, "Usage: ", str_c(&line));
    print_text(l, command ? command->text : p->text);
    str_free(&line);
}

static void print_title(struct layout *l, const struct help_section *s)
{
    struct str line = {0};
    str_printf(&line, "%s:", s->title);
    layout_text(l, s->row ? LAYOUT_RED_TITLE : LAYOUT_TITLE, 0, str_c(&line));
    str_free(&line);
}

static void print_rows(struct layout *l, const struct help_section *s, enum page page)
{
    struct option row;
    for (int i = 0; help_row(s, i, &row); i++)
        if (page != PAGE_FIRST || !row.rare) layout_row(l, &row);
}

static void print_section(struct layout *l, const struct help_program *p, const struct help_section *s, enum page page)
{
    if (s->usage) {
        print_head(l, p, s);
        layout_blank(l);
    } else {
        print_title(l, s);
        if (page != PAGE_FIRST && s->text) {
            layout_text(l, LAYOUT_PARAGRAPH, 0, s->text);
            layout_blank(l);
        }
    }
    print_rows(l, s, page);
}

/* All commands of a program, a line each. */
static void print_commands(struct layout *l, const struct help_program *p)
{
    bool any = false;
    for (int i = 0; i < p->n_parts; i++) {
        const struct help_section *s = p->parts[i].section;
        if (!s->usage) continue;
        if (!any) layout_blank(l), layout_text(l, LAYOUT_TITLE, 0, "Commands:");
        any = true;
        layout_row(l, &(struct option){.name = s->topic, .text = s->title});
    }
}

static void print_more(struct layout *l, const struct help_program *p)
{
    int n = 0;
    struct str text = {0}, label = {0};
    layout_blank(l);
    layout_text(l, LAYOUT_TITLE, 0, "More help:");
    for (int i = 0; i <= p->n_parts; i++) {
        const struct help_section *s = i < p->n_parts ? p->parts[i].section : NULL;
        if (s && !s->topic) continue;
        str_clear(&text);
        str_clear(&label);
        str_printf(&text, "--help %s", s ? s->topic : "all");
        str_printf(&label, "%s%s",
                   !s         ? "Everything"
                   : s->usage ? "Options of "
                              : s->title,
                   s && s->usage ? s->topic : "");
        layout_more(l, s && s->row ? LAYOUT_RED_TITLE : LAYOUT_MORE + n++ % LAYOUT_MORE_COUNT, str_c(&label),
                    str_c(&text));
    }
    str_free(&text);
    str_free(&label);
}

/* topic NULL: those of the first page. */
static void print_examples(struct layout *l, const struct help_program *p, const char *topic, enum page page)
{
    bool any = false;
    for (int i = 0; i < p->n_examples; i++) {
        const struct help_example *e = &p->examples[i];
        const bool same = topic && e->topic ? !strcmp(topic, e->topic) : topic == e->topic;
        if (page != PAGE_ALL && !same) continue;
        if (!any) layout_blank(l), layout_text(l, LAYOUT_TITLE, 0, "Examples:");
        any = true;
        layout_command(l, e->command);
    }
}

static void print_whole(struct layout *l, const struct help_program *p, enum page page)
{
    print_head(l, p, NULL);
    if (page == PAGE_FIRST) print_commands(l, p);
    for (int i = 0; i < p->n_parts; i++) {
        const struct help_section *s = p->parts[i].section;
        if (page == PAGE_FIRST && (s->rare || s->usage)) continue;
        layout_blank(l);
        print_section(l, p, s, page);
    }
    print_more(l, p);
    print_examples(l, p, NULL, page);
}

bool help_print(FILE *out, const struct help_program *p, const char *topic)
{
    struct layout l;
    layout_begin(&l, out);
    const struct help_section *s = topic ? help_find(p, topic) : NULL;
    if (s) {
        print_section(&l, p, s, PAGE_TOPIC);
        print_examples(&l, p, topic, PAGE_TOPIC);
    } else if (topic && !strcmp(topic, "man"))
        help_man(out, p);
    else if (!topic || !strcmp(topic, "all"))
        print_whole(&l, p, topic ? PAGE_ALL : PAGE_FIRST);
    else
        return false;
    return true;
}
