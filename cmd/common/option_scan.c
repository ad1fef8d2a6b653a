#include "option_scan.h"
#include <assert.h>
#include <stdint.h>
#include <string.h>
#include "ds4.h"

struct scan {
    struct args *a;
    const struct help_program *p;
    const struct help_section *command;
    char *target;
    bool told; /* help or the version was asked for and printed */
};

/* NULL where there are no options but --help and --version. */
static void *target_of(const struct scan *s, const struct help_part *part, size_t at)
{
    return s->target ? s->target + part->at + at : NULL;
}

/* Into a bool, an int or an enum. */
static void store(void *to, size_t bytes, int value)
{
    if (bytes == sizeof(bool))
        *(bool *)to = value != 0;
    else
        memcpy(to, &value, sizeof value);
}

/* The place of the argument among the words of "on|off". */
static int take_choice(struct args *a, const struct option *o, const char *word)
{
    const char *value = args_value(a, word);
    const size_t n = value ? strlen(value) : 0;
    int i = 0;
    for (const char *at = o->value; value; i++) {
        const size_t length = strcspn(at, "|");
        if (length == n && !memcmp(at, value, n)) return i;
        if (!at[length]) break;
        at += length + 1;
    }
    if (value) args_mistake(a, "%s: '%s' is none of %s", word, value, o->value);
    return 0;
}

/* Elsewhere "-" is often standard output; here it would be a file that is hard to name. */
static const char *take_out(struct args *a, const char *word)
{
    const char *name = args_value(a, word);
    if (name && !strcmp(name, "-"))
        args_mistake(a, "%s: '-' names no file; a pipe can be written to as /dev/stdout, a file of that name as ./-",
                     word);
    return name;
}

static void take_word(struct args *a, const struct option *o, const char *word, const char **list, int *n)
{
    const char *value = *o->name == '-' ? args_value(a, word) : word;
    if (*n >= (int)o->max)
        args_mistake(a, "%s: more than %d", *o->name == '-' ? word : o->name, (int)o->max);
    else if (value)
        list[(*n)++] = value;
}

void option_mistake(struct args *a, const struct help_program *p, const struct help_section *command, const char *what,
                    const char *word)
{
    args_mistake(a, "%s%s", what, word);
    help_print(stderr, p, command ? command->topic : NULL);
}

static void give_help(struct scan *s)
{
    struct args *a = s->a;
    const char *topic = a->at < a->argc && a->argv[a->at][0] != '-' ? a->argv[a->at++] : NULL;
    s->told = help_print(stdout, s->p, topic ? topic : s->command ? s->command->topic : NULL);
    if (!s->told) option_mistake(a, s->p, s->command, "no help on ", topic);
}

static void take(struct scan *s, const struct help_part *part, const struct option *o, const char *word)
{
    struct args *a = s->a;
    void *to = target_of(s, part, o->at);
    switch (o->kind) {
    case OPTION_SET:
        store(to, o->bytes, o->set);
        break;
    case OPTION_CHOICE:
        store(to, o->bytes, take_choice(a, o, word));
        break;
    case OPTION_INT:
        *(int *)to = (int)args_int(a, word, (int64_t)o->min, (int64_t)o->max);
        break;
    case OPTION_FLOAT:
        *(float *)to = (float)args_float(a, word, o->min, o->max);
        break;
    case OPTION_SEED:
        *(uint64_t *)to = args_seed(a, word);
        break;
    case OPTION_GIB:
        *(uint64_t *)to = args_gib(a, word);
        break;
    case OPTION_TEXT:
        *(const char **)to = *o->name == '-' ? args_value(a, word) : word;
        break;
    case OPTION_OUT:
        *(const char **)to = take_out(a, word);
        break;
    case OPTION_LIST:
        take_word(a, o, word, to, target_of(s, part, o->count_at));
        break;
    case OPTION_CALL:
        o->take(a, word, to);
        break;
    case OPTION_HELP:
        give_help(s);
        break;
    case OPTION_VERSION:
        printf("%s " DS4_VERSION "\n", s->p->name);
        s->told = true;
        break;
    case OPTION_SHOWN:
        break;
    }
}

/* An operand takes one word, or, as a list, all of them. */
static bool is_free(const struct scan *s, const struct help_part *part, const struct option *o)
{
    return o->kind == OPTION_LIST || !*(const char **)target_of(s, part, o->at);
}

static bool matches(const struct scan *s, const struct help_part *part, const struct option *o, const char *word)
{
    if (o->kind == OPTION_SHOWN) return false;
    if (*o->name == '-') return !strcmp(word, o->name) || (o->other && !strcmp(word, o->other));
    return (*word != '-' || !word[1]) && is_free(s, part, o);
}

static bool applies(const struct scan *s, const struct help_section *section)
{
    return !section->usage || section == s->command;
}

/* The row for a word and the section it is in; NULL: there is none. */
static const struct option *find(const struct scan *s, const char *word, const struct help_part **part)
{
    for (int i = 0; i < s->p->n_parts; i++) {
        const struct help_section *section = s->p->parts[i].section;
        *part = &s->p->parts[i];
        for (int k = 0; k < section->n_options && applies(s, section); k++)
            if (matches(s, *part, &section->options[k], word)) return &section->options[k];
    }
    return NULL;
}

/* As if they had been typed. */
static void take_defaults(struct scan *s)
{
    struct args *typed = s->a;
    for (int i = 0; i < s->p->n_parts; i++) {
        const struct help_section *section = s->p->parts[i].section;
        for (int k = 0; k < section->n_options && applies(s, section); k++) {
            const struct option *o = &section->options[k];
            char *initial[] = {(char *)(uintptr_t)o->initial};
            struct args a = {.program = typed->program, .argv = initial, .argc = 1};
            s->a = &a;
            if (o->initial) take(s, &s->p->parts[i], o, o->name);
            assert(!a.bad);
        }
    }
    s->a = typed;
}

bool option_scan(struct args *a, const struct help_program *p, const struct help_section *command, void *target,
                 int *status)
{
    struct scan s = {.a = a, .p = p, .command = command, .target = target};
    const struct help_part *part;
    take_defaults(&s);
    for (const char *word; !s.told && (word = args_next(a));) {
        const struct option *o = find(&s, word, &part);
        if (o)
            take(&s, part, o, word);
        else if (*word == '-')
            option_mistake(a, p, command, "unknown option ", word);
        else
            args_mistake(a, "unexpected argument %s; see %s --help", word, a->program);
    }
    *status = s.told ? 0 : 2;
    return !s.told && !a->bad;
}
