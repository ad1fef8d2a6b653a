#include "help_layout.h"
#include <string.h>
#include "tty.h"

/* Columns of rows without colours; where less than TEXT_LEAST are left for the description it begins a line. */
enum {
    NAME_COLUMNS = 30,
    ROW_INDENT = 2,
    TEXT_INDENT = ROW_INDENT + NAME_COLUMNS + 1,
    OWN_LINE_INDENT = 6,
    COMMAND_INDENT = 4,
    TEXT_LEAST = 30
};
enum { LABEL_COLUMNS = 26 };

static const char *const codes[LAYOUT_STYLES] = {
    [LAYOUT_TITLE] = "\033[1;38;5;250m",   [LAYOUT_RED_TITLE] = "\033[1;38;5;203m",
    [LAYOUT_PARAGRAPH] = "\033[38;5;179m", [LAYOUT_DESCRIPTION] = "\033[38;5;252m",
    [LAYOUT_OPTION] = "\033[38;5;81m",     [LAYOUT_ARGUMENT] = "\033[1;38;5;231m",
    [LAYOUT_SEPARATOR] = "\033[38;5;240m", [LAYOUT_MORE] = "\033[38;5;81m",
    [LAYOUT_MORE + 1] = "\033[38;5;114m",  [LAYOUT_MORE + 2] = "\033[38;5;179m",
    [LAYOUT_MORE + 3] = "\033[38;5;141m",  [LAYOUT_MORE + 4] = "\033[38;5;147m",
};

void layout_begin(struct layout *l, FILE *out)
{
    *l = (struct layout){.out = out, .width = tty_width(out), .colour = tty_colour(out)};
}

void layout_blank(struct layout *l)
{
    fputc('\n', l->out);
}

static void put(struct layout *l, enum layout_style style, const char *text, int n)
{
    const char *code = l->colour ? codes[style] : NULL;
    fprintf(l->out, "%s%.*s%s", code ? code : "", n, text, code ? "\033[0m" : "");
}

static void put_blanks(struct layout *l, int n)
{
    fprintf(l->out, "%*s", n, "");
}

/* Bytes of the text's first line in so many columns; at least a word. */
static int fitting(const char *text, int columns)
{
    int n = (int)strcspn(text, " \n");
    while (text[n] == ' ') {
        const int more = 1 + (int)strcspn(text + n + 1, " \n");
        if (n + more > columns) break;
        n += more;
    }
    return n;
}

/* Prints text behind what fills the line up to `column`; lines that follow begin at `indent`. Ends the last one. */
static void put_text(struct layout *l, enum layout_style style, int column, int indent, const char *text)
{
    int n = fitting(text, l->width - column);
    if (n > l->width - column && column > indent) {
        layout_blank(l);
        put_blanks(l, indent);
        n = fitting(text, l->width - indent);
    }
    for (;;) {
        put(l, style, text, n);
        layout_blank(l);
        text += n;
        if (!*text++) return;
        put_blanks(l, indent);
        n = fitting(text, l->width - indent);
    }
}

void layout_text(struct layout *l, enum layout_style style, int indent, const char *text)
{
    put_blanks(l, indent);
    put_text(l, style, indent, indent, text);
}

void layout_headed(struct layout *l, enum layout_style style, const char *head, const char *text)
{
    const int n = (int)strlen(head);
    put(l, LAYOUT_TITLE, head, n);
    put_text(l, style, n, n, text);
}

/* ---------------------------------------------------------------- rows */

void layout_description(struct str *s, const struct option *o)
{
    str_puts(s, o->text);
    if (o->initial) str_printf(s, " (default: %s)", o->initial);
}

static void add_name(struct str *s, const struct option *o)
{
    str_puts(s, o->name);
    if (o->other) str_printf(s, ", %s", o->other);
    if (o->value) str_printf(s, " %s", o->value);
}

static void row_plain(struct layout *l, const char *name, const char *text)
{
    const int n = (int)strlen(name);
    put_blanks(l, ROW_INDENT);
    if (n <= NAME_COLUMNS && l->width >= TEXT_INDENT + TEXT_LEAST) {
        fprintf(l->out, "%-*s ", NAME_COLUMNS, name);
        put_text(l, LAYOUT_PLAIN, TEXT_INDENT, TEXT_INDENT, text);
    } else {
        put_text(l, LAYOUT_PLAIN, ROW_INDENT, OWN_LINE_INDENT, name);
        layout_text(l, LAYOUT_PLAIN, OWN_LINE_INDENT, text);
    }
}

/* Behind a word that begins with - or /, and not as the first, a word that does not is an argument. */
static void row_coloured(struct layout *l, const char *name, const char *text)
{
    const bool command = *name == '-' || *name == '/';
    int column = ROW_INDENT;
    put_blanks(l, ROW_INDENT);
    for (const char *word = name; *word; column++) {
        const int n = (int)strcspn(word, " ");
        const bool argument = command && word != name && *word != '-' && *word != '/';
        put(l, argument ? LAYOUT_ARGUMENT : LAYOUT_OPTION, word, n);
        fputc(' ', l->out);
        column += n;
        word += n;
        if (*word) word++;
    }
    put(l, LAYOUT_SEPARATOR, "|", 1);
    fputc(' ', l->out);
    put_text(l, LAYOUT_DESCRIPTION, column + 2, OWN_LINE_INDENT, text);
}

void layout_row(struct layout *l, const struct option *o)
{
    struct str name = {0}, text = {0};
    add_name(&name, o);
    layout_description(&text, o);
    (l->colour ? row_coloured : row_plain)(l, str_c(&name), str_c(&text));
    str_free(&name);
    str_free(&text);
}

void layout_more(struct layout *l, enum layout_style style, const char *label, const char *text)
{
    const int n = (int)strlen(label);
    put_blanks(l, ROW_INDENT);
    put(l, style, label, n);
    put_blanks(l, n < LABEL_COLUMNS ? LABEL_COLUMNS - n : 1);
    put_text(l, LAYOUT_PLAIN, ROW_INDENT + (n < LABEL_COLUMNS ? LABEL_COLUMNS : n + 1), OWN_LINE_INDENT, text);
}

/* Bytes up to the blank before a command's next option; those in quotes are no options. */
static int command_part(const char *text)
{
    int n = 0;
    for (char quote = 0; text[n] && (quote || text[n] != ' ' || text[n + 1] != '-'); n++)
        if (quote ? text[n] == quote : text[n] == '\'' || text[n] == '"') quote = quote ? 0 : text[n];
    return n;
}

void layout_command(struct layout *l, const char *command)
{
    int column = ROW_INDENT;
    put_blanks(l, ROW_INDENT);
    for (const char *part = command; *part;) {
        const int n = command_part(part);
        const bool first = part == command, last = !part[n];
        if (!first && column + 1 + n + (last ? 0 : 2) > l->width) {
            fprintf(l->out, " \\\n%*s", COMMAND_INDENT, "");
            column = COMMAND_INDENT;
        } else if (!first) {
            fputc(' ', l->out);
            column++;
        }
        fwrite(part, 1, (size_t)n, l->out);
        column += n;
        part += n + !last;
    }
    layout_blank(l);
}
